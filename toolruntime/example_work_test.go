package toolruntime_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

// A call is left to a worker, and its answer is waited for. Whoever has lost it asks
// again, with the call as it was.
func ExampleRuntime_Submit() {
	ctx, stop := context.WithCancel(context.Background())
	rt, end := openRefunds(refundBy(func(context.Context) error { return nil }))
	defer end()
	alice, call, approval := refundOf(rt, "ORDER-7")

	pkg, err := rt.Submit(ctx, alice, call, approval)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("submitted:", pkg.Code())

	worked := make(chan error)
	go func() { worked <- rt.Work(ctx, nil) }() // here, or in another process
	pkg, err = rt.Await(ctx, alice, call)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("ended:", pkg.Code(), string(pkg.ModelResult.Data))

	pkg, err = rt.Status(ctx, alice, call)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("asked again:", pkg.Code(), pkg.Delivery())
	stop()
	if err := <-worked; err != nil {
		log.Fatal(err)
	}
	// Output:
	// submitted: ACCEPTED
	// ended: OK {"order_ref":"ORDER-7","refund_id":"R-1"}
	// asked again: OK local_replay
}

// What was submitted is taken back before an attempt has begun.
func ExampleRuntime_Cancel() {
	ctx := context.Background()
	rt, end := openRefunds(refundBy(func(context.Context) error { return nil }))
	defer end()
	alice, call, approval := refundOf(rt, "ORDER-7")
	pkg, err := rt.Submit(ctx, alice, call, approval)
	if err != nil {
		log.Fatal(err)
	}
	if err := rt.Cancel(ctx, pkg.StatusRef(), "dana", "the customer has called"); err != nil {
		log.Fatal(err)
	}
	pkg, err = rt.Status(ctx, alice, call)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(pkg.Code(), pkg.ModelResult.Execution.Outcome)
	// Output: CANCELLED not_started
}

// Nobody knows whether a refund was made that must not be made twice. A person looks,
// and says so.
func ExampleRuntime_Resolve() {
	ctx := context.Background()
	rt, end := openRefunds(refundBy(func(context.Context) error { return errors.New("the connection was cut") }))
	defer end()
	alice, call, approval := refundOf(rt, "ORDER-7")
	pkg, err := rt.Dispatch(ctx, alice, call, &toolruntime.DispatchOptions{Approvals: []toolresult.Approval{approval}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(pkg.Code())

	waiting, err := rt.Review(ctx, "", 10)
	if err != nil {
		log.Fatal(err)
	}
	for _, item := range waiting {
		err := rt.Resolve(ctx, toolruntime.Resolution{StatusRef: item.StatusRef, Decision: toolruntime.ConfirmedNotDone,
			Actor: "dana", Reason: "the bank has no such refund"})
		if err != nil {
			log.Fatal(err)
		}
	}
	pkg, err = rt.Status(ctx, alice, call)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(pkg.Code(), pkg.ModelResult.Execution.Outcome)
	// Output:
	// OUTCOME_UNKNOWN
	// TOOL_ERROR not_started
}

// A refund that is a row in the ledger's own database: the row and its receipt are
// stored together, or neither is.
func ExampleTool_transactional() {
	ctx := context.Background()
	refund := toolruntime.Tool[RefundArgs, Refund]{
		Name: "refund", Effect: toolruntime.Transactional,
		Resource: func(a RefundArgs) string { return a.OrderRef },
		RunTx: func(ctx context.Context, tx toolruntime.Tx, e toolruntime.Effect, a RefundArgs) (toolruntime.Receipt[Refund], error) {
			var number int64
			err := tx.QueryRowContext(ctx, "INSERT INTO credits (order_ref) VALUES (?) RETURNING number", a.OrderRef).Scan(&number)
			return toolruntime.Receipt[Refund]{ID: e.Identity, RequestID: e.Identity,
				Data: Refund{OrderRef: a.OrderRef, RefundID: fmt.Sprint("R-", number)}}, err
		},
	}
	rt, end := openRefunds(refund, "CREATE TABLE credits (number INTEGER PRIMARY KEY, order_ref TEXT) STRICT")
	defer end()
	alice, call, approval := refundOf(rt, "ORDER-7")
	for range 2 {
		pkg, err := rt.Dispatch(ctx, alice, call, &toolruntime.DispatchOptions{Approvals: []toolresult.Approval{approval}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(pkg.Code(), pkg.Delivery(), string(pkg.ModelResult.Data))
	}
	// Output:
	// OK fresh {"order_ref":"ORDER-7","refund_id":"R-1"}
	// OK local_replay {"order_ref":"ORDER-7","refund_id":"R-1"}
}

// refundBy is a tool that does what bank says, once.
func refundBy(bank func(context.Context) error) toolruntime.Registration {
	return toolruntime.Tool[RefundArgs, Refund]{
		Name: "refund", Effect: toolruntime.Once,
		Resource: func(a RefundArgs) string { return a.OrderRef },
		Run: func(ctx context.Context, e toolruntime.Effect, a RefundArgs) (toolruntime.Receipt[Refund], error) {
			return toolruntime.Receipt[Refund]{ID: "receipt-1", RequestID: "request-1",
				Data: Refund{OrderRef: a.OrderRef, RefundID: "R-1"}}, bank(ctx)
		},
	}
}

// openRefunds is a runtime with one tool over a ledger in a file, in which the host
// has tables of its own.
func openRefunds(tool toolruntime.Registration, tables ...string) (rt *toolruntime.Runtime, end func()) {
	folder, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	path := filepath.Join(folder, "tools.db")
	store, err := sqlitestore.Open(context.Background(), path, nil)
	if err != nil {
		log.Fatal(err)
	}
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	for _, table := range tables {
		if _, err := db.Exec(table); err != nil {
			log.Fatal(err)
		}
	}
	allow := func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil }
	rt, err = toolruntime.New(store, &toolruntime.Options{Authorizer: allow, Approvers: allow}, tool)
	if err != nil {
		log.Fatal(err)
	}
	return rt, func() {
		store.Close()
		os.RemoveAll(folder)
	}
}

// refundOf is a model's call, for alice, and carol's approval of it.
func refundOf(rt *toolruntime.Runtime, order string) (toolresult.Principal, toolresult.Call, toolresult.Approval) {
	alice := toolresult.Principal{TenantID: "acme", SubjectID: "alice"}
	turn := toolresult.OpenAIResponses.Context("resp_1", "call_1")
	turn.OperationID, turn.IdempotencyKey = "op_1", "refund-of-"+order
	call := toolresult.NewCall(toolresult.Proposal{Name: "refund", Arguments: fmt.Appendf(nil, `{"order_ref":%q}`, order)}, turn)
	bound, err := rt.Bind(alice, call)
	if err != nil {
		log.Fatal(err)
	}
	return alice, call, toolresult.NewApproval(bound, "approval-1", "carol", time.Now().Add(time.Minute))
}
