package toolruntime_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

// TestSlowCallbacks: callbacks that outlast the lease leave nothing of it for the
// handler, so that two workers never run it side by side.
func TestSlowCallbacks(t *testing.T) {
	f := newFixture(t, toolruntime.Idempotent)
	lookups := 0
	f.asked = func() (bool, error) {
		if lookups++; lookups == 3 { // the one between claim and effect
			f.pass(defaultLease + 1)
		}
		return true, nil
	}
	pkg, err := f.dispatch(alive)
	if err != nil || pkg.Code() != toolresult.OutcomeUnknown || f.bank.calls != 0 {
		t.Errorf("%v, %v, %d effects", pkg, err, f.bank.calls)
	}
	if outcome, err := f.process(); err != nil || outcome != toolruntime.Succeeded || f.bank.calls != 1 {
		t.Errorf("afterwards: %v, %v, %d effects", outcome, err, f.bank.calls)
	}
	f.checkInvariants()
}

// TestApprovalExpiresMeanwhile: an approval is held against the time at which
// the intent commits.
func TestApprovalExpiresMeanwhile(t *testing.T) {
	f := newFixture(t, toolruntime.Idempotent)
	f.asked = func() (bool, error) { f.pass(40); return true, nil }
	pkg, err := f.dispatch(alive)
	if err != nil || pkg.Code() != toolresult.ApprovalInvalid {
		t.Errorf("%v, %v", pkg, err)
	}
}

// TestOnceAfterDenial: an attempt that ended before its handler ran has certainly
// done nothing, so also a once tool may be attempted again.
func TestOnceAfterDenial(t *testing.T) {
	away := errors.New("the directory is away")
	tests := []struct {
		name   string
		allow  bool
		err    error
		denied bool
	}{{"denied", false, nil, true}, {"the authoriser fails", false, away, false}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, toolruntime.Once)
			f.must(f.dispatch(drill.AfterIntentCommit))
			f.asked = func() (bool, error) { return tt.allow, tt.err }
			outcome, err := f.process()
			if tt.denied && (outcome != toolruntime.AuthorizationDenied || err != nil) || !tt.denied && !errors.Is(err, away) {
				t.Fatalf("%v, %v", outcome, err)
			}
			f.asked = func() (bool, error) { return true, nil }
			f.pass(defaultLease)
			if outcome, err := f.process(); err != nil || outcome != toolruntime.Succeeded || f.bank.calls != 1 {
				t.Errorf("afterwards: %v, %v, %d effects", outcome, err, f.bank.calls)
			}
			f.checkInvariants()
		})
	}
}

// TestBusyAfterEffect: a database that another process holds when the effect has
// happened is waited for.
func TestBusyAfterEffect(t *testing.T) {
	f := newFixture(t, toolruntime.Once)
	f.must(f.dispatch(drill.AfterIntentCommit))
	f.bank.hold = func() {
		f.fault.mu.Lock()
		defer f.fault.mu.Unlock()
		f.fault.busy = 5
	}
	if outcome, err := f.process(); err != nil || outcome != toolruntime.Succeeded {
		t.Errorf("%v, %v", outcome, err)
	}
	f.checkInvariants()
}

// TestClockGoesBack: a clock that was put back does not lose what has happened.
func TestClockGoesBack(t *testing.T) {
	f := newFixture(t, toolruntime.Once)
	f.bank.hold = func() { f.pass(-5) }
	if pkg, err := f.dispatch(alive); err != nil || pkg.Code() != toolresult.OK {
		t.Errorf("%v, %v", pkg, err)
	}
	f.checkInvariants()
}

// TestReceiptChangedMeanwhile: a receipt is accepted as it was checked, or not at
// all.
func TestReceiptChangedMeanwhile(t *testing.T) {
	f := newFixture(t, toolruntime.Idempotent)
	f.must(f.dispatch(drill.AfterDownstreamCommit))
	inner := f.fault.Engine
	f.fault.Engine = meddling{inner, func() {
		if err := inner.WriteWith(context.Background(), func(ctx context.Context, _ engine.Querier, tx dbgen.DBTX) error {
			_, err := tx.ExecContext(ctx, `UPDATE downstream_receipts SET result_json = '{"amount":500}'`)
			return err
		}); err != nil {
			t.Error(err)
		}
	}}
	if _, err := f.query(); !errors.Is(err, toolruntime.ErrContract) || errors.Is(err, toolruntime.ErrSchema) {
		t.Errorf("%v, want ErrContract alone", err)
	}
	if c, err := f.Counts(context.Background()); err != nil || c.LocalReceipts != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

// meddling changes the database just before every write.
type meddling struct {
	engine.Engine
	before func()
}

func (m meddling) Write(ctx context.Context, unit engine.Unit) error {
	m.before()
	return m.Engine.Write(ctx, unit)
}

func (m meddling) Reserve(ctx context.Context, all ...*engine.Reservation) error {
	m.before()
	return m.Engine.Reserve(ctx, all...)
}

func (m meddling) Move(ctx context.Context, all ...*engine.Motion) error {
	m.before()
	return m.Engine.Move(ctx, all...)
}

// TestAuditLooksOnly: a store that was opened to look sees the file as it is and
// cannot change it.
func TestAuditLooksOnly(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "ledger.sqlite3")
	store, err := sqlitestore.Open(ctx, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	store.Close()
	plainExec(t, path, "PRAGMA journal_mode = DELETE")
	store, err = sqlitestore.Open(ctx, path, &sqlitestore.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	rt, err := toolruntime.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := rt.Audit(ctx, nil)
	if err != nil || r.Passed || r.JournalMode != "delete" {
		t.Errorf("%+v, %v", r, err)
	}
	if err := rt.Pause(ctx, "pay", "dana", "x"); !errors.Is(err, toolruntime.ErrReadOnly) {
		t.Errorf("a write: %v, want ErrReadOnly", err)
	}
	store.Close()
	if _, err := rt.Audit(ctx, nil); !errors.Is(err, toolruntime.ErrClosed) {
		t.Errorf("after closing: %v, want ErrClosed", err)
	}
}

func plainExec(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}
