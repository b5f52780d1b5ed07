package schema

import (
	"bytes"
	"encoding/json"
	oldrand "math/rand"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"testing/quick"

	jsonv2 "github.com/go-json-experiment/json"
)

type Base struct {
	ID int16 `json:"id"`
}

type color string

type plain struct {
	Base
	S  string             `json:"s"`
	C  color              `json:"c,omitempty"`
	B  bool               `json:"b"`
	I  int                `json:"i"`
	U  uint32             `json:"u"`
	I8 *int8              `json:"i8"`
	F  float64            `json:"f,omitzero"`
	L  []string           `json:"l"`
	A  [2]bool            `json:"a"`
	M  map[color]*float64 `json:"m"`
	In struct {
		X []map[string]bool
	} `json:"in"`
	P *Base `json:"p,omitempty"`
}

// What a type encodes to passes its schema, and what passes decodes.
func TestInferredSchemasFitTheEncoding(t *testing.T) {
	for _, typ := range []reflect.Type{
		reflect.TypeFor[plain](), reflect.TypeFor[expression](), reflect.TypeFor[forest](), reflect.TypeFor[ring[[]plain]](),
		reflect.TypeFor[struct{ Any any }](),
	} {
		t.Run(typ.String(), func(t *testing.T) {
			s, err := Infer(typ)
			if err != nil {
				t.Fatal(err)
			}
			encodes(t, s, typ)
			decodes(t, s, typ)
		})
	}
}

func encodes(t *testing.T, s *Schema, typ reflect.Type) {
	t.Helper()
	r := oldrand.New(oldrand.NewSource(1)) // testing/quick knows no other
	values := []reflect.Value{reflect.Zero(typ)}
	for range 100 {
		if v, ok := quick.Value(typ, r); ok {
			values = append(values, v)
		}
	}
	for _, v := range values {
		text, err := jsonv2.Marshal(v.Interface())
		if err != nil {
			t.Fatal(err)
		}
		tree := literal(mustParse(t, text))
		if violations := s.ValidateOutput(tree); violations != nil {
			t.Fatalf("%s: %v", text, violations)
		}
	}
}

func decodes(t *testing.T, s *Schema, typ reflect.Type) {
	t.Helper()
	root := mustParse(t, s.JSON())
	sampler := sampler{r: rand.New(rand.NewPCG(1, 2)), root: root.(map[string]any)}
	for range 300 {
		v := sampler.value(root, 6)
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if violations := s.ValidateInput(v); violations != nil {
			t.Fatalf("%s: %v", text, violations)
		}
		if err := jsonv2.Unmarshal(text, reflect.New(typ).Interface(), jsonv2.RejectUnknownMembers(true)); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}

// A sampler makes values that an inferred schema without tags must accept.
type sampler struct {
	r    *rand.Rand
	root map[string]any
}

func (g sampler) value(schema any, depth int) any {
	s, _ := schema.(map[string]any)
	if ref, ok := s["$ref"].(string); ok {
		if ref == "#" {
			return g.value(g.root, depth)
		}
		return g.value(g.root["$defs"].(map[string]any)[ref[len("#/$defs/"):]], depth)
	}
	if branches, ok := s["anyOf"].([]any); ok {
		if depth <= 0 {
			return nil // the other branch
		}
		return g.value(branches[g.r.IntN(len(branches))], depth)
	}
	kind, _ := s["type"].(string)
	if list, ok := s["type"].([]any); ok { // nullable: null is the last
		if depth <= 0 || g.r.IntN(3) == 0 {
			return nil
		}
		kind = list[0].(string)
	}
	switch kind {
	case "object":
		return g.object(s, depth)
	case "array":
		return g.array(s, depth)
	case "string":
		return []any{"", "é", "a b"}[g.r.IntN(3)]
	case "null":
		return nil
	case "boolean":
		return g.r.IntN(2) == 0
	case "number":
		return []any{int64(1), 0.5, -1e300}[g.r.IntN(3)]
	case "integer":
		for _, bound := range []string{"maximum", "minimum"} {
			if n, ok := s[bound]; ok && g.r.IntN(2) == 0 {
				return literal(n)
			}
		}
		return int64(0)
	}
	return []any{nil, true, "x", 1.5, []any{map[string]any{}}}[g.r.IntN(5)]
}

func (g sampler) object(s map[string]any, depth int) any {
	v := map[string]any{}
	props, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for name, sub := range props {
		if slices.Contains(required, any(name)) || depth > 0 && g.r.IntN(2) == 0 {
			v[name] = g.value(sub, depth-1)
		}
	}
	if more, open := s["additionalProperties"].(map[string]any); open && depth > 0 {
		v["other"] = g.value(more, depth-1)
	}
	return v
}

func (g sampler) array(s map[string]any, depth int) any {
	n := g.r.IntN(3)
	if depth <= 0 {
		n = 0
	}
	if low, ok := literal(s["minItems"]).(int64); ok {
		n = int(low)
	}
	return list(n, func(int) any { return g.value(s["items"], depth-1) })
}

func mustParse(t *testing.T, text []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
