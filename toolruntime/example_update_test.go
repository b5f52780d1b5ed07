package toolruntime_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// A service cancels an order and accepts the refund for it: both, or neither. Its own
// tables are in the ledger's database; on SQLite their names begin with app_.
func ExampleStore_Update() {
	ctx := context.Background()
	rt, store, end := openShop(refundBy(func(context.Context) error { return nil }))
	defer end()
	alice, call, approval := refundOf(rt, "ORDER-7")

	refund, err := rt.Prepare(ctx, alice, call, approval)
	if err != nil {
		log.Fatal(err)
	}
	pkg := refund.Answer() // the call was made before, or may not be made
	if pkg == nil {
		err = store.Update(ctx, func(ctx context.Context, tx toolruntime.UpdateTx) error {
			if _, err := tx.ExecContext(ctx, "INSERT INTO app_cancelled (order_ref) VALUES ('ORDER-7')"); err != nil {
				return err
			}
			var stored bool
			var err error
			if pkg, stored, err = refund.SubmitTx(ctx, tx); err == nil && !stored {
				err = errMadeBefore // somebody was faster: the row is theirs, and pkg is the answer
			}
			return err
		})
	}
	if err != nil && !errors.Is(err, errMadeBefore) {
		log.Fatal(err)
	}
	fmt.Println(pkg.Code())
	// Output: ACCEPTED
}

var errMadeBefore = errors.New("the call was made before")

// openShop is a runtime with one tool, and a table of the host's beside its ledger.
func openShop(tool toolruntime.Registration) (*toolruntime.Runtime, *toolruntime.Store, func()) {
	rt, end := openRefunds(tool)
	store := rt.TestingOnlyStore()
	if err := store.Update(context.Background(), func(ctx context.Context, tx toolruntime.UpdateTx) error {
		_, err := tx.ExecContext(ctx, "CREATE TABLE app_cancelled (order_ref TEXT PRIMARY KEY) STRICT")
		return err
	}); err != nil {
		log.Fatal(err)
	}
	return rt, store, end
}
