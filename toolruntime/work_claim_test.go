package toolruntime_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
)

// afterWrite does something each time when a transaction has committed.
type afterWrite struct {
	engine.Engine
	do func()
}

func (a *afterWrite) Write(ctx context.Context, unit engine.Unit) error {
	err := a.Engine.Write(ctx, unit)
	if err == nil {
		a.do()
	}
	return err
}

// TestWorkHandsBack: a worker that is told to stop between its claim and the
// handler gives the claim back. Nothing has run, nobody takes it for a lost
// attempt, and it does not count.
func TestWorkHandsBack(t *testing.T) {
	for name, open := range map[string]func(*testing.T) (*toolruntime.Store, error){"sqlite": openSQLite, "postgres": openPostgres} {
		t.Run(name, func(t *testing.T) {
			hook := &afterWrite{do: func() {}}
			f := newFixtureOn(t, func(t *testing.T) (*toolruntime.Store, error) {
				store, err := open(t)
				if err == nil {
					toolruntime.TestingOnlyWrapEngine(store, func(e engine.Engine) engine.Engine { hook.Engine = e; return hook })
				}
				return store, err
			}, toolruntime.Once)
			f.must(f.dispatch(drill.AfterIntentCommit))
			ref := f.bound().StatusRef()
			ctx, stop := context.WithCancel(context.Background())
			hook.do = stop
			if err := f.Work(ctx, nil); err != nil {
				t.Fatal(err)
			}
			hook.do = func() {}
			want := []string{"accepted", "attempt interrupted", "waiting"}
			if diff := cmp.Diff(want, f.moments(ref)); diff != "" || f.bank.calls != 0 {
				t.Errorf("%d effects, history (-want +got):\n%s", f.bank.calls, diff)
			}
			ctx, stop = context.WithTimeout(context.Background(), time.Minute)
			defer stop()
			done := make(chan error)
			go func() { done <- f.Work(ctx, &toolruntime.WorkOptions{MaxAttempts: 1}) }()
			if err := f.Wait(ctx, ref); err != nil {
				t.Fatal(err)
			}
			stop()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			want = []string{"accepted", "attempt interrupted", "attempt succeeded", "succeeded"}
			if diff := cmp.Diff(want, f.moments(ref)); diff != "" || f.bank.calls != 1 {
				t.Errorf("%d effects, history (-want +got):\n%s", f.bank.calls, diff)
			}
			f.checkInvariants()
		})
	}
}

// TestWorkClaimFaults: the answer to a claim's commit is lost. Whether or not it
// had taken, the operation is carried out once, in an attempt that succeeds: even
// one that may never be repeated does not go to a person for it.
func TestWorkClaimFaults(t *testing.T) {
	for name, open := range map[string]func(*testing.T) (*toolruntime.Store, error){"sqlite": openSQLite, "postgres": openPostgres} {
		for _, persist := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/persisted=%v", name, persist), func(t *testing.T) {
				f := newFixtureOn(t, open, toolruntime.Once)
				f.must(f.dispatch(drill.AfterIntentCommit))
				ref := f.bound().StatusRef()
				f.fault.arm(1, persist)
				ctx, stop := context.WithTimeout(context.Background(), time.Minute)
				defer stop()
				done := make(chan error)
				go func() { done <- f.Work(ctx, nil) }()
				if err := f.Wait(ctx, ref); err != nil {
					t.Fatal(err)
				}
				stop()
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				want := []string{"accepted", "attempt succeeded", "succeeded"}
				if diff := cmp.Diff(want, f.moments(ref)); diff != "" || f.bank.calls != 1 {
					t.Errorf("%d effects, history (-want +got):\n%s", f.bank.calls, diff)
				}
				f.checkInvariants()
			})
		}
	}
}

// moments are what has happened to an operation, and how.
func (f *fixture) moments(ref string) (all []string) {
	f.t.Helper()
	h, err := f.History(context.Background(), ref)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, m := range h.Moments {
		what := string(m.What)
		if m.How != "" {
			what += " " + m.How
		}
		all = append(all, what)
	}
	return all
}
