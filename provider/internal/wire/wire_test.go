package wire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/provider/anthropic"
	"github.com/toolruntime/toolruntime-go/provider/gemini"
	"github.com/toolruntime/toolruntime-go/provider/internal/wire"
	"github.com/toolruntime/toolruntime-go/provider/openai"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

const now int64 = 1_784_419_200

// A provider is an adapter under test. body and call write what the provider
// would send; the arguments are JSON text.
type provider struct {
	profile toolresult.Profile
	calls   func([]byte, wire.Host) ([]toolresult.Call, error)
	output  func(*toolresult.Bound, *toolresult.Spec, *toolresult.Package) (json.RawMessage, error)
	outputs func([]toolresult.Expected, []*toolresult.Package) (json.RawMessage, error)
	body    func(calls ...string) string
	call    func(id, name, arguments string) string
}

var providers = []provider{{
	toolresult.OpenAIResponses, openai.Calls, openai.Output, openai.Outputs,
	func(calls ...string) string {
		return `{"id":"resp-1","status":"completed","output":[{"type":"message","content":[]},` + strings.Join(calls, ",") + `]}`
	},
	func(id, name, arguments string) string {
		return fmt.Sprintf(`{"type":"function_call","id":"fc-1","call_id":%s,"name":%s,"arguments":%s}`, quote(id), quote(name), quote(arguments))
	},
}, {
	toolresult.AnthropicMessages, anthropic.Calls, anthropic.Output, anthropic.Outputs,
	func(calls ...string) string {
		return `{"id":"resp-1","stop_reason":"tool_use","content":[{"type":"text","text":"on it"},` + strings.Join(calls, ",") + `]}`
	},
	func(id, name, arguments string) string {
		return fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":%s}`, quote(id), quote(name), arguments)
	},
}, {
	toolresult.GeminiInteractions, gemini.Calls, gemini.Output, gemini.Outputs,
	func(calls ...string) string {
		return `{"id":"resp-1","status":"requires_action","outputs":[{"type":"text","text":"on it"},` + strings.Join(calls, ",") + `]}`
	},
	func(id, name, arguments string) string {
		return fmt.Sprintf(`{"type":"function_call","id":%s,"name":%s,"arguments":%s}`, quote(id), quote(name), arguments)
	},
}}

func quote(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func forEach(t *testing.T, test func(t *testing.T, p provider)) {
	for _, p := range providers {
		t.Run(p.profile.Provider, func(t *testing.T) { test(t, p) })
	}
}

func host(c toolresult.Call) (string, string, error) { return "op-" + c.CallID, "key-" + c.CallID, nil }

func TestCalls(t *testing.T) {
	forEach(t, func(t *testing.T, p provider) {
		const arguments = `{ "n":616581622363398, "x":1.0, "y":1E2 }`
		got, err := p.calls([]byte(p.body(p.call("a", "get_order", arguments), p.call("b", "create_refund_draft", `{}`))), host)
		if err != nil {
			t.Fatal(err)
		}
		want := func(id, name, arguments string) toolresult.Call {
			return toolresult.NewCall(toolresult.Proposal{Name: name, Arguments: json.RawMessage(arguments)}, toolresult.ExecutionContext{
				Provider: p.profile.Provider, APIFamily: p.profile.APIFamily, AdapterRevision: p.profile.AdapterRevision,
				ResponseID: "resp-1", CallID: id, OperationID: "op-" + id, IdempotencyKey: "key-" + id})
		}
		if diff := cmp.Diff([]toolresult.Call{want("a", "get_order", arguments), want("b", "create_refund_draft", `{}`)}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func nested(arrays int) string {
	return `{"x":` + strings.Repeat("[", arrays) + "1" + strings.Repeat("]", arrays) + `}`
}

func TestCallsArguments(t *testing.T) {
	forEach(t, func(t *testing.T, p provider) {
		for _, tt := range []struct{ arguments, want string }{ // want "" is a refusal
			{`{}`, `{}`}, {`[]`, `[]`}, {`3`, `3`}, {`"x"`, `"x"`}, {`{"n":9007199254740991}`, `{"n":9007199254740991}`},
			{`{"n":9007199254740992}`, ""}, {`{"a":1,"a":2}`, ""}, {`{"a":1,"\u0061":2}`, ""}, {`{"x":1e400}`, ""},
			{`{"x":"\ud800"}`, ""}, {nested(30), nested(30)}, {nested(31), ""},
			{`{"x":[` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `]}`, ""},
			{`{"x":"` + strings.Repeat("a", 65536) + `"}`, ""},
		} {
			got, err := p.calls([]byte(p.body(p.call("a", "tool", tt.arguments))), host)
			var refused *wire.ResponseError
			switch {
			case tt.want == "":
				if !errors.As(err, &refused) || got != nil || !strings.Contains(refused.Path, "[1].") {
					t.Errorf("%.40s: got %v, %v", tt.arguments, got, err)
				}
			case err != nil || string(got[0].Arguments) != tt.want:
				t.Errorf("%.40s: got %v, %v", tt.arguments, got, err)
			}
		}
	})
}

func TestCallsRefusesTheResponse(t *testing.T) {
	long := strings.Repeat("é", 256)
	forEach(t, func(t *testing.T, p provider) {
		call := p.call("a", "tool", `{}`)
		many := make([]string, 129)
		for i := range many {
			many[i] = p.call(fmt.Sprint("call-", i), "tool", `{}`)
		}
		bodies := map[string]string{
			"same id":             p.body(call, call),
			"same id, other call": p.body(call, p.call("a", "tool", `{"x":1}`)),
			"empty id":            p.body(p.call("", "tool", `{}`)),
			"blank id":            p.body(p.call("\u001c", "tool", `{}`)),
			"long id":             p.body(p.call(long, "tool", `{}`)),
			"blank name":          p.body(p.call("a", " ", `{}`)),
			"long name":           p.body(p.call("a", long, `{}`)),
			"129 calls":           p.body(many...),
			"1025 entries":        p.body(strings.Repeat(`{"type":"x"},`, 1024) + call),
			"no response id":      strings.Replace(p.body(call), `"id":"resp-1"`, `"ID":"resp-1"`, 1),
			"blank response id":   strings.Replace(p.body(call), `resp-1`, ` `, 1),
			"numeric response id": strings.Replace(p.body(call), `"resp-1"`, `7`, 1),
			"two response ids":    strings.Replace(p.body(call), `{`, `{"\u0069d":"resp-2",`, 1),
			"half a surrogate":    strings.Replace(p.body(call), `resp-1`, `resp-\ud800\u0041`, 1),
			"repeated name":       strings.Replace(p.body(call), `"name":`, `"name":"other","name":`, 1),
			"name is null":        strings.Replace(p.body(call), `"name":"tool"`, `"name":null`, 1),
			"type is missing":     p.body(`{}`),
			"item is a string":    p.body(`"x"`),
			"not JSON":            p.body(call) + "}",
			"two documents":       p.body(call) + p.body(call),
			"not UTF-8":           strings.Replace(p.body(call), `resp-1`, "\xff", 1),
			"a list":              "[" + p.body(call) + "]",
			"empty":               "",
			"null":                "null",
			"too large":           p.body(call) + strings.Repeat(" ", wire.MaxResponseBytes),
			"deep":                strings.Repeat("[", 1<<20),
		}
		for name, body := range bodies {
			asked := func(toolresult.Call) (string, string, error) {
				t.Errorf("%s: the host is asked about a refused response", name)
				return "op", "", nil
			}
			got, err := p.calls([]byte(body), asked)
			var refused *wire.ResponseError
			if !errors.As(err, &refused) || got != nil || strings.Contains(err.Error(), "resp-") {
				t.Errorf("%s: got %v, %v", name, got, err)
			}
		}
		if got, err := p.calls([]byte(p.body(many[:128]...)), host); err != nil || len(got) != 128 {
			t.Errorf("128 calls: %d, %v", len(got), err)
		}
		if got, err := p.calls([]byte(p.body(`{"type":"other"}`)), host); err != nil || len(got) != 0 {
			t.Errorf("no calls: %v, %v", got, err)
		}
	})
}

func TestCallsHost(t *testing.T) {
	down := errors.New("no number today")
	forEach(t, func(t *testing.T, p provider) {
		body := []byte(p.body(p.call("a", "tool", `{"x":1}`)))
		if got, err := p.calls(body, func(toolresult.Call) (string, string, error) { return "", "", down }); !errors.Is(err, down) || got != nil {
			t.Errorf("got %v, %v", got, err)
		}
		if _, err := p.calls(body, func(toolresult.Call) (string, string, error) { return " ", "", nil }); !errors.Is(err, toolresult.ErrInvalidInput) {
			t.Errorf("a blank operation id: %v", err)
		}
		got, err := p.calls(body, func(c toolresult.Call) (string, string, error) {
			c.Arguments[1] = 'X'
			return "op-1", "", nil
		})
		if err != nil || string(got[0].Arguments) != `{"x":1}` || got[0].IdempotencyKey != "" {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

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
		expected[1].Bound.Failure(toolresult.NotFound, "", now),
		expected[2].Bound.Failure(toolresult.UnknownTool, "", now),
	}
}

func TestOutput(t *testing.T) {
	shapes := map[string]string{
		"openai":    `{"call_id":"a","output":%s,"type":"function_call_output"}`,
		"anthropic": `{"content":[{"text":%s,"type":"text"}],"is_error":false,"tool_use_id":"a","type":"tool_result"}`,
		"google":    `{"input":[{"call_id":"a","name":"get_order","result":[{"text":%s,"type":"text"}],"type":"function_result"}],"previous_interaction_id":"resp-1"}`,
	}
	forEach(t, func(t *testing.T, p provider) {
		calls, results := turn(t, p)
		want := fmt.Sprintf(shapes[p.profile.Provider], quote(results[0].ModelResult.Text()))
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
			"other adapter":    {adapter, c.Spec, adapter.Failure(toolresult.NotFound, "", now)},
			"another response": {rebound(func(c *toolresult.Call) { c.ResponseID = "resp-2" }), c.Spec, ok},
		} {
			var refused *wire.OutputError
			if got, err := p.output(tt.b, tt.spec, tt.p); !errors.As(err, &refused) || got != nil || len(refused.Problems) == 0 {
				t.Errorf("%s: got %s, %v", name, got, err)
			}
		}
		for _, other := range providers {
			if _, err := other.output(c.Bound, c.Spec, ok); (err == nil) != (other.profile == p.profile) {
				t.Errorf("to %s: %v", other.profile.Provider, err)
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
			at := strings.Index(rest, quote(r.ModelResult.Text()))
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

func FuzzCalls(f *testing.F) {
	for _, p := range providers {
		f.Add([]byte(p.body(p.call("a", "tool", `{"x":1}`))))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, p := range providers {
			calls, err := p.calls(body, host)
			for _, c := range calls {
				if err != nil || c.Check() != nil {
					t.Fatalf("%v, %v", c, err)
				}
				if _, err := toolresult.Bind(toolresult.Principal{}, c, toolresult.UnregisteredContract(c.Name)); err != nil {
					t.Fatalf("a call that cannot be answered: %v", err)
				}
			}
		}
	})
}
