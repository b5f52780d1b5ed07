package toolruntime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
)

// TestCancel: what has not begun is cancelled for good, by somebody with a reason,
// and whoever waits for it or repeats it is told so.
func TestCancel(t *testing.T) {
	ctx := context.Background()
	onBothEngines(t, func(t *testing.T, open func(*testing.T) (*toolruntime.Store, error)) {
		f := newFixtureOn(t, open, toolruntime.Idempotent)
		f.must(f.submit())
		ref := f.bound().StatusRef()
		rings, leave := toolruntime.TestingOnlyRings(ref)
		defer leave()
		for range 2 { // repeating it changes nothing
			if err := f.Cancel(ctx, ref, "dana", "the customer has called"); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case <-rings:
		default:
			t.Error("nobody was woken")
		}
		if err := f.Cancel(ctx, ref, "erin", "the customer has called"); !errors.Is(err, toolruntime.ErrBegun) {
			t.Errorf("by somebody else: %v", err)
		}
		if outcome, err := f.process(); err != nil || outcome == toolruntime.Succeeded {
			t.Errorf("process: %s, %v", outcome, err)
		}
		spec, _ := f.Spec("pay")
		for name, ask := range map[string]func() (*toolresult.Package, error){
			"dispatch": func() (*toolresult.Package, error) { return f.dispatch(alive) },
			"submit":   f.submit,
			"await":    func() (*toolresult.Package, error) { return f.Await(ctx, payer, payCall()) },
			"status":   func() (*toolresult.Package, error) { return f.Status(ctx, payer, payCall()) },
			"query":    f.query,
		} {
			pkg, err := ask()
			if err != nil || pkg.Code() != toolresult.Cancelled || pkg.ModelResult.Execution.Outcome != toolresult.OutcomeNotStarted {
				t.Errorf("%s: %v, %v", name, pkg, err)
			} else if name != "query" {
				if problems := toolresult.Validate(f.bound(), spec, pkg); len(problems) > 0 {
					t.Errorf("%s: %v", name, problems)
				}
			}
		}
		f.wantAudit()
		want := []string{"accepted", "resolved cancelled", "failed"}
		if diff := cmp.Diff(want, f.moments(ref)); diff != "" || f.bank.calls != 0 {
			t.Errorf("%d effects, history (-want +got):\n%s", f.bank.calls, diff)
		}
		// The decision outlives its operation.
		f.dispatchKey("newer")
		f.pass(3600)
		if r, err := f.Prune(ctx, &toolruntime.PruneOptions{OlderThan: time.Hour}); err != nil || r.Pruned != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		h, err := f.History(ctx, ref)
		if err != nil || !slices.ContainsFunc(h.Moments, func(m toolruntime.Moment) bool {
			return m.How == "cancelled" && m.Who == "dana" && m.Why == "the customer has called"
		}) {
			t.Errorf("%+v, %v", h, err)
		}
		f.wantAudit()
	})
}

// TestCancelTooLate: once an attempt has begun, whatever it has come to, an operation
// cannot be cancelled, and nothing of it changes.
func TestCancelTooLate(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	ctx := context.Background()
	attempt := func(point drill.Point, fail error) func(*fixture) {
		return func(f *fixture) {
			f.bank.fail = fail
			if _, err := f.Process(dying(point), f.bound().StatusRef(), "worker", nil); err != nil {
				f.t.Fatal(err)
			}
			f.bank.fail = nil
		}
	}
	tests := map[string]func(*fixture){
		"running":              attempt(drill.AfterClaim, nil),
		"its receipt observed": attempt(drill.AfterDownstreamCommit, nil),
		"succeeded":            attempt("", nil),
		"given up":             attempt("", toolruntime.GiveUp(errors.New("no"))),
		"to be tried again":    attempt("", toolruntime.RetryLater(0, errors.New("not now"))),
		"in review":            attempt("", toolruntime.ErrNeedsReview),
	}
	onBothEngines(t, func(t *testing.T, open func(*testing.T) (*toolruntime.Store, error)) {
		for name, before := range tests {
			t.Run(name, func(t *testing.T) {
				f := newFixtureOn(t, open, toolruntime.Idempotent)
				f.must(f.submit())
				ref := f.bound().StatusRef()
				before(f)
				was := fmt.Sprint(f.moments(ref))
				if err := f.Cancel(ctx, ref, "dana", "the customer has called"); !errors.Is(err, toolruntime.ErrBegun) {
					t.Errorf("%v", err)
				}
				if now := fmt.Sprint(f.moments(ref)); now != was {
					t.Errorf("%s, and it was %s", now, was)
				}
				f.wantAudit()
			})
		}
	})
}

// TestCancelInput: who cancels says what, who and why.
func TestCancelInput(t *testing.T) {
	f := newFixture(t, toolruntime.Once)
	f.must(f.submit())
	ref := f.bound().StatusRef()
	for name, in := range map[string][3]string{
		"nothing": {"", "dana", "why"}, "not known": {"status_00000000000000000000000000000000", "dana", "why"},
		"nobody": {ref, "", "why"}, "no reason": {ref, "dana", ""}, "a call id": {"c", "dana", "why"},
	} {
		if err := f.Cancel(context.Background(), in[0], in[1], in[2]); !errors.Is(err, toolruntime.ErrInvalidInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
	err := f.Resolve(context.Background(), toolruntime.Resolution{StatusRef: ref, Decision: "cancelled", Actor: "dana", Reason: "why"})
	if !errors.Is(err, toolruntime.ErrInvalidInput) {
		t.Errorf("as a resolution: %v", err)
	}
}

// TestCancelRace: whoever is faster, a worker or who cancels, is the only one.
func TestCancelRace(t *testing.T) {
	ctx := context.Background()
	onBothEngines(t, func(t *testing.T, open func(*testing.T) (*toolruntime.Store, error)) {
		f := newFixtureOn(t, open, toolruntime.Once)
		for i := range 20 {
			c := payCall()
			c.IdempotencyKey, c.CallID = fmt.Sprint("key-", i), fmt.Sprint("call-", i)
			b, err := f.Bind(payer, c)
			if err != nil {
				t.Fatal(err)
			}
			f.must(f.Submit(ctx, payer, c, toolresult.NewApproval(b, "a", "reviewer", time.Unix(f.time()+60, 0))))
			cancelled := make(chan error)
			go func() { cancelled <- f.Cancel(ctx, b.StatusRef(), "dana", "the customer has called") }()
			outcome, failed := f.Process(ctx, b.StatusRef(), "worker", nil)
			f.bank.mu.Lock()
			effect := f.bank.keys[b.EffectIdentity()]
			f.bank.mu.Unlock()
			switch err := <-cancelled; {
			case failed != nil, effect != (outcome == toolruntime.Succeeded):
				t.Errorf("%s, %v, an effect: %t", outcome, failed, effect)
			case effect != errors.Is(err, toolruntime.ErrBegun), err != nil && !effect:
				t.Errorf("cancel: %v, an effect: %t", err, effect)
			}
		}
		f.wantAudit()
	})
}

// TestCancelWithoutWord: a cancellation without the decision that made it is missed.
func TestCancelWithoutWord(t *testing.T) {
	ctx := context.Background()
	onBothEngines(t, func(t *testing.T, open func(*testing.T) (*toolruntime.Store, error)) {
		f := newFixtureOn(t, open, toolruntime.Once)
		f.must(f.submit())
		if err := f.Cancel(ctx, f.bound().StatusRef(), "dana", "the customer has called"); err != nil {
			t.Fatal(err)
		}
		if err := f.fault.Engine.WriteWith(ctx, func(ctx context.Context, _ engine.Querier, tx dbgen.DBTX) error {
			_, err := tx.ExecContext(ctx, "DELETE FROM resolutions")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		r, err := f.Audit(ctx, nil)
		if err != nil || r.Passed || !strings.Contains(fmt.Sprint(r.SemanticErrors), "it has ended without an attempt or a resolution that ends it") {
			t.Errorf("%+v, %v", r, err)
		}
	})
}
