package openaichat_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/provider/openaichat"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// turn reads a message, answers every call with UNKNOWN_TOOL, and returns what the
// calls are and which roles the next messages have.
func turn(t *testing.T, message string) (calls, roles []string) {
	t.Helper()
	response := []byte(`{"id":"chatcmpl-1","choices":[{"finish_reason":"tool_calls","message":` + message + `}]}`)
	list, err := openaichat.Calls(response, func(c toolresult.Call) (string, string, error) { return "op-" + c.CallID, "", nil })
	if err != nil {
		t.Fatal(err)
	}
	var expected []toolresult.Expected
	var results []*toolresult.Package
	for _, c := range list {
		face := c.CallID + " " + c.Name + " " + string(c.Arguments)
		if c.Fault != nil {
			face = c.CallID + " " + c.Fault.String()
		}
		calls = append(calls, face)
		b, err := toolresult.Bind(toolresult.Principal{TenantID: "t", SubjectID: "s"}, c, toolresult.UnregisteredContract(c.Name))
		if err != nil {
			t.Fatal(err)
		}
		expected = append(expected, toolresult.Expected{Bound: b})
		results = append(results, b.Failure(toolresult.UnknownTool, "", time.Unix(0, 0)))
	}
	next, err := openaichat.Next(response, expected, results)
	if err != nil {
		t.Fatal(err)
	}
	var messages []struct {
		Role      string
		Name      string
		ID        string            `json:"tool_call_id"`
		ToolCalls []json.RawMessage `json:"tool_calls"`
	}
	if err := json.Unmarshal(next, &messages); err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		roles = append(roles, m.Role+" "+m.ID+m.Name)
		for _, c := range m.ToolCalls {
			roles = append(roles, string(c))
		}
	}
	return calls, roles
}

func TestForms(t *testing.T) {
	for _, tt := range []struct {
		name, message string
		calls, roles  []string
	}{
		{"of before tool_calls", `{"role":"assistant","content":null,"function_call":{"name":"tool","arguments":"{\"x\":1}"}}`,
			[]string{`toolruntime-call-0 tool {"x":1}`}, []string{"assistant ", "function tool"}},
		{"custom", `{"role":"assistant","tool_calls":[{"id":"c","type":"custom","custom":{"name":"tool","input":"SELECT 1"}}]}`,
			[]string{`c tool {"input":"SELECT 1"}`}, []string{"assistant ", `{"id":"c","type":"custom","custom":{"name":"tool","input":"SELECT 1"}}`, "tool c"}},
		{"no type, arguments that are a value", `{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"tool","arguments":{"x":1.0}}}]}`,
			[]string{`c tool {"x":1.0}`}, []string{"assistant ", `{"id":"c","function":{"name":"tool","arguments":{"x":1.0}}}`, "tool c"}},
		{"no id, and no function", `{"role":"assistant","tool_calls":[{"id":"","function":{"name":"tool","arguments":"{}"}},{"id":"c"}]}`,
			[]string{"toolruntime-call-0 call id: is missing or unusable, so nobody could tell whose the answer is", "c tool name: is missing or unusable"},
			[]string{"assistant ", `{"id":"c"}`, "tool c"}},
		{"no id, and a text", `{"role":"assistant","content":"x","tool_calls":[{"function":{"name":"tool","arguments":"{}"}}]}`,
			[]string{"toolruntime-call-0 call id: is missing or unusable, so nobody could tell whose the answer is"}, []string{"assistant "}},
		{"no id, and nothing else", `{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"tool","arguments":"{}"}}]}`,
			[]string{"toolruntime-call-0 call id: is missing or unusable, so nobody could tell whose the answer is"}, nil},
	} {
		calls, roles := turn(t, tt.message)
		if diff := cmp.Diff(tt.calls, calls); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		if diff := cmp.Diff(tt.roles, roles); diff != "" {
			t.Errorf("%s: next: %s", tt.name, diff)
		}
	}
}
