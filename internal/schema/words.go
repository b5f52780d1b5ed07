package schema

import (
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A word is a keyword of JSON Schema: what its value holds, what it says
// something about, and the first draft that has it.
type word struct {
	holds  holding
	types  string // of values, separated by spaces; "" is all
	since  int    // 0 is before draft-06
	beside bool   // says nothing that a $ref beside it could make void
}

type holding int

const (
	data     holding = iota
	one              // a schema
	several          // a list of schemas
	byName           // schemas by name
	ifSchema         // schemas by name, or lists of names
)

const numeric = "number integer"

var keywords = map[string]word{
	"$schema": {beside: true}, "$id": {beside: true}, "$comment": {beside: true},
	"$anchor": {since: 2019}, "$dynamicAnchor": {since: 2020}, "$ref": {beside: true},
	"$defs": {holds: byName, beside: true}, "definitions": {holds: byName, beside: true},
	"title": {beside: true}, "description": {beside: true}, "default": {beside: true}, "examples": {beside: true}, "example": {beside: true},
	"deprecated": {beside: true}, "readOnly": {beside: true}, "writeOnly": {beside: true},

	"type": {}, "enum": {}, "const": {}, "format": {},
	"allOf": {holds: several}, "anyOf": {holds: several}, "oneOf": {holds: several}, "not": {holds: one},
	"if": {holds: one, since: 7}, "then": {holds: one, since: 7}, "else": {holds: one, since: 7},

	"minLength": {types: "string"}, "maxLength": {types: "string"}, "pattern": {types: "string"},
	"contentEncoding": {types: "string"}, "contentMediaType": {types: "string"}, "contentSchema": {types: "string", holds: one},

	"minimum": {types: numeric}, "maximum": {types: numeric}, "multipleOf": {types: numeric},
	"exclusiveMinimum": {types: numeric}, "exclusiveMaximum": {types: numeric},

	"items": {types: "array", holds: one}, "prefixItems": {types: "array", holds: several, since: 2020},
	"minItems": {types: "array"}, "maxItems": {types: "array"}, "uniqueItems": {types: "array"},
	"contains": {types: "array", holds: one}, "minContains": {types: "array", since: 2019}, "maxContains": {types: "array", since: 2019},
	"unevaluatedItems": {types: "array", holds: one, since: 2019},

	"properties": {types: "object", holds: byName}, "patternProperties": {types: "object", holds: byName},
	"additionalProperties": {types: "object", holds: one}, "propertyNames": {types: "object", holds: one},
	"required": {types: "object"}, "minProperties": {types: "object"}, "maxProperties": {types: "object"},
	"dependentRequired": {types: "object", since: 2019}, "dependentSchemas": {types: "object", holds: byName, since: 2019},
	"dependencies":          {types: "object", holds: ifSchema},
	"unevaluatedProperties": {types: "object", holds: one, since: 2019},
}

// foreign are words of other dialects, and what to write for them.
var foreign = map[string]string{
	"nullable":        `is a word of OpenAPI: write "type": ["string", "null"] or the like`,
	"discriminator":   "is a word of OpenAPI: write a const in each branch",
	"components":      "is a word of OpenAPI: write $defs",
	"additionalItems": "is a word of earlier drafts: write prefixItems and items",
	"id":              "is a word of draft-04: write $id",
	"divisibleBy":     "is a word of draft-03: write multipleOf",
	"$dynamicRef":     "$dynamicRef is not supported",
	"$recursiveRef":   "$recursiveRef is not supported",
	"$vocabulary":     "$vocabulary is not supported",
}

// drafts are the labels under which most bodies mean what they mean in 2020-12.
// Where one does not, the word is refused.
var drafts = map[string]int{
	"json-schema.org/draft-06/schema":      6,
	"json-schema.org/draft-07/schema":      7,
	"json-schema.org/draft/2019-09/schema": 2019,
}

// reading looks at the words of a schema, before the validator does: it names
// the place of what the validator would ignore, or calls malformed.
type reading struct {
	draft int
	// places are those at which a schema stands. A $ref to anywhere else would
	// lead to words that nobody has looked at.
	places   map[string]bool
	patterns patternCache
}

// readWords refuses words that would be ignored, and takes the label of a draft
// away that means the same here.
func readWords(doc map[string]any) (*reading, error) {
	r := &reading{draft: 2020, places: map[string]bool{"#/unevaluatedProperties": true}, patterns: patternCache{}} // of closeRoot
	if label, ok := doc["$schema"].(string); ok {
		name := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(label, "https://"), "http://"), "#")
		if draft, ok := drafts[name]; ok {
			r.draft = draft
			delete(doc, "$schema")
		}
	}
	return r, r.schema(doc, nil)
}

func (r *reading) schema(v any, at []string) error {
	r.places[pointer(at)] = true
	obj, ok := v.(map[string]any)
	if !ok {
		return nil // a boolean, or what the metaschema refuses
	}
	if err := r.words(obj, at); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(obj)) {
		if err := r.inside(keywords[key].holds, obj[key], append(slices.Clip(at), key)); err != nil {
			return err
		}
	}
	return nil
}

func (r *reading) inside(holds holding, v any, at []string) error {
	switch list, _ := v.([]any); {
	case holds == one && list == nil:
		return r.schema(v, at)
	case holds == one:
		return errorAt(pointer(at), "is a list, as in earlier drafts: write prefixItems")
	case holds == several:
		for i, sub := range list {
			if err := r.schema(sub, append(slices.Clip(at), strconv.Itoa(i))); err != nil {
				return err
			}
		}
	case holds != data:
		named, _ := v.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(named)) {
			if _, isList := named[name].([]any); isList && holds == ifSchema {
				continue
			}
			if err := r.schema(named[name], append(slices.Clip(at), name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// words checks the words of one subschema by themselves.
func (r *reading) words(obj map[string]any, at []string) error {
	for _, key := range slices.Sorted(maps.Keys(obj)) {
		w, known := keywords[key]
		fail := func(problem string) error { return errorAt(pointer(append(slices.Clip(at), key)), problem) }
		switch {
		case key == "$schema" && len(at) > 0 && obj[key] != metaURL+"schema":
			return errorAt(pointer(at), "$schema is not JSON Schema 2020-12")
		case !known && strings.HasPrefix(key, "x-"):
		case !known:
			return fail(unknownWord(key))
		case w.since > r.draft:
			return fail("is not a word of the draft that $schema names: it would say nothing")
		case r.draft <= 7 && obj["$ref"] != nil && !w.beside && (key != "type" || len(at) > 0):
			return fail("says nothing beside a $ref in the draft that $schema names")
		case !speaksOf(w, obj["type"]):
			return fail("says nothing about the type")
		}
	}
	if err := r.bounds(obj, at); err != nil {
		return err
	}
	return checkBranches(obj, at)
}

func (r *reading) bounds(obj map[string]any, at []string) error {
	place := func(more ...string) string { return pointer(append(slices.Clip(at), more...)) }
	for _, key := range []string{"exclusiveMinimum", "exclusiveMaximum"} {
		if _, isBool := obj[key].(bool); isBool {
			return errorAt(place(key), "is true or false only in draft-04: write the bound")
		}
	}
	if s, ok := obj["pattern"].(string); ok {
		if _, err := r.patterns.compile(s); err != nil {
			return errorAt(place("pattern"), err.Error())
		}
	}
	if named, ok := obj["patternProperties"].(map[string]any); ok {
		for _, s := range slices.Sorted(maps.Keys(named)) {
			if _, err := r.patterns.compile(s); err != nil {
				return errorAt(place("patternProperties"), "a key of patternProperties is no pattern: it "+err.Error())
			}
		}
	}
	values, _ := obj["enum"].([]any)
	for i, v := range values {
		if !ofType(literal(v), obj["type"]) {
			return errorAt(place("enum", strconv.Itoa(i)), "is not of the type")
		}
	}
	if v, ok := obj["const"]; ok && !ofType(literal(v), obj["type"]) {
		return errorAt(place("const"), "is not of the type")
	}
	return nil
}

// checkBranches finds branches of oneOf that can never be the only one.
func checkBranches(obj map[string]any, at []string) error {
	branches, _ := obj["oneOf"].([]any)
	for i, a := range branches {
		for j, b := range branches {
			switch {
			case i == j:
			case isAny(a):
				return errorAt(pointer(append(slices.Clip(at), "oneOf", strconv.Itoa(j))), "another branch of oneOf accepts every value: this one never is the only one")
			case i < j && reflect.DeepEqual(a, b):
				return errorAt(pointer(append(slices.Clip(at), "oneOf", strconv.Itoa(j))), "another branch of oneOf is the same: neither is ever the only one")
			}
		}
	}
	return nil
}

// isAny reports whether a schema accepts every value.
func isAny(v any) bool {
	obj, ok := v.(map[string]any)
	return v == true || ok && len(obj) == 0
}

// speaksOf reports whether a word can matter to values of the type.
func speaksOf(w word, typ any) bool {
	if w.types == "" || typ == nil {
		return true
	}
	list, ok := typ.([]any)
	if !ok {
		list = []any{typ}
	}
	return slices.ContainsFunc(list, func(t any) bool {
		name, ok := t.(string)
		return !ok || slices.Contains(strings.Fields(w.types), name)
	})
}

// ofType reports whether a value can have the type. What is no type is left to
// the metaschema.
func ofType(v, typ any) bool {
	switch t := typ.(type) {
	case string:
		kind, known := kindsByName[t]
		return !known || kind&kindOf(v) != 0
	case []any:
		return slices.ContainsFunc(t, func(t any) bool { return ofType(v, t) })
	}
	return true
}

func unknownWord(key string) string {
	if problem, ok := foreign[key]; ok {
		return problem
	}
	problem := "is not a word of JSON Schema, and would be ignored"
	best, distance := "", 3
	for _, known := range slices.Sorted(maps.Keys(keywords)) {
		d := editDistance(strings.ToLower(key), strings.ToLower(known))
		if d < distance && d < len(known)/2 {
			best, distance = known, d
		}
	}
	if best != "" {
		problem += ": is it " + best + "?"
	}
	return problem
}

// editDistance counts the bytes to insert, remove or change; long words differ.
func editDistance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// checkPlaces holds the places that a $ref found against those that were read.
func (r *reading) checkPlaces(root *jsonschema.Schema) error {
	var astray []string
	for _, s := range graphOf(root).found {
		where, err := url.PathUnescape(fragment(s.Location))
		if err != nil || !r.places[where] {
			astray = append(astray, fragment(s.Location))
		}
	}
	if len(astray) > 0 {
		return errorAt(slices.Min(astray), "a $ref leads to what is not a schema")
	}
	return nil
}
