package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// Each schema is refused at the place, or accepted where the place is "".
func TestAcceptedMeansUsable(t *testing.T) {
	inA := func(schema string) string { return object(`"properties":{"a":` + schema + `},"required":["a"]`) }
	tests := []struct{ name, text, where, problem string }{
		// What the root says, it means.
		{"open root", object(`"properties":{"a":{}},"additionalProperties":true`), "", ""},
		{"free map", object(`"additionalProperties":{"type":"string"}`), "", ""},
		{"root reference", `{"$ref":"#/$defs/r","$defs":{"r":{"type":"object","properties":{"a":{}}}}}`, "", ""},
		{"root reference to no object", `{"$ref":"#/$defs/r","$defs":{"r":{"properties":{"a":{}}}}}`, "#/type", "must have"},
		{"allOf declares what is required", object(`"allOf":[{"properties":{"a":{}}}],"required":["a"]`), "", ""},
		{"required by nobody's declaration", object(`"properties":{"a":{}},"required":["b"]`), "#/required", `requires "b", which is not declared`},
		{"required by additionalProperties", object(`"additionalProperties":{"type":"string"},"required":["b"]`), "", ""},
		{"required by patternProperties", object(`"patternProperties":{"^b":{}},"required":["b"]`), "", ""},
		{"required and dependent", object(`"properties":{"a":{}},"required":["a"],"dependentRequired":{"a":["b"]}`), "#/dependentRequired", ""},
		{"forbidden below the root", inA(`{"type":"object","properties":{"x":{}},"required":["y"],"additionalProperties":false}`), "#/properties/a/required", `"y"`},
		{"unevaluated below the root", inA(`{"type":"object","allOf":[{"properties":{"x":{}}}],"required":["x"],"unevaluatedProperties":false}`), "", ""},
		{"unevaluated and required", inA(`{"type":"object","allOf":[{"properties":{"x":{}}}],"required":["y"],"unevaluatedProperties":false}`), "#/properties/a/required", `"y"`},
		{"two closed halves", object(`"allOf":[{"properties":{"a":{}},"additionalProperties":false},{"properties":{"b":{}},"additionalProperties":false}]`),
			"#/allOf/0/properties/a", "unevaluatedProperties"},

		// Words that would be ignored.
		{"typo", object(`"requried":["a"]`), "#/requried", "is it required?"},
		{"wrong case", inA(`{"type":"string","maxlength":3}`), "#/properties/a/maxlength", "is it maxLength?"},
		{"nullable", inA(`{"type":"string","nullable":true}`), "#/properties/a/nullable", `["string", "null"]`},
		{"unknown in $defs", object(`"$defs":{"x":{"typ":"string"}}`), "#/$defs/x/typ", "is it type?"},
		{"unknown, like nothing", object(`"frobnicate":1`), "#/frobnicate", "would be ignored"},
		{"an extension", inA(`{"type":"string","x-order":1}`), "", ""},
		{"a property of any name", object(`"properties":{"requried":{},"nullable":{}}`), "", ""},
		{"another type's word", inA(`{"type":"integer","maxLength":3}`), "#/properties/a/maxLength", "says nothing about the type"},
		{"one of the types' word", inA(`{"type":["integer","string"],"maxLength":3}`), "", ""},
		{"no type", inA(`{"maxLength":3}`), "", ""},
		{"list of items", inA(`{"type":"array","items":[{"type":"string"}]}`), "#/properties/a/items", "write prefixItems"},
		{"additionalItems", inA(`{"type":"array","additionalItems":false}`), "#/properties/a/additionalItems", "write prefixItems"},
		{"tuple", inA(`{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"items":false,"minItems":2}`), "", ""},
		{"tuple that is too short", inA(`{"type":"array","prefixItems":[{"type":"string"}],"items":false,"minItems":2}`), "#/properties/a/items", "no value"},
		{"bound of draft-04", inA(`{"type":"integer","minimum":0,"exclusiveMinimum":true}`), "#/properties/a/exclusiveMinimum", "draft-04"},
		{"reference to data", object(`"default":{},"properties":{"a":{"$ref":"#/default"}}`), "#/default", "not a schema"},

		// Drafts.
		{"draft-07", object(`"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"d":{"type":"string"}},"properties":{"a":{"$ref":"#/definitions/d"}}`), "", ""},
		{"draft-06", object(`"$schema":"https://json-schema.org/draft-06/schema","properties":{}`), "", ""},
		{"2019-09", object(`"$schema":"https://json-schema.org/draft/2019-09/schema","dependentRequired":{"a":["b"]},"properties":{"a":{},"b":{}}`), "", ""},
		{"draft-04", object(`"$schema":"http://json-schema.org/draft-04/schema#"`), "#", "2020-12"},
		{"draft-07 with a later word", object(`"$schema":"http://json-schema.org/draft-07/schema#","unevaluatedProperties":false`), "#/unevaluatedProperties", "not a word of the draft"},
		{"draft-06 with if", object(`"$schema":"http://json-schema.org/draft-06/schema#","if":true`), "#/if", "not a word of the draft"},
		{"draft-07 with a word beside $ref", object(`"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"d":{}},"properties":{"a":{"$ref":"#/definitions/d","maxLength":1}}`),
			"#/properties/a/maxLength", "beside a $ref"},
		{"draft-07 with a title beside $ref", object(`"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"d":{}},"properties":{"a":{"$ref":"#/definitions/d","title":"t"}}`), "", ""},
		{"draft-07 root reference", `{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/d","definitions":{"d":{"type":"object","properties":{"a":{}}}}}`, "", ""},
		{"draft-07 dependencies", object(`"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"]},"properties":{"a":{},"b":{}}`), "", ""},

		// Contradictions.
		{"lengths", inA(`{"type":"string","minLength":3,"maxLength":2}`), "#/properties/a/minLength", "more characters"},
		{"lengths of an optional property", field(`{"type":"string","minLength":3,"maxLength":2}`), "#/properties/a/minLength", "more characters"},
		{"lengths, one may be null", inA(`{"type":["string","null"],"minLength":3,"maxLength":2}`), "", ""},
		{"lengths through allOf", inA(`{"type":"string","minLength":3,"allOf":[{"maxLength":2}]}`), "#/properties/a/minLength", "more characters"},
		{"lengths through a reference", object(`"$defs":{"s":{"type":"string","maxLength":2}},"properties":{"a":{"$ref":"#/$defs/s","minLength":3}},"required":["a"]`), "#/properties/a/minLength", "more characters"},
		{"longer than text can be", inA(`{"type":"string","minLength":65537}`), "#/properties/a/minLength", "more characters"},
		{"as long as text can be, and the request", inA(`{"type":"string","minLength":65536}`), "#", "65536 bytes"},
		{"bounds", inA(`{"type":"number","minimum":2,"maximum":1}`), "#/properties/a", "no number"},
		{"bounds that meet", inA(`{"type":"number","minimum":1,"maximum":1}`), "", ""},
		{"bounds that meet, without", inA(`{"type":"number","minimum":1,"exclusiveMaximum":1}`), "#/properties/a", "no number"},
		{"no integer between", inA(`{"type":"integer","exclusiveMinimum":1,"exclusiveMaximum":2}`), "#/properties/a", "no integer"},
		{"no multiple between", inA(`{"type":"integer","multipleOf":10,"minimum":11,"maximum":19}`), "#/properties/a", "no integer"},
		{"a multiple between", inA(`{"type":"integer","multipleOf":2.5,"minimum":3,"maximum":7}`), "", ""},
		{"integer beyond the domain", inA(`{"type":"integer","exclusiveMinimum":9007199254740991}`), "#/properties/a", "no integer"},
		{"negative integers", inA(`{"type":"integer","exclusiveMinimum":-2,"exclusiveMaximum":0}`), "", ""},
		{"sizes", inA(`{"type":"array","minItems":2,"maxItems":1}`), "#/properties/a/minItems", "more items"},
		{"more items than an array has", inA(`{"type":"array","minItems":1025}`), "#/properties/a/minItems", "1024"},
		{"more different items than there are", inA(`{"type":"array","minItems":3,"uniqueItems":true,"items":{"enum":["x","y"]}}`), "#/properties/a/uniqueItems", "different"},
		{"as many different items as there are", inA(`{"type":"array","minItems":2,"uniqueItems":true,"items":{"enum":["x","y"]}}`), "", ""},
		{"items that cannot be", inA(`{"type":"array","minItems":1,"items":{"type":"string","enum":[]}}`), "#/properties/a/items/enum", ""},
		{"contains nothing", inA(`{"type":"array","contains":false}`), "#/properties/a/contains", "no value"},
		{"contains none", inA(`{"type":"array","contains":{"type":"string"},"minContains":0}`), "", ""},
		{"properties", inA(`{"type":"object","minProperties":2,"maxProperties":1}`), "#/properties/a/maxProperties", "fewer"},
		{"more properties than declared", inA(`{"type":"object","properties":{"x":{}},"additionalProperties":false,"minProperties":2}`), "#/properties/a/minProperties", "more properties"},
		{"a required name that is forbidden", inA(`{"type":"object","required":["x"],"propertyNames":{"maxLength":0}}`), "#/properties/a/propertyNames", "forbids a name"},
		{"enum and type", inA(`{"type":"string","enum":["x",1]}`), "#/properties/a/enum/1", "not of the type"},
		{"enum and null", inA(`{"type":"string","enum":["x",null]}`), "#/properties/a/enum/1", "not of the type"},
		{"enum of floats for integers", inA(`{"type":"integer","enum":[1.0]}`), "#/properties/a/enum/0", "not of the type"},
		{"const and type", inA(`{"type":"string","const":1}`), "#/properties/a/const", "not of the type"},
		{"const and enum", inA(`{"const":1,"enum":[2]}`), "#/properties/a/const", "never pass"},
		{"enum and length", inA(`{"type":"string","enum":["long","longer"],"maxLength":2}`), "#/properties/a/enum", "no value that can pass"},
		{"enum and pattern", inA(`{"type":"string","enum":["long"],"pattern":"^s"}`), "#/properties/a/enum", "no value that can pass"},
		{"enum and bounds", inA(`{"type":"integer","enum":[1,2],"minimum":3}`), "#/properties/a/enum", "no value that can pass"},
		{"types through allOf", inA(`{"type":"string","allOf":[{"type":"integer"}]}`), "#/properties/a/allOf/0/type", "no type"},
		{"type and not type", inA(`{"type":"string","not":{"type":"string"}}`), "#/properties/a/type", "no type"},
		{"integer and not integer", inA(`{"type":"integer","not":{"type":"number"}}`), "#/properties/a/type", "no type"},
		{"number and not integer", inA(`{"type":"number","not":{"type":"integer"}}`), "", ""},
		{"false and required", inA(`false`), "#/properties/a", "allows no value"},
		{"not anything and required", inA(`{"not":{}}`), "#/properties/a/not", "forbids every value"},
		{"false and optional", field(`false`), "", ""},
		{"not anything and optional", field(`{"not":{}}`), "", ""},
		{"not true at the root", object(`"not":true`), "#/not", "forbids every value"},
		{"branches", inA(`{"type":"string","anyOf":[{"type":"integer"},{"type":"null"}]}`), "#/properties/a/anyOf", "any of the branches"},
		{"a branch", inA(`{"type":"string","anyOf":[{"type":"integer"},{"maxLength":3}]}`), "#/properties/a/anyOf/0/type", "no type"},
		{"a branch that is false", inA(`{"anyOf":[false,{"maxLength":3}]}`), "", ""},
		{"then and else", inA(`{"type":"string","if":{"maxLength":1},"then":{"type":"null"},"else":{"type":"integer"}}`), "#/properties/a/if", "any of the branches"},
		{"equal branches of oneOf", inA(`{"oneOf":[{"type":"string"},{"type":"string"}]}`), "#/properties/a/oneOf/1", "is the same"},
		{"a branch of oneOf for everything", inA(`{"oneOf":[{"type":"string"},{}]}`), "#/properties/a/oneOf/0", "accepts every value"},
		{"branches that overlap in part", inA(`{"oneOf":[{"type":"integer"},{"type":"number"}]}`), "", ""},
		{"pattern without match", inA(`{"type":"string","pattern":"a^"}`), "#/properties/a/pattern", "matches no text"},
		{"pattern without match, end first", inA(`{"type":"string","pattern":"$a"}`), "#/properties/a/pattern", "matches no text"},
		{"pattern too long for the length", inA(`{"type":"string","pattern":"^[a-z]{8,}$","maxLength":7}`), "#/properties/a/pattern", "more characters"},
		{"pattern as long as the length", inA(`{"type":"string","pattern":"^(ab|c{5}){4}$","maxLength":8}`), "", ""},

		// Values without end.
		{"endless", object(`"properties":{"a":{"$ref":"#"}},"required":["a"]`), "#/properties/a", "deeper than"},
		{"endless through lists", object(`"$defs":{"n":{"type":"object","properties":{"k":{"type":"array","minItems":1,"items":{"$ref":"#/$defs/n"}}},"required":["k"]}},"properties":{"a":{"$ref":"#/$defs/n"}},"required":["a"]`), "", "deeper than"},
		{"endless in an optional part", object(`"$defs":{"n":{"type":"object","properties":{"k":{"$ref":"#/$defs/n"}},"required":["k"]}},"properties":{"a":{"$ref":"#/$defs/n"}}`), "", "deeper than"},
		{"ends by null", object(`"$defs":{"n":{"type":["object","null"],"properties":{"k":{"$ref":"#/$defs/n"}},"required":["k"]}},"properties":{"a":{"$ref":"#/$defs/n"}},"required":["a"]`), "", ""},
		{"ends by an empty list", object(`"properties":{"a":{"type":"array","items":{"$ref":"#"}}},"required":["a"]`), "", ""},
		{"ends in a branch", object(`"$defs":{"e":{"anyOf":[{"type":"integer"},{"type":"array","minItems":2,"items":{"$ref":"#/$defs/e"}}]}},"properties":{"a":{"$ref":"#/$defs/e"}},"required":["a"]`), "", ""},
		{"a const as deep as arguments can be", inA(`{"const":` + nested(25) + `}`), "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Compile([]byte(tt.text))
			if tt.where == "" && tt.problem == "" {
				if err != nil {
					t.Fatal(err)
				}
				if again, err := Compile(s.JSON()); err != nil || string(again.JSON()) != string(s.JSON()) {
					t.Errorf("its own text is not accepted: %v", err)
				}
				return
			}
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			if tt.where != "" && e.Where != tt.where || !strings.Contains(e.Problem, tt.problem) {
				t.Errorf("got %q, want it at %q with %q", err, tt.where, tt.problem)
			}
		})
	}
}

func nested(n int) string { return strings.Repeat("[", n) + "1" + strings.Repeat("]", n) }

// A chain of required properties is as deep as arguments can be, or deeper.
func TestDepthOfArguments(t *testing.T) {
	levels := func(n int, leaf string) string {
		defs := repeat(n, func(i int) string {
			return fmt.Sprintf(`"d%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/d%d"}},"required":["a"]}`, i, i+1)
		})
		return object(fmt.Sprintf(`"properties":{"a":{"$ref":"#/$defs/d0"}},"required":["a"],"$defs":{%s,"d%d":%s}`, defs, n, leaf))
	}
	for _, tt := range []struct {
		n    int
		leaf string
		want bool
	}{
		{30, `{"type":"string"}`, true}, {31, `{"type":"string"}`, false},
		{29, `{"type":"array"}`, true}, {30, `{"type":"array"}`, false},
		{29, `{"const":[1]}`, true}, {30, `{"const":[]}`, false},
	} {
		if _, err := Compile([]byte(levels(tt.n, tt.leaf))); (err == nil) != tt.want {
			t.Errorf("%d levels above %s: %v", tt.n, tt.leaf, err)
		}
	}
}

func TestPatternsAreNamed(t *testing.T) {
	for pattern, want := range map[string]string{
		`^(?!.*\\.\\.)a$`: "lookahead", `(?=a)b`: "lookahead", `(?<=a)b`: "lookbehind", `(?<!a)b`: "lookbehind",
		`^(a)\\1$`: "backreference", `(?<n>a)\\k<n>`: "backreference", `^\\u0041$`: `\u`, `\\cJ`: `\c`,
		`[^]`: "[^]", `a{1001}`: "too large", `(`: "malformed", `a**`: "malformed", `[b-a]`: "malformed",
	} {
		for _, text := range []string{field(`{"type":"string","pattern":"` + pattern + `"}`), object(`"patternProperties":{"` + pattern + `":true}`)} {
			_, err := Compile([]byte(text))
			var e *Error
			if !errors.As(err, &e) || !strings.Contains(e.Problem, want) {
				t.Errorf("%s: got %v, want it to name %s", text, err, want)
			}
		}
	}
}

// Sets of schemas grow without end here; the search must not.
func TestUsableIsBounded(t *testing.T) {
	for name, text := range map[string]string{
		"branches of branches": object(`"properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{` + repeat(12, func(i int) string {
			return fmt.Sprintf(`"d%d":{"anyOf":[{"properties":{"a":{"$ref":"#/$defs/d%d"}}},{"properties":{"b":{"$ref":"#/$defs/d%d"}}}],"allOf":[{"properties":{"a":{"minLength":%d}}}]}`, i, (i+1)%12, (i+5)%12, i)
		}) + `}`),
		"many alternatives at once": object(`"properties":{"a":{"allOf":[` + repeat(200, func(i int) string {
			return fmt.Sprintf(`{"anyOf":[{"minLength":%d},{"maxItems":%d},{"required":["x%d"]}]}`, i, i, i)
		}) + `]}}`),
		"many required": object(`"properties":{` + repeat(900, func(i int) string { return fmt.Sprintf(`"p%d":{"$ref":"#/$defs/d"}`, i) }) +
			`},"required":[` + repeat(900, func(i int) string { return fmt.Sprintf(`"p%d"`, i) }) + `],"$defs":{"d":{"type":"object","properties":{"x":{"type":"string"}},"required":["x"]}}`),
		"everything recursive": object(`"$defs":{"d":{"type":"object","properties":{` + repeat(100, func(i int) string { return fmt.Sprintf(`"p%d":{"$ref":"#/$defs/d"}`, i) }) +
			`},"required":[` + repeat(100, func(i int) string { return fmt.Sprintf(`"p%d"`, i) }) + `],"allOf":[{"minProperties":1}]}},"properties":{"a":{"anyOf":[{"$ref":"#/$defs/d"},{"type":"null"}]}}`),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := Compile([]byte(text))
			t.Logf("%v: %v", time.Since(start), err)
			if d := time.Since(start); d > 5*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
}

// Random schemas of which the search says that nothing passes: nothing may.
func TestNothingPassesWhatIsCalledEmpty(t *testing.T) {
	empty := 0
	for seed := range uint64(3000) {
		g := generator{rand.New(rand.NewPCG(seed, 7))}
		schema := map[string]any{"type": "object", "properties": map[string]any{"a": g.schema(2), "b": g.schema(1)}, "required": []any{"a"}}
		text, err := json.Marshal(schema)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := parse(text)
		if err != nil {
			continue
		}
		s, err := compile(doc, text, patternCache{})
		if err != nil || newLeast(true).of(set{open: rootSet(s.input.compiled)}, maxLevels).none == nil {
			continue
		}
		empty++
		for range 50 {
			if v := g.value(schema, 3); s.violations(s.input, v) == nil {
				t.Fatalf("seed %d: %#v passes\n%s", seed, v, text)
			}
		}
	}
	if empty < 50 {
		t.Errorf("only %d empty schemas", empty)
	}
}
