package openai_test

import (
	"errors"
	"testing"

	"github.com/toolruntime/toolruntime-go/provider/openai"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

func TestCalls(t *testing.T) {
	const cut, status = "$: is not whole JSON: cut off or malformed", "call status: is not completed: the arguments may be cut off"
	for _, tt := range []struct{ item, want string }{
		{`"arguments":""`, `{}`},
		{`"arguments":" \n"`, `{}`},
		{`"arguments":"null"`, `{}`},
		{`"arguments":"\"\""`, `{}`},
		{`"arguments":null`, `{}`},
		{`"Arguments":"[]"`, `{}`},
		{`"arguments":{"n":1.0}`, `{"n":1.0}`},
		{`"arguments":"{}","status":"completed"`, `{}`},
		{`"arguments":"{\"n\":616581622363398}","status":null`, `{"n":616581622363398}`},
		{`"arguments":"{\"s\":\"\ud83d\ude00\"}"`, `{"s":"😀"}`},
		{`"arguments":"{\"s\":\"\ud83d\"}"`, "$: has half of a surrogate pair"},
		{`"arguments":"{\"order_ref\":\"OR"`, "$.order_ref" + cut[1:]},
		{`"arguments":"{}","status":"incomplete"`, status},
		{`"arguments":"{}","status":"in_progress"`, status},
		{`"arguments":"{}","status":"new"`, status},
		{`"arguments":"{}","status":7`, status},
	} {
		body := `{"id":"resp_1","status":"completed","output":[{"type":"reasoning"},{"type":"function_call","call_id":"c","name":"tool",` + tt.item + `}]}`
		check(t, tt.item, body, tt.want)
	}
}

func TestCallsCustom(t *testing.T) {
	for _, tt := range []struct{ item, want string }{
		{`"input":"SELECT 1"`, `{"input":"SELECT 1"}`},
		{`"input":""`, `{"input":""}`},
		{`"inputs":1`, `{"input":""}`},
		{`"input":"\ud800"`, "$.input: has half of a surrogate pair"},
		{`"input":"x","status":"incomplete"`, "call status: is not completed: the arguments may be cut off"},
	} {
		check(t, tt.item, `{"id":"resp_1","status":"completed","output":[{"type":"custom_tool_call","call_id":"c","name":"tool",`+tt.item+`}]}`, tt.want)
	}
}

// check holds the one call of a response against want: its arguments, or its fault;
// "" is a refusal of the response.
func check(t *testing.T, name, body, want string) {
	t.Helper()
	calls, err := openai.Calls([]byte(body), func(toolresult.Call) (string, string, error) { return "op", "", nil })
	var refused *openai.ResponseError
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
