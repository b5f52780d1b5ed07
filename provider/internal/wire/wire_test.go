package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/provider/anthropic"
	"github.com/toolruntime/toolruntime-go/provider/gemini"
	"github.com/toolruntime/toolruntime-go/provider/geminicontent"
	"github.com/toolruntime/toolruntime-go/provider/internal/wire"
	"github.com/toolruntime/toolruntime-go/provider/openai"
	"github.com/toolruntime/toolruntime-go/provider/openaichat"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

const now int64 = 1_784_419_200

// A provider is an adapter under test. body and call write what the provider
// would send; the arguments are JSON text.
type provider struct {
	name    string
	profile toolresult.Profile
	calls   func([]byte, wire.Host) ([]toolresult.Call, error)
	output  func(*toolresult.Bound, *toolresult.Spec, *toolresult.Package) (json.RawMessage, error) // or nil
	outputs func([]toolresult.Expected, []*toolresult.Package) (json.RawMessage, error)
	next    func([]byte, []toolresult.Expected, []*toolresult.Package) (json.RawMessage, error)
	stream  func(io.Reader) ([]byte, error)
	body    func(calls ...string) string
	call    func(id, name, arguments string) string
	// fixture is the name of a captured shape, and of its stream.
	fixture, streamed string
}

var providers = []provider{{
	"openai", openai.Profile, openai.Calls, openai.Output, openai.Outputs, openai.Next, openai.Stream,
	func(calls ...string) string {
		return `{"id":"resp-1","status":"completed","output":[{"type":"message","content":[]},` + strings.Join(calls, ",") + `]}`
	},
	func(id, name, arguments string) string {
		return fmt.Sprintf(`{"type":"function_call","id":"fc-1","call_id":%s,"name":%s,"arguments":%s}`, quote(id), quote(name), quote(arguments))
	},
	"response-2025-08.json", "stream-2025-08.sse",
}, {
	"openaichat", openaichat.Profile, openaichat.Calls, nil, openaichat.Outputs, openaichat.Next, openaichat.Stream,
	func(calls ...string) string {
		return `{"id":"resp-1","choices":[{"finish_reason":"tool_calls","message":{"tool_calls":[{"type":"other"},` + strings.Join(calls, ",") + `]}}]}`
	},
	func(id, name, arguments string) string {
		return fmt.Sprintf(`{"type":"function","id":%s,"function":{"name":%s,"arguments":%s}}`, quote(id), quote(name), quote(arguments))
	},
	"completion-2025-08.json", "stream-2025-08.sse",
}, {
	"anthropic", anthropic.Profile, anthropic.Calls, anthropic.Output, anthropic.Outputs, anthropic.Next, anthropic.Stream,
	func(calls ...string) string {
		return `{"id":"resp-1","stop_reason":"tool_use","content":[{"type":"text","text":"on it"},` + strings.Join(calls, ",") + `]}`
	},
	func(id, name, arguments string) string {
		return fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":%s}`, quote(id), quote(name), arguments)
	},
	"message-2025-09.json", "stream-2025-09.sse",
}, {
	"gemini", gemini.Profile, gemini.Calls, gemini.Output, gemini.Outputs, gemini.Next, gemini.Stream,
	func(calls ...string) string {
		return `{"id":"resp-1","status":"requires_action","steps":[{"type":"model_output"},` + strings.Join(calls, ",") + `]}`
	},
	func(id, name, arguments string) string {
		return fmt.Sprintf(`{"type":"function_call","id":%s,"name":%s,"arguments":%s}`, quote(id), quote(name), arguments)
	},
	"interaction-2026-05.json", "stream-2026-05.sse",
}, {
	"geminicontent", geminicontent.Profile, geminicontent.Calls, nil, geminicontent.Outputs, geminicontent.Next, geminicontent.Stream,
	func(calls ...string) string {
		return `{"responseId":"resp-1","candidates":[{"finishReason":"STOP","content":{"parts":[{"text":"on it"},` + strings.Join(calls, ",") + `]}}]}`
	},
	func(id, name, arguments string) string {
		return fmt.Sprintf(`{"functionCall":{"id":%s,"name":%s,"args":%s}}`, quote(id), quote(name), arguments)
	},
	"response-2025-11.json", "stream-2025-11.sse",
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
		t.Run(p.name, func(t *testing.T) { test(t, p) })
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
		for _, tt := range []struct{ arguments, want, fault string }{
			{`{}`, `{}`, ""}, {`[]`, `[]`, ""}, {`3`, `3`, ""}, {`"x"`, `"x"`, ""}, {`{"n":9007199254740991}`, `{"n":9007199254740991}`, ""},
			{`null`, `{}`, ""}, {`""`, `{}`, ""}, {`" \n\u2003"`, `{}`, ""}, {nested(30), nested(30), ""},
			{`{"n":9007199254740992}`, "", "$.n: integer beyond 2^53, send it as a string"},
			{`{"a":1,"a":2}`, "", "$.a: stands there twice: send each field once"},
			{`{"a":1,"\u0061":2}`, "", "$.a: stands there twice: send each field once"},
			{`{"x":1e400}`, "", "$.x: is no finite number"}, {`{"x":"\ud800"}`, "", "$.x: has half of a surrogate pair"},
			{nested(31), "", "$.x" + strings.Repeat("[0]", 31) + ": nested deeper than 31 levels"},
			{nested(42), "", "$: nested deeper than 31 levels"}, {`{"x":"` + strings.Repeat("a", 70_000) + `"}`, "", "$: more than 65536 bytes"},
		} {
			got, err := p.calls([]byte(p.body(p.call("a", "tool", tt.arguments), p.call("b", "tool", `{"x":1}`))), host)
			if err != nil || len(got) != 2 || got[1].Fault != nil || string(got[1].Arguments) != `{"x":1}` {
				t.Fatalf("%.40s: got %v, %v", tt.arguments, got, err)
			}
			fault := ""
			if got[0].Fault != nil {
				fault = got[0].Fault.String()
			}
			if fault != tt.fault || tt.fault == "" && string(got[0].Arguments) != tt.want {
				t.Errorf("%.40s: got %.80s, fault %q, want %q", tt.arguments, got[0].Arguments, fault, tt.fault)
			}
			again, err := p.calls([]byte(p.body(p.call("a", "tool", tt.arguments))), host)
			if err != nil || string(again[0].Arguments) != string(got[0].Arguments) {
				t.Errorf("%.40s: another call when it is read again: %v", tt.arguments, err)
			}
		}
	})
}

// TestCallsFaults: a call that cannot be carried out is one all the same, and costs
// the other its arguments or its id.
func TestCallsFaults(t *testing.T) {
	long := strings.Repeat("é", 256)
	forEach(t, func(t *testing.T, p provider) {
		good := p.call("good", "tool", `{"x":1}`)
		for _, tt := range []struct {
			name  string
			calls []string
			faces []string // id and fault of the calls before the good one
		}{
			{"same id, same call", []string{p.call("a", "tool", `{}`), p.call("a", "tool", `{}`)}, []string{"a"}},
			{"same id, other arguments", []string{p.call("a", "tool", `{}`), p.call("a", "tool", `{"x":1}`)},
				[]string{"a call id: is that of two calls that differ; neither was carried out"}},
			{"same id, other tool", []string{p.call("a", "tool", `{}`), p.call("a", "other", `{}`)},
				[]string{"a call id: is that of two calls that differ; neither was carried out"}},
			{"empty id", []string{p.call("", "tool", `{}`)}, []string{"toolruntime-call-0 call id: is missing or unusable, so nobody could tell whose the answer is"}},
			{"blank id", []string{p.call("\u001c", "tool", `{}`)}, []string{"toolruntime-call-0 call id: is missing or unusable, so nobody could tell whose the answer is"}},
			{"two long ids", []string{p.call(long, "tool", `{}`), p.call(long, "tool", `{}`)}, []string{
				"toolruntime-call-0 call id: is missing or unusable, so nobody could tell whose the answer is",
				"toolruntime-call-1 call id: is missing or unusable, so nobody could tell whose the answer is"}},
			{"an id of ours", []string{p.call("toolruntime-call-7", "tool", `{}`)}, []string{"toolruntime-call-0 call id: is missing or unusable, so nobody could tell whose the answer is"}},
			{"blank name", []string{p.call("a", " ", `{}`)}, []string{"a tool name: is missing or unusable"}},
			{"long name", []string{p.call("a", long, `{}`)}, []string{"a tool name: is missing or unusable"}},
			{"null name", []string{strings.Replace(p.call("a", "tool", `{}`), `"name":"tool"`, `"name":null`, 1)}, []string{"a tool name: is missing or unusable"}},
		} {
			got, err := p.calls([]byte(p.body(append(tt.calls, good)...)), host)
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
				continue
			}
			var faces []string
			for _, c := range got[:len(got)-1] {
				face := c.CallID
				if c.Fault != nil {
					face += " " + c.Fault.String()
				}
				faces = append(faces, face)
			}
			if diff := cmp.Diff(tt.faces, faces); diff != "" {
				t.Errorf("%s: %s", tt.name, diff)
			}
			if last := got[len(got)-1]; last.CallID != "good" || last.Fault != nil || string(last.Arguments) != `{"x":1}` {
				t.Errorf("%s: the good call is %v", tt.name, last)
			}
		}
	})
}

func TestCallsRefusesTheResponse(t *testing.T) {
	forEach(t, func(t *testing.T, p provider) {
		call := p.call("a", "tool", `{}`)
		many := make([]string, 129)
		for i := range many {
			many[i] = p.call(fmt.Sprint("call-", i), "tool", `{}`)
		}
		bodies := map[string]string{
			"129 calls":           p.body(many...),
			"1025 entries":        p.body(strings.Repeat(`{"type":"x"},`, 1024) + call),
			"no response id":      strings.Replace(strings.Replace(p.body(call), `"id":"resp-1"`, `"ID":"resp-1"`, 1), `"responseId"`, `"responseID"`, 1),
			"blank response id":   strings.Replace(p.body(call), `resp-1`, ` `, 1),
			"numeric response id": strings.Replace(p.body(call), `"resp-1"`, `7`, 1),
			"two response ids":    strings.Replace(p.body(call), `{`, `{"\u0069d":"resp-2","responseI\u0064":"resp-2",`, 1),
			"half a surrogate":    strings.Replace(p.body(call), `resp-1`, `resp-\ud800\u0041`, 1),
			"repeated name":       strings.Replace(p.body(call), `"name":`, `"name":"other","name":`, 1),
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
		if p.name == "openaichat" { // which is one of few forms whose calls are all of one kind
			delete(bodies, "repeated name")
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
			"other adapter":    {adapter, c.Spec, adapter.Failure(toolresult.NotFound, "", now)},
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

func FuzzCalls(f *testing.F) {
	for _, p := range providers {
		f.Add([]byte(p.body(p.call("a", "tool", `{"x":1}`))))
		f.Add(read(f, p, p.fixture))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, p := range providers {
			checkCalls(t, p, body)
		}
	})
}

func FuzzStream(f *testing.F) {
	for _, p := range providers {
		f.Add(read(f, p, p.streamed))
	}
	f.Fuzz(func(t *testing.T, events []byte) {
		for _, p := range providers {
			body, err := p.stream(bytes.NewReader(events))
			if err != nil {
				continue
			}
			if !json.Valid(body) {
				t.Fatalf("%s: not JSON: %q", p.name, body)
			}
			checkCalls(t, p, body)
		}
	})
}

// checkCalls: every call of a response, whatever it is, can be answered.
func checkCalls(t *testing.T, p provider, body []byte) {
	calls, err := p.calls(body, host)
	if err != nil || len(calls) == 0 {
		return
	}
	expected := make([]toolresult.Expected, len(calls))
	results := make([]*toolresult.Package, len(calls))
	for i, c := range calls {
		b, err := toolresult.Bind(toolresult.Principal{TenantID: "t", SubjectID: "s"}, c, toolresult.UnregisteredContract(c.Name))
		if err != nil || c.Check() != nil {
			t.Fatalf("%s: a call that cannot be answered: %v, %v", p.name, err, c.Check())
		}
		expected[i].Bound = b
		results[i] = b.Failure(toolresult.UnknownTool, "", now)
	}
	if next, err := p.next(body, expected, results); err != nil || !json.Valid(next) {
		t.Fatalf("%s: %s, %v", p.name, next, err)
	}
}
