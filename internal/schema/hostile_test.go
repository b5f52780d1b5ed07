package schema

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

func object(body string) string { return `{"type":"object",` + body + `}` }

func repeat(n int, element func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = element(i)
	}
	return strings.Join(parts, ",")
}

// fill repeats elements up to the limit of a schema's text.
func fill(element func(i int) string) string {
	var b strings.Builder
	for i := 0; b.Len() < MaxBytes-2000; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(element(i))
	}
	return b.String()
}

var hostile = []struct{ name, text, want string }{
	{"empty", ``, "invalid JSON"},
	{"not JSON", `{"type":`, "invalid JSON"},
	{"not UTF-8", "{\"type\":\"obj\xff\"}", "UTF-8"},
	{"byte-order mark", "\ufeff{}", "invalid JSON"},
	{"trailing text", `{"type":"object"}{}`, "text after"},
	{"array", `[]`, "not a JSON object"},
	{"boolean schema", `true`, "not a JSON object"},
	{"no type", `{}`, `"type": "object"`},
	{"type string", `{"type":"string"}`, `"type": "object"`},
	{"type list", `{"type":["object","null"]}`, `"type": "object"`},
	{"too large", object(`"title":"` + strings.Repeat("x", MaxBytes) + `"`), "65536 bytes"},
	{"too nested", strings.Repeat(`{"not":`, 40) + `{}` + strings.Repeat(`}`, 40), "nested"},
	{"only brackets", strings.Repeat(`[`, 60000), "nested"},
	{"repeated key", object(`"properties":{"a":{"type":"string","type":"integer"}}`), "#/properties/a/type: repeated key"},
	{"huge exponent", object(`"minimum":1e999999`), "#/minimum: number out of range"},
	{"tiny exponent", object(`"properties":{"a":{"multipleOf":1e-999999}}`), "#/properties/a/multipleOf: number out of range"},
	{"long number", object(`"minimum":` + strings.Repeat("1", 5000)), "number too long"},
	{"long fraction", object(`"minimum":1.` + strings.Repeat("1", 5000)), "number too long"},
	{"huge integer", object(`"minimum":9007199254740993`), "integer out of range"},
	{"huge count", object(`"properties":{"a":{"minLength":1e30}}`), "#/properties/a/minLength: count out of range"},
	{"count of 2^33", object(`"properties":{"a":{"maxItems":8589934592}}`), "#/properties/a/maxItems: count out of range"},
	{"negative count", object(`"minProperties":-1`), "#/minProperties: breaks the rule minimum"},

	{"self reference", `{"$ref":"#"}`, "leads back to itself"},
	{"self reference, typed", object(`"$ref":"#"`), "leads back to itself"},
	{"self reference in a property", object(`"properties":{"a":{"$ref":"#/properties/a"}}`), "leads back to itself"},
	{"mutual references", object(`"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}`), "leads back to itself"},
	{"cycle through not", object(`"not":{"anyOf":[{"$ref":"#"}]}`), "leads back to itself"},
	{"cycle through if", object(`"if":true,"then":{"$ref":"#"}`), "leads back to itself"},
	{"cycle through dependentSchemas", object(`"dependentSchemas":{"a":{"$ref":"#"}}`), "leads back to itself"},
	{"cycle through dependencies", object(`"dependencies":{"a":{"$ref":"#"}}`), "leads back to itself"},
	{"cycle through an anchor", object(`"$anchor":"me","allOf":[{"$ref":"#me"}]`), "leads back to itself"},
	{"long chain", object(`"$ref":"#/$defs/d0","$defs":{` + repeat(500, func(i int) string {
		return fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d"}`, i, i+1)
	}) + `,"d500":{"minProperties":1}}`), "chain of references too long"},

	{"file reference", object(`"properties":{"a":{"$ref":"file:///etc/hostname"}}`), "#/properties/a/$ref: a $ref or $schema leads outside this document: nothing is loaded"},
	{"https reference", object(`"properties":{"a":{"$ref":"https://example.com/schema.json"}}`), "nothing is loaded"},
	{"relative reference", object(`"properties":{"a":{"$ref":"other.json"}}`), "nothing is loaded"},
	{"reference to the metaschema", object(`"properties":{"a":{"$ref":"https://json-schema.org/draft/2020-12/schema"}}`), "nothing is loaded"},
	{"reference to an old metaschema", object(`"properties":{"a":{"$ref":"http://json-schema.org/draft-07/schema#"}}`), "nothing is loaded"},
	{"reference by a file id", object(`"$id":"file:///etc/","properties":{"a":{"$ref":"hostname"}}`), "nothing is loaded"},
	{"schema file", object(`"$schema":"file:///etc/hostname"`), "nothing is loaded"},
	{"schema of another draft", object(`"$schema":"http://json-schema.org/draft-04/schema#"`), "not JSON Schema 2020-12"},
	{"draft 4 inside", object(`"properties":{"a":{"$id":"x","$schema":"http://json-schema.org/draft-04/schema#","id":"y"}}`), "#/properties/a: $schema is not JSON Schema 2020-12"},
	{"dangling reference", object(`"properties":{"a":{"$ref":"#/$defs/none"}}`), "#/properties/a/$ref: a $ref leads nowhere"},
	{"dangling anchor", object(`"properties":{"a":{"$ref":"#none"}}`), "#/properties/a/$ref: a $ref leads nowhere"},
	{"reference to no schema", object(`"properties":{"a":{"$ref":"#/title"}},"title":"x"`), "breaks the rule type"},
	{"malformed reference", object(`"properties":{"a":{"$ref":"%zz"}}`), ""},
	{"malformed id", object(`"$id":"://"`), ""},
	{"repeated id", object(`"properties":{"a":{"$id":"x"},"b":{"$id":"x"}}`), ""},
	{"dynamic reference", object(`"$dynamicAnchor":"n","properties":{"a":{"$dynamicRef":"#n"}}`), "$dynamicRef is not supported"},
	{"recursive reference", object(`"properties":{"a":{"$recursiveRef":"#"}}`), "$recursiveRef is not supported"},
	{"vocabulary", object(`"$vocabulary":{}`), "$vocabulary is not supported"},

	{"bad pattern", object(`"properties":{"a":{"pattern":"("}}`), "#/properties/a/pattern: "},
	{"look-ahead", object(`"properties":{"a":{"pattern":"(?=a)b"}}`), "#/properties/a/pattern: "},
	{"huge repeat", object(`"properties":{"a":{"pattern":"a{1001}"}}`), "#/properties/a/pattern: "},
	{"nested repeat", object(`"properties":{"a":{"pattern":"((a{100}){100}){100}"}}`), "#/properties/a/pattern: "},
	{"many repeats", object(`"properties":{"a":{"pattern":"` + strings.Repeat("(.{500})?", 100) + `"}}`), "#/properties/a/pattern: "},
	{"long pattern", object(`"properties":{"a":{"pattern":"` + strings.Repeat("a", 60000) + `"}}`), "#/properties/a/pattern: "},
	{"nested groups", object(`"properties":{"a":{"pattern":"` + strings.Repeat("(", 30000) + strings.Repeat(")", 30000) + `"}}`), ""},
	{"bad property pattern", object(`"patternProperties":{"(":true}`), "key of patternProperties"},
	{"wrong keyword type", object(`"properties":{"a":{"maxLength":"3"}}`), "#/properties/a/maxLength: breaks the rule type"},
	{"wrong annotation type", object(`"properties":{"a":{"title":3}}`), "#/properties/a/title: breaks the rule type"},
	{"unknown type", object(`"properties":{"a":{"type":"text"}}`), "#/properties/a/type: breaks the rule enum"},
	{"required undeclared", object(`"properties":{"a":{}},"required":["b"]`), "#/required"},
	{"long key", object(`"properties":{"` + strings.Repeat("k\u202e", 9000) + `":{"type":1}}`), "breaks the rule"},
	{"many subschemas", object(`"properties":{` + fill(func(i int) string { return fmt.Sprintf(`"%d":{"type":"null"}`, i) }) + `}`), "too many subschemas"},
}

func TestHostileSchemasAreRefused(t *testing.T) {
	for _, tt := range hostile {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			s, err := Compile([]byte(tt.text))
			if s != nil || err == nil {
				t.Fatal("compiled")
			}
			var typed *Error
			if !errors.As(err, &typed) {
				t.Errorf("error %T is not an *Error", err)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q does not contain %q", err, tt.want)
			}
			if len(err.Error()) > 700 {
				t.Errorf("error has %d bytes", len(err.Error()))
			}
			if d := time.Since(start); d > 3*time.Second {
				t.Errorf("took %v", d)
			} else if d > 100*time.Millisecond {
				t.Logf("took %v", d)
			}
		})
	}
}

// TestLimitsAtTheEdge: the limits are those of docs/schemas.md, and what is at one passes.
func TestLimitsAtTheEdge(t *testing.T) {
	properties := func(n int) string {
		return object(`"properties":{` + repeat(n, func(i int) string { return fmt.Sprintf(`"%d":{"type":"null"}`, i) }) + `}`)
	}
	pattern := func(n int) string {
		return object(`"properties":{"a":{"pattern":"` + strings.Repeat("é", n/2) + `"}}`)
	}
	text := func(n int) string {
		around := len(object(`"title":""`))
		return object(`"title":"` + strings.Repeat("x", n-around) + `"`)
	}
	for name, tt := range map[string]struct {
		text string
		fine bool
	}{
		"2,000 subschemas": {properties(1999), true}, "2,001 subschemas": {properties(2000), false},
		"1,024 bytes of a pattern": {pattern(1024), true}, "1,026 bytes of a pattern": {pattern(1026), false},
		"65,536 bytes": {text(65536), true}, "65,537 bytes": {text(65537), false},
	} {
		if _, err := Compile([]byte(tt.text)); (err == nil) != tt.fine {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// chain nests a value under one key.
func chain(key string, depth int, leaf any) any {
	v := leaf
	for range depth {
		v = map[string]any{key: v}
	}
	return v
}

func list(n int, element func(i int) any) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = element(i)
	}
	return out
}

func TestHostileSchemasAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	cyclic := map[string]any{}
	cyclic["a"], cyclic["b"] = cyclic, cyclic
	doubling := `"$defs":{` + repeat(30, func(i int) string {
		return fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1)
	}) + `,"d30":{"minProperties":1}}`
	digits := func(i int) any { return int64(i) }
	tests := []struct {
		name, text string
		value      any
		want       string // first violation; "" = valid
	}{
		{"doubling references", object(`"allOf":[{"$ref":"#/$defs/d0"}],` + doubling), map[string]any{}, "$: too complex"},
		{"doubling below not", object(`"not":{"$ref":"#/$defs/d0"},` + doubling), map[string]any{}, "$: too complex"},
		{"doubling by depth", object(`"properties":{"a":{}},"anyOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]`),
			chain("a", 32, "x"), "$: too complex"},
		{"doubling by depth, shallow value", object(`"properties":{"a":{"anyOf":[true,false]}},"anyOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]`),
			chain("a", 5, map[string]any{}), ""},
		{"plain recursion", object(`"properties":{"left":{"$ref":"#"},"right":{"$ref":"#"}}`), chain("left", 32, map[string]any{}), ""},
		{"too deep", object(`"properties":{"a":{"$ref":"#"}}`), chain("a", 33, map[string]any{}), "$: too deep"},
		{"far too deep", object(`"properties":{"a":true}`), chain("a", 1_000_000, "x"), "$: too deep"},
		{"a cyclic value", object(`"properties":{"a":true,"b":true}`), cyclic, "$: too deep"},
		{"too many values", object(`"properties":{"a":{"items":{"type":["integer","string"]}}}`), map[string]any{"a": list(100_000, digits)}, "$: too large"},
		{"patterns on a long string", object(`"properties":{"a":{"allOf":[` + repeat(100, func(i int) string {
			return `{"pattern":"(x+x+){20}y` + strconv.Itoa(i) + `"}`
		}) + `]}}`), map[string]any{"a": strings.Repeat("x", 60_000)}, "$: too complex"},
		{"one slow pattern", object(`"properties":{"a":{"pattern":"(x+x+){40}y"}}`), map[string]any{"a": strings.Repeat("x", 60_000)}, "$.a: pattern"},
		{"many patterns for names", object(`"properties":{"a":{"patternProperties":{` + fill(func(i int) string { return fmt.Sprintf(`"(x+x+){10}%d":true`, i) }) + `}}}`),
			map[string]any{"a": map[string]any{strings.Repeat("x", 30_000): 1.5}}, "$: too complex"},
		{"a long enum of numbers", object(`"properties":{"a":{"items":{"enum":[` + fill(func(i int) string { return strconv.Itoa(i) }) + `]}}}`),
			map[string]any{"a": list(1000, func(int) any { return int64(-1) })}, "$: too complex"},
		{"colliding unique items", object(`"properties":{"a":{"uniqueItems":true}}`),
			map[string]any{"a": list(1024, func(i int) any { return shape(uint(i), 12) })}, ""},
		{"wide fan-out", object(`"properties":{"a":{"items":{"anyOf":[` + repeat(1000, func(i int) string { return fmt.Sprintf(`{"const":%d}`, i) }) + `]}}}`),
			map[string]any{"a": list(1024, func(int) any { return "x" })}, "$: too complex"},
		{"many errors", object(`"properties":{"a":{"items":{"type":"string"}}}`), map[string]any{"a": list(1024, digits)}, "$.a[0]: type"},
		{"a long key", object(`"properties":{}`), map[string]any{strings.Repeat("é\x00", 30_000): true},
			`$["` + strings.Repeat(`é\x00`, 32) + `…"]: unknown field`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			s, err := Compile([]byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("compiled in %v", time.Since(start))
			for mode, validate := range map[string]func(any) []Violation{"input": s.ValidateInput, "output": s.ValidateOutput} {
				start = time.Now()
				got := validate(tt.value)
				first := ""
				if len(got) > 0 {
					first = got[0].String()
				}
				if first != tt.want {
					t.Errorf("%s: got %q, want %q", mode, first, tt.want)
				}
				if len(got) > MaxViolations {
					t.Errorf("%s: %d violations", mode, len(got))
				}
				if d := time.Since(start); d > 5*time.Second {
					t.Errorf("%s: took %v", mode, d)
				} else if d > 20*time.Millisecond {
					t.Logf("%s: took %v", mode, d)
				}
			}
		})
	}
}

// shape returns arrays that all differ, and which a hash of nothing but opening
// brackets cannot tell apart.
func shape(bits uint, brackets int) any {
	v := []any{[]any{}}
	for i := range brackets {
		if bits>>i&1 == 1 {
			v = []any{v}
		} else {
			v = append(v, []any{})
		}
	}
	return v
}

func TestLargeSchemasCompileInTime(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	for name, text := range map[string]string{
		"boolean properties":   object(`"properties":{` + fill(func(i int) string { return fmt.Sprintf(`"%d":true`, i) }) + `}`),
		"empty properties":     object(`"properties":{` + fill(func(i int) string { return fmt.Sprintf(`"%d":{}`, i) }) + `}`),
		"typed properties":     object(`"properties":{` + repeat(1900, func(i int) string { return fmt.Sprintf(`"%d":{"type":"string"}`, i) }) + `}`),
		"identified":           object(`"$defs":{` + fill(func(i int) string { return fmt.Sprintf(`"%d":{"$id":"x%d"}`, i, i) }) + `}`),
		"anchors":              object(`"$defs":{` + fill(func(i int) string { return fmt.Sprintf(`"%d":{"$anchor":"x%d"}`, i, i) }) + `}`),
		"references to data":   object(`"default":[` + repeat(900, func(int) string { return `{"not":{}}` }) + `],"properties":{` + repeat(900, func(i int) string { return fmt.Sprintf(`"%d":{"$ref":"#/default/%d"}`, i, i) }) + `}`),
		"references to data 2": object(`"default":[` + repeat(1800, func(int) string { return `{}` }) + `],"properties":{` + repeat(1800, func(i int) string { return fmt.Sprintf(`"%d":{"$ref":"#/default/%d"}`, i, i) }) + `}`),
		"one pattern often":    object(`"properties":{` + repeat(1000, func(i int) string { return fmt.Sprintf(`"%d":{"pattern":".{990}"}`, i) }) + `}`),
		"many patterns":        object(`"properties":{` + repeat(1500, func(i int) string { return fmt.Sprintf(`"%d":{"pattern":".{%d}"}`, i, 900-i/2) }) + `}`),
		"many names patterns":  object(`"properties":{"a":{"patternProperties":{` + fill(func(i int) string { return fmt.Sprintf(`".{%d}%d":true`, 300+i%600, i) }) + `}}}`),
		"long title":           object(`"title":"` + strings.Repeat("x", MaxBytes-100) + `"`),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := Compile([]byte(text))
			d := time.Since(start)
			t.Logf("%d bytes in %v: %v", len(text), d, err)
			if d > 10*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
}
