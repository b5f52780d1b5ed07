package wire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/provider/internal/wire"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// turn is a response with a success, a failure and an unregistered tool.
func turn(t *testing.T, p provider) ([]toolresult.Expected, []*toolresult.Package) {
	t.Helper()
	spec, err := toolruntime.SpecOf(refunds.NewOrders().GetOrder())
	if err != nil {
		t.Fatal(err)
	}
	calls, err := p.calls([]byte(p.body(p.call("a", "get_order", `{"order_ref":"ORDER-7"}`),
		p.call("b", "get_order", `{"order_ref":"ORDER-9"}`), p.call("c", "drop_table", `{}`))), host)
	if err != nil {
		t.Fatal(err)
	}
	expected := make([]toolresult.Expected, len(calls))
	for i, c := range calls {
		contract, s := spec.Contract(), spec
		if c.Name != contract.Name {
			contract, s = toolresult.UnregisteredContract(c.Name), nil
		}
		b, err := toolresult.Bind(toolresult.Principal{TenantID: "tenant-a", SubjectID: "user-1"}, c, contract)
		if err != nil {
			t.Fatal(err)
		}
		expected[i] = toolresult.Expected{Bound: b, Spec: s}
	}
	return expected, []*toolresult.Package{
		expected[0].Bound.Success(spec.Source(), toolresult.Evidence{Data: `{"order_ref":"ORDER-7","status":"paid"}`,
			ProducerRevision: "orders-mock-v2", ObservedAt: "2026-07-19T00:00:00Z"}, toolresult.Fresh),
		expected[1].Bound.Failure(toolresult.NotFound, "", time.Unix(now, 0)),
		expected[2].Bound.Failure(toolresult.UnknownTool, "", time.Unix(now, 0)),
	}
}

func TestOutput(t *testing.T) {
	shapes := map[string]string{
		"openai":    `{"call_id":"a","output":%s,"type":"function_call_output"}`,
		"anthropic": `{"content":[{"text":%s,"type":"text"}],"is_error":false,"tool_use_id":"a","type":"tool_result"}`,
		"gemini":    `{"input":[{"call_id":"a","name":"get_order","result":[{"text":%s,"type":"text"}],"type":"function_result"}],"previous_interaction_id":"resp-1"}`,
	}
	forEach(t, func(t *testing.T, p provider) {
		if p.output == nil {
			return
		}
		calls, results := turn(t, p)
		want := fmt.Sprintf(shapes[p.name], quote(results[0].ModelResult.Text()))
		// Equal data in other words must leave in the words that were hashed.
		results[0].ModelResult.Data = json.RawMessage(`{ "status": "p\u0061id", "order_ref":"ORDER-7" }`)
		got, err := p.output(calls[0].Bound, calls[0].Spec, results[0])
		if err != nil || string(got) != want {
			t.Errorf("got  %s, %v\nwant %s", got, err, want)
		}
	})
}

func TestOutputRefuses(t *testing.T) {
	forEach(t, func(t *testing.T, p provider) {
		calls, results := turn(t, p)
		ok, c := results[0], calls[0]
		edited := func(edit func(*toolresult.Package)) *toolresult.Package {
			q := ok.Clone()
			edit(q)
			return q
		}
		rebound := func(edit func(*toolresult.Call)) *toolresult.Bound {
			call := c.Bound.Call()
			edit(&call)
			b, err := toolresult.Bind(c.Bound.Principal(), call, c.Bound.Contract())
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		adapter := rebound(func(c *toolresult.Call) { c.AdapterRevision += "x" })
		for name, tt := range map[string]struct {
			b    *toolresult.Bound
			spec *toolresult.Spec
			p    *toolresult.Package
		}{
			"no package":       {c.Bound, c.Spec, nil},
			"empty package":    {c.Bound, c.Spec, &toolresult.Package{}},
			"another call's":   {c.Bound, c.Spec, results[1]},
			"no spec":          {c.Bound, nil, ok},
			"edited data":      {c.Bound, c.Spec, edited(func(p *toolresult.Package) { p.ModelResult.Data = json.RawMessage(`{"order_ref":"ORDER-9"}`) })},
			"broken data":      {c.Bound, c.Spec, edited(func(p *toolresult.Package) { p.ModelResult.Data = json.RawMessage(`{},"x":1`) })},
			"edited audit":     {c.Bound, c.Spec, edited(func(p *toolresult.Package) { p.ProtectedAudit.OperationID = "op-2" })},
			"other adapter":    {adapter, c.Spec, adapter.Failure(toolresult.NotFound, "", time.Unix(now, 0))},
			"another response": {rebound(func(c *toolresult.Call) { c.ResponseID = "resp-2" }), c.Spec, ok},
		} {
			var refused *wire.OutputError
			if got, err := p.outputs([]toolresult.Expected{{Bound: tt.b, Spec: tt.spec}}, []*toolresult.Package{tt.p}); !errors.As(err, &refused) || got != nil || len(refused.Problems) == 0 {
				t.Errorf("%s: got %s, %v", name, got, err)
			}
		}
		for _, other := range providers {
			if _, err := other.outputs([]toolresult.Expected{c}, []*toolresult.Package{ok}); (err == nil) != (other.name == p.name) {
				t.Errorf("to %s: %v", other.name, err)
			}
		}
	})
}

func TestOutputs(t *testing.T) {
	forEach(t, func(t *testing.T, p provider) {
		calls, results := turn(t, p)
		got, err := p.outputs(calls, results)
		if err != nil {
			t.Fatal(err)
		}
		shuffled, err := p.outputs(calls, []*toolresult.Package{results[2], results[0], results[1]})
		if err != nil || string(shuffled) != string(got) {
			t.Errorf("the order of the results shows: %s, %v", shuffled, err)
		}
		rest := string(got)
		for i, r := range results {
			text := quote(r.ModelResult.Text())
			if p.name == "geminicontent" { // there it is a value
				text = r.ModelResult.Text()
			}
			at := strings.Index(rest, text)
			if at < 0 {
				t.Fatalf("result %d is missing, or out of order", i)
			}
			rest = rest[at:]
		}
		for _, secret := range []string{"tenant-a", "op-a", "key-a", "sha256", "tool-audit-v2", "status_"} {
			if strings.Contains(string(got), secret) {
				t.Errorf("%s leaves", secret)
			}
		}
		foreign := results[0].Clone()
		foreign.ProtectedAudit.ProviderContext.CallID = "z"
		swapped := results[1].Clone()
		swapped.ModelResult = results[0].ModelResult
		for name, set := range map[string][]*toolresult.Package{
			"missing": results[:2], "none": nil, "twice": {results[0], results[0], results[1], results[2]},
			"foreign": {foreign, results[1], results[2]}, "swapped": {results[0], swapped, results[2]}, "nil": {results[0], results[1], nil},
		} {
			var refused *wire.OutputError
			if got, err := p.outputs(calls, set); !errors.As(err, &refused) || got != nil {
				t.Errorf("%s: got %s, %v", name, got, err)
			}
		}
		if _, err := p.outputs(nil, nil); err == nil {
			t.Error("an empty turn has an answer")
		}
	})
}
