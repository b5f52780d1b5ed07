package toolresult_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/toolresult"
)

// explained is the spec of a tool whose arguments have a bit of everything.
func explained(t *testing.T) *toolresult.Spec {
	t.Helper()
	s, err := toolresult.NewSpec(toolresult.SpecConfig{
		Contract: toolresult.Contract{Name: "t", Revisions: refundSpec(t).Contract().Revisions}, Source: "t",
		InputSchema: json.RawMessage(`{"type":"object","required":["timeout_ms"],"additionalProperties":false,"properties":{
			"timeout_ms":{"type":"integer","minimum":1,"maximum":1000000},
			"note":{"type":"string","minLength":2,"maxLength":5},
			"maybe":{"type":["string","null"]},
			"tags":{"type":"array","items":{"type":"string","pattern":"^a"},"maxItems":2,"uniqueItems":true},
			"level":{"enum":[1,2]},
			"lines":{"type":"array","items":{"$ref":"#/$defs/line"}},
			"labels":{"type":"object","additionalProperties":{"type":"string"}},
			"a/b~c":{"type":"boolean"},
			"every":{"allOf":[{"$ref":"#/$defs/short","maxLength":6}],"type":"string"},
			"choice":{"anyOf":[{"type":"integer","minimum":3},{"type":"null"}]},
			"either":{"oneOf":[{"$ref":"#/$defs/short"},{"type":"array","items":{"type":"string"}}]},
			"branch":{"type":"object","allOf":[{"properties":{"x":{"type":"integer"}},"required":["x"]}],"unevaluatedProperties":false},
			"tree":{"$ref":"#/$defs/tree"}},
			"$defs":{"short":{"type":"string","minLength":2},
				"tree":{"type":"object","properties":{"tree":{"$ref":"#/$defs/tree"}},"unevaluatedProperties":false},
				"line":{"type":"object","required":["cents"],"additionalProperties":false,"properties":{"cents":{"type":"integer"}}}}}`),
		OutputSchema: json.RawMessage(`{"type":"object"}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestCheckArgumentsExplains: the model learns the place and the rule, and nobody
// learns a value, or a name that the tool does not declare.
func TestCheckArgumentsExplains(t *testing.T) {
	s := explained(t)
	for _, tt := range []struct {
		arguments string
		want      []string
	}{
		{`{"timeout_ms":120000}`, nil},
		{`{"timeout_ms":120000.0}`, []string{"/timeout_ms: must be an integer: write it without a fraction or an exponent"}},
		{`{"timeout_ms":"120000"}`, []string{"/timeout_ms: must be an integer, not a string"}},
		{`{"timeout_ms":null}`, []string{"/timeout_ms: must be an integer, not null"}},
		{`{"timeout_ms":0}`, []string{"/timeout_ms: must be at least 1"}},
		{`{"timeout_ms":1000001}`, []string{"/timeout_ms: must be at most 1000000"}},
		{`{}`, []string{"/timeout_ms: is missing"}},
		{`{"timeout_ms":1,"note":null}`, []string{"/note: must be a string, not null: leave the field out where there is no value"}},
		{`{"timeout_ms":1,"note":" x "}`, []string{"/note: must have at least 2 characters, white space around them not counted"}},
		{`{"timeout_ms":1,"note":"s3cret"}`, []string{"/note: must have at most 5 characters"}},
		{`{"timeout_ms":1,"maybe":7}`, []string{"/maybe: must be a string or null, not a number"}},
		{`{"timeout_ms":1,"tags":"[\"a\"]"}`, []string{"/tags: must be a list, not a string"}},
		{`{"timeout_ms":1,"tags":["a","s3cret"]}`, []string{"/tags/1: must match the schema's pattern"}},
		{`{"timeout_ms":1,"tags":["a","a","a"]}`, []string{"/tags: must have at most 2 entries", "/tags: must not hold an entry twice"}},
		{`{"timeout_ms":1,"level":1.0}`, []string{"/level: must be a value that the schema lists; 1.0 is not 1"}},
		{`{"timeout_ms":1,"level":"s3cret"}`, []string{"/level: must be a value that the schema lists"}},
		{`{"timeout_ms":1,"lines":[{"cents":1},{"cents":true}]}`, []string{"/lines/1/cents: must be an integer, not true or false"}},
		{`{"timeout_ms":1,"lines":[{}]}`, []string{"/lines/0/cents: is missing"}},
		{`{"timeout_ms":1,"labels":{"s3cret":7}}`, []string{"/labels/*: must be a string, not a number"}},
		{`{"timeout_ms":1,"a/b~c":1}`, []string{"/a~1b~0c: must be true or false, not a number"}},
		{`{"timeout_ms":1,"s3cret":1}`, []string{"/: has a field that the tool does not declare: leave it out"}},
		{`{"timeout_ms":1,"s3cret":1,"s3cret.[\"2":1,"lines":[{"cents":1,"s3cret":1}]}`, []string{
			"/: has 2 fields that the tool does not declare: leave them out", "/lines/0: has a field that the tool does not declare: leave it out"}},
		{`{"timeout_ms":1,"every":"x"}`, []string{"/every: must have at least 2 characters, white space around them not counted"}},
		{`{"timeout_ms":1,"every":"a secret"}`, []string{"/every: must have at most 6 characters"}},
		{`{"timeout_ms":1,"choice":"3"}`, []string{"/choice: must be an integer or null, not a string"}},
		{`{"timeout_ms":1,"choice":3.0}`, []string{"/choice: must be an integer or null: write it without a fraction or an exponent"}},
		{`{"timeout_ms":1,"choice":2}`, []string{"/choice: must fit one of the schema's alternatives"}},
		{`{"timeout_ms":1,"either":7}`, []string{"/either: must be a string or a list, not a number"}},
		{`{"timeout_ms":1,"either":"x"}`, []string{"/either: must fit one of the schema's alternatives, and no other"}},
		{`{"timeout_ms":1,"branch":{"x":"1"}}`, []string{"/branch/x: must be an integer, not a string"}},
		{`{"timeout_ms":1,"branch":{"x":"1","s3cret":1}}`, []string{"/branch: has a field that the tool does not declare: leave it out", "/branch/x: must be an integer, not a string"}},
		{`{"timeout_ms":1,"tree":{"tree":{"tree":7}}}`, []string{"/tree/tree/tree: must be an object, not a number"}},
		{`{"timeout_ms":1,"tree":{"tree":{"s3cret":7}}}`, []string{"/tree/tree: has a field that the tool does not declare: leave it out"}},
		{`[]`, []string{"/: must be an object, not a list"}},
		{`"{\"timeout_ms\":1}"`, []string{"/: must be an object, not a string"}},
		// What has no digest is explained as well.
		{`{"timeout_ms":9007199254740993}`, []string{"/timeout_ms: integer beyond 2^53, send it as a string"}},
		{`{"lines":[{"cents":1,"cents":2}]}`, []string{"/lines/0/cents: stands there twice: send each field once"}},
		{`{"s3cret":{"s3cret.x":[9007199254740993]}}`, []string{"/*/*/0: integer beyond 2^53, send it as a string"}},
		{`{"timeout_ms":1`, []string{"/: is not whole JSON: cut off or malformed"}},
		{strings.Repeat("[", 40), []string{"/: nested deeper than 31 levels"}},
		{`"` + strings.Repeat("s3cret", 12_000) + `"`, []string{"/: more than 65536 bytes"}},
		{`{"labels":{"x":[` + strings.TrimSuffix(strings.Repeat("1e15,", 1000), ",") + `],"y":"` + strings.Repeat("a", 54990) + `"}}`, []string{"/: more than 65536 bytes"}},
	} {
		b, err := toolresult.BindAnswerable(owner, callOf("t", tt.arguments), s.Contract())
		if err != nil {
			t.Errorf("%.60s: %v", tt.arguments, err)
			continue
		}
		var got []string
		for _, p := range s.CheckArguments(b) {
			got = append(got, p.String())
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%.60s: %s", tt.arguments, diff)
		}
		if strings.Contains(strings.Join(got, ""), "s3cret") {
			t.Errorf("%.60s: a word of the model's", tt.arguments)
		}
	}
}

func TestCheckArgumentsIsBounded(t *testing.T) {
	s := explained(t)
	many := `{"timeout_ms":1,"lines":[` + strings.TrimSuffix(strings.Repeat(`{"x":1},`, 1000), ",") + `]}`
	deep := `{"labels":` + strings.Repeat(`{"labels":`, 28) + `9007199254740993` + strings.Repeat("}", 29)
	for _, arguments := range []string{many, deep} {
		b, err := toolresult.BindAnswerable(owner, callOf("t", arguments), s.Contract())
		if err != nil {
			t.Fatal(err)
		}
		ps := s.CheckArguments(b)
		if len(ps) == 0 || len(ps) > toolresult.MaxProblems {
			t.Errorf("%d problems", len(ps))
		}
		for _, p := range ps {
			if len(p.String()) > 400 {
				t.Errorf("%d bytes: %s", len(p.String()), p)
			}
		}
	}
}

// TestBindAnswerable: arguments without a digest get a stand-in, which nothing can
// mistake for arguments.
func TestBindAnswerable(t *testing.T) {
	contract := toolresult.UnregisteredContract("t")
	bind := func(arguments string) *toolresult.Bound {
		t.Helper()
		b, err := toolresult.BindAnswerable(owner, callOf("t", arguments), contract)
		if err != nil {
			t.Fatalf("%.40q: %v", arguments, err)
		}
		return b
	}
	for _, nothing := range []string{"", " \n", "null", " null ", `""`, `"  "`, `"\u2003\t"`, "{}", "{ }"} {
		if b := bind(nothing); b.Arguments() != "{}" || b.Call().Fault != nil {
			t.Errorf("%q: %s, %v", nothing, b.Arguments(), b.Call().Fault)
		}
	}
	for _, arguments := range []string{`{"x":1}`, "[]", "0", `"x"`, `"{}"`} { // as Bind does it
		b, err := toolresult.Bind(owner, callOf("t", arguments), contract)
		if err != nil || bind(arguments).RequestSHA256() != b.RequestSHA256() || bind(arguments).Call().Fault != nil {
			t.Errorf("%s: %v", arguments, err)
		}
	}
	seen := map[string]string{}
	for _, arguments := range []string{"{", "{{", `{"a":1,"a":1}`, "\xff", "9007199254740993", strings.Repeat("[", 99), "NaN", `"\ud800"`} {
		b := bind(arguments)
		if b.Call().Fault == nil || bind(arguments).Fingerprint(toolresult.PurposeDispatch) != b.Fingerprint(toolresult.PurposeDispatch) {
			t.Errorf("%q: no fault, or not the same call again", arguments)
		}
		if other := seen[b.RequestSHA256()]; other != "" {
			t.Errorf("%q is the same as %q", arguments, other)
		}
		seen[b.RequestSHA256()] = arguments
		// Also where the fault is lost on the way, it is a call that no tool takes.
		text, err := json.Marshal(b.Call())
		if err != nil {
			t.Fatal(err)
		}
		var lost toolresult.Call
		if err := json.Unmarshal(text, &lost); err != nil {
			t.Fatal(err)
		}
		again, err := toolresult.Bind(owner, lost, contract)
		if err != nil || again.RequestSHA256() != b.RequestSHA256() || lost.Arguments[0] != '"' {
			t.Errorf("%q: %v", arguments, err)
		}
	}
	c := callOf("t", "{")
	c.CallID = "\xff"
	_, err := toolresult.BindAnswerable(owner, c, contract)
	wantField(t, err, "call_id")
}
