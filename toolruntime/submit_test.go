package toolruntime_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
)

// submit hands the fixture's call to the workers.
func (f *fixture) submit() (*toolresult.Package, error) {
	return f.Submit(context.Background(), payer, payCall(), toolresult.NewApproval(f.bound(), "a", "reviewer", time.Unix(f.time()+60, 0)))
}

// TestSubmit: what was accepted and has not begun has a code of its own, for who
// submits it and for who submits it again, and no other method gives it.
func TestSubmit(t *testing.T) {
	onBothEngines(t, func(t *testing.T, open func(*testing.T) (*toolruntime.Store, error)) {
		f := newFixtureOn(t, open, toolruntime.Once)
		spec, _ := f.Spec("pay")
		var got []toolresult.Code
		say := func(pkg *toolresult.Package, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, pkg.Code())
			if pkg.StatusRef() != f.bound().StatusRef() {
				t.Errorf("%s: status_ref %q", pkg.Code(), pkg.StatusRef())
			}
		}
		for range 2 {
			pkg, err := f.submit()
			say(pkg, err)
			if problems := toolresult.Validate(f.bound(), spec, pkg); len(problems) > 0 || pkg.ModelResult.Status != toolresult.StatusUnknown {
				t.Errorf("%v, status %s", problems, pkg.ModelResult.Status)
			}
		}
		say(f.dispatch(alive))
		say(f.query())
		if _, err := f.Process(dying(drill.AfterClaim), f.bound().StatusRef(), "worker", nil); err != nil {
			t.Fatal(err)
		}
		say(f.submit()) // the attempt has begun
		if diff := cmp.Diff([]toolresult.Code{toolresult.Accepted, toolresult.Accepted, toolresult.OutcomeUnknown,
			toolresult.OutcomeUnknown, toolresult.OutcomeUnknown}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestSubmitAfterTheEnd: a call that has ended is answered from the ledger.
func TestSubmitAfterTheEnd(t *testing.T) {
	f := newFixture(t, toolruntime.Once)
	f.must(f.submit())
	if outcome, err := f.process(); outcome != toolruntime.Succeeded {
		t.Fatal(outcome, err)
	}
	pkg, err := f.submit()
	if err != nil || pkg.Code() != toolresult.OK || pkg.Delivery() != toolresult.LocalReplay || f.bank.calls != 1 {
		t.Errorf("%v, %v, %d effects", pkg, err, f.bank.calls)
	}
}
