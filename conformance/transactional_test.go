package conformance

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/examples/payments"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// bookings makes the host's own table in the ledger's database. It has no key: a
// booking that happened twice is there twice.
const bookings = "CREATE TABLE bookings (identity TEXT NOT NULL, amount BIGINT NOT NULL)"

// bookTool is a transactional tool that books, then does what the test says.
func bookTool(e engine, name string, then func() error) toolruntime.Tool[payments.PayArgs, payments.Paid] {
	return toolruntime.Tool[payments.PayArgs, payments.Paid]{
		Name: name, Effect: toolruntime.Transactional,
		Equal:    map[string]string{"account": "account", "amount_cents": "amount_cents", "currency": "currency"},
		Resource: func(a payments.PayArgs) string { return a.Account },
		RunTx: func(ctx context.Context, tx toolruntime.Tx, v toolruntime.Effect, a payments.PayArgs) (toolruntime.Receipt[payments.Paid], error) {
			_, err := tx.ExecContext(ctx, e.args("INSERT INTO bookings VALUES ({1}, {2})"), v.Identity, a.AmountCents)
			if err == nil && then != nil {
				err = then()
			}
			return toolruntime.Receipt[payments.Paid]{ID: v.Identity, RequestID: v.Identity,
				Data: payments.Paid{PaymentID: "pay_1", Account: a.Account, AmountCents: a.AmountCents, Currency: a.Currency}}, err
		},
	}
}

// TestTransactional: effect and receipt are kept together or not at all, and what
// was rolled back happens later, once, unless it was for good.
func TestTransactional(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	tests := []struct {
		name  string
		then  func() error
		code  toolresult.Code // of the first attempt
		ends  []string        // how the attempts have ended
		final int             // bookings in the end
	}{
		{"it happens", nil, toolresult.OK, []string{"succeeded"}, 1},
		{"the handler fails", func() error { return errLost }, toolresult.OutcomeUnknown, []string{"not_done", "succeeded"}, 1},
		{"the handler panics", func() error { panic("it has booked") }, toolresult.OutcomeUnknown, []string{"not_done", "succeeded"}, 1},
		{"the handler wants to retry", func() error { return toolruntime.RetryLater(0, errLost) }, toolresult.OutcomeUnknown, []string{"not_done", "succeeded"}, 1},
		{"the handler gives up", func() error { return toolruntime.GiveUp(errLost) }, toolresult.ToolError, []string{"given_up"}, 0},
	}
	forEachEngine(t, func(t *testing.T, e engine) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				then := tt.then
				d := newBooks(t, e, bookTool(e, bookName, func() error {
					if then == nil {
						return nil
					}
					return then()
				}))
				call := payCall(bookName, "k")
				pkg := d.send(user("user-1"), call, alive)
				booked := 0
				if tt.code == toolresult.OK {
					booked = 1
				}
				if pkg.Code() != tt.code || d.booked() != booked {
					t.Errorf("%s with %d bookings, want %s with %d", pkg.Code(), d.booked(), tt.code, booked)
				}
				then = nil
				d.setTime(start + 600)
				d.wantEnd(call, tt.ends, tt.final)
			})
		}
	})
}

// TestTransactionalOutput: an answer that breaks the output contract takes the
// effect with it.
func TestTransactionalOutput(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		tool := bookTool(e, bookName, nil)
		run := tool.RunTx
		tool.RunTx = func(ctx context.Context, tx toolruntime.Tx, v toolruntime.Effect, a payments.PayArgs) (toolruntime.Receipt[payments.Paid], error) {
			r, err := run(ctx, tx, v, a)
			r.Data.AmountCents++
			return r, err
		}
		d := newBooks(t, e, tool)
		call := payCall(bookName, "k")
		if pkg := d.send(user("user-1"), call, alive); pkg.Code() != toolresult.ToolError {
			t.Errorf("%s", pkg.Code())
		}
		d.wantEnd(call, []string{"given_up"}, 0)
	})
}

// TestTransactionalLost: a worker whose lease has run out, and which another has
// overtaken, books nothing: neither when that was before its transaction, nor,
// where two can write at once, in the middle of it.
func TestTransactionalLost(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		for _, within := range []bool{false, true} {
			if within && e.name == "sqlite" {
				continue // nobody else can write meanwhile
			}
			t.Run(fmt.Sprintf("within=%v", within), func(t *testing.T) { transactionalLost(t, e, within) })
		}
	})
}

func transactionalLost(t *testing.T, e engine, within bool) {
	hold := func(bool) {}
	tool := bookTool(e, bookName, func() error {
		hold(true)
		return nil
	})
	// The rule is what a worker asks last before its transaction.
	tool.Rule = func(context.Context, toolresult.Principal, payments.PayArgs) (bool, error) {
		hold(false)
		return true, nil
	}
	d := newBooks(t, e, tool)
	call := payCall(bookName, "k")
	ref := d.submit(call)
	other := d.another(withAuthorizer(anybody), withTools(bookTool(e, bookName, nil)))
	overtaken := false
	hold = func(now bool) {
		if overtaken || now != within {
			return
		}
		overtaken = true
		other.setTime(start + 600)
		if outcome, err := other.Process(context.Background(), ref, "other", nil); err != nil || outcome != toolruntime.Succeeded {
			t.Errorf("the other worker: %s, %v", outcome, err)
		}
	}
	if _, err := d.Process(context.Background(), ref, "late", nil); !overtaken || !errors.Is(err, toolruntime.ErrLeaseLost) {
		t.Errorf("the late worker, overtaken=%v: %v", overtaken, err)
	}
	d.setTime(start + 600)
	d.wantEnd(call, []string{"lost", "succeeded"}, 1)
}

// newBooks is a desk with a table of bookings.
func newBooks(t *testing.T, e engine, tool toolruntime.Registration) *desk {
	t.Helper()
	d := newDesk(t, e, withAuthorizer(anybody), withTools(tool))
	d.mustSQL(bookings)
	return d
}

func (d *desk) booked() (n int) {
	d.t.Helper()
	d.scan("SELECT COUNT(*) FROM bookings", &n)
	return n
}

// wantEnd carries out what is left of a call and holds the end against what is
// wanted.
func (d *desk) wantEnd(c toolresult.Call, ends []string, booked int) {
	d.t.Helper()
	ref := d.bind(user("user-1"), c).StatusRef()
	if _, err := d.Process(context.Background(), ref, "worker", nil); err != nil {
		d.t.Fatal(err)
	}
	if diff := cmp.Diff(ends, d.endings(ref)); diff != "" {
		d.t.Errorf("attempts (-want +got):\n%s", diff)
	}
	if n := d.booked(); n != booked {
		d.t.Errorf("%d bookings, want %d", n, booked)
	}
	d.wantAudit()
}
