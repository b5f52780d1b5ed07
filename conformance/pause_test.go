package conformance

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// carryOut dispatches an approved call.
func (d *desk) carryOut(p toolresult.Principal, c toolresult.Call) *toolresult.Package {
	d.t.Helper()
	pkg, err := d.Dispatch(context.Background(), p, c, &toolruntime.DispatchOptions{Approvals: d.approval(p, c, "valid")})
	if err != nil {
		d.t.Fatal(err)
	}
	return pkg
}

// TestPause: of a paused tool nothing begins, whoever wants it and however; what has
// ended, and what is only asked, is answered as ever, and other tools go on.
func TestPause(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		ctx, p, runs := context.Background(), user("user-1"), map[string]int{}
		count := func(_ context.Context, e toolruntime.Effect, a noteArgs) (toolruntime.Receipt[note], error) {
			runs[e.Tool]++
			return noteReceipt(e, a.Text), nil
		}
		read := noteTool("get_note", toolruntime.Once, count)
		read.Risk = toolruntime.Read
		d := newDesk(t, e, withTools(noteTool("note", toolruntime.Once, count), noteTool("other", toolruntime.Once, count), read))
		note := func(tool, key string) toolresult.Call { return callOf(tool, key, `{"text":"hello"}`) }
		ended, fresh, waiting, reading := note("note", "ended"), note("note", "fresh"), note("note", "waiting"), note("get_note", "reading")
		want := func(what string, c toolresult.Call, pkg *toolresult.Package, code toolresult.Code) {
			t.Helper()
			wantEqual(t, what, code, pkg.Code())
			spec, _ := d.Spec(c.Name)
			if problems := toolresult.Validate(d.bind(p, c), spec, pkg); len(problems) > 0 {
				t.Errorf("%s: %v", what, problems)
			}
		}
		want("before", ended, d.carryOut(p, ended), toolresult.OK)
		boss := d.another(withTools())
		for _, tool := range []string{"note", "get_note"} {
			if err := boss.Pause(ctx, tool, "dana", "the bank has called"); err != nil {
				t.Fatal(err)
			}
		}
		before := d.counts()
		for range 2 {
			want("a new call", fresh, d.carryOut(p, fresh), toolresult.ToolPaused)
			want("a read", reading, d.carryOut(p, reading), toolresult.ToolPaused)
		}
		before.CallBindings++ // it stays bound, whatever the answer is
		wantEqual(t, "rows", before, d.counts())
		want("what has ended", ended, d.carryOut(p, ended), toolresult.OK)
		want("another tool", note("other", "o"), d.carryOut(p, note("other", "o")), toolresult.OK)
		unapproved := note("note", "unapproved")
		pkg, err := d.Dispatch(ctx, p, unapproved, nil)
		if err != nil {
			t.Fatal(err)
		}
		want("without approval", unapproved, pkg, toolresult.ApprovalRequired)

		ref := d.bind(p, waiting).StatusRef()
		if pkg, err = d.Submit(ctx, p, waiting, d.approval(p, waiting, "valid")...); err != nil {
			t.Fatal(err)
		}
		want("submitted", waiting, pkg, toolresult.Accepted)
		want("and dispatched", waiting, d.carryOut(p, waiting), toolresult.OutcomeUnknown)
		if pkg, err = d.Status(ctx, p, waiting); err != nil {
			t.Fatal(err)
		}
		want("its status", waiting, pkg, toolresult.Accepted)
		if outcome, err := d.Process(ctx, ref, "worker", nil); outcome != toolruntime.NotClaimed || !errors.Is(err, toolruntime.ErrPaused) {
			t.Errorf("process: %q, %v", outcome, err)
		}
		if outcome, err := d.Process(ctx, d.bind(p, ended).StatusRef(), "worker", nil); outcome != toolruntime.Succeeded || err != nil {
			t.Errorf("process of what has ended: %q, %v", outcome, err)
		}
		if diff := cmp.Diff(map[string]int{"note": 1, "other": 1}, runs); diff != "" {
			t.Errorf("runs (-want +got):\n%s", diff)
		}
		d.wantAudit()

		for _, tool := range []string{"note", "get_note"} {
			if err := boss.Resume(ctx, tool, "erin", "the bank is back"); err != nil {
				t.Fatal(err)
			}
		}
		want("the same call afterwards", fresh, d.carryOut(p, fresh), toolresult.OK)
		want("the read afterwards", reading, d.carryOut(p, reading), toolresult.OK)
		if outcome, err := d.Process(ctx, ref, "worker", nil); outcome != toolruntime.Succeeded || err != nil {
			t.Errorf("process afterwards: %q, %v", outcome, err)
		}
		d.wantAudit()
	})
}

// TestPauses: who has paused a tool and resumed it, when and why, is kept; repetitions
// add nothing, and a clock that was put back makes no pause end before it began.
func TestPauses(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		ctx, d := context.Background(), newDesk(t, e)
		at := func(s int64) time.Time { return time.Unix(start+s, 0) }
		var want []toolruntime.Pause
		do := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		do(d.Resume(ctx, "b", "erin", "was it paused?"))
		for i := range int64(3) {
			d.setTime(start + 10*i)
			do(d.Pause(ctx, "b", "dana", "why"))
			do(d.Pause(ctx, "b", "eve", "another"))
			d.setTime(start + 10*i + 5 - 100*(i/2))
			do(d.Resume(ctx, "b", "erin", "it is over"))
			do(d.Resume(ctx, "b", "eve", "once more"))
			want = append(want, toolruntime.Pause{Tool: "b", Actor: "dana", Reason: "why", At: at(10 * i),
				ResumedBy: "erin", ResumeReason: "it is over", ResumedAt: at(10*i + 5 - 5*(i/2))})
		}
		d.setTime(start)
		do(d.Pause(ctx, "a\nname", "dana", "now"))
		holds := toolruntime.Pause{Tool: "a\nname", Actor: "dana", Reason: "now", At: at(0)}
		list := func(tool string) (all []toolruntime.Pause) {
			for p, err := range d.Pauses(ctx, tool) {
				do(err)
				all = append(all, p)
			}
			return all
		}
		for tool, want := range map[string][]toolruntime.Pause{"": append([]toolruntime.Pause{holds}, want...), "b": want, "a\nname": {holds}, "c": nil} {
			if diff := cmp.Diff(want, list(tool)); diff != "" {
				t.Errorf("%q (-want +got):\n%s", tool, diff)
			}
		}
		if !holds.Holds() || want[0].Holds() {
			t.Error("which of them holds?")
		}
		for range d.Pauses(ctx, "") {
			break // a list may be left
		}
		d.wantAudit()
	})
}

// TestPauseRefuses: what names nobody or nothing changes nothing.
func TestPauseRefuses(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		ctx, d := context.Background(), newDesk(t, e)
		for _, test := range []struct{ name, tool, actor, reason, field string }{
			{"no tool", " ", "dana", "why", "tool"},
			{"nobody", "note", "", "why", "actor"},
			{"no reason", "note", "dana", "\t", "reason"},
		} {
			for what, err := range map[string]error{"pause": d.Pause(ctx, test.tool, test.actor, test.reason), "resume": d.Resume(ctx, test.tool, test.actor, test.reason)} {
				var input *toolresult.InputError
				if !errors.As(err, &input) || input.Field != test.field {
					t.Errorf("%s, %s: %v", test.name, what, err)
				}
			}
		}
		for _, err := range d.Pauses(ctx, " ") {
			if !errors.Is(err, toolruntime.ErrInvalidInput) {
				t.Errorf("the pauses of no tool: %v", err)
			}
		}
		for range d.Pauses(ctx, "") {
			t.Error("something was paused")
		}
	})
}

// TestPausesPages lists more pauses than fit on a page, and audits them.
func TestPausesPages(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	ctx, d := context.Background(), newDesk(t, engines[0])
	const n = 501
	for range n {
		if err := errors.Join(d.Pause(ctx, "note", "dana", "why"), d.Resume(ctx, "note", "erin", "over")); err != nil {
			t.Fatal(err)
		}
	}
	for tool, want := range map[string]int{"": n, "note": n, "not": 0} {
		got := 0
		for _, err := range d.Pauses(ctx, tool) {
			if err != nil {
				t.Fatal(err)
			}
			got++
		}
		wantEqual(t, "pauses of "+tool, want, got)
	}
	d.wantAudit()
	d.mustSQL("DELETE FROM past_pauses WHERE seq = 500")
	d.mustSQL("UPDATE runtime_metadata SET metadata_value = '500' WHERE metadata_key = 'pauses'")
	wantEqual(t, "one of them missing", []string{"AUDIT_PAUSE: a pause that has ended is missing"}, d.audit().SemanticErrors)
}
