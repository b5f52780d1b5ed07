package gemini_test

import (
	"errors"
	"testing"

	"github.com/toolruntime/toolruntime-go/provider/gemini"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

func TestCalls(t *testing.T) {
	const noID = "call id: is missing or unusable, so nobody could tell whose the answer is"
	for _, tt := range []struct{ step, want string }{
		{`"id":"c","arguments":{"n":616581622363398}`, `{"n":616581622363398}`},
		{`"call_id":"c","arguments":{}`, `{}`},
		{`"id":"c","call_id":"c","arguments":{}`, `{}`},
		{`"id":null,"call_id":"c","arguments":""`, `{}`},
		{`"id":"c"`, `{}`},
		{`"id":"c","arguments":null`, `{}`},
		{`"id":"c","arguments":"{}"`, `"{}"`},
		{`"id":"c","call_id":"d","arguments":{}`, noID},
		{`"id":7,"call_id":"c","arguments":{}`, noID},
		{`"id":"c","call_id":7,"arguments":{}`, noID},
		{`"arguments":{}`, noID},
	} {
		for _, list := range []string{"steps", "outputs"} {
			check(t, tt.step, `{"id":"v1_1","status":"requires_action","`+list+`":[{"type":"thought"},{"type":"function_call","name":"tool",`+tt.step+`}]}`, tt.want)
		}
	}
}

// TestCallsAnswered: an interaction that was asked for again has its past in it.
func TestCallsAnswered(t *testing.T) {
	check(t, "one of two", `{"id":"v1_1","status":"requires_action","steps":[{"type":"user_input"},{"type":"function_call","id":"old","name":"tool","arguments":{"x":1}},
		{"type":"function_result","call_id":"old","result":[]},{"type":"function_call","id":"new","name":"tool","arguments":{"x":2}}]}`, `{"x":2}`)
}

// check holds the one call of a response against want: its arguments, or its fault;
// "" is a refusal of the response.
func check(t *testing.T, name, body, want string) {
	t.Helper()
	calls, err := gemini.Calls([]byte(body), func(toolresult.Call) (string, string, error) { return "op", "", nil })
	var refused *gemini.ResponseError
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
