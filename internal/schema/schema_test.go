package schema

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustCompile(t testing.TB, text string) *Schema {
	t.Helper()
	s, err := Compile([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// mustCompileUnasked also takes schemas that nobody could use.
func mustCompileUnasked(t testing.TB, text string) *Schema {
	t.Helper()
	doc, err := parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := compile(doc, []byte(text), patternCache{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func texts(vs []Violation) []string {
	var out []string
	for _, v := range vs {
		out = append(out, v.String())
	}
	return out
}

// field makes an object with one property, the usual shape of the tables below.
func field(schema string) string { return object(`"properties":{"a":` + schema + `}`) }

func a(v any) map[string]any { return map[string]any{"a": v} }

func TestSpace(t *testing.T) {
	for s, want := range map[string]string{
		"":                               "",
		" \t\r\n\v\f":                    "",
		"\x1c\x1d\x1e\x1f":               "",
		"\u0085\u00a0\u1680\u2000\u200a": "",
		"\u2028\u2029\u202f\u205f\u3000": "",
		"\u200b":                         "\u200b",
		"\ufeff":                         "\ufeff",
		"\u180e":                         "\u180e",
		"\x1b":                           "\x1b",
		"\x00":                           "\x00",
		"\x85":                           "\x85", // a lone byte is not U+0085
		" a b ":                          "a b",
		"\u3000x\x1f":                    "x",
	} {
		if got := TrimSpace(s); got != want {
			t.Errorf("TrimSpace(%+q) = %+q, want %+q", s, got, want)
		}
		if got := IsBlank(s); got != (want == "") {
			t.Errorf("IsBlank(%+q) = %v", s, got)
		}
	}
}

func TestValidate(t *testing.T) {
	tests := []struct {
		name, schema  string
		value         any
		input, output []string
	}{
		{"valid", field(`{"type":"string"}`), a("x"), nil, nil},
		{"not an object", field(`true`), []any{}, []string{"$: type"}, []string{"$: type"}},
		{"null", field(`true`), nil, []string{"$: type"}, []string{"$: type"}},

		{"unknown field at the root", field(`true`), map[string]any{"b": int64(1), "c d": nil},
			[]string{"$.b: unknown field", `$["c d"]: unknown field`}, []string{"$.b: unknown field", `$["c d"]: unknown field`}},
		{"unknown field said twice", object(`"additionalProperties":false`), a(nil), []string{"$.a: unknown field"}, []string{"$.a: unknown field"}},
		{"additionalProperties opens", object(`"additionalProperties":true`), a(nil), nil, nil},
		{"additionalProperties opens for its own", object(`"additionalProperties":{"type":"string"}`), a(nil), []string{"$.a: type"}, []string{"$.a: type"}},
		{"unevaluatedProperties opens", object(`"unevaluatedProperties":{"type":"string"}`), a(nil), []string{"$.a: type"}, []string{"$.a: type"}},
		{"patternProperties declares", object(`"patternProperties":{"a":true}`), a(nil), nil, nil},
		{"patternProperties declares no other", object(`"patternProperties":{"^b":true}`), a(nil), []string{"$.a: unknown field"}, []string{"$.a: unknown field"}},
		{"allOf declares", object(`"allOf":[{"properties":{"a":true}}]`), a(nil), nil, nil},
		{"allOf declares no other", object(`"allOf":[{"properties":{"b":true}}]`), a(nil), []string{"$.a: unknown field"}, []string{"$.a: unknown field"}},
		{"a reference declares", `{"$ref":"#/$defs/r","$defs":{"r":{"type":"object","properties":{"a":{"type":"string"}}}}}`, map[string]any{"a": "x", "b": "y"},
			[]string{"$.b: unknown field"}, []string{"$.b: unknown field"}},
		{"a branch that does not hold declares nothing", object(`"properties":{"k":{}},"oneOf":[{"properties":{"k":{"const":1},"x":{}}},{"properties":{"k":{"const":2},"a":{}}}]`),
			map[string]any{"k": int64(1), "a": nil}, []string{"$.a: unknown field"}, []string{"$.a: unknown field"}},
		{"no branch holds", object(`"properties":{"k":{}},"oneOf":[{"properties":{"k":{"const":1},"a":{}}},{"properties":{"k":{"const":2},"a":{}}}]`),
			map[string]any{"k": int64(3), "a": nil}, []string{"$: oneOf"}, []string{"$: oneOf"}},
		{"not declares nothing", object(`"not":{"required":["a","b"],"properties":{"a":true}}`), a(nil), []string{"$.a: unknown field"}, []string{"$.a: unknown field"}},
		{"open below the root", field(`{"type":"object"}`), a(a(nil)), nil, nil},
		{"closed below the root", field(`{"additionalProperties":false}`), a(a(nil)), []string{"$.a.a: unknown field"}, []string{"$.a.a: unknown field"}},
		{"unevaluatedProperties", field(`{"unevaluatedProperties":false}`), a(a(nil)), []string{"$.a.a: unknown field"}, []string{"$.a.a: unknown field"}},
		{"false", field(`false`), a(nil), []string{"$.a: not allowed"}, []string{"$.a: not allowed"}},
		{"required", object(`"properties":{"a":{},"b":{}},"required":["a","b"]`), map[string]any{}, []string{"$.a: required", "$.b: required"}, []string{"$.a: required", "$.b: required"}},

		{"minLength, blank", field(`{"minLength":1}`), a("   "), []string{"$.a: minLength"}, nil},
		{"minLength, separators", field(`{"minLength":1}`), a("\x1c\u3000"), []string{"$.a: minLength"}, nil},
		{"minLength, zero width", field(`{"minLength":1}`), a("\u200b\ufeff"), nil, nil},
		{"minLength, padded", field(`{"minLength":3}`), a(" ab "), []string{"$.a: minLength"}, nil},
		{"minLength, inner space", field(`{"minLength":3}`), a(" a b "), nil, nil},
		{"minLength, empty", field(`{"minLength":1}`), a(""), []string{"$.a: minLength"}, []string{"$.a: minLength"}},
		{"minLength, code points", field(`{"minLength":2}`), a("é"), []string{"$.a: minLength"}, []string{"$.a: minLength"}},
		{"minLength in items", field(`{"items":{"minLength":1}}`), a([]any{"x", " "}), []string{"$.a[1]: minLength"}, nil},
		{"minLength in prefixItems", field(`{"prefixItems":[{"minLength":1}]}`), a([]any{" "}), []string{"$.a[0]: minLength"}, nil},
		{"minLength behind a reference", object(`"properties":{"a":{"$ref":"#/$defs/s"}},"$defs":{"s":{"minLength":1}}`), a(" "), []string{"$.a: minLength"}, nil},
		{"minLength in additionalProperties", field(`{"additionalProperties":{"minLength":1}}`), a(a(" ")), []string{"$.a.a: minLength"}, nil},
		{"minLength in allOf", field(`{"allOf":[{"minLength":1}]}`), a(" "), []string{"$.a: minLength"}, nil},
		{"minLength in anyOf", field(`{"anyOf":[{"minLength":1},{"type":"null"}]}`), a(" "), []string{"$.a: anyOf"}, nil},
		{"minLength in not", field(`{"not":{"minLength":1}}`), a(" "), nil, []string{"$.a: not"}},
		{"minLength in if", field(`{"if":{"minLength":1},"then":false}`), a(" "), nil, []string{"$.a: not allowed"}},
		{"minLength of names is raw", field(`{"propertyNames":{"minLength":2}}`), a(map[string]any{" ": nil}), []string{`$.a[" "]: propertyNames`}, []string{`$.a[" "]: propertyNames`}},
		{"maxLength is raw", field(`{"maxLength":2}`), a(" a "), []string{"$.a: maxLength"}, []string{"$.a: maxLength"}},
		{"maxLength, code points", field(`{"maxLength":2}`), a("𝒳𝒳"), nil, nil},

		{"integer", field(`{"type":"integer"}`), a(int64(1)), nil, nil},
		{"integer, float", field(`{"type":"integer"}`), a(1.0), []string{"$.a: type"}, []string{"$.a: type"}},
		{"integer, fraction", field(`{"type":"integer"}`), a(1.5), []string{"$.a: type"}, []string{"$.a: type"}},
		{"integer, boolean", field(`{"type":"integer"}`), a(true), []string{"$.a: type"}, []string{"$.a: type"}},
		{"integer or string", field(`{"type":["integer","string"]}`), a(1.0), []string{"$.a: type"}, []string{"$.a: type"}},
		{"integer or number", field(`{"type":["integer","number"]}`), a(1.0), nil, nil},
		{"integer in not", field(`{"not":{"type":"integer"}}`), a(1.0), nil, nil},
		{"integer in items", field(`{"items":{"type":"integer"}}`), a([]any{int64(1), 1.0}), []string{"$.a[1]: type"}, []string{"$.a[1]: type"}},
		{"number, integer", field(`{"type":"number"}`), a(int64(1)), nil, nil},
		{"number, NaN", field(`{"type":"number"}`), a(math.NaN()), []string{"$.a: type"}, []string{"$.a: type"}},
		{"number, infinity", field(`{"type":"number"}`), a(math.Inf(1)), []string{"$.a: type"}, []string{"$.a: type"}},
		{"boolean, integer", field(`{"type":"boolean"}`), a(int64(1)), []string{"$.a: type"}, []string{"$.a: type"}},
		{"a foreign Go type", field(`{"type":"string"}`), a(struct{}{}), []string{"$.a: type"}, []string{"$.a: type"}},

		{"enum", field(`{"enum":["x",1,2.0,null]}`), a("y"), []string{"$.a: enum"}, []string{"$.a: enum"}},
		{"enum, integer", field(`{"enum":[1]}`), a(int64(1)), nil, nil},
		{"enum, float for integer", field(`{"enum":[1]}`), a(1.0), []string{"$.a: enum"}, []string{"$.a: enum"}},
		{"enum, integer for float", field(`{"enum":[1.0]}`), a(int64(1)), []string{"$.a: enum"}, []string{"$.a: enum"}},
		{"enum, boolean", field(`{"enum":[1,0]}`), a(true), []string{"$.a: enum"}, []string{"$.a: enum"}},
		{"const", field(`{"const":{"k":[1]}}`), a(map[string]any{"k": []any{int64(1)}}), nil, nil},
		{"const, float inside", field(`{"const":{"k":[1]}}`), a(map[string]any{"k": []any{1.0}}), []string{"$.a: const"}, []string{"$.a: const"}},
		{"const null", field(`{"const":null}`), a(nil), nil, nil},

		{"bounds", field(`{"minimum":1,"maximum":0}`), a(0.5), []string{"$.a: maximum", "$.a: minimum"}, []string{"$.a: maximum", "$.a: minimum"}},
		{"exact decimals", field(`{"multipleOf":0.01,"minimum":0.1}`), a(0.1), nil, nil},
		{"pattern", field(`{"pattern":"^a$"}`), a("a\n"), []string{"$.a: pattern"}, []string{"$.a: pattern"}},
		{"format is an annotation", field(`{"format":"email"}`), a("x"), nil, nil},
		{"sizes", field(`{"minItems":1,"maxItems":2}`), a([]any{}), []string{"$.a: minItems"}, []string{"$.a: minItems"}},
		{"uniqueItems", field(`{"uniqueItems":true}`), a([]any{"x", "x"}), []string{"$.a: uniqueItems"}, []string{"$.a: uniqueItems"}},
		{"contains", field(`{"contains":{"const":"x"}}`), a([]any{"y"}), []string{"$.a: contains"}, []string{"$.a: contains"}},
		{"oneOf", field(`{"oneOf":[true,true]}`), a(nil), []string{"$.a: oneOf"}, []string{"$.a: oneOf"}},
		{"dependentRequired", object(`"properties":{"a":{},"b":{}},"dependentRequired":{"a":["b"]}`), a(nil), []string{"$.b: dependentRequired"}, []string{"$.b: dependentRequired"}},
		{"paths", field(`{"properties":{"b":{"items":{"properties":{"3":{"type":"null"}}}}}}`),
			a(map[string]any{"b": []any{nil, map[string]any{"3": true}}}), []string{"$.a.b[1].3: type"}, []string{"$.a.b[1].3: type"}},
		{"names, well located", field(`{"properties":{"x":{"propertyNames":{"maxLength":1}},"y":{"properties":{"z":{"type":"null"}}}}}`),
			a(map[string]any{"x": map[string]any{"long": nil}, "y": map[string]any{"z": true}}),
			[]string{"$.a.x.long: propertyNames", "$.a.y.z: type"}, []string{"$.a.x.long: propertyNames", "$.a.y.z: type"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := mustCompileUnasked(t, tt.schema)
			for range 5 { // the validator walks maps
				if diff := cmp.Diff(tt.input, texts(s.ValidateInput(tt.value))); diff != "" {
					t.Errorf("input (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tt.output, texts(s.ValidateOutput(tt.value))); diff != "" {
					t.Errorf("output (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestViolationsNeverCarryValues(t *testing.T) {
	const secret = "hunter2"
	s := mustCompile(t, object(`"properties":{"a":{"enum":["x"]},"b":{"pattern":"^x$","maxLength":1},"c":{"const":1},"d":{"maximum":1},
		"e":{"anyOf":[{"type":"null"},{"const":"x"}]},"f":{"items":{"not":{"type":"string"}}}}`))
	got := s.ValidateInput(map[string]any{"a": secret, "b": secret, "c": secret, "d": 1e9, "e": secret, "f": []any{secret}})
	want := []string{"$.a: enum", "$.b: maxLength", "$.b: pattern", "$.c: const", "$.d: maximum", "$.e: anyOf", "$.f[0]: not"}
	if diff := cmp.Diff(want, texts(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if strings.Contains(strings.Join(texts(got), " "), secret) {
		t.Error("a value leaked")
	}
}

func TestViolationsAreTheFirstOfAll(t *testing.T) {
	s := mustCompile(t, object(`"properties":{}`))
	value := map[string]any{}
	for i := range 200 {
		value[string(rune('a'+i/26))+string(rune('a'+i%26))] = nil
	}
	first := s.ValidateInput(value)
	if len(first) != MaxViolations || first[0].Path != "$.aa" || first[MaxViolations-1].Path != "$.bf" {
		t.Errorf("got %d: %v", len(first), first)
	}
	for range 20 {
		if diff := cmp.Diff(first, s.ValidateInput(value)); diff != "" {
			t.Fatalf("changes between runs:\n%s", diff)
		}
	}
}

func TestJSONAndFields(t *testing.T) {
	s := mustCompile(t, ` { "type" : "object", "properties": {"z": {}, "a": true, "<é>": {"title": "\u003c"}} } `)
	if got, want := string(s.JSON()), `{"type":"object","properties":{"z":{},"a":true,"<é>":{"title":"\u003c"}}}`; got != want {
		t.Errorf("JSON() = %s, want %s", got, want)
	}
	if diff := cmp.Diff([]string{"<é>", "a", "z"}, s.Fields()); diff != "" {
		t.Error(diff)
	}
	s.JSON()[0], s.Fields()[0] = 'x', "x"
	if s.JSON()[0] != '{' || s.Fields()[0] != "<é>" {
		t.Error("a caller changed the schema")
	}
	again := mustCompile(t, string(s.JSON()))
	if string(again.JSON()) != string(s.JSON()) {
		t.Error("JSON() changes when compiled again")
	}
}

// TestTypeAtTheRoot: a model that is shown a schema sees at its root that it is an
// object, wherever the schema says so.
func TestTypeAtTheRoot(t *testing.T) {
	for _, text := range []string{
		`{"$ref":"#/$defs/r","$defs":{"r":{"type":"object","properties":{"a":{}}}}}`,
		`{"allOf":[{"type":"object","properties":{"a":{}}}]}`,
		`{"type":"object"}`,
	} {
		var shown struct{ Type any }
		if err := json.Unmarshal(mustCompile(t, text).JSON(), &shown); err != nil || shown.Type != "object" {
			t.Errorf("%s is shown with the type %v, %v", text, shown.Type, err)
		}
	}
}

func TestErrorNamesThePlace(t *testing.T) {
	_, err := Compile([]byte(field(`{"items":{"pattern":"("}}`)))
	var e *Error
	if !errors.As(err, &e) || e.Where != "#/properties/a/items/pattern" {
		t.Errorf("got %v", err)
	}
}

func TestConcurrentUse(t *testing.T) {
	s := mustCompile(t, object(`"properties":{"a":{"anyOf":[{"type":"integer"},{"minLength":1}]},"b":{"type":"string"}}`))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				if diff := cmp.Diff([]string{"$.a: anyOf", "$.b: type"}, texts(s.ValidateInput(map[string]any{"a": " ", "b": nil}))); diff != "" {
					t.Error(diff)
				}
				if got := s.ValidateOutput(map[string]any{"a": int64(1), "b": ""}); got != nil {
					t.Error(got)
				}
			}
		})
	}
	wg.Wait()
}
