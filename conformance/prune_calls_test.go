package conformance

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
)

// refuse sends a call without an approval: nothing but its identity stays.
func (d *desk) refuse(c toolresult.Call) {
	d.t.Helper()
	pkg, err := d.Dispatch(context.Background(), user("user-1"), c, nil)
	if err != nil || pkg.Code() != toolresult.ApprovalRequired {
		d.t.Fatalf("%v, %v", pkg, err)
	}
}

// identityOf is a call under another identity.
func identityOf(c toolresult.Call, id string) toolresult.Call {
	c.CallID, c.ResponseID = "call-"+id, "response-"+id
	return c
}

// TestPruneCalls: a call identity goes when it is old enough and its operation is
// not there, and not before. What it is bound to holds until then.
func TestPruneCalls(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		var mu sync.Mutex
		d := newDesk(t, e, withTools(countingNote("note", &mu, map[string]int{}), countingNote("memo", &mu, map[string]int{})))
		p := user("user-1")
		d.refuse(noteCall("refused"))
		d.send(p, noteCall("gone"), alive)
		d.send(p, identityOf(noteCall("gone"), "repetition"), alive)
		d.send(p, noteCall("open"), drill.AfterIntentCommit)
		d.send(p, identityOf(noteCall("open"), "open-again"), alive)
		d.send(p, noteCall("newest"), alive)

		d.setTime(start + day - 1)
		d.refuse(noteCall("refused-late"))
		d.send(p, identityOf(noteCall("gone"), "late"), alive)
		if r := d.pruneAll(toolruntime.PruneOptions{}); r.Pruned != 0 || r.CallIdentities != 0 {
			t.Errorf("too early: %+v", r)
		}
		d.setTime(start + day)
		for _, o := range []toolruntime.PruneOptions{{Tool: "memo"}, {States: []toolruntime.State{"failed"}}} {
			if r := d.pruneAll(o); r.CallIdentities != 0 {
				t.Errorf("restricted to %+v: %+v", o, r)
			}
		}
		before := d.counts()
		if r := d.pruneAll(toolruntime.PruneOptions{DryRun: true}); r.Pruned != 1 || r.CallIdentities != 1 || d.counts() != before {
			t.Errorf("dry run: %+v", r)
		}
		looked, rows := int64(0), int64(0)
		r := d.pruneAll(toolruntime.PruneOptions{Progress: func(done, total int64) { looked, rows = done, total }})
		if r.Pruned != 1 || r.CallIdentities != 3 {
			t.Errorf("%+v", r)
		}
		if all := before.Operations + before.CallBindings; looked != all || rows != all {
			t.Errorf("progress ended at %d of %d, and there are %d", looked, rows, all)
		}
		d.wantAudit()

		// A late one is bound to its call, an old one to nothing any more.
		other := callOf("note", "other", `{"text":"other"}`)
		wantEqual(t, "late", toolresult.CallIDConflict, d.send(p, identityOf(other, "late"), alive).Code())
		wantEqual(t, "refused late", toolresult.CallIDConflict, d.send(p, identityOf(other, "refused-late"), alive).Code())
		wantEqual(t, "of an open one", toolresult.CallIDConflict, d.send(p, identityOf(other, "open-again"), alive).Code())
		wantEqual(t, "old", toolresult.OK, d.send(p, identityOf(other, "refused"), alive).Code())

		d.setTime(start + 2*day)
		r = d.pruneAll(toolruntime.PruneOptions{Limit: 1})
		wantEqual(t, "call identities at the limit", int64(1), r.CallIdentities)
		d.pruneAll(toolruntime.PruneOptions{})
		d.wantAudit()
		wantEqual(t, "pruned again", int64(0), d.pruneAll(toolruntime.PruneOptions{}).CallIdentities)
	})
}

// TestPruneDamagedCall: an identity that was changed past the runtime stays, for
// the audit to find.
func TestPruneDamagedCall(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		d := newDesk(t, e)
		d.refuse(refundCall("one"))
		d.refuse(refundCall("two"))
		d.mustSQL("UPDATE call_bindings SET created_at = created_at - 1 WHERE call_id = 'call-one'")
		d.setTime(start + day)
		wantEqual(t, "call identities", int64(1), d.pruneAll(toolruntime.PruneOptions{}).CallIdentities)
		if r := d.audit(); r.Passed {
			t.Error("the audit finds nothing")
		}
	})
}

// TestPruneWhileApproving: identities of refused calls are pruned while the very
// same calls come back approved. Every operation keeps its first call's identity.
func TestPruneWhileApproving(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	forEachEngine(t, func(t *testing.T, e engine) {
		const keys, rounds = 40, 5
		var mu sync.Mutex
		d := newDesk(t, e, withTools(countingNote("note", &mu, map[string]int{})))
		p := user("user-1")
		for round := range rounds {
			var calls []toolresult.Call
			for i := range keys {
				calls = append(calls, noteCall(fmt.Sprintf("key-%d-%d", round, i)))
				d.refuse(calls[i])
			}
			d.setTime(d.time() + day)
			var all sync.WaitGroup
			for range 2 {
				all.Go(func() { d.pruneAll(toolruntime.PruneOptions{BatchSize: 3}) })
			}
			for caller := range 4 {
				all.Go(func() {
					for i := caller; i < keys; i += 4 {
						wantEqual(t, "code", toolresult.OK, d.send(p, calls[i], alive).Code())
					}
				})
			}
			all.Wait()
			d.wantAudit()
		}
	})
}
