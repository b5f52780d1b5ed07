package toolresult_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/toolresult"
)

// turnOf is a turn of n calls with valid results; the last tool is unregistered.
func turnOf(t *testing.T, n int) ([]toolresult.Expected, []*toolresult.Package) {
	spec := orderSpec(t)
	var calls []toolresult.Expected
	var results []*toolresult.Package
	for i := range n {
		c := orderCall()
		c.CallID = fmt.Sprint("call-", i)
		e := toolresult.Expected{Bound: bind(t, c, spec.Contract()), Spec: spec}
		p := e.Bound.Success(spec.Source(), orderEvidence(), toolresult.Fresh)
		if i == n-1 {
			c.Name = "stranger"
			e = toolresult.Expected{Bound: bind(t, c, toolresult.UnregisteredContract(c.Name))}
			p = e.Bound.Failure(toolresult.UnknownTool, "", time.Unix(now, 0))
		}
		calls, results = append(calls, e), append(results, p)
	}
	return calls, results
}

func TestValidateSet(t *testing.T) {
	calls, results := turnOf(t, 4)
	raw := make([]json.RawMessage, len(results))
	for i, p := range results {
		raw[i] = encode(t, p)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		r.Shuffle(len(raw), func(i, j int) { raw[i], raw[j] = raw[j], raw[i] })
		if problems := toolresult.ValidateSet(calls, raw); len(problems) > 0 {
			t.Fatalf("in another order: %v", problems)
		}
	}
	for i, p := range results {
		raw[i] = encode(t, p)
	}
	relabelled := results[0].Clone()
	relabelled.ProtectedAudit.ProviderContext = results[1].ProtectedAudit.ProviderContext
	crossed := results[0].Clone()
	crossed.ModelResult = results[3].ModelResult
	foreign := results[0].Clone()
	foreign.ProtectedAudit.ProviderContext.ResponseID = "resp-2"
	for name, tt := range map[string]struct {
		calls   []toolresult.Expected
		results []json.RawMessage
		path    string
	}{
		"missing":          {calls, raw[:3], "calls[3]"},
		"none":             {calls, nil, "calls[0]"},
		"duplicate":        {calls, append(raw[:4:4], raw[0]), "results[4]"},
		"unknown call":     {calls[:3], raw, "results[3]"},
		"unknown response": {calls, append(raw[1:4:4], encode(t, foreign)), "results[3]"},
		"relabelled":       {calls, append([]json.RawMessage{raw[0], encode(t, relabelled)}, raw[2:]...), "results[1].protected_audit.binding.call_binding_sha256"},
		"crossed":          {calls, append([]json.RawMessage{encode(t, crossed)}, raw[1:]...), "results[0].protected_audit.binding.result_sha256"},
		"call twice":       {append(calls[:4:4], calls[0]), raw, "calls[4]"},
		"not JSON":         {calls, append(raw[:3:3], json.RawMessage(`{`)), "results[3]"},
		"null":             {calls, append(raw[:3:3], json.RawMessage(`null`)), "results[3]"},
		"wrong type":       {calls, append(raw[:3:3], json.RawMessage(`{"protected_audit":[]}`)), "results[3]"},
		"nil":              {calls, append(raw[:3:3], nil), "results[3]"},
		"without its spec": {[]toolresult.Expected{{Bound: calls[0].Bound}}, raw[:1], "results[0].spec"},
	} {
		if problems := toolresult.ValidateSet(tt.calls, tt.results); !hasPath(problems, tt.path) {
			t.Errorf("%s: got %v, want a problem at %s", name, problems, tt.path)
		}
	}
	if problems := toolresult.ValidateSet(nil, nil); len(problems) > 0 {
		t.Errorf("nothing: %v", problems)
	}
}

func FuzzValidateJSON(f *testing.F) {
	spec := refundSpec(f)
	b := bind(f, refundCall(), spec.Contract())
	f.Add([]byte(encode(f, b.Success(spec.Source(), refundEvidence(b), toolresult.Fresh))))
	f.Add([]byte(encode(f, b.Failure(toolresult.RateLimit, "", time.Unix(now, 0)))))
	f.Add([]byte(`{"model_result":{"status":{},"execution":[],"provenance":null,"data":{"x":[]},"error":{"code":[]}},"protected_audit":{"binding":{},"downstream":{"status_ref":{}},"redactions":[{}]}}`))
	f.Add([]byte(`{"model_result":{"status":"succeeded","data":[]},"protected_audit":{"provider_context":1,"tool_contract":[]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		problems := toolresult.ValidateJSON(b, spec, raw)
		toolresult.ValidateJSON(b, nil, raw)
		toolresult.ValidateSet([]toolresult.Expected{{Bound: b, Spec: spec}}, []json.RawMessage{raw})
		var p toolresult.Package
		if json.Unmarshal(raw, &p) != nil {
			return
		}
		p.Clone()
		if decoded := toolresult.Validate(b, spec, &p); len(problems) == 0 && len(decoded) > 0 {
			t.Fatalf("valid as text, but decoded: %v", decoded)
		}
	})
}
