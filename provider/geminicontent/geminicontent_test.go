package geminicontent_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/provider/geminicontent"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

func TestCalls(t *testing.T) {
	for _, tt := range []struct {
		part string
		want []string // ids and arguments, or faults
	}{
		{`{"functionCall":{"name":"tool","args":{"n":616581622363398}}}`, []string{`toolruntime-call-0 {"n":616581622363398}`}},
		{`{"functionCall":{"name":"tool"}},{"functionCall":{"name":"tool"}}`, []string{"toolruntime-call-0 {}", "toolruntime-call-1 {}"}},
		{`{"functionCall":{"id":"c","name":"tool","args":null}}`, []string{"c {}"}},
		{`{"functionCall":{"id":"","name":"tool","args":{}}}`, []string{"toolruntime-call-0 call id: is missing or unusable, so nobody could tell whose the answer is"}},
		{`{"functionCall":{"name":"tool","partialArgs":[],"willContinue":true}}`, []string{"toolruntime-call-0 call status: is a piece of a call: the arguments are not whole"}},
		{`{"functionCall":{"name":"tool","args":{},"willContinue":false}}`, []string{"toolruntime-call-0 {}"}},
		{`{"executableCode":{"code":"1"}},{"functionResponse":{"name":"tool"}},{"toolCall":{"id":"x"}}`, nil},
	} {
		calls, err := geminicontent.Calls([]byte(`{"responseId":"r","candidates":[{"finishReason":"STOP","content":{"parts":[`+tt.part+`]}}]}`),
			func(toolresult.Call) (string, string, error) { return "op", "", nil })
		var got []string
		for _, c := range calls {
			face := string(c.Arguments)
			if c.Fault != nil {
				face = c.Fault.String()
			}
			got = append(got, c.CallID+" "+face)
		}
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v, %s", tt.part, err, diff)
		}
	}
}
