package anthropic_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/toolruntime/toolruntime-go/provider/anthropic"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A message that comes as a stream is read to its end, and then is one like any
// other. A stream that breaks off before has no calls, whatever has come of them.
func ExampleStream() {
	events := `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","role":"assistant","content":[],"stop_reason":null}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"get_order","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"order_ref\": \"ORDER-7\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}

event: message_stop
data: {"type":"message_stop"}

`
	for _, length := range []int{len(events), len(events) - 10} { // a body of HTTP in a service
		response, err := anthropic.Stream(strings.NewReader(events[:length]))
		var refused *anthropic.ResponseError
		if errors.As(err, &refused) {
			fmt.Println(refused.Reason)
			continue
		}
		calls, err := anthropic.Calls(response, func(toolresult.Call) (string, string, error) { return "operation-1", "", nil })
		for _, c := range calls {
			fmt.Println(c.CallID, c.Name, string(c.Arguments), err)
		}
	}
	// Output:
	// toolu_1 get_order {"order_ref":"ORDER-7"} <nil>
	// cut off
}
