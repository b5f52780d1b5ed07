package pgstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/toolruntime/toolruntime-go/internal/pgtest"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/pgstore"
)

type RefundArgs struct {
	OrderRef string `json:"order_ref" schema:"minLength=1,maxLength=64"`
}

type Refund struct {
	OrderRef string `json:"order_ref" schema:"maxLength=64"`
	RefundID string `json:"refund_id" schema:"maxLength=64"`
}

// The ledger is made once, by whoever owns its schema; a service opens it.
func Example() {
	ctx := context.Background()
	url, end := database()
	defer end()

	if _, err := pgstore.Migrate(ctx, url, nil); err != nil { // or `toolruntime migrate`
		log.Fatal(err)
	}
	store, err := pgstore.Open(ctx, url, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	rt := newRuntime(store)
	alice, call, approval := refundOf(rt)
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

// A service cancels an order and accepts the refund for it: both, or neither.
func ExampleSQLTx() {
	ctx := context.Background()
	url, end := database()
	defer end()
	rt, db, closeAll := openShop(ctx, url)
	defer closeAll()
	alice, call, approval := refundOf(rt)

	cancel := func() (*toolresult.Package, error) {
		refund, err := rt.Prepare(ctx, alice, call, approval)
		if err != nil || refund.Answer() != nil {
			return refund.Answer(), err // nothing is to be stored
		}
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return nil, err
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(ctx, "INSERT INTO example_shop.cancelled (order_ref) VALUES ($1)", "ORDER-7"); err != nil {
			return nil, err
		}
		pkg, stored, err := refund.SubmitTx(ctx, pgstore.SQLTx(tx))
		if err != nil || !stored {
			return pkg, err
		}
		if err := tx.Commit(); err != nil {
			return nil, err // where it is not known whether it has taken, Prepare answers
		}
		rt.Wake()
		return pkg, nil
	}
	for {
		pkg, err := cancel()
		if errors.Is(err, toolruntime.ErrRepeat) {
			continue
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(pkg.Code())
		break
	}
	fmt.Println(carriedOut(ctx, rt, alice, call))
	// Output:
	// ACCEPTED
	// OK
}

// The same with pgx and its pool.
func ExamplePgxTx() {
	ctx := context.Background()
	url, end := database()
	defer end()
	rt, _, closeAll := openShop(ctx, url)
	defer closeAll()
	alice, call, approval := refundOf(rt)
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()

	refund, err := rt.Prepare(ctx, alice, call, approval)
	if err != nil {
		log.Fatal(err)
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO example_shop.cancelled (order_ref) VALUES ($1)", "ORDER-7"); err != nil {
			return err
		}
		_, stored, err := refund.SubmitTx(ctx, pgstore.PgxTx(tx))
		if err == nil && !stored {
			err = errors.New("the call was made before, and so was the row")
		}
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	rt.Wake()
	fmt.Println(carriedOut(ctx, rt, alice, call))
	// Output: OK
}

// database is the URL of a database with a schema for the ledger; the shop's tables are
// in another.
func database() (url string, drop func()) {
	urls, drop := pgtest.Example("example_ledger", "example_shop")
	return urls[0], drop
}

func newRuntime(store *toolruntime.Store) *toolruntime.Runtime {
	allow := func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil }
	rt, err := toolruntime.New(store, &toolruntime.Options{Authorizer: allow, Approvers: allow},
		toolruntime.Tool[RefundArgs, Refund]{
			Name: "refund", Effect: toolruntime.Idempotent,
			Resource: func(a RefundArgs) string { return a.OrderRef },
			Run: func(_ context.Context, e toolruntime.Effect, a RefundArgs) (toolruntime.Receipt[Refund], error) {
				return toolruntime.Receipt[Refund]{ID: "receipt-1", RequestID: "request-1",
					Data: Refund{OrderRef: a.OrderRef, RefundID: "R-1"}}, nil
			},
		})
	if err != nil {
		log.Fatal(err)
	}
	return rt
}

// openShop is a service with a ledger, and with a table of its own beside it.
func openShop(ctx context.Context, url string) (rt *toolruntime.Runtime, db *sql.DB, closeAll func()) {
	store, err := pgstore.Open(ctx, url, &pgstore.Options{Migrate: true})
	if err != nil {
		log.Fatal(err)
	}
	if db, err = sql.Open("pgx", url); err != nil {
		log.Fatal(err)
	}
	if _, err := db.ExecContext(ctx, "CREATE TABLE example_shop.cancelled (order_ref TEXT PRIMARY KEY)"); err != nil {
		log.Fatal(err)
	}
	return newRuntime(store), db, func() {
		db.Close()
		store.Close()
	}
}

// refundOf is a model's call, for alice, and carol's approval of it.
func refundOf(rt *toolruntime.Runtime) (toolresult.Principal, toolresult.Call, toolresult.Approval) {
	alice := toolresult.Principal{TenantID: "acme", SubjectID: "alice"}
	turn := toolresult.OpenAIResponses.Context("resp_1", "call_1")
	turn.OperationID, turn.IdempotencyKey = "op_1", "refund-of-order-7"
	call := toolresult.NewCall(toolresult.Proposal{Name: "refund", Arguments: []byte(`{"order_ref":"ORDER-7"}`)}, turn)
	bound, err := rt.Bind(alice, call)
	if err != nil {
		log.Fatal(err)
	}
	return alice, call, toolresult.NewApproval(bound, "approval-1", "carol", time.Now().Add(time.Minute))
}

// carriedOut is the answer to a call, when a worker has carried it out.
func carriedOut(ctx context.Context, rt *toolruntime.Runtime, p toolresult.Principal, c toolresult.Call) toolresult.Code {
	ctx, stop := context.WithCancel(ctx)
	worked := make(chan error)
	go func() { worked <- rt.Work(ctx, nil) }()
	pkg, err := rt.Await(ctx, p, c)
	stop()
	if err := errors.Join(err, <-worked); err != nil {
		log.Fatal(err)
	}
	return pkg.Code()
}
