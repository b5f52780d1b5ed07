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

// A tool changes: what was accepted under its first version is still answered, and
// is not done again.
func ExampleTool_versions() {
	type PaymentArgs struct {
		OrderRef string `json:"order_ref" schema:"minLength=1,maxLength=64"`
		Currency string `json:"currency,omitempty" schema:"maxLength=3"`
	}
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
	pay := func(e toolruntime.Effect, order string) (toolruntime.Receipt[Refund], error) {
		effects++
		return toolruntime.Receipt[Refund]{ID: "receipt-1", RequestID: "request-1",
			Data: Refund{OrderRef: order, RefundID: "R-1"}}, nil
	}
	refundV1 := toolruntime.Tool[RefundArgs, Refund]{
		Name: "refund", Effect: toolruntime.Idempotent,
		Resource: func(a RefundArgs) string { return a.OrderRef },
		Run: func(_ context.Context, e toolruntime.Effect, a RefundArgs) (toolruntime.Receipt[Refund], error) {
			return pay(e, a.OrderRef)
		},
	}
	refund := toolruntime.Tool[PaymentArgs, Refund]{ // with a currency now
		Name: "refund", Effect: toolruntime.Idempotent,
		Versions: []toolruntime.Registration{refundV1},
		Resource: func(a PaymentArgs) string { return a.OrderRef },
		Run: func(_ context.Context, e toolruntime.Effect, a PaymentArgs) (toolruntime.Receipt[Refund], error) {
			return pay(e, a.OrderRef)
		},
	}

	principal := toolresult.Principal{TenantID: "acme", SubjectID: "alice"}
	turn := toolresult.OpenAIResponses.Context("resp_1", "call_1")
	turn.OperationID, turn.IdempotencyKey = "op_1", "refund-of-order-7"
	call := toolresult.NewCall(toolresult.Proposal{Name: "refund", Arguments: []byte(`{"order_ref":"ORDER-7"}`)}, turn)

	for _, deployed := range []toolruntime.Registration{refundV1, refund} {
		rt, err := toolruntime.New(store, &toolruntime.Options{
			Authorizer: func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil },
			Approvers:  func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil },
		}, deployed)
		if err != nil {
			log.Fatal(err)
		}
		bound, err := rt.Bind(principal, call)
		if err != nil {
			log.Fatal(err)
		}
		approval := toolresult.NewApproval(bound, "approval-1", "carol", time.Now().Add(time.Minute))
		pkg, err := rt.Dispatch(ctx, principal, call, &toolruntime.DispatchOptions{Approvals: []toolresult.Approval{approval}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(pkg.Code(), pkg.ModelResult.Execution.Delivery)
	}
	fmt.Println("effects:", effects)
	// Output:
	// OK fresh
	// OK local_replay
	// effects: 1
}
