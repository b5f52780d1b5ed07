package toolruntime_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
)

// TestStatus: what became of a call is asked with the call as it was, and the answer
// is that call's.
func TestStatus(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	ctx := context.Background()
	later, other, reused, stranger := payCall(), payCall(), payCall(), payCall()
	later.CallID = "later"
	other.CallID, other.Arguments = "other", []byte(`{"amount":6}`)
	reused.OperationID = "another"
	stranger.IdempotencyKey, stranger.CallID = "never used", "stranger"
	keyless := payCall()
	keyless.IdempotencyKey = ""
	observed := func(f *fixture) {
		f.must(f.submit())
		if _, err := f.Process(drill.StopAt(ctx, drill.AfterDownstreamCommit), f.bound().StatusRef(), "worker", nil); err != nil {
			f.t.Fatal(err)
		}
	}
	lost := func(f *fixture) { // the effect has happened, and only the downstream knows
		f.must(f.submit())
		f.must(f.dispatch(alive))
		f.bank.fail = errors.New("cut off")
		if _, err := f.process(); err != nil {
			f.t.Fatal(err)
		}
		f.bank.fail = nil
	}
	done := func(f *fixture) { f.must(f.dispatch(alive)) }
	tests := []struct {
		name   string
		kind   toolruntime.EffectKind
		before func(*fixture)
		call   toolresult.Call
		want   string
	}{
		{"never made", toolruntime.Once, func(*fixture) {}, payCall(), "NOT_FOUND fresh"},
		{"accepted", toolruntime.Once, func(f *fixture) { f.must(f.submit()) }, payCall(), "ACCEPTED fresh"},
		{"observed", toolruntime.Once, observed, payCall(), "OK receipt_reconciled"},
		{"lost, and the downstream can be asked", toolruntime.Queryable, lost, payCall(), "OK receipt_reconciled"},
		{"lost, and in review", toolruntime.Once, lost, payCall(), "OUTCOME_UNKNOWN fresh"},
		{"done", toolruntime.Once, done, payCall(), "OK local_replay"},
		{"done, by a later call", toolruntime.Once, done, later, "OK local_replay"},
		{"another request under the key", toolruntime.Once, done, other, "IDEMPOTENCY_CONFLICT fresh"},
		{"another call under the identity", toolruntime.Once, done, reused, "CALL_ID_CONFLICT fresh"},
		{"another key", toolruntime.Once, done, stranger, "NOT_FOUND fresh"},
		{"no key", toolruntime.Once, done, keyless, "IDEMPOTENCY_KEY_REQUIRED fresh"},
		{"pruned", toolruntime.Once, func(f *fixture) {
			done(f)
			f.dispatchKey("newer") // the newest always stays
			f.pass(40 * 86400)
			if _, err := f.Prune(ctx, &toolruntime.PruneOptions{OlderThan: 30 * 24 * time.Hour}); err != nil {
				f.t.Fatal(err)
			}
		}, payCall(), "IDEMPOTENCY_KEY_EXPIRED fresh"},
	}
	onBothEngines(t, func(t *testing.T, open func(*testing.T) (*toolruntime.Store, error)) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				f := newFixtureOn(t, open, tt.kind)
				tt.before(f)
				calls := f.bank.calls
				for range 2 {
					pkg, err := f.Status(ctx, payer, tt.call)
					if err != nil {
						t.Fatal(err)
					}
					b, err := f.Bind(payer, tt.call)
					if err != nil {
						t.Fatal(err)
					}
					spec, _ := f.Spec("pay")
					if problems := toolresult.Validate(b, spec, pkg); len(problems) > 0 {
						t.Errorf("%v", problems)
					}
					if got := fmt.Sprint(pkg.Code(), " ", pkg.Delivery()); got != tt.want {
						t.Errorf("%s, want %s", got, tt.want)
					}
					tt.want = replayed(tt.want)
				}
				if f.bank.calls != calls {
					t.Errorf("%d effects of a question", f.bank.calls-calls)
				}
				f.wantAudit()
			})
		}
	})
}

// replayed is how an answer comes the second time.
func replayed(want string) string {
	if want == "OK receipt_reconciled" {
		return "OK local_replay"
	}
	return want
}

// TestAwait: who waits for a call gets its answer, however it ends and wherever, and
// whoever waits in this process is woken by what ends it.
func TestAwait(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	ctx := context.Background()
	process := func(f *fixture) error { _, err := f.process(); return err }
	tests := []struct {
		name string
		fail error
		end  func(*fixture) error
		want toolresult.Code
	}{
		{"succeeded", nil, process, toolresult.OK},
		{"given up", toolruntime.GiveUp(errors.New("no")), process, toolresult.ToolError},
		{"in review", errors.New("cut off"), process, toolresult.OutcomeUnknown},
		{"observed, and asked for", nil, func(f *fixture) error {
			_, err := f.Process(drill.StopAt(ctx, drill.AfterDownstreamCommit), f.bound().StatusRef(), "worker", nil)
			if err == nil {
				_, err = f.Status(ctx, payer, payCall())
			}
			return err
		}, toolresult.OK},
	}
	onBothEngines(t, func(t *testing.T, open func(*testing.T) (*toolruntime.Store, error)) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				f := newFixtureOn(t, open, toolruntime.Once)
				f.bank.fail = tt.fail
				f.must(f.submit())
				rings, leave := toolruntime.TestingOnlyRings(f.bound().StatusRef())
				defer leave()
				type answer struct {
					pkg *toolresult.Package
					err error
				}
				answers := make(chan answer, 1)
				go func() {
					pkg, err := f.Await(ctx, payer, payCall())
					answers <- answer{pkg, err}
				}()
				if err := tt.end(f); err != nil {
					t.Fatal(err)
				}
				select {
				case <-rings:
				default:
					t.Error("nobody was woken")
				}
				a := <-answers
				if a.err != nil || a.pkg.Code() != tt.want || a.pkg.ProtectedAudit.ProviderContext.CallID != payCall().CallID {
					t.Errorf("%v, %v", a.pkg, a.err)
				}
				f.bank.fail = nil
				f.wantAudit()
			})
		}
	})
}

// TestAwaitResolution: a decision of a person ends an operation, too.
func TestAwaitResolution(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t, toolruntime.Once)
	f.bank.fail = errors.New("cut off")
	f.must(f.submit())
	if _, err := f.process(); err != nil {
		t.Fatal(err)
	}
	ref := f.bound().StatusRef()
	rings, leave := toolruntime.TestingOnlyRings(ref)
	defer leave()
	if err := f.Resolve(ctx, toolruntime.Resolution{StatusRef: ref, Decision: toolruntime.ConfirmedNotDone, Actor: "carol", Reason: "looked"}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-rings:
	default:
		t.Error("nobody was woken")
	}
	if pkg, err := f.Await(ctx, payer, payCall()); err != nil || pkg.Code() != toolresult.ToolError {
		t.Errorf("%v, %v", pkg, err)
	}
}

// TestAwaitAtOnce: what cannot end is answered, and a wait ends with its context.
func TestAwaitAtOnce(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t, toolruntime.Once)
	if pkg, err := f.Await(ctx, payer, payCall()); err != nil || pkg.Code() != toolresult.NotFound {
		t.Errorf("never made: %v, %v", pkg, err)
	}
	f.must(f.submit())
	other := payCall()
	other.CallID, other.Arguments = "other", []byte(`{"amount":6}`)
	if pkg, err := f.Await(ctx, payer, other); err != nil || pkg.Code() != toolresult.IdempotencyConflict {
		t.Errorf("another request under the key: %v, %v", pkg, err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if pkg, err := f.Await(ended, payer, payCall()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", pkg, err)
	}
	var wrong *toolresult.InputError
	if err := f.Wait(ctx, "status_00000000000000000000000000000000"); !errors.As(err, &wrong) {
		t.Errorf("unknown: %v", err)
	}
}

// TestWatch: a wait looks less and less often, and at once when something has ended.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, began := &toolruntime.Runtime{}, time.Now()
		var looks []time.Duration
		var ended atomic.Bool
		time.AfterFunc(5*time.Second, func() { toolruntime.TestingOnlyRing("another") })
		time.AfterFunc(6*time.Second, func() { ended.Store(true); toolruntime.TestingOnlyRing("ref") })
		err := rt.TestingOnlyWatch(t.Context(), "ref", func() (bool, error) {
			looks = append(looks, time.Since(began))
			return !ended.Load(), nil
		})
		ms := time.Millisecond
		want := []time.Duration{0, 50 * ms, 150 * ms, 350 * ms, 750 * ms, 1550 * ms, 3150 * ms, 5150 * ms, 6000 * ms}
		if diff := cmp.Diff(want, looks); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}
