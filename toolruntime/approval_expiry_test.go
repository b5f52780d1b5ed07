package toolruntime_test

import (
	"testing"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// TestApprovalExpiresAfterTheIntent: the intent is what was approved, and delivering it
// later is no new one. A repetition needs no approval, either.
func TestApprovalExpiresAfterTheIntent(t *testing.T) {
	onBothEngines(t, func(t *testing.T, open func(*testing.T) (*toolruntime.Store, error)) {
		f := newFixtureOn(t, open, toolruntime.Once)
		f.must(f.submit())
		f.pass(3600)
		if outcome, err := f.process(); outcome != toolruntime.Succeeded || err != nil {
			t.Errorf("%s, %v", outcome, err)
		}
		pkg, err := f.Dispatch(t.Context(), payer, payCall(), nil)
		if err != nil || pkg.Code() != toolresult.OK || pkg.Delivery() != toolresult.LocalReplay || f.bank.calls != 1 {
			t.Errorf("%v, %v, %d effects", pkg, err, f.bank.calls)
		}
		f.checkInvariants()
	})
}
