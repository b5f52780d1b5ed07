package schema

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// A Schema is the declared shape of a tool's arguments or result.
type Schema struct {
	text   []byte
	root   map[string]struct{} // declared root properties
	fields []string
	input  *validator
	output *validator
	costs  *costTable
	fast   *node // nil where the schema is beyond the fast path
}

// Compile reads JSON Schema 2020-12 text, which need not be trusted. The root
// has to have the type "object", and may require only properties it declares.
// A non-nil error is an [*Error].
func Compile(text []byte) (s *Schema, err error) {
	// The text may be hostile and the validator is large: a panic in there must
	// not end the host.
	defer func() {
		if recover() != nil {
			s, err = nil, errorAt("", "cannot be compiled")
		}
	}()
	doc, err := parse(text)
	if err != nil {
		return nil, err
	}
	if doc["type"] != "object" {
		return nil, errorAt("#/type", `the root must have "type": "object"`)
	}
	s = &Schema{root: map[string]struct{}{}}
	if s.input, err = newValidator(doc, true); err != nil {
		return nil, err
	}
	if s.output, err = newValidator(doc, false); err != nil {
		return nil, err
	}
	if s.costs, err = costsOf(s.input.compiled); err != nil {
		return nil, err
	}
	for name := range s.input.compiled.Properties {
		s.root[name] = struct{}{}
	}
	for _, name := range s.input.compiled.Required {
		if _, declared := s.root[name]; !declared {
			return nil, errorAt("#/required", "requires a property that is not declared")
		}
	}
	s.fields = slices.Sorted(maps.Keys(s.root))
	s.fast = fastPath(doc)

	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return nil, errorAt("", "invalid JSON")
	}
	s.text = compact.Bytes()
	return s, nil
}

// JSON returns the schema to show to a model: the text given to Compile, or
// inferred, without insignificant white space. Equal texts and types give equal
// bytes. The caller may keep and change them.
func (s *Schema) JSON() []byte { return slices.Clone(s.text) }

// Fields returns the names of the declared root properties, sorted.
func (s *Schema) Fields() []string { return slices.Clone(s.fields) }

// ValidateInput returns what is wrong with v as arguments of a tool: there
// minLength counts without surrounding white space. The result is sorted, free
// of duplicates, and holds the first [MaxViolations]; it is nil if v is valid.
// Of a value with the wrong type, enum or const no other rule is reported.
func (s *Schema) ValidateInput(v any) []Violation {
	if s.fast != nil && s.fast.accepts(v, true) {
		return nil
	}
	return s.violations(s.input, v)
}

// ValidateOutput is ValidateInput for the result of a tool: there every length
// counts raw code points.
func (s *Schema) ValidateOutput(v any) []Violation {
	if s.fast != nil && s.fast.accepts(v, false) {
		return nil
	}
	return s.violations(s.output, v)
}

func (s *Schema) violations(validator *validator, v any) (vs []Violation) {
	defer func() {
		if recover() != nil { // fail closed, as in Compile
			vs = []Violation{{Path: "$", Rule: RuleFailed}}
		}
	}()
	if rule := s.costs.check(v); rule != "" {
		return []Violation{{Path: "$", Rule: rule}}
	}
	var found collector
	if obj, ok := v.(map[string]any); ok {
		for name := range obj {
			if _, declared := s.root[name]; !declared {
				found.add("$"+segment(name), RuleUnknownField)
			}
		}
	}
	found.collect(v, validator.compiled.Validate(v))
	return found.result()
}
