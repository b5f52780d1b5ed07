package wire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/provider/anthropic"
	"github.com/toolruntime/toolruntime-go/provider/gemini"
	"github.com/toolruntime/toolruntime-go/provider/geminicontent"
	"github.com/toolruntime/toolruntime-go/provider/internal/wire"
	"github.com/toolruntime/toolruntime-go/provider/openai"
	"github.com/toolruntime/toolruntime-go/provider/openaichat"
	"github.com/toolruntime/toolruntime-go/toolresult"
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
			{"same id, same call in other words", []string{p.call("a", "tool", `{"x":1,"y":2}`), p.call("a", "tool", `{ "y":2, "x":1 }`)}, []string{"a"}},
			{"same id three times", []string{p.call("a", "tool", `{}`), p.call("a", "tool", `{"x":1}`), p.call("a", "tool", `{}`)},
				[]string{"a call id: is that of two calls that differ; neither was carried out"}},
			{"same id, one of them broken", []string{p.call("a", "tool", `{}`), p.call("a", "tool", `{"x":1,"x":1}`)},
				[]string{"a call id: is that of two calls that differ; neither was carried out"}},
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
