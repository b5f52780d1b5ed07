package toolruntime_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
)

// shortcuts is faulty with the shortcut of its engine, which counts as a write.
type shortcuts struct {
	*faulty
	inner engine.Shortcut
	mode  string   // what goes wrong with the shortcut that is named by at
	at    string   // "reserve" or "commit"
	units int      // transactions that were run besides
	taken []string // the shortcuts that said that they have stored
}

const (
	failed    = "failed"            // it is refused: nothing is stored, for certain
	lost      = "lost"              // nothing is stored, and nobody knows
	persisted = "failed but stored" // everything is stored, and nobody knows
)

func (s *shortcuts) Write(ctx context.Context, unit engine.Unit) error {
	s.units++
	return s.faulty.Write(ctx, unit)
}

func (s *shortcuts) Reserve(ctx context.Context, rows func(int64) engine.Reservation) (bool, error) {
	return s.do("reserve", func() (bool, error) { return s.inner.Reserve(ctx, rows) })
}

func (s *shortcuts) Commit(ctx context.Context, c engine.Commitment) (bool, error) {
	return s.do("commit", func() (bool, error) { return s.inner.Commit(ctx, c) })
}

func (s *shortcuts) do(name string, statement func() (bool, error)) (bool, error) {
	mode := ""
	if name == s.at {
		mode = s.mode
	}
	switch mode {
	case failed:
		return false, nil
	case lost:
		return false, errFault
	}
	stored, err := statement()
	if stored {
		s.taken = append(s.taken, name)
	}
	if mode == persisted {
		return false, errFault
	}
	return stored, err
}

func newShortcuts(t *testing.T, kind toolruntime.EffectKind) (*fixture, *shortcuts) {
	t.Helper()
	var s *shortcuts
	f := newFixtureOn(t, func(t *testing.T) (*toolruntime.Store, error) {
		store, err := openPostgres(t)
		if err == nil {
			toolruntime.TestingOnlyWrapEngine(store, func(e engine.Engine) engine.Engine {
				s = &shortcuts{inner: e.(engine.Shortcut)}
				return e
			})
		}
		return store, err
	}, kind)
	s.faulty = f.fault
	toolruntime.TestingOnlyWrapEngine(f.TestingOnlyStore(), func(engine.Engine) engine.Engine { return s })
	return f, s
}

// TestShortcut: a fresh dispatch needs no transaction, and leaves what the two
// transactions leave.
func TestShortcut(t *testing.T) {
	f, s := newShortcuts(t, toolruntime.Idempotent)
	pkg, err := f.dispatch(alive)
	if err != nil || pkg.Code() != toolresult.OK || pkg.Delivery() != toolresult.Fresh {
		t.Fatalf("%v, %v", pkg, err)
	}
	if diff := cmp.Diff([]string{"reserve", "commit"}, s.taken); diff != "" || s.units != 0 {
		t.Errorf("%d transactions; (-want +got):\n%s", s.units, diff)
	}
	f.checkInvariants()
	if pkg, err := f.dispatch(alive); err != nil || pkg.Delivery() != toolresult.LocalReplay || s.units != 0 {
		t.Errorf("repeated: %v, %v, %d transactions", pkg, err, s.units)
	}
}

// TestShortcutFaults lets each shortcut go wrong in every way: the transaction
// that follows finds out what became of it, and the call ends as it would have.
// Where that one goes wrong too, repeating the flow ends it with one effect.
func TestShortcutFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	flows := []struct {
		name, at string
		prepare  func(*fixture)
		run      func(*fixture) error
	}{
		{"reserve and leave", "reserve", func(*fixture) {}, func(f *fixture) error { _, err := f.dispatch(drill.AfterIntentCommit); return err }},
		{"reserve and run", "reserve", func(*fixture) {}, dispatchFresh},
		{"commit", "commit", func(*fixture) {}, dispatchFresh},
		{"commit of a worker", "commit", func(f *fixture) { f.must(f.dispatch(drill.AfterIntentCommit)) }, func(f *fixture) error {
			outcome, err := f.process()
			if err == nil && outcome != toolruntime.Succeeded {
				err = fmt.Errorf("outcome %s", outcome)
			}
			return err
		}},
	}
	// When the transaction after the shortcut goes wrong: never, or stored or not.
	unit := map[string]struct{ fails, persists bool }{"": {}, ", then failed": {true, false}, ", then failed but stored": {true, true}}
	for _, kind := range []toolruntime.EffectKind{toolruntime.Once, toolruntime.Idempotent} {
		for _, flow := range flows {
			for _, mode := range []string{failed, lost, persisted} {
				for then, u := range unit {
					t.Run(fmt.Sprintf("%s/%s/%s%s", kind, flow.name, mode, then), func(t *testing.T) {
						f, s := newShortcuts(t, kind)
						flow.prepare(f)
						s.at, s.mode = flow.at, mode
						if u.fails {
							f.fault.arm(1, u.persists)
							if flow.name == "commit of a worker" {
								f.fault.arm(2, u.persists) // after the claim
							}
						}
						err := flow.run(f)
						var want error
						if u.fails && flow.at == "reserve" {
							want = toolruntime.ErrCommitUnknown // and a receipt in hand is written again
						}
						if !errors.Is(err, want) {
							t.Errorf("got %v, want %v", err, want)
						}
						f.checkInvariants()
						s.at = ""
						f.fault.arm(0, false)
						if kind != toolruntime.Once {
							f.finish()
						}
						if f.bank.calls > 1 && kind == toolruntime.Once {
							t.Errorf("a tool that runs once ran %d times", f.bank.calls)
						}
					})
				}
			}
		}
	}
}

// dispatchFresh expects what a dispatch without a fault answers.
func dispatchFresh(f *fixture) error {
	pkg, err := f.dispatch(alive)
	if err == nil && (pkg.Code() != toolresult.OK || pkg.Delivery() != toolresult.Fresh) {
		err = fmt.Errorf("%s %s", pkg.Code(), pkg.Delivery())
	}
	return err
}
