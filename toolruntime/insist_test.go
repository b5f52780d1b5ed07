package toolruntime_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

// away is an engine whose database fails every write with an error, from the moment
// that the effect has happened on, for so many writes or until it is back.
type away struct {
	engine.Engine
	mu     sync.Mutex
	err    error // or nil
	writes int   // that fail, or -1 for all
	stored bool  // they are stored all the same
	tried  int
	failed chan struct{} // closed by the second that fails: then it is insisted on
}

func (a *away) leave(err error, writes int, stored bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err, a.writes, a.stored, a.tried = err, writes, stored, 0
}

func (a *away) comeBack() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = nil
}

func (a *away) Write(ctx context.Context, unit engine.Unit) error {
	return a.write(func() error { return a.Engine.Write(ctx, unit) })
}

func (a *away) Reserve(ctx context.Context, all ...*engine.Reservation) error {
	return a.write(func() error { return a.Engine.Reserve(ctx, all...) })
}

func (a *away) Move(ctx context.Context, all ...*engine.Motion) error {
	return a.write(func() error { return a.Engine.Move(ctx, all...) })
}

func (a *away) write(do func() error) error {
	a.mu.Lock()
	err, stored := a.err, a.stored
	if a.tried++; a.writes >= 0 && a.tried > a.writes {
		err = nil
	}
	if err != nil && a.tried == 2 {
		defer close(a.failed)
	}
	a.mu.Unlock()
	if err == nil {
		return do()
	}
	if stored {
		if failed := do(); failed != nil {
			return failed
		}
	}
	return err
}

func failure(kind error) error { return &engine.Error{Kind: kind, Code: "injected"} }

// passing are the errors after which a write is repeated.
var passing = map[string]error{
	"busy":                  failure(engine.ErrBusy),
	"full":                  failure(engine.ErrFull),
	"unavailable":           failure(engine.ErrUnavailable),
	"read-only":             failure(engine.ErrReadOnly), // a failover
	"cannot open":           failure(engine.ErrCannotOpen),
	"another":               failure(engine.ErrDatabase), // I/O, memory
	"commit unknown":        fmt.Errorf("%w: %w", engine.ErrCommitUnknown, failure(engine.ErrUnavailable)),
	"commit unknown, alone": errFault,
}

func onBothEngines(t *testing.T, run func(*testing.T, func(*testing.T) (*toolruntime.Store, error))) {
	t.Run("sqlite", func(t *testing.T) { run(t, openSQLite) })
	t.Run("postgres", func(t *testing.T) { run(t, openPostgres) })
}

// newAway is a fixture whose database can be taken away.
func newAway(t *testing.T, open func(*testing.T) (*toolruntime.Store, error), kind toolruntime.EffectKind) (*fixture, *away) {
	t.Helper()
	f := newFixtureOn(t, open, kind)
	a := &away{Engine: f.fault.Engine, failed: make(chan struct{})}
	f.fault.Engine = a
	return f, a
}

// attempts are how the attempts of the fixture's operation have ended, and how it
// stands.
func (f *fixture) attempts() string {
	f.t.Helper()
	h, err := f.History(context.Background(), f.bound().StatusRef())
	if err != nil {
		f.t.Fatal(err)
	}
	var all []string
	for _, m := range h.Moments {
		switch m.What {
		case "attempt":
			all = append(all, m.How)
		case "refused":
			all = append(all, "refused "+m.How)
		}
	}
	return strings.Join(append(all, string(h.State)), ", ")
}

// TestReceiptInHand: a receipt that the downstream has given is stored, whatever the
// database says meanwhile and whether or not it says the truth, by everything that
// may have one.
func TestReceiptInHand(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	flows := map[string]func(*fixture) error{
		"dispatch": func(f *fixture) error { _, err := f.dispatch(alive); return err },
		"process": func(f *fixture) error {
			f.must(f.dispatch(drill.AfterIntentCommit))
			outcome, err := f.process()
			if err == nil && outcome != toolruntime.Succeeded {
				err = fmt.Errorf("outcome %s", outcome)
			}
			return err
		},
		"work": func(f *fixture) error {
			f.must(f.dispatch(drill.AfterIntentCommit))
			ctx, stop := context.WithTimeout(context.Background(), time.Minute)
			defer stop()
			ended := make(chan error, 1)
			go func() { ended <- f.Work(ctx, &toolruntime.WorkOptions{Poll: time.Millisecond}) }()
			err := f.Wait(ctx, f.bound().StatusRef())
			stop()
			return errors.Join(err, <-ended)
		},
	}
	onBothEngines(t, func(t *testing.T, open func(*testing.T) (*toolruntime.Store, error)) {
		for name, err := range passing {
			for flow, run := range flows {
				if flow != "dispatch" && name != "unavailable" && name != "commit unknown" {
					continue // they share what insists
				}
				for _, stored := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s/stored=%v", name, flow, stored), func(t *testing.T) {
						f, db := newAway(t, open, toolruntime.Once)
						f.bank.hold = func() { db.leave(err, 3, stored) }
						if err := run(f); err != nil {
							t.Error(err)
						}
						if diff := cmp.Diff("succeeded, succeeded", f.attempts()); diff != "" {
							t.Errorf("(-want +got):\n%s", diff)
						}
						f.checkInvariants()
					})
				}
			}
		}
	})
}

// TestEndingInHand: how an attempt without a receipt has ended is recorded in the
// same way.
func TestEndingInHand(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	later, never, lost := toolruntime.RetryLater(0, errFault), toolruntime.GiveUp(errFault), errors.New("connection reset")
	tests := []struct {
		name   string
		kind   toolruntime.EffectKind
		answer error
		bad    bool // the answer breaks the output contract
		deny   bool // the authoriser denies at the last moment
		want   string
	}{
		{"retry later", toolruntime.Once, later, false, false, "not_done, pending"},
		{"give up", toolruntime.Once, never, false, false, "given_up, failed"},
		{"unknown, once", toolruntime.Once, lost, false, false, "unknown, in_review"},
		{"unknown, idempotent", toolruntime.Idempotent, lost, false, false, "unknown, processing"},
		{"rejected", toolruntime.Once, nil, true, false, "rejected, refused receipt-REF, in_review"},
		{"denied", toolruntime.Once, nil, false, true, "denied, processing"},
	}
	onBothEngines(t, func(t *testing.T, open func(*testing.T) (*toolruntime.Store, error)) {
		for _, tt := range tests {
			for _, name := range []string{"unavailable", "commit unknown"} {
				for _, stored := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s/stored=%v", tt.name, name, stored), func(t *testing.T) {
						f, db := newAway(t, open, tt.kind)
						f.bank.fail, f.bank.bad = tt.answer, tt.bad
						f.bank.hold = func() { db.leave(passing[name], 3, stored) }
						f.must(f.dispatch(drill.AfterIntentCommit))
						if tt.deny {
							f.asked = func() (bool, error) { db.leave(passing[name], 3, stored); return false, nil }
						}
						if _, err := f.process(); err != nil {
							t.Error(err)
						}
						want := strings.ReplaceAll(tt.want, "REF", f.bound().EffectIdentity()[:8])
						if diff := cmp.Diff(want, f.attempts()); diff != "" {
							t.Errorf("(-want +got):\n%s", diff)
						}
						f.checkInvariants()
					})
				}
			}
		}
	})
}

// TestRefusedIsNotRepeated: what the database has refused it will refuse again.
func TestRefusedIsNotRepeated(t *testing.T) {
	for _, kind := range []error{engine.ErrConstraint, engine.ErrCorrupt} {
		t.Run(kind.Error(), func(t *testing.T) {
			f, db := newAway(t, openSQLite, toolruntime.Once)
			f.bank.hold = func() { db.leave(failure(kind), -1, false) }
			_, err := f.dispatch(alive)
			if !errors.Is(err, kind) || errors.Is(err, toolruntime.ErrNotRecorded) {
				t.Errorf("%v", err)
			}
			// One for the receipt; the ledger having refused that, one for the review.
			if db.tried > 2 {
				t.Errorf("%d writes", db.tried)
			}
		})
	}
}

// TestLateReceipt: while the database is away from one process, the lease runs out
// and another claims the operation. The receipt is kept as soon as the first has the
// database again, and whoever reviews the operation sees it.
func TestLateReceipt(t *testing.T) {
	onBothEngines(t, func(t *testing.T, open func(*testing.T) (*toolruntime.Store, error)) {
		f, db := newAway(t, open, toolruntime.Once)
		other := f.another(db.Engine)
		f.bank.hold = func() { db.leave(failure(engine.ErrUnavailable), -1, false) }
		f.must(f.dispatch(drill.AfterIntentCommit))
		ended := make(chan error, 1)
		go func() { _, err := f.process(); ended <- err }()
		<-db.failed
		f.pass(defaultLease)
		if outcome, err := other.Process(context.Background(), f.bound().StatusRef(), "other", nil); err != nil || outcome != toolruntime.OutcomeUnknown {
			t.Fatalf("%v, %v", outcome, err)
		}
		db.comeBack()
		if err := <-ended; !errors.Is(err, toolruntime.ErrLeaseLost) {
			t.Errorf("the first process: %v, want lease lost", err)
		}
		if diff := cmp.Diff("lost, unknown, refused receipt-"+f.bound().EffectIdentity()[:8]+", in_review", sorted(f.attempts())); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if f.bank.calls != 1 {
			t.Errorf("the effect ran %d times", f.bank.calls)
		}
		f.checkInvariants()
	})
}

// sorted puts what was refused in the same second as the attempts after them.
func sorted(attempts string) string {
	parts := strings.Split(attempts, ", ")
	var first, refused []string
	for _, p := range parts[:len(parts)-1] {
		if strings.HasPrefix(p, "refused") {
			refused = append(refused, p)
		} else {
			first = append(first, p)
		}
	}
	return strings.Join(append(append(first, refused...), parts[len(parts)-1]), ", ")
}

// another is a runtime like the fixture's, past what is between that and its
// database.
func (f *fixture) another(e engine.Engine) *toolruntime.Runtime {
	f.t.Helper()
	allow := func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil }
	rt, err := toolruntime.New(toolruntime.TestingOnlyNewStore(e), &toolruntime.Options{Authorizer: allow, Approvers: allow,
		Now: func() time.Time { return time.Unix(f.time(), 0) }},
		toolruntime.Tool[payArgs, payment]{Name: "pay", Effect: toolruntime.Once, Equal: map[string]string{"amount": "amount"},
			Resource: func(payArgs) string { return "account" },
			Run: func(_ context.Context, e toolruntime.Effect, a payArgs) (toolruntime.Receipt[payment], error) {
				return f.bank.pay(e, a)
			}})
	if err != nil {
		f.t.Fatal(err)
	}
	return rt
}

// TestNobodyWaits: a caller who waits no longer hears the truth, and what has
// happened is recorded all the same: when the database is back, or at the latest
// when the store is closed.
func TestNobodyWaits(t *testing.T) {
	for _, closed := range []bool{false, true} {
		t.Run(fmt.Sprintf("closed=%v", closed), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.sqlite3")
			open := func(*testing.T) (*toolruntime.Store, error) {
				return sqlitestore.Open(context.Background(), path, nil)
			}
			f, db := newAway(t, open, toolruntime.Once)
			ctx, leave := context.WithCancel(context.Background())
			f.bank.hold = func() { db.leave(failure(engine.ErrUnavailable), -1, false) }
			f.must(f.dispatch(drill.AfterIntentCommit))
			go func() {
				<-db.failed
				leave()
			}()
			_, err := f.Process(ctx, f.bound().StatusRef(), "worker", nil)
			if !errors.Is(err, toolruntime.ErrNotRecorded) || !errors.Is(err, toolruntime.ErrUnavailable) {
				t.Fatalf("%v, want that it is not recorded", err)
			}
			db.comeBack()
			if closed {
				if err := f.TestingOnlyStore().Close(); err != nil {
					t.Fatal(err)
				}
				f.Runtime = newFixtureOn(t, open, toolruntime.Once).Runtime
			} else {
				limit, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				defer cancel()
				if err := f.Wait(limit, f.bound().StatusRef()); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff("succeeded, succeeded", f.attempts()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			f.checkInvariants()
		})
	}
}

// TestWorkEndsWithoutDatabase: a worker that shuts down does not wait for a database
// longer than for its handlers, and what they have come to is recorded when it is
// back.
func TestWorkEndsWithoutDatabase(t *testing.T) {
	f, db := newAway(t, openSQLite, toolruntime.Once)
	f.bank.hold = func() { db.leave(failure(engine.ErrUnavailable), -1, false) }
	f.must(f.dispatch(drill.AfterIntentCommit))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- f.Work(ctx, &toolruntime.WorkOptions{Poll: time.Millisecond, Drain: 10 * time.Millisecond})
	}()
	<-db.failed
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	db.comeBack()
	limit, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := f.Wait(limit, f.bound().StatusRef()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("succeeded, succeeded", f.attempts()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f.checkInvariants()
}

// TestFoundTooLate: while a status query asks the downstream, the operation goes in
// review. What the downstream remembers is kept for whoever reviews it.
func TestFoundTooLate(t *testing.T) {
	onBothEngines(t, func(t *testing.T, open func(*testing.T) (*toolruntime.Store, error)) {
		f := newFixtureOn(t, open, toolruntime.Queryable)
		f.bank.fail = errors.New("connection reset")
		f.must(f.dispatch(alive))
		f.bank.fail = nil
		f.pass(3600)
		asked := 0
		f.asking = func() {
			if asked++; asked > 1 {
				return
			}
			// Another process carries it on, and its answer breaks the contract.
			f.bank.bad = true
			if outcome, err := f.process(); err != nil || outcome != toolruntime.OutcomeUnknown {
				t.Errorf("%v, %v", outcome, err)
			}
			f.bank.bad = false
		}
		pkg, err := f.query()
		if err != nil || pkg.Code() != toolresult.OutputContractViolation {
			t.Errorf("%v, %v", pkg, err)
		}
		receipt := "refused receipt-" + f.bound().EffectIdentity()[:8]
		if diff := cmp.Diff("unknown, rejected, "+receipt+", "+receipt+", in_review", sorted(f.attempts())); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		f.checkInvariants()
	})
}
