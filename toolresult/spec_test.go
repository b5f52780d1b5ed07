package toolresult_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/toolruntime/toolruntime-go/toolresult"
)

// newSpec makes a spec of two schemas; change may be nil.
func newSpec(input, output string, change func(*toolresult.SpecConfig)) (*toolresult.Spec, error) {
	c := toolresult.SpecConfig{
		Contract: toolresult.UnregisteredContract("t"), Source: "s",
		InputSchema: json.RawMessage(input), OutputSchema: json.RawMessage(output),
	}
	if change != nil {
		change(&c)
	}
	return toolresult.NewSpec(c)
}

const anyObject = `{"type":"object"}`

// What no result could pass is refused before there is an effect.
func TestNewSpecRefusesWhatNoResultCanPass(t *testing.T) {
	limits := func(bytes, depth int) func(*toolresult.SpecConfig) {
		return func(c *toolresult.SpecConfig) { c.MaxOutputBytes, c.MaxOutputDepth = bytes, depth }
	}
	equal := func(field, argument string) func(*toolresult.SpecConfig) {
		return func(c *toolresult.SpecConfig) { c.Equal = map[string]string{field: argument} }
	}
	props := func(body string) string { return `{"type":"object","properties":{` + body + `},"required":["a"]}` }
	long := props(`"a":{"type":"string","minLength":10}`) // {"a":"0123456789"} has 18 bytes
	tests := []struct {
		name, input, output string
		change              func(*toolresult.SpecConfig)
		field, rule         string // "" is accepted
	}{
		{"input, with its place", `{"type":"object","properties":{"a":{"type":"string","pattern":"(?=a)"}}}`, anyObject, nil, "input_schema", "#/properties/a/pattern: uses a lookahead"},
		{"output, with its place", anyObject, `{"type":"object","requird":[]}`, nil, "output_schema", "#/requird: "},
		{"no schema", ``, anyObject, nil, "input_schema", "invalid JSON"},

		{"an open output", anyObject, `{"type":"object","additionalProperties":true}`, nil, "output_schema", "does not name"},
		{"an output open by patterns", anyObject, `{"type":"object","patternProperties":{"^x":{}}}`, nil, "output_schema", "does not name"},
		{"an open input", `{"type":"object","additionalProperties":true}`, anyObject, nil, "", ""},
		{"an output open below", anyObject, props(`"a":{"type":"object"}`), nil, "", ""},

		{"least bytes", anyObject, long, limits(17, 0), "max_output_bytes", "at least 18 bytes"},
		{"enough bytes", anyObject, long, limits(18, 0), "", ""},
		{"more bytes than results have", anyObject, props(`"a":{"type":"string","minLength":32768}`), nil, "output_schema", "at most 32768"},
		{"bytes of an enum", anyObject, props(`"a":{"enum":["0123456789","0123456"]}`), limits(14, 0), "max_output_bytes", "at least 15 bytes"},
		{"least depth", anyObject, props(`"a":{"type":"array","minItems":1}`), limits(0, 1), "max_output_depth", "deeper"},
		{"enough depth", anyObject, props(`"a":{"type":"array","minItems":1}`), limits(0, 2), "", ""},
		{"an empty list is no deeper", anyObject, props(`"a":{"type":"array"}`), limits(0, 1), "", ""},

		{"equal", props(`"a":{"type":"string"}`), props(`"a":{"type":"string"}`), equal("a", "a"), "", ""},
		{"equal, other types", props(`"a":{"type":"integer"}`), props(`"a":{"type":"string"}`), equal("a", "a"), "equal", "no value fits"},
		{"equal, other values", props(`"a":{"enum":["x","y"]}`), props(`"a":{"enum":["z"]}`), equal("a", "a"), "equal", "no value fits"},
		{"equal, some values", props(`"a":{"enum":["x","y"]}`), props(`"a":{"enum":["y","z"]}`), equal("a", "a"), "", ""},
		{"equal, 1 and 1.0", props(`"a":{"type":"integer"}`), props(`"a":{"const":1.0}`), equal("a", "a"), "equal", "no value fits"},
		{"equal to what may be left out", `{"type":"object","properties":{"a":{}}}`, props(`"a":{}`), equal("a", "a"), "equal", "which is not"},
		{"equal, both may be left out", `{"type":"object","properties":{"a":{}}}`, `{"type":"object","properties":{"a":{}}}`, equal("a", "a"), "", ""},
		{"equal, unknown field", props(`"a":{}`), props(`"a":{}`), equal("b", "a"), "equal", `"b", which the output schema`},
		{"equal, unknown argument", props(`"a":{}`), props(`"a":{}`), equal("a", "b"), "equal", `"b", which the input schema`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := newSpec(tt.input, tt.output, tt.change)
			if tt.field == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var e *toolresult.InputError
			if !errors.As(err, &e) || e.Field != tt.field || !strings.Contains(e.Rule, tt.rule) {
				t.Errorf("got %v, want %s with %q", err, tt.field, tt.rule)
			}
		})
	}
}

func TestNewSpecRefusesSensitiveFields(t *testing.T) {
	for _, key := range strings.Fields(`authorization api_key access_token refresh_token password secret cookie set_cookie
		call_id operation_id request_digest request_sha256 result_sha256 call_binding_sha256 Call-ID PASSWORD Api-key`) {
		for where, output := range map[string]string{
			"#/properties/" + key:                      `{"type":"object","properties":{%q:{}}}`,
			"#/properties/a/items/properties/" + key:   `{"type":"object","properties":{"a":{"type":"array","items":{"properties":{%q:{}}}}}}`,
			"#/$defs/d/properties/" + key:              `{"type":"object","properties":{"a":{"$ref":"#/$defs/d"}},"$defs":{"d":{"properties":{%q:{}}}}}`,
			"#/properties/a/anyOf/1/properties/" + key: `{"type":"object","properties":{"a":{"anyOf":[{"type":"null"},{"properties":{%q:{}}}]}}}`,
			"#/properties/a/required":                  `{"type":"object","properties":{"a":{"required":[%q]}}}`,
			"#/properties/a/enum/1":                    `{"type":"object","properties":{"a":{"enum":[1,{%q:1}]}}}`,
		} {
			_, err := newSpec(anyObject, fmt.Sprintf(output, key), nil)
			var e *toolresult.InputError
			if !errors.As(err, &e) || e.Field != "output_schema" || !strings.HasPrefix(e.Rule, where+": names a field that results must not carry") {
				t.Errorf("%s at %s: got %v", key, where, err)
			}
			if _, err := newSpec(fmt.Sprintf(output, key), anyObject, nil); err != nil {
				t.Errorf("%s in arguments: %v", key, err)
			}
		}
		for _, output := range []string{
			`{"type":"object","properties":{"x_` + key + `":{}}}`,
			fmt.Sprintf(`{"type":"object","properties":{%q:false}}`, key),
			fmt.Sprintf(`{"type":"object","properties":{"a":{"not":{"required":[%q]}}}}`, key),
			fmt.Sprintf(`{"type":"object","properties":{"a":{"enum":[%q]}}}`, key),
		} {
			if _, err := newSpec(anyObject, output, nil); err != nil {
				t.Errorf("%s: %v", output, err)
			}
		}
	}
}
