package toolruntime_test

import (
	"context"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// TestPauseBetween: a pause that commits while something is about to begin is seen by
// the transaction with which it would begin.
func TestPauseBetween(t *testing.T) {
	ctx := context.Background()
	onBothEngines(t, func(t *testing.T, open func(*testing.T) (*toolruntime.Store, error)) {
		for name, begin := range map[string]func(*testing.T, *toolruntime.Runtime, []toolresult.Approval){
			"a dispatch": func(t *testing.T, rt *toolruntime.Runtime, approvals []toolresult.Approval) {
				pkg, err := rt.Dispatch(ctx, payer, payCall(), &toolruntime.DispatchOptions{Approvals: approvals})
				if err != nil || pkg.Code() != toolresult.ToolPaused {
					t.Errorf("%v, %v", pkg, err)
				}
			},
			"a worker's claim": func(t *testing.T, rt *toolruntime.Runtime, approvals []toolresult.Approval) {
				if pkg, err := rt.Submit(ctx, payer, payCall(), approvals...); err != nil || pkg.Code() != toolresult.Accepted {
					t.Fatalf("%v, %v", pkg, err)
				}
				if claimed, _, err := rt.TestingOnlyClaimBatch(ctx, 10); claimed != 0 || err != nil {
					t.Errorf("%d claimed, %v", claimed, err)
				}
			},
		} {
			t.Run(name, func(t *testing.T) {
				b := &bank{keys: map[string]bool{}}
				rt, h := newHurried(t, open, b, nil, nil)
				writes := 0
				if name == "a worker's claim" {
					writes = 1 // the submission's
				}
				h.before = func() {
					if writes--; writes < 0 {
						h.before = nil
						if err := rt.Pause(ctx, "pay", "dana", "the bank has called"); err != nil {
							t.Error(err)
						}
					}
				}
				bound, err := rt.Bind(payer, payCall())
				if err != nil {
					t.Fatal(err)
				}
				begin(t, rt, []toolresult.Approval{toolresult.NewApproval(bound, "a", "reviewer", h.Now().Add(time.Minute))})
				if b.ran() != 0 || h.before != nil {
					t.Errorf("%d effects", b.ran())
				}
				if r, err := rt.Audit(ctx, nil); err != nil || !r.Passed {
					t.Errorf("audit: %+v, %v", r, err)
				}
			})
		}
	})
}
