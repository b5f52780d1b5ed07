package toolruntime_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

type RefundArgs struct {
	OrderRef string `json:"order_ref" schema:"minLength=1,maxLength=64"`
}

type Refund struct {
	OrderRef string `json:"order_ref" schema:"maxLength=64"`
	RefundID string `json:"refund_id" schema:"maxLength=64"`
}

// A write is dispatched, and dispatched again: one effect, and the second answer
// says that it is a replay.
func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	store, err := sqlitestore.Open(ctx, filepath.Join(folder, "tools.db"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	effects := 0
	refund := toolruntime.Tool[RefundArgs, Refund]{
		Name: "refund", Effect: toolruntime.Idempotent,
		Equal:    map[string]string{"order_ref": "order_ref"},
		Resource: func(a RefundArgs) string { return a.OrderRef },
		Run: func(_ context.Context, e toolruntime.Effect, a RefundArgs) (toolruntime.Receipt[Refund], error) {
			effects++ // a real one gives e.Identity to the bank as its idempotency key
			return toolruntime.Receipt[Refund]{ID: "receipt-1", RequestID: "request-1",
				Data: Refund{OrderRef: a.OrderRef, RefundID: "R-1"}}, nil
		},
	}
	rt, err := toolruntime.New(store, &toolruntime.Options{
		Authorizer: func(_ context.Context, p toolresult.Principal, _, _ string) (bool, error) {
			return p.TenantID == "acme", nil
		},
		Approvers: func(_ context.Context, _ toolresult.Principal, _, approver string) (bool, error) {
			return approver == "carol", nil
		},
	}, refund)
	if err != nil {
		log.Fatal(err)
	}

	principal := toolresult.Principal{TenantID: "acme", SubjectID: "alice"}
	// As a provider package makes it of a turn: openai.Calls, for example.
	turn := toolresult.OpenAIResponses.Context("resp_1", "call_1")
	turn.OperationID, turn.IdempotencyKey = "op_1", "refund-of-order-7"
	call := toolresult.NewCall(toolresult.Proposal{Name: "refund", Arguments: []byte(`{"order_ref":"ORDER-7"}`)}, turn)

	// Carol has seen exactly this call and accepted it.
	bound, err := rt.Bind(principal, call)
	if err != nil {
		log.Fatal(err)
	}
	approval := toolresult.NewApproval(bound, "approval-1", "carol", time.Now().Add(time.Minute))

	for range 2 {
		pkg, err := rt.Dispatch(ctx, principal, call, &toolruntime.DispatchOptions{Approvals: []toolresult.Approval{approval}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(pkg.Code(), pkg.Delivery(), string(pkg.ModelResult.Data))
	}
	fmt.Println("effects:", effects)
	// Output:
	// OK fresh {"order_ref":"ORDER-7","refund_id":"R-1"}
	// OK local_replay {"order_ref":"ORDER-7","refund_id":"R-1"}
	// effects: 1
}
