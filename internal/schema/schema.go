package schema

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A Schema is the declared shape of a tool's arguments or result.
type Schema struct {
	text   []byte
	root   *declarations
	names  map[string]string
	input  *validator
	output *validator
	costs  *costTable
	fast   *node // nil where the schema is beyond the fast path
}

// Compile reads JSON Schema 2020-12 text, which need not be trusted. Only
// objects may pass the root. What is accepted can be used: some value passes,
// and no word is ignored. A non-nil error is an [*Error].
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
	read, err := readWords(doc)
	if err != nil {
		return nil, err
	}
	if s, err = compile(doc, text, read.patterns); err != nil {
		return nil, err
	}
	if err := read.checkPlaces(s.input.compiled); err != nil {
		return nil, err
	}
	if s.names, err = usable(s.input.compiled); err != nil {
		return nil, err
	}
	return s, nil
}

// compile does not ask whether the schema can be used.
func compile(doc map[string]any, text []byte, patterns patternCache) (s *Schema, err error) {
	typ, given := doc["type"]
	if given && typ != "object" || !given && doc["$ref"] == nil && doc["allOf"] == nil {
		return nil, errNotObject
	}
	s = &Schema{fast: fastPath(doc)}
	closeRoot(doc)
	if s.input, err = newValidator(doc, true, patterns); err != nil {
		return nil, err
	}
	if s.output, err = newValidator(doc, false, patterns); err != nil {
		return nil, err
	}
	if s.costs, err = costsOf(s.input.compiled); err != nil {
		return nil, err
	}
	s.root = declaredBy(s.input.compiled)
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return nil, errorAt("", "invalid JSON")
	}
	s.text = compact.Bytes()
	if given {
		return s, nil
	}
	left := anyKind
	for _, x := range gather(nil, s.input.compiled) {
		left &= kindsOf(x)
	}
	if left != kindObject {
		return nil, errNotObject
	}
	// Providers ask for the type at the root itself.
	s.text = append([]byte(`{"type":"object",`), s.text[1:]...)
	return s, nil
}

var errNotObject = errorAt("#/type", `the root must have "type": "object"`)

// closeRoot has the validator find the properties that no schema at the root
// looked at, where more than one is there to look. The other roots are closed
// by violations.
func closeRoot(doc map[string]any) {
	for _, keyword := range []string{"additionalProperties", "unevaluatedProperties"} {
		if _, ok := doc[keyword]; ok {
			return
		}
	}
	for _, keyword := range []string{"$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "dependencies"} {
		if _, ok := doc[keyword]; ok {
			doc["unevaluatedProperties"] = false
			return
		}
	}
}

// JSON returns the schema to show to a model: the text given to Compile, or
// inferred, without insignificant white space. Equal texts and types give equal
// bytes. The caller may keep and change them.
func (s *Schema) JSON() []byte { return slices.Clone(s.text) }

// Fields returns the names of the declared root properties, sorted.
func (s *Schema) Fields() []string { return slices.Sorted(maps.Keys(s.root.names)) }

// Open reports whether the root allows properties that it does not name: by
// additionalProperties, unevaluatedProperties or patternProperties.
func (s *Schema) Open() bool { return s.root.open || len(s.root.patterns) > 0 }

// Names returns the properties that values may have by name, at any depth, each
// with a place in the schema that names it.
func (s *Schema) Names() map[string]string { return maps.Clone(s.names) }

// LeastOutput returns how many bytes the least output has at least, among those
// whose deepest value is no deeper than depth. An [*Error] says why there is none.
func (s *Schema) LeastOutput(depth int) (int, error) {
	found := newLeast(false).of(set{open: rootSet(s.output.compiled)}, depth)
	if found.none != nil {
		return 0, found.none
	}
	return found.size, nil
}

// Needs reports whether every value has the property.
func (s *Schema) Needs(name string) bool {
	no := false
	without := &jsonschema.Schema{Location: documentURL + "#", Properties: map[string]*jsonschema.Schema{name: {Bool: &no, Location: documentURL + "#"}}}
	return newLeast(false).of(set{open: gather(rootSet(s.output.compiled), without)}, MaxDepth).none != nil
}

// CanEqual reports whether a property of s can have a value that a property of
// other can have too.
func (s *Schema) CanEqual(name string, other *Schema, otherName string) bool {
	l := newLeast(false)
	both := gather(l.property(rootSet(s.output.compiled), name), l.property(rootSet(other.output.compiled), otherName)...)
	return l.of(set{open: both}, MaxDepth).none == nil
}

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
	found := collector{closed: validator.closed, declared: map[string]*declarations{}}
	if obj, ok := v.(map[string]any); ok {
		for name := range obj {
			if !s.root.has(name) {
				found.add("$"+segment(name), RuleUnknownField)
			}
		}
	}
	found.collect(v, validator.compiled.Validate(v))
	return found.result()
}
