// Quickstart is the program of the README: a refund that a model has proposed and
// a person has approved is carried out once, however often the call comes.
package main

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

func main() {
	ctx := context.Background()
	store, err := sqlitestore.Open(ctx, filepath.Join(os.TempDir(), "quickstart.sqlite3"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	refund := toolruntime.Tool[RefundArgs, Refund]{
		Name: "refund", Effect: toolruntime.Idempotent, // the bank deduplicates by our key
		Equal:    map[string]string{"order_ref": "order_ref"}, // output field = argument
		Resource: func(a RefundArgs) string { return a.OrderRef },
		Run: func(ctx context.Context, e toolruntime.Effect, a RefundArgs) (toolruntime.Receipt[Refund], error) {
			fmt.Println("the bank is asked, with the key", e.Identity[:8]+"...")
			return toolruntime.Receipt[Refund]{ID: "receipt-1", RequestID: "request-1",
				Data: Refund{OrderRef: a.OrderRef, RefundID: "R-1"}}, nil
		},
	}
	rt, err := toolruntime.New(store, &toolruntime.Options{
		Authorizer: func(_ context.Context, p toolresult.Principal, tool, resource string) (bool, error) {
			return p.TenantID == "acme", nil // may this principal use the tool on this order?
		},
		Approvers: func(_ context.Context, p toolresult.Principal, tool, approver string) (bool, error) {
			return approver == "carol", nil // may this person approve it?
		},
	}, refund)
	if err != nil {
		log.Fatal(err)
	}

	// The model says name and arguments; everything else is the host's.
	principal := toolresult.Principal{TenantID: "acme", SubjectID: "alice"}
	call := toolresult.NewCall(
		toolresult.Proposal{Name: "refund", Arguments: []byte(`{"order_ref":"ORDER-7"}`)},
		toolresult.ExecutionContext{Provider: "openai", APIFamily: "responses", AdapterRevision: "openai-responses-v1",
			ResponseID: "resp_1", CallID: "call_1", OperationID: "op_1", IdempotencyKey: "refund-of-order-7"})

	// Carol has seen exactly this call and said yes.
	bound, err := rt.Bind(principal, call)
	if err != nil {
		log.Fatal(err)
	}
	approval := toolresult.NewApproval(bound, "approval-1", "carol", time.Now().Add(time.Minute))

	for range 2 { // the second time, or after a crash, the ledger answers
		pkg, err := rt.Dispatch(ctx, principal, call, &toolruntime.DispatchOptions{Approvals: []toolresult.Approval{approval}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(pkg.Code(), pkg.Delivery(), string(pkg.ModelResult.Data))
	}
}
