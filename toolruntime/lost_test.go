package toolruntime_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// TestTransactionalLost: a handler loses the transaction that it was given, or ends it,
// and says nothing. No statement of the store's commits by itself then: the operation is
// as it was when it was claimed, and is carried out later.
func TestTransactionalLost(t *testing.T) {
	tests := []struct {
		name, shop, statement string
		ledgers               bool // what ends it is not refused by itself
	}{
		{"by a constraint", "sqlite", "INSERT OR ROLLBACK INTO app_orders (rowid, number) VALUES (1, 1), (1, 1)", false},
		{"by ROLLBACK", "postgres, update", "ROLLBACK", true},
		{"by COMMIT", "postgres, update", "COMMIT", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx := context.Background()
			s := shops[tt.shop](t, "")
			lose := true
			var kept toolruntime.Tx
			allow := func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil }
			var err error
			s.Runtime, err = toolruntime.New(s.TestingOnlyStore(), &toolruntime.Options{Authorizer: allow, Approvers: allow,
				Now: func() time.Time { return time.Unix(s.time(), 0) }},
				toolruntime.Tool[payArgs, payment]{
					Name: "pay", Effect: toolruntime.Transactional, Equal: map[string]string{"amount": "amount"},
					Resource: func(payArgs) string { return "account" },
					RunTx: func(ctx context.Context, tx toolruntime.Tx, e toolruntime.Effect, a payArgs) (toolruntime.Receipt[payment], error) {
						kept = tx
						if lose {
							_, _ = tx.ExecContext(ctx, tt.statement)
						}
						_, err := tx.ExecContext(ctx, s.insert())
						if lose && err == nil {
							t.Error("a statement was taken after the end of the transaction")
						} else if lose {
							err = nil
						}
						return toolruntime.Receipt[payment]{ID: e.Identity, RequestID: e.Identity, Data: payment(a)}, err
					},
				})
			if err != nil {
				t.Fatal(err)
			}
			pkg, err := s.dispatch(alive)
			if err == nil || errors.Is(err, toolruntime.ErrCommitUnknown) || errors.Is(err, toolruntime.ErrInvalidInput) != tt.ledgers {
				t.Errorf("%v, %v", pkg, err)
			}
			if _, err := kept.ExecContext(ctx, s.insert()); !errors.Is(err, sql.ErrTxDone) {
				t.Errorf("a handler's transaction that was kept: %v", err)
			}
			want := toolruntime.Counts{Operations: 1, CallBindings: 1, Outbox: 1}
			got, err := s.Counts(ctx)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			s.expect(0, 1, 1)
			s.checkInvariants()
			lose = false
			s.pass(600)
			if _, err := s.process(); err != nil {
				t.Fatal(err)
			}
			if pkg, err := s.dispatch(alive); err != nil || pkg.Code() != toolresult.OK {
				t.Errorf("in the end: %v, %v", pkg, err)
			}
			s.expect(1, 1, 1)
			s.checkInvariants()
		})
	}
}

// TestUpdateInUpdate: an Update is refused in one of the same store, also where one of
// another store lies between them.
func TestUpdateInUpdate(t *testing.T) {
	outer, inner := shops["sqlite"](t, "").TestingOnlyStore(), shops["sqlite"](t, "").TestingOnlyStore()
	ran := false
	err := outer.Update(context.Background(), func(ctx context.Context, _ toolruntime.UpdateTx) error {
		return inner.Update(ctx, func(ctx context.Context, _ toolruntime.UpdateTx) error {
			ctx, cancel := context.WithTimeout(ctx, time.Minute) // it would wait for ever
			defer cancel()
			ran = true
			return outer.Update(ctx, func(context.Context, toolruntime.UpdateTx) error { return nil })
		})
	})
	if !ran || !errors.Is(err, toolruntime.ErrInvalidInput) {
		t.Error(ran, err)
	}
}

// TestUpdateWrites: on SQLite whatever writes through the same store would wait for the
// Update that waits for it, and is refused by its context.
func TestUpdateWrites(t *testing.T) {
	s := shops["sqlite"](t, "")
	for name, write := range map[string]func(context.Context) error{
		"Pause":   func(ctx context.Context) error { return s.Pause(ctx, "pay", "dana", "why") },
		"Process": func(ctx context.Context) error { _, err := s.Process(ctx, s.bound().StatusRef(), "w", nil); return err },
	} {
		err := s.TestingOnlyStore().Update(context.Background(), func(ctx context.Context, _ toolruntime.UpdateTx) error {
			ctx, cancel := context.WithTimeout(ctx, time.Minute) // it would wait for ever
			defer cancel()
			return write(ctx)
		})
		if !errors.Is(err, toolruntime.ErrInvalidInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
