package toolruntime_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

// A book is a ledger whose one tool books into a table of its own beside it.
type book struct {
	*fixture
	engine engine.Engine
	after  func() error // what the handler does after it has booked
	bad    bool         // its answer breaks the output contract
}

func newBook(t *testing.T) *book {
	t.Helper()
	store, err := sqlitestore.Open(context.Background(), filepath.Join(t.TempDir(), "ledger.sqlite3"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	b := &book{fixture: &fixture{t: t, bank: &bank{keys: map[string]bool{}}, now: 1_784_419_200}, after: func() error { return nil }}
	toolruntime.TestingOnlyWrapEngine(store, func(e engine.Engine) engine.Engine {
		b.engine, b.fault = e, &faulty{Engine: e}
		return b.fault
	})
	b.exec("CREATE TABLE bookings (identity TEXT, amount INTEGER) STRICT")
	allow := func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil }
	b.Runtime, err = toolruntime.New(store, &toolruntime.Options{Authorizer: allow, Approvers: allow,
		Now: func() time.Time { return time.Unix(b.time(), 0) }},
		toolruntime.Tool[payArgs, payment]{
			Name: "pay", Effect: toolruntime.Transactional, Equal: map[string]string{"amount": "amount"},
			Resource: func(payArgs) string { return "account" },
			RunTx: func(ctx context.Context, tx toolruntime.Tx, e toolruntime.Effect, a payArgs) (toolruntime.Receipt[payment], error) {
				p := payment(a)
				if b.bad {
					p.Amount++
				}
				_, err := tx.ExecContext(ctx, "INSERT INTO bookings VALUES (?, ?)", e.Identity, a.Amount)
				return toolruntime.Receipt[payment]{ID: e.Identity, RequestID: e.Identity, Data: p}, errors.Join(err, b.after())
			},
		})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *book) exec(query string) {
	b.t.Helper()
	if err := b.engine.WriteWith(context.Background(), func(ctx context.Context, _ engine.Querier, tx dbgen.DBTX) error {
		_, err := tx.ExecContext(ctx, query)
		return err
	}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *book) bookings() (n int) {
	b.t.Helper()
	if err := b.engine.WriteWith(context.Background(), func(ctx context.Context, _ engine.Querier, tx dbgen.DBTX) error {
		return tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM bookings").Scan(&n)
	}); err != nil {
		b.t.Fatal(err)
	}
	return n
}

// TestTransactional: effect and receipt commit together or not at all.
func TestTransactional(t *testing.T) {
	tests := []struct {
		name     string
		prepare  func(*book)
		code     toolresult.Code
		bookings int
	}{
		{"it happens", func(*book) {}, toolresult.OK, 1},
		{"the handler fails", func(b *book) { b.after = func() error { return errors.New("no") } }, toolresult.OutcomeUnknown, 0},
		{"the handler panics", func(b *book) { b.after = func() error { panic("no") } }, toolresult.OutcomeUnknown, 0},
		{"the handler gives up", func(b *book) { b.after = func() error { return toolruntime.GiveUp(errors.New("no")) } }, toolresult.ToolError, 0},
		{"the answer breaks the contract", func(b *book) { b.bad = true }, toolresult.ToolError, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBook(t)
			tt.prepare(b)
			pkg, err := b.dispatch(alive)
			if err != nil || pkg.Code() != tt.code || b.bookings() != tt.bookings {
				t.Errorf("%v, %v, %d bookings", pkg.Code(), err, b.bookings())
			}
			b.after, b.bad = func() error { return nil }, false
			b.pass(600)
			if _, err := b.process(); err != nil {
				t.Fatal(err)
			}
			want := 1
			if tt.code == toolresult.ToolError {
				want = 0
			}
			if n := b.bookings(); n != want {
				t.Errorf("in the end %d bookings, want %d", n, want)
			}
			b.checkInvariants()
		})
	}
}

// TestTransactionalFaults: a commit whose answer is lost books once.
func TestTransactionalFaults(t *testing.T) {
	for write := 1; write <= 2; write++ {
		for _, persist := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d/persisted=%v", write, persist), func(t *testing.T) {
				b := newBook(t)
				b.fault.arm(write, persist)
				// Who reserves finds out by himself whether it is stored.
				want := []error{nil, toolruntime.ErrCommitUnknown}[write-1]
				if _, err := b.dispatch(alive); !errors.Is(err, want) {
					t.Errorf("error: %v, want %v", err, want)
				}
				b.fault.arm(0, false)
				b.checkInvariants()
				b.must(b.dispatch(alive))
				b.pass(600)
				if _, err := b.process(); err != nil {
					t.Fatal(err)
				}
				if pkg, err := b.dispatch(alive); err != nil || pkg.Code() != toolresult.OK || b.bookings() != 1 {
					t.Errorf("in the end: %v, %v, %d bookings", pkg, err, b.bookings())
				}
				b.checkInvariants()
			})
		}
	}
}
