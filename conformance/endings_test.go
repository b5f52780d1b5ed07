package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// TestEndings: what a host hears of costs a call that succeeds no row, and every other end
// one, which stays when its operation is pruned and is told then, too.
func TestEndings(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		const succeeds, fails, unknown = "succeeds", "fails", "is lost"
		ctx, p := context.Background(), user("user-1")
		d := newDesk(t, e, withTools(noteTool("note", toolruntime.Once, func(_ context.Context, e toolruntime.Effect, a noteArgs) (toolruntime.Receipt[note], error) {
			switch a.Text {
			case fails:
				return toolruntime.Receipt[note]{}, toolruntime.GiveUp(errLost)
			case unknown:
				return toolruntime.Receipt[note]{}, errLost
			}
			return noteReceipt(e, a.Text), nil
		})))
		rows := func(what string, want int64) {
			t.Helper()
			var got int64
			d.scan("SELECT COUNT(*) FROM endings", &got)
			wantEqual(t, "rows after "+what, want, got)
		}
		refs := map[string]string{}
		for i, text := range []string{succeeds, fails, unknown} {
			c := callOf("note", text, `{"text":"`+text+`"}`)
			d.carryOut(p, c)
			refs[text] = d.bind(p, c).StatusRef()
			rows("a call that "+text, int64(i))
		}
		d.resolve(refs[unknown], toolruntime.ConfirmedNotDone)
		rows("a person's decision", 3)
		d.setTime(d.time() + 2*day)
		d.carryOut(p, callOf("note", "newest", `{"text":"newest"}`)) // it is not pruned, as the newest
		if r := d.pruneAll(toolruntime.PruneOptions{}); r.Pruned != 3 {
			t.Fatalf("%+v", r)
		}
		rows("pruning", 3)
		type end struct {
			State toolruntime.State
			Code  toolresult.Code
		}
		got := map[string]end{}
		for c, err := range d.Completions(ctx, "", &toolruntime.CompletionOptions{UntilNow: true, Poll: time.Second}) {
			if err != nil {
				t.Fatal(err)
			}
			got[c.StatusRef] = end{c.State, c.Code}
		}
		wantEqual(t, "told", 4, len(got))
		wantEqual(t, "one that succeeded", end{toolruntime.StateSucceeded, toolresult.OK}, got[refs[succeeds]])
		wantEqual(t, "one that failed", end{State: toolruntime.StateFailed}, got[refs[fails]])
		wantEqual(t, "one that a person has ended", end{State: toolruntime.StateFailed}, got[refs[unknown]])
		d.wantAudit()
	})
}
