package schema

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// compileError keeps the place and the rule of the validator's error, whose
// text may quote the schema at any length.
func compileError(doc map[string]any, err error) error {
	var ours *Error
	if errors.As(err, &ours) {
		return ours
	}
	var (
		regex    *jsonschema.InvalidRegexError
		invalid  *jsonschema.SchemaValidationError
		draft    *jsonschema.UnsupportedDraftError
		dangling *jsonschema.JSONPointerNotFoundError
		anchor   *jsonschema.AnchorNotFoundError
	)
	switch {
	case errors.As(err, &regex):
		return errorAt(fragment(regex.URL), regex.Err.Error())
	case errors.As(err, &invalid):
		return metaError(invalid)
	case errors.Is(err, errNotLoaded), errors.As(err, new(*jsonschema.LoadURLError)):
		return errorAt(findRef(doc, func(ref string) bool { return !strings.HasPrefix(ref, "#") }), problemOutside)
	case errors.As(err, &draft):
		return errorAt("", "$schema is not JSON Schema 2020-12")
	case errors.As(err, &dangling):
		return errorAt(findRef(doc, endsLike(dangling.URL)), "a $ref leads nowhere")
	case errors.As(err, &anchor):
		return errorAt(findRef(doc, endsLike(anchor.Reference)), "a $ref leads nowhere")
	}
	return errorAt("", "not a valid JSON Schema 2020-12")
}

// metaError reports the deepest place at which the schema breaks the
// metaschema, and of those the first in order.
func metaError(invalid *jsonschema.SchemaValidationError) error {
	base := fragment(invalid.URL)
	var e *jsonschema.ValidationError
	if !errors.As(invalid.Err, &e) {
		return errorAt(base, "not valid JSON Schema 2020-12")
	}
	where, rule, depth := "", "", -1
	var visit func(e *jsonschema.ValidationError)
	visit = func(e *jsonschema.ValidationError) {
		at, r, n := pointer(e.InstanceLocation), ruleOf(e.ErrorKind), len(e.InstanceLocation)
		if r == "propertyNames" { // its location is not stable: see collector.visit
			at, n = "#", 0
		} else if len(e.Causes) > 0 {
			for _, cause := range e.Causes {
				visit(cause)
			}
			return
		}
		if n > depth || n == depth && at+r < where+rule {
			where, rule, depth = at, r, n
		}
	}
	visit(e)
	problem := "breaks the rule " + rule + " of JSON Schema 2020-12"
	switch rule {
	case "format":
		problem = "is malformed, or a pattern that is too large"
	case "propertyNames":
		problem = "a key of patternProperties is not a pattern, or too large a pattern"
	}
	return errorAt(base+strings.TrimPrefix(where, "#"), problem)
}

func fragment(url string) string {
	_, frag, _ := strings.Cut(url, "#")
	return "#" + frag
}

const problemOutside = "a $ref or $schema leads outside this document: nothing is loaded"

func endsLike(url string) func(ref string) bool {
	want := fragment(url)
	return func(ref string) bool { return fragment(ref) == want }
}

// findRef helps the author: the validator says what it was asked for, but not
// by whom. It looks at all objects, schemas or not, and so may be wrong where a
// schema has references in its data.
func findRef(doc map[string]any, match func(ref string) bool) string {
	var find func(v any, at []string) string
	find = func(v any, at []string) string {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				here := append(slices.Clip(at), key)
				ref, isString := v[key].(string)
				if isString && (key == "$ref" || key == "$schema") && ref != metaURL+"schema" && match(ref) {
					return pointer(here)
				}
				if found := find(v[key], here); found != "" {
					return found
				}
			}
		case []any:
			for i, x := range v {
				if found := find(x, append(slices.Clip(at), strconv.Itoa(i))); found != "" {
					return found
				}
			}
		}
		return ""
	}
	return find(doc, nil)
}
