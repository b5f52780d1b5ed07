package anthropic_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/provider/anthropic"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

func TestCalls(t *testing.T) {
	const block = `"stop_reason":"tool_use","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"tool_use","id":"c","name":"tool"`
	for _, tt := range []struct{ body, want string }{
		{block + `,"input":{"n":616581622363398}}]`, `{"n":616581622363398}`},
		{block + `,"input":""}]`, `{}`},
		{block + `,"input":null}]`, `{}`},
		{block + `}]`, `{}`},
		{block + `,"input":"{}"}]`, `"{}"`},
		{block + `,"input":{"a":1,"a":2}}]`, "$.a: stands there twice: send each field once"},
		{`"stop_reason":"tool_use","content":"text"`, ""},
		{`"stop_reason":"tool_use","Content":[]`, ""},
	} {
		check(t, tt.body, `{"id":"msg_1",`+tt.body+`}`, tt.want)
	}
}

// TestNextGivesBack: the assistant's message comes back as the API takes it.
func TestNextGivesBack(t *testing.T) {
	response := []byte(`{"id":"msg_1","stop_reason":"tool_use","content":[{"type":"tool_use","id":"c","name":"tool","input":"{\"a\":"},` +
		`{"type":"tool_use","id":"c","name":"tool","input":{}},{"type":"tool_use","name":"tool","input":{}},{"type":"tool_use","id":"d","name":"tool"}]}`)
	calls, err := anthropic.Calls(response, func(c toolresult.Call) (string, string, error) { return "op-" + c.CallID, "", nil })
	if err != nil {
		t.Fatal(err)
	}
	var expected []toolresult.Expected
	var results []*toolresult.Package
	for _, c := range calls {
		b, err := toolresult.Bind(toolresult.Principal{TenantID: "t", SubjectID: "s"}, c, toolresult.UnregisteredContract("tool"))
		if err != nil {
			t.Fatal(err)
		}
		expected = append(expected, toolresult.Expected{Bound: b})
		results = append(results, b.Failure(toolresult.UnknownTool, "", time.Unix(0, 0)))
	}
	next, err := anthropic.Next(response, expected, results)
	if err != nil {
		t.Fatal(err)
	}
	var messages []struct {
		Content []struct {
			Type      string
			ID        string
			ToolUseID string `json:"tool_use_id"`
			Input     json.RawMessage
		}
	}
	if err := json.Unmarshal(next, &messages); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range messages {
		for _, b := range m.Content {
			got = append(got, b.Type+" "+b.ID+b.ToolUseID+" "+string(b.Input))
		}
	}
	want := []string{`tool_use c {"INVALID_JSON":"{\"a\":"}`, `tool_use d {}`, `tool_result c `, `tool_result d `, `text  `}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// check holds the one call of a response against want: its arguments, or its fault;
// "" is a refusal of the response.
func check(t *testing.T, name, body, want string) {
	t.Helper()
	calls, err := anthropic.Calls([]byte(body), func(toolresult.Call) (string, string, error) { return "op", "", nil })
	var refused *anthropic.ResponseError
	if want == "" {
		if !errors.As(err, &refused) {
			t.Errorf("%s: got %v, %v, want a ResponseError", name, calls, err)
		}
		return
	}
	if err != nil || len(calls) != 1 {
		t.Errorf("%s: got %v, %v", name, calls, err)
		return
	}
	got := string(calls[0].Arguments)
	if f := calls[0].Fault; f != nil {
		got = f.String()
	}
	if got != want {
		t.Errorf("%s: got %s, want %s", name, got, want)
	}
}
