package toolruntime_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/hostclock"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

// hurried is an engine whose clock can be moved, also while a write waits for its
// turn.
type hurried struct {
	engine.Engine
	ahead  atomic.Int64
	before func() // runs before each write, or is nil
}

func (h *hurried) Now() time.Time { return h.Engine.Now().Add(time.Duration(h.ahead.Load())) }
func (h *hurried) pass(d time.Duration) {
	h.ahead.Add(int64(d))
}

func (h *hurried) Write(ctx context.Context, unit engine.Unit) error {
	return h.write(func() error { return h.Engine.Write(ctx, unit) })
}

func (h *hurried) Reserve(ctx context.Context, all ...*engine.Reservation) error {
	return h.write(func() error {
		for _, r := range all { // by this clock, which the engine underneath does not know
			if !r.Timely(h.Now().Unix()) {
				r.Answer = engine.Late
				return nil
			}
			r.From, r.Until = 0, contract.MaxTime
		}
		return h.Engine.Reserve(ctx, all...)
	})
}

func (h *hurried) Move(ctx context.Context, all ...*engine.Motion) error {
	return h.write(func() error { return h.Engine.Move(ctx, all...) })
}

func (h *hurried) write(do func() error) error {
	if h.before != nil {
		h.before()
	}
	return do()
}

// newHurried is a runtime by the ledger's own clock. The rule and the approvers are
// what the callbacks do while they are asked.
func newHurried(t *testing.T, open func(*testing.T) (*toolruntime.Store, error), b *bank, rule, approver *func()) (*toolruntime.Runtime, *hurried) {
	t.Helper()
	store, err := open(t)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	h := &hurried{}
	toolruntime.TestingOnlyWrapEngine(store, func(e engine.Engine) engine.Engine { h.Engine = e; return h })
	call := func(f *func()) {
		if f != nil && *f != nil {
			(*f)()
		}
	}
	allow := func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil }
	rt, err := toolruntime.New(store, &toolruntime.Options{Authorizer: allow,
		Approvers: func(context.Context, toolresult.Principal, string, string) (bool, error) {
			call(approver)
			return true, nil
		}},
		toolruntime.Tool[payArgs, payment]{Name: "pay", Effect: toolruntime.Idempotent, Equal: map[string]string{"amount": "amount"},
			Resource: func(payArgs) string { return "account" },
			Rule: func(context.Context, toolresult.Principal, payArgs) (bool, error) {
				call(rule)
				return true, nil
			},
			Run: func(_ context.Context, e toolruntime.Effect, a payArgs) (toolruntime.Receipt[payment], error) {
				return b.pay(e, a)
			}})
	if err != nil {
		t.Fatal(err)
	}
	return rt, h
}

// TestApprovalAtTheCommit: an approval is held against the moment of the
// commit, whatever takes the time until then.
func TestApprovalAtTheCommit(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	const late = 2 * time.Minute
	tests := []struct {
		name string
		slow func(h *hurried, rule, approver, write *func())
	}{
		{"the rule", func(h *hurried, rule, _, _ *func()) { *rule = sync.OnceFunc(func() { h.pass(late) }) }},
		{"the approvers", func(h *hurried, _, approver, _ *func()) { *approver = sync.OnceFunc(func() { h.pass(late) }) }},
		{"the ledger", func(h *hurried, _, _, write *func()) { *write = sync.OnceFunc(func() { h.pass(late) }) }},
	}
	onBothEngines(t, func(t *testing.T, open func(*testing.T) (*toolruntime.Store, error)) {
		for _, tt := range tests {
			for _, second := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/another approval=%v", tt.name, second), func(t *testing.T) {
					b := &bank{keys: map[string]bool{}}
					var rule, approver func()
					rt, h := newHurried(t, open, b, &rule, &approver)
					bound, err := rt.Bind(payer, payCall())
					if err != nil {
						t.Fatal(err)
					}
					now := h.Now().Unix()
					approvals := []toolresult.Approval{toolresult.NewApproval(bound, "a", "reviewer", time.Unix(now+60, 0))}
					want, effects := toolresult.ApprovalInvalid, 0
					if second {
						approvals = append(approvals, toolresult.NewApproval(bound, "b", "reviewer", time.Unix(now+3600, 0)))
						want, effects = toolresult.OK, 1
					}
					tt.slow(h, &rule, &approver, &h.before)
					pkg, err := rt.Dispatch(context.Background(), payer, payCall(), &toolruntime.DispatchOptions{Approvals: approvals})
					if err != nil || pkg.Code() != want || b.ran() != effects {
						t.Errorf("%v, %v, %d effects; want %s and %d", pkg, err, b.ran(), want, effects)
					}
					if r, err := rt.Audit(context.Background(), nil); err != nil || !r.Passed {
						t.Errorf("audit: %+v, %v", r, err)
					}
				})
			}
		}
	})
}

// TestLeaseFromItsTurn: who has waited for the ledger has his whole lease from then
// on, and another's lease is held against that moment.
func TestLeaseFromItsTurn(t *testing.T) {
	onBothEngines(t, func(t *testing.T, open func(*testing.T) (*toolruntime.Store, error)) {
		b := &bank{keys: map[string]bool{}}
		rt, h := newHurried(t, open, b, nil, nil)
		bound, err := rt.Bind(payer, payCall())
		if err != nil {
			t.Fatal(err)
		}
		until := func() int64 {
			hist, err := rt.History(context.Background(), bound.StatusRef())
			if err != nil {
				t.Fatal(err)
			}
			return hist.Moments[len(hist.Moments)-1].Until.Unix() - h.Now().Unix()
		}
		slow := func() { h.pass(time.Minute) }
		h.before = slow
		approval := toolresult.NewApproval(bound, "a", "reviewer", h.Now().Add(time.Hour))
		if _, err := rt.Dispatch(dying(drill.AfterClaim), payer, payCall(), &toolruntime.DispatchOptions{
			Approvals: []toolresult.Approval{approval}}); err != nil {
			t.Fatal(err)
		}
		if left := until(); left < 25 || left > 30 {
			t.Errorf("after the reservation %d s are left of 30", left)
		}
		hold(t, rt, bound.StatusRef(), "other", 300*time.Second) // and has not run out while it waited
		if left := until(); left < 295 || left > 300 {
			t.Errorf("after the claim %d s are left of 300", left)
		}
	})
}

// stepping is a runtime on SQLite by the host's clock, in a bubble.
func stepping(t *testing.T, run func(rt *toolruntime.Runtime, b *bank, ref string)) {
	synctest.Test(t, func(t *testing.T) {
		store, err := sqlitestore.Open(context.Background(), filepath.Join(t.TempDir(), "ledger.sqlite3"), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		defer hostclock.Set(0)
		b := &bank{keys: map[string]bool{}}
		rt, _ := newHurried(t, func(*testing.T) (*toolruntime.Store, error) { return store, nil }, b, nil, nil)
		bound, err := rt.Bind(payer, payCall())
		if err != nil {
			t.Fatal(err)
		}
		approval := toolresult.NewApproval(bound, "a", "reviewer", hostclock.Now().Add(time.Hour))
		if _, err := rt.Submit(context.Background(), payer, payCall(), approval); err != nil {
			t.Fatal(err)
		}
		run(rt, b, bound.StatusRef())
	})
}

func (b *bank) ran() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls
}

func (b *bank) answer(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = err
}

// during runs a worker for some time.
func during(t *testing.T, rt *toolruntime.Runtime, what func()) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- rt.Work(ctx, nil) }()
	what()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestClockForward: a lease that holds is not taken because the clock was set
// forward, and not kept from others for longer than it was given.
func TestClockForward(t *testing.T) {
	stepping(t, func(rt *toolruntime.Runtime, b *bank, ref string) {
		hold(t, rt, ref, "another process", toolruntime.DefaultLease)
		during(t, rt, func() {
			time.Sleep(5 * time.Second)
			hostclock.Set(time.Hour)
			time.Sleep(10 * time.Second)
			hostclock.Set(2 * time.Hour)
			time.Sleep(13 * time.Second)
			if b.ran() != 0 {
				t.Error("it was taken from its holder")
			}
			time.Sleep(7 * time.Second)
			if b.ran() != 1 {
				t.Errorf("after the lease it ran %d times", b.ran())
			}
		})
		if diff := cmp.Diff(int64(2), rt.Metrics().ClockSteps); diff != "" {
			t.Errorf("steps (-want +got):\n%s", diff)
		}
	})
}

// TestClockBack: what waits for its next attempt, or for the end of a lease that
// nobody holds, waits no longer than it was to because the clock was set back; with a
// worker that sees it, and with one that begins later.
func TestClockBack(t *testing.T) {
	for _, seen := range []bool{false, true} {
		t.Run(fmt.Sprintf("an attempt, seen=%v", seen), func(t *testing.T) {
			stepping(t, func(rt *toolruntime.Runtime, b *bank, ref string) {
				b.answer(toolruntime.RetryLater(20*time.Second, errFault))
				back := func() { b.answer(nil); hostclock.Set(-time.Hour) }
				rest := func() {
					time.Sleep(18 * time.Second)
					if b.ran() != 1 {
						t.Errorf("before its time it ran %d times", b.ran())
					}
					time.Sleep(6 * time.Second)
					if b.ran() != 2 {
						t.Errorf("in the end it ran %d times", b.ran())
					}
				}
				during(t, rt, func() {
					time.Sleep(time.Second)
					if seen {
						back()
						rest()
					}
				})
				if !seen {
					back()
					during(t, rt, rest)
				}
			})
		})
		t.Run(fmt.Sprintf("a lease, seen=%v", seen), func(t *testing.T) {
			stepping(t, func(rt *toolruntime.Runtime, b *bank, ref string) {
				hold(t, rt, ref, "a process that dies", toolruntime.DefaultLease)
				wait := func() {
					time.Sleep(25 * time.Second)
					if b.ran() != 0 {
						t.Error("it was taken from its holder")
					}
					time.Sleep(10 * time.Second)
					if b.ran() != 1 {
						t.Errorf("after the lease it ran %d times", b.ran())
					}
				}
				if seen {
					during(t, rt, func() { time.Sleep(time.Second); hostclock.Set(-time.Hour); wait() })
				} else {
					hostclock.Set(-time.Hour)
					during(t, rt, wait)
				}
			})
		})
	}
}

// looking tells of every look at the ledger.
type looking struct {
	engine.Engine
	looks chan struct{}
}

func (l *looking) Write(ctx context.Context, unit engine.Unit) error {
	err := l.Engine.Write(ctx, unit)
	select {
	case l.looks <- struct{}{}:
	default:
	}
	return err
}

// TestSameProcess: a worker does not take from its own process what that is running,
// although by the worker's clock the lease ran out long ago.
func TestSameProcess(t *testing.T) {
	f := newFixture(t, toolruntime.Once)
	f.must(f.dispatch(drill.AfterIntentCommit))
	entered, leave, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	f.bank.hold = func() { close(entered); <-leave }
	go func() { _, err := f.process(); done <- err }()
	<-entered
	l := &looking{f.fault.Engine, make(chan struct{}, 1)}
	other := f.another(l)
	f.pass(3600)
	during(t, other, func() {
		<-l.looks // it wants to claim it
		close(leave)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if diff := cmp.Diff("succeeded, succeeded", f.attempts()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if f.bank.ran() != 1 {
		t.Errorf("it ran %d times", f.bank.ran())
	}
}
