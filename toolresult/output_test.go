package toolresult_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolruntime/toolruntime-go/toolresult"
)

func TestOutputContract(t *testing.T) {
	spec := refundSpec(t)
	b := bind(t, refundCall(), spec.Contract())
	data := func(text string) func(*toolresult.Evidence) {
		return func(e *toolresult.Evidence) { e.Data = text }
	}
	for name, tt := range map[string]struct {
		edit func(*toolresult.Evidence)
		path string // of the first problem, "" for none
	}{
		"as it is":             {func(*toolresult.Evidence) {}, ""},
		"no resource revision": {func(e *toolresult.Evidence) { e.ResourceRevision = "" }, ""},
		"blank revision":       {func(e *toolresult.Evidence) { e.ResourceRevision = "\u001c" }, "resource_revision"},
		"zero-width revision":  {func(e *toolresult.Evidence) { e.ResourceRevision = "\u200b" }, ""},
		"revision not UTF-8":   {func(e *toolresult.Evidence) { e.ResourceRevision = "r\xff" }, "resource_revision"},
		"other producer":       {func(e *toolresult.Evidence) { e.ProducerRevision = "refunds-mock-v3" }, "producer_revision"},
		"no time":              {func(e *toolresult.Evidence) { e.ObservedAt = "" }, "observed_at"},
		"not JSON":             {data(`{`), "data"},
		"empty":                {data(``), "data"},
		"null":                 {data(`null`), "data"},
		"a list":               {data(`[]`), "data"},
		"not canonical":        {data(`{"draft_id":"DRAFT-1", "order_ref":"ORDER-7","reason":"damaged"}`), "data"},
		"field missing":        {data(`{"draft_id":"DRAFT-1","order_ref":"ORDER-7"}`), "data.reason"},
		"field more":           {data(`{"amount":1,"draft_id":"DRAFT-1","order_ref":"ORDER-7","reason":"damaged"}`), "data.amount"},
		"wrong type":           {data(`{"draft_id":1,"order_ref":"ORDER-7","reason":"damaged"}`), "data.draft_id"},
		"pattern":              {data(`{"draft_id":"DRAFT-0","order_ref":"ORDER-7","reason":"damaged"}`), "data.draft_id"},
		"pattern, line break":  {data(`{"draft_id":"DRAFT-1\n","order_ref":"ORDER-7","reason":"damaged"}`), "data.draft_id"},
		"64 code points":       {data(`{"draft_id":"DRAFT-` + strings.Repeat("1", 58) + `","order_ref":"ORDER-7","reason":"damaged"}`), ""},
		"65 code points":       {data(`{"draft_id":"DRAFT-` + strings.Repeat("1", 59) + `","order_ref":"ORDER-7","reason":"damaged"}`), "data.draft_id"},
		"other order":          {data(`{"draft_id":"DRAFT-1","order_ref":"ORDER-8","reason":"damaged"}`), "data.order_ref"},
		"other reason":         {data(`{"draft_id":"DRAFT-1","order_ref":"ORDER-7","reason":"other"}`), "data.reason"},
		"deep":                 {data(strings.Repeat("[", 100_000)), "data"},
		"larger than the tool": {data(`{"draft_id":"DRAFT-1","order_ref":"ORDER-7","reason":"` + strings.Repeat("d", 384) + `"}`), "data"},
		"larger than anything": {data(`"` + strings.Repeat("d", 1<<20) + `"`), "data"},
	} {
		e := refundEvidence(b)
		tt.edit(&e)
		problems := spec.CheckOutput(b, e)
		if tt.path == "" && len(problems) > 0 || tt.path != "" && !hasPath(problems, tt.path) {
			t.Errorf("%s: got %v, want a problem at %q", name, problems, tt.path)
		}
		// What a handler may answer and what a package may carry is one rule.
		valid := len(toolresult.Validate(b, spec, b.Success(spec.Source(), e, toolresult.Fresh))) == 0
		if name != "not canonical" && valid != (len(problems) == 0) {
			t.Errorf("%s: as a package valid is %t, as output %v", name, valid, problems)
		}
	}
}

func hasPath(problems []toolresult.Problem, path string) bool {
	for _, p := range problems {
		if p.Path == path || strings.HasPrefix(p.Path, path+".") {
			return true
		}
	}
	return false
}

// openSpec is a tool whose output may hold anything in x.
func openSpec(t testing.TB, maxBytes, maxDepth int) *toolresult.Spec {
	t.Helper()
	spec, err := toolresult.NewSpec(toolresult.SpecConfig{
		Contract:       toolresult.Contract{Name: "open", Revisions: toolresult.Revisions{InputSchema: "i", OutputSchema: "o", Effect: "e", Handler: "h", Producer: "p", Policy: "a"}},
		Source:         "open",
		Risk:           toolresult.Read,
		InputSchema:    json.RawMessage(`{"type":"object","properties":{}}`),
		OutputSchema:   json.RawMessage(`{"type":"object","properties":{"x":{}}}`),
		MaxOutputBytes: maxBytes, MaxOutputDepth: maxDepth,
	})
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func checkOpen(t *testing.T, maxBytes, maxDepth int, x string) (*toolresult.Spec, *toolresult.Bound, toolresult.Evidence, []toolresult.Problem) {
	t.Helper()
	spec := openSpec(t, maxBytes, maxDepth)
	b := bind(t, callOf("open", "{}"), spec.Contract())
	e := toolresult.Evidence{Data: `{"x":` + x + `}`, ProducerRevision: "p", ObservedAt: "2026-07-19T00:00:00Z"}
	return spec, b, e, spec.CheckOutput(b, e)
}

func TestSensitiveKeys(t *testing.T) {
	for _, key := range strings.Fields(`authorization api_key access_token refresh_token password secret cookie set_cookie
		call_id operation_id request_digest request_sha256 result_sha256 call_binding_sha256`) {
		for _, spelling := range []string{key, strings.ToUpper(key), strings.ReplaceAll(key, "_", "-"), strings.ToUpper(key[:1]) + strings.ReplaceAll(key[1:], "_", "-")} {
			for _, x := range []string{`{%q:1}`, `[[{"a":[{%q:null}]}]]`} {
				if _, _, _, problems := checkOpen(t, 0, 0, fmt.Sprintf(x, spelling)); len(problems) == 0 {
					t.Errorf("%s in %s is accepted", spelling, x)
				}
			}
		}
		// A longer name, and a value, are no such key.
		for _, x := range []string{fmt.Sprintf(`{%q:1}`, "x_"+key), fmt.Sprintf(`{"a":%q}`, key)} {
			if _, _, _, problems := checkOpen(t, 0, 0, x); len(problems) > 0 {
				t.Errorf("%s: %v", x, problems)
			}
		}
	}
}

func TestOutputLimits(t *testing.T) {
	nested := func(n int, core string) string { return strings.Repeat("[", n) + core + strings.Repeat("]", n) }
	text := func(bytes int) string { return `"` + strings.Repeat("<", bytes-len(`{"x":""}`)) + `"` }
	for _, tt := range []struct {
		maxBytes, maxDepth int
		x                  string
		ok                 bool
	}{
		{0, 1, "1", true}, {0, 1, "[]", true}, {0, 1, "[1]", false}, {0, 2, "[1]", true}, {0, 3, `{"a":{"b":1}}`, true}, {0, 2, `{"a":{"b":1}}`, false},
		{0, 0, nested(28, "1"), true}, {0, 0, nested(28, "[]"), true}, {0, 0, nested(29, "1"), false}, {0, 0, nested(33, ""), false},
		{100, 0, text(100), true}, {100, 0, text(101), false}, {100, 0, `"` + strings.Repeat("é", 46) + `"`, true}, {100, 0, `"` + strings.Repeat("é", 47) + `"`, false},
		{0, 0, text(32_768), true}, {0, 0, text(32_769), false},
	} {
		spec, b, e, problems := checkOpen(t, tt.maxBytes, tt.maxDepth, tt.x)
		if (len(problems) == 0) != tt.ok {
			t.Errorf("%d, %d, %.60s: %v", tt.maxBytes, tt.maxDepth, tt.x, problems)
		}
		if !tt.ok {
			continue
		}
		// What is accepted from a handler must be a package that can be proven.
		if problems := toolresult.Validate(b, spec, b.Success("open", e, toolresult.Fresh)); len(problems) > 0 {
			t.Errorf("%d, %d, %.60s: the package: %v", tt.maxBytes, tt.maxDepth, tt.x, problems)
		}
	}
}

func TestSpecLimits(t *testing.T) {
	for _, tt := range []struct {
		maxBytes, maxDepth int
		field              string
	}{{32768, 29, ""}, {32769, 0, "max_output_bytes"}, {-1, 0, "max_output_bytes"}, {0, 30, "max_output_depth"}, {0, -1, "max_output_depth"}} {
		_, err := toolresult.NewSpec(toolresult.SpecConfig{
			Contract:    toolresult.UnregisteredContract("t"),
			Source:      "s",
			InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: json.RawMessage(`{"type":"object"}`),
			MaxOutputBytes: tt.maxBytes, MaxOutputDepth: tt.maxDepth,
		})
		wantField(t, err, tt.field)
	}
}
