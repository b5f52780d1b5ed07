package schema

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	inferred "github.com/google/jsonschema-go/jsonschema"
)

// constraints are the parsed keys of one schema tag, in the order of the tag.
type constraints []constraint

type constraint struct{ key, value string }

// nextKey is where a value ends: a comma at once followed by a key. Everything
// that looks like a key counts, so that a misspelt one is not read as text.
var nextKey = regexp.MustCompile(`,[A-Za-z.]+=`)

func parseTag(tag, where string) (constraints, error) {
	var c constraints
	for rest := tag; rest != ""; {
		key, value, ok := strings.Cut(rest, "=")
		if !ok {
			return nil, errorAt(where, "schema tag is not a list of key=value")
		}
		rest = ""
		if at := nextKey.FindStringIndex(value); at != nil {
			value, rest = value[:at[0]], value[at[0]+1:]
		}
		for _, earlier := range c {
			if earlier.key == key {
				return nil, errorAt(where, "schema tag repeats "+key)
			}
		}
		c = append(c, constraint{key, value})
	}
	return c, nil
}

const itemsPrefix = "items."

// items returns the constraints for the elements.
func (c constraints) items() constraints {
	var of constraints
	for _, x := range c {
		if key, ok := strings.CutPrefix(x.key, itemsPrefix); ok {
			of = append(of, constraint{key, x.value})
		}
	}
	return of
}

// describe takes the description, which fits every type.
func (c constraints) describe(s *inferred.Schema, where string) (constraints, error) {
	var rest constraints
	for _, x := range c {
		switch {
		case x.key != "description":
			rest = append(rest, x)
		case s.Description != "":
			return nil, errorAt(where, "has two descriptions")
		default:
			s.Description = x.value
		}
	}
	return rest, nil
}

// apply sets the type and the constraints. Kind is a JSON type, "" for any, or
// "fixed array".
func (c constraints) apply(s *inferred.Schema, kind string, nullable bool, where string) error {
	for _, x := range c {
		if strings.HasPrefix(x.key, itemsPrefix) && strings.HasSuffix(kind, "array") {
			continue // applied to the elements
		}
		var problem string
		switch kind {
		case "string":
			problem = x.applyString(s)
		case "integer":
			problem = x.applyInteger(s)
		case "number":
			problem = x.applyNumber(s)
		case "array", "fixed array":
			problem = x.applyArray(s, kind == "array")
		default:
			problem = notForType
		}
		if problem != "" {
			return errorAt(where, "schema tag "+printable(x.key, 32)+": "+problem)
		}
	}
	if above(s.MinLength, s.MaxLength) || above(s.MinItems, s.MaxItems) || above(s.Minimum, s.Maximum) {
		return errorAt(where, "schema tag has a minimum above the maximum")
	}
	s.Type, s.Types = strings.TrimPrefix(kind, "fixed "), nil
	if nullable {
		s.Types, s.Type = []string{s.Type, "null"}, ""
		if s.Enum != nil {
			s.Enum = append(s.Enum, nil)
		}
	}
	return nil
}

const (
	notForType = "not known for this type"
	badValue   = "bad value"
)

func (x constraint) applyString(s *inferred.Schema) string {
	switch x.key {
	case "minLength":
		return x.count(&s.MinLength)
	case "maxLength":
		return x.count(&s.MaxLength)
	case "pattern":
		if _, err := compilePattern(x.value); err != nil || x.value == "" {
			return badValue
		}
		s.Pattern = x.value
		return ""
	case "enum":
		if strings.Contains(x.value, ",") {
			return "a comma (enum values are separated by |)"
		}
		return x.enum(s, func(v string) (any, bool) { return v, v != "" })
	}
	return notForType
}

func (x constraint) applyInteger(s *inferred.Schema) string {
	integer := func(v string) (int64, bool) {
		n, err := strconv.ParseInt(v, 10, 64)
		return n, err == nil && -maxInt <= n && n <= maxInt
	}
	switch x.key {
	case "minimum", "maximum":
		n, ok := integer(x.value)
		if !ok {
			return badValue
		}
		return x.bound(s, float64(n))
	case "enum":
		return x.enum(s, func(v string) (any, bool) { n, ok := integer(v); return n, ok })
	}
	return notForType
}

func (x constraint) applyNumber(s *inferred.Schema) string {
	if x.key != "minimum" && x.key != "maximum" {
		return notForType
	}
	f, err := strconv.ParseFloat(x.value, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return badValue
	}
	return x.bound(s, f)
}

func (x constraint) applyArray(s *inferred.Schema, sized bool) string {
	switch {
	case x.key == "minItems" && sized:
		return x.count(&s.MinItems)
	case x.key == "maxItems" && sized:
		return x.count(&s.MaxItems)
	case x.key == "uniqueItems" && x.value == "true":
		s.UniqueItems = true
		return ""
	}
	return notForType
}

func (x constraint) count(field **int) string {
	n, err := strconv.ParseUint(x.value, 10, 31)
	if err != nil {
		return badValue
	}
	count := int(n)
	*field = &count
	return ""
}

// bound only narrows the range of the Go type, or the value would not fit.
func (x constraint) bound(s *inferred.Schema, f float64) string {
	if s.Minimum != nil && f < *s.Minimum || s.Maximum != nil && f > *s.Maximum {
		return "outside the range that is left"
	}
	if x.key == "minimum" {
		s.Minimum = &f
	} else {
		s.Maximum = &f
	}
	return ""
}

func (x constraint) enum(s *inferred.Schema, parse func(string) (any, bool)) string {
	for value := range strings.SplitSeq(x.value, "|") {
		v, ok := parse(value)
		if !ok {
			return badValue
		}
		for _, earlier := range s.Enum {
			if earlier == v {
				return "a value twice"
			}
		}
		s.Enum = append(s.Enum, v)
	}
	return ""
}

func above[N int | float64](low, high *N) bool {
	return low != nil && high != nil && *low > *high
}
