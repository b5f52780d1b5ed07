package conformance

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// TestWorkHopeless: an answer that says that trying again tells nothing ends the
// trying. It is a failure only where it is certain that nothing was done, in this
// attempt and in all before it.
func TestWorkHopeless(t *testing.T) {
	conflict := fmt.Errorf("the key was used with another request: %w", toolruntime.ErrNeedsReview)
	const failed, review, paid = "failed TOOL_ERROR", "in_review OUTCOME_UNKNOWN", "succeeded "
	type end struct {
		State string
		Runs  int64
	}
	tests := []struct {
		name                        string
		says                        []error // of one run after the other
		finds                       error
		once, queryable, idempotent end
	}{
		{"gives up", []error{toolruntime.GiveUp(errLost)}, nil, end{failed, 1}, end{failed, 1}, end{failed, 1}},
		{"needs review", []error{conflict}, nil, end{review, 1}, end{review, 1}, end{review, 1}},
		{"is lost, and gives up", []error{errLost, toolruntime.GiveUp(errLost)}, nil, end{review, 1}, end{failed, 2}, end{review, 2}},
		{"is lost, and needs review", []error{errLost, conflict}, nil, end{review, 1}, end{review, 2}, end{review, 2}},
		{"is lost, and Find needs review", []error{errLost, nil}, conflict, end{review, 1}, end{review, 1}, end{paid, 2}},
		{"is lost, and retries", []error{errLost, toolruntime.RetryLater(0, errLost), nil}, nil, end{review, 1}, end{paid, 3}, end{paid, 3}},
	}
	forEachEngine(t, func(t *testing.T, e engine) {
		var now atomic.Int64 // the test that runs
		var runs atomic.Int64
		var tools []toolruntime.Registration
		for _, kind := range []toolruntime.EffectKind{toolruntime.Once, toolruntime.Queryable, toolruntime.Idempotent} {
			tool := noteTool(kind.String(), kind, func(_ context.Context, e toolruntime.Effect, a noteArgs) (toolruntime.Receipt[note], error) {
				if err := tests[now.Load()].says[runs.Add(1)-1]; err != nil {
					return toolruntime.Receipt[note]{}, err
				}
				return noteReceipt(e, a.Text), nil
			})
			if kind == toolruntime.Queryable {
				tool.Find = func(context.Context, toolruntime.Effect, noteArgs) (toolruntime.Receipt[note], bool, error) {
					return toolruntime.Receipt[note]{}, false, tests[now.Load()].finds
				}
			}
			tools = append(tools, tool)
		}
		d := newDesk(t, e, withAuthorizer(anybody), withTools(tools...))
		for i, tt := range tests {
			for kind, want := range map[string]end{"once": tt.once, "queryable": tt.queryable, "idempotent": tt.idempotent} {
				t.Run(tt.name+"/"+kind, func(t *testing.T) {
					d.t = t
					now.Store(int64(i))
					runs.Store(0)
					ref := d.submit(callOf(kind, fmt.Sprint(kind, i), `{"text":"x"}`))
					d.finish(ref)
					h, err := d.History(context.Background(), ref)
					if err != nil {
						t.Fatal(err)
					}
					if got := (end{fmt.Sprint(h.State, " ", h.Reason), runs.Load()}); got != want {
						t.Errorf("it is %+v, want %+v", got, want)
					}
				})
			}
		}
		d.t = t
		d.wantAudit()
	})
}
