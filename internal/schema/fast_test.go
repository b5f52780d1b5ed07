package schema

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
)

// generator makes random schemas around the edge of the fast path, and random
// values that often match them.
type generator struct{ r *rand.Rand }

func pick[T any](g generator, list ...T) T { return list[g.r.IntN(len(list))] }

func (g generator) chance(percent int) bool { return g.r.IntN(100) < percent }

var words = []string{
	"", " ", "a", "b", "ab", "abc", " a ", "\u00a0x", "\x1f", "\u200b", "é", "日本語", "DRAFT-1", "DRAFT-0", "a\n", "\xff", "𝒳", "\u3000ab\u0085",
}

var numbers = []any{
	int64(0), int64(1), int64(-1), int64(2), int64(7), int64(9007199254740991), 0.0, 1.0, 0.5, 0.1, 0.30000000000000004, 1e15, -2.5, 1e300,
}

func (g generator) schema(depth int) any {
	if g.chance(3) {
		return pick[any](g, true, false, map[string]any{})
	}
	s := map[string]any{}
	kinds := []string{"string", "string", "integer", "number", "boolean", "null"}
	if depth > 0 {
		kinds = append(kinds, "object", "object", "array", "array")
	}
	kind := pick(g, kinds...)
	s["type"] = kind
	switch {
	case g.chance(10) && kind != "null":
		s["type"] = []any{kind, "null"}
	case g.chance(3):
		s["type"] = []any{kind, pick(g, "boolean", "integer", "null")}
		if s["type"].([]any)[1] == kind {
			s["type"] = kind
		}
	case g.chance(2):
		delete(s, "type")
	}
	g.keywords(s, kind, depth)
	if g.chance(5) { // beyond the fast path
		keyword := pick(g, "const", "not", "anyOf", "minProperties", "exclusiveMinimum", "multipleOf", "uniqueItems", "prefixItems", "x-unknown")
		s[keyword] = map[string]any{
			"const": "a", "not": map[string]any{"minLength": 2}, "anyOf": []any{map[string]any{"maxLength": 1}, true}, "minProperties": 1,
			"exclusiveMinimum": 0, "multipleOf": 0.5, "uniqueItems": true, "prefixItems": []any{true}, "x-unknown": 1,
		}[keyword]
	}
	return s
}

func (g generator) keywords(s map[string]any, kind string, depth int) {
	maybe := func(keyword string, v any) {
		if g.chance(35) {
			s[keyword] = v
		}
	}
	if g.chance(4) { // keywords of another type must not confuse either side
		kind = pick(g, "string", "number", "array")
	}
	switch kind {
	case "string":
		maybe("minLength", g.r.IntN(4))
		maybe("maxLength", g.r.IntN(6))
		maybe("pattern", pick(g, "^a", "a$", "^DRAFT-[1-9][0-9]*$", "é|日", ".", "^\\s*$"))
		maybe("enum", []any{pick(g, words...), "a", "ab", "zz"})
	case "integer", "number":
		maybe("minimum", pick[any](g, -1, 0, 1, 2, 0.1, 0.5, -2.5, json.RawMessage("1.0"), json.RawMessage("0.10000000000000000001"), json.RawMessage("1e0")))
		maybe("maximum", pick[any](g, 0, 1, 7, 0.5, 0.3, 1e15, json.RawMessage("7.0"), json.RawMessage("0.30000000000000004")))
		if g.chance(20) {
			s["enum"] = pick(g, []any{0, 1, 7}, []any{json.RawMessage("1.0"), 2}, []any{1, "a"}, []any{1, nil})
		}
	case "array":
		maybe("items", g.schema(depth-1))
		maybe("minItems", g.r.IntN(3))
		maybe("maxItems", g.r.IntN(4))
	case "object":
		props := map[string]any{}
		var required []any
		for _, name := range []string{"a", "b", "c d"} {
			if g.chance(60) {
				props[name] = g.schema(depth - 1)
				if g.chance(50) {
					required = append(required, name)
				}
			}
		}
		s["properties"] = props
		if g.chance(70) && len(required) > 0 {
			s["required"] = required
		}
		maybe("additionalProperties", pick[any](g, true, false, map[string]any{"type": "string"}))
	}
	if g.chance(5) {
		s["title"], s["format"], s["default"] = "t", "email", 1
	}
}

// value makes a value for a schema, usually of its type.
func (g generator) value(schema any, depth int) any {
	s, _ := schema.(map[string]any)
	kind, _ := s["type"].(string)
	if list, ok := s["type"].([]any); ok {
		kind = pick(g, list...).(string)
	}
	if kind == "" || g.chance(4) {
		kind = pick(g, "string", "integer", "number", "boolean", "null", "object", "array")
	}
	switch kind {
	case "string":
		if list, ok := s["enum"].([]any); ok && g.chance(80) {
			if word, ok := pick(g, list...).(string); ok {
				return word
			}
		}
		return pick(g, words...)
	case "integer", "number":
		return pick(g, numbers...)
	case "boolean":
		return g.chance(50)
	case "object":
		obj := map[string]any{}
		props, _ := s["properties"].(map[string]any)
		for _, name := range []string{"a", "b", "c d", "other"} {
			if sub, ok := props[name]; ok && g.chance(85) || g.chance(3) {
				obj[name] = g.value(sub, depth-1)
			}
		}
		return obj
	case "array":
		if depth < 0 {
			return []any{}
		}
		return list(g.r.IntN(4), func(int) any { return g.value(s["items"], depth-1) })
	}
	return nil
}

// checkFastPath compares the two ways on one random schema and some values, and
// returns how many of the valid values the fast path knew.
func checkFastPath(t *testing.T, seed uint64) (known, valid int) {
	g := generator{rand.New(rand.NewPCG(seed, 0))}
	schema := g.schema(3)
	for i := 0; i < 20; i++ {
		if m, ok := schema.(map[string]any); ok && m["type"] == "object" {
			break
		}
		schema = g.schema(3)
	}
	text, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Compile(text)
	if err != nil {
		return 0, 0
	}
	for range 30 {
		v := g.value(schema, 3)
		for _, trimmed := range []bool{true, false} {
			validator := s.output
			if trimmed {
				validator = s.input
			}
			violations := s.violations(validator, v)
			fast := s.fast != nil && s.fast.accepts(v, trimmed)
			if fast && violations != nil {
				t.Fatalf("seed %d, trimmed %v: the fast path accepts %#v, but %v\n%s", seed, trimmed, v, violations, text)
			}
			if violations == nil && s.fast != nil {
				valid++
				if fast {
					known++
				}
			}
		}
	}
	return known, valid
}

func TestFastPathAgreesWithTheValidator(t *testing.T) {
	n := uint64(6000)
	if testing.Short() {
		n = 1000
	}
	known, valid := 0, 0
	for seed := range n {
		k, v := checkFastPath(t, seed)
		known, valid = known+k, valid+v
	}
	t.Logf("the fast path knew %d of %d valid values", known, valid)
	if valid < 1000 || known*100 < valid*80 {
		t.Errorf("the fast path knew only %d of %d valid values", known, valid)
	}
}

func FuzzFastPath(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { checkFastPath(t, seed) })
}

// FuzzCompile looks for panics and hangs, and for values that a schema accepts
// only sometimes.
func FuzzCompile(f *testing.F) {
	for _, tt := range hostile {
		if len(tt.text) < 4096 { // the others only slow it down
			f.Add([]byte(tt.text))
		}
	}
	f.Add([]byte(everythingSchema))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Compile(text)
		if err != nil {
			if s != nil || len(err.Error()) > 1000 {
				t.Fatalf("bad error: %v", err)
			}
			return
		}
		for _, v := range []any{nil, map[string]any{}, a("x"), a([]any{int64(1), 1.0, a(" ")}), chain("a", 6, " ")} {
			first := fmt.Sprint(s.ValidateInput(v))
			if again := fmt.Sprint(s.ValidateInput(v)); again != first {
				t.Fatalf("%s, then %s", first, again)
			}
			s.ValidateOutput(v)
		}
	})
}

func TestFastPathTakesTheToolsOfToday(t *testing.T) {
	for name, s := range map[string]*Schema{
		"order input": orderInput(t), "order output": orderOutput(t), "refund input": refundInput(t), "refund output": refundOutput(t),
	} {
		if s.fast == nil {
			t.Errorf("%s is not on the fast path", name)
		}
	}
	if s, err := For[line](); err != nil || s.fast == nil {
		t.Errorf("an inferred schema is not on the fast path: %v", err)
	}
}

func TestFastPathAllocatesNothing(t *testing.T) {
	s, v := refundInput(t), map[string]any{"order_ref": "ORDER-7", "reason": "damaged"}
	if n := testing.AllocsPerRun(100, func() {
		if s.ValidateInput(v) != nil {
			t.Fatal("not valid")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkValidateInput(b *testing.B) {
	s := refundInput(b)
	valid := map[string]any{"order_ref": "ORDER-7", "reason": "damaged"}
	b.Run("fast path", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.ValidateInput(valid)
		}
	})
	b.Run("validator", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.violations(s.input, valid)
		}
	})
	b.Run("santhosh alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = s.input.compiled.Validate(valid)
		}
	})
	b.Run("invalid", func(b *testing.B) {
		invalid := map[string]any{"order_ref": " ", "reason": "bored"}
		b.ReportAllocs()
		for b.Loop() {
			s.ValidateInput(invalid)
		}
	})
}

func BenchmarkValidateOutput(b *testing.B) {
	s := refundOutput(b)
	valid := map[string]any{"draft_id": "DRAFT-123456789", "order_ref": "ORDER-7", "reason": "damaged"}
	b.ReportAllocs()
	for b.Loop() {
		s.ValidateOutput(valid)
	}
}

func BenchmarkCompile(b *testing.B) {
	text := []byte(refundInput(b).JSON())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile(text); err != nil {
			b.Fatal(err)
		}
	}
}
