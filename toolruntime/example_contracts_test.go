package toolruntime_test

import (
	"context"
	"log"
	"os"
	"time"

	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// The contracts of a service's tools, for `toolruntime audit --tools contracts.json`. A
// store need not be open for that, so a build can write them.
func ExampleRuntime_WriteContracts() {
	refund := toolruntime.Tool[RefundArgs, Refund]{
		Name: "refund", Effect: toolruntime.Idempotent, KeyMemory: toolruntime.Forever, Timeout: 5 * time.Second,
		Equal:    map[string]string{"order_ref": "order_ref"},
		Resource: func(a RefundArgs) string { return a.OrderRef },
		Run: func(context.Context, toolruntime.Effect, RefundArgs) (r toolruntime.Receipt[Refund], err error) {
			return r, nil // not called
		},
	}
	rt, err := toolruntime.New(&toolruntime.Store{}, nil, refund)
	if err != nil {
		log.Fatal(err)
	}
	if err := rt.WriteContracts(os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// {
	//   "schema_version": "toolruntime-tools-v1",
	//   "profiles": [],
	//   "tools": [
	//     {
	//       "name": "refund",
	//       "risk": "write",
	//       "effect": "idempotent",
	//       "revisions": {
	//         "input_schema_revision": "refund-input-c4a4d8021dd1",
	//         "output_schema_revision": "refund-output-90660e4dd0b8",
	//         "effect_revision": "refund-effect-v1",
	//         "handler_revision": "refund-handler-v1",
	//         "producer_revision": "refund-producer-v1",
	//         "policy_revision": "refund-policy-v1"
	//       },
	//       "source": "refund",
	//       "input_schema": {
	//         "type": "object",
	//         "properties": {
	//           "order_ref": {
	//             "type": "string",
	//             "minLength": 1,
	//             "maxLength": 64
	//           }
	//         },
	//         "required": [
	//           "order_ref"
	//         ],
	//         "additionalProperties": false
	//       },
	//       "output_schema": {
	//         "type": "object",
	//         "properties": {
	//           "order_ref": {
	//             "type": "string",
	//             "maxLength": 64
	//           },
	//           "refund_id": {
	//             "type": "string",
	//             "maxLength": 64
	//           }
	//         },
	//         "required": [
	//           "order_ref",
	//           "refund_id"
	//         ],
	//         "additionalProperties": false
	//       },
	//       "equal": {
	//         "order_ref": "order_ref"
	//       },
	//       "timeout": "5s",
	//       "key_memory": "forever"
	//     }
	//   ]
	// }
}
