package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

const day = 24 * 60 * 60

// pruneAll prunes what ended a day ago.
func (d *desk) pruneAll(o toolruntime.PruneOptions) toolruntime.PruneReport {
	d.t.Helper()
	o.OlderThan = 24 * time.Hour
	r, err := d.Prune(context.Background(), &o)
	if err != nil {
		d.t.Fatal(err)
	}
	return r
}

// wantAudit holds the ledger against the audit.
func (d *desk) wantAudit() {
	d.t.Helper()
	if r := d.audit(); !r.Passed {
		d.t.Errorf("audit: %q %q", r.SemanticErrors, r.ForeignKeyViolations)
	}
}

// countingNote is a write that counts its effects by key.
func countingNote(name string, mu *sync.Mutex, effects map[string]int) toolruntime.Registration {
	return noteTool(name, toolruntime.Idempotent, func(_ context.Context, e toolruntime.Effect, a noteArgs) (toolruntime.Receipt[note], error) {
		mu.Lock()
		defer mu.Unlock()
		effects[e.IdempotencyKey]++
		return noteReceipt(e, a.Text), nil
	})
}

func noteCall(key string) toolresult.Call { return callOf("note", key, `{"text":"hello"}`) }

// TestPrune: what has ended goes with all that belongs to it, everything else
// stays, and the key of what has gone never causes another effect.
func TestPrune(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		d := mixedLedger(t, e)
		p := user("user-1")
		gone := refundCall("secret-none-0")
		ref := d.bind(p, gone).StatusRef()
		before := d.counts()
		if r := d.pruneAll(toolruntime.PruneOptions{}); r.Pruned != 0 {
			t.Errorf("pruned what has just ended: %+v", r)
		}
		d.setTime(d.time() + day)
		if r := d.pruneAll(toolruntime.PruneOptions{DryRun: true}); r.Pruned != 2 || d.counts() != before {
			t.Errorf("dry run: %+v", r)
		}
		if r := d.pruneAll(toolruntime.PruneOptions{States: []toolruntime.State{"failed"}}); r.Pruned != 0 {
			t.Errorf("no operation has failed: %+v", r)
		}
		if r := d.pruneAll(toolruntime.PruneOptions{Tool: "lost_note"}); r.Pruned != 0 {
			t.Errorf("another tool: %+v", r)
		}
		if r := d.pruneAll(toolruntime.PruneOptions{}); r.Pruned != 2 || r.Batches != 1 || r.CallIdentities != 4 || len(r.Damaged) != 0 {
			t.Errorf("%+v", r)
		}
		after := d.counts()
		want := before
		want.CallBindings -= 4 // two calls, a status query, and a call that was refused
		want.Operations -= 2
		want.Outbox -= 2
		want.DownstreamReceipts -= 2
		want.LocalReceipts -= 2
		wantEqual(t, "counts", want, after)
		d.wantAudit()

		// Under the same and under new call identities, with and without approval,
		// with the same and with another request.
		other := callOf("create_refund_draft", "secret-none-0", `{"order_ref":"ORDER-7","reason":"damaged"}`)
		other.CallID, other.ResponseID = "call-other", "response-other"
		for range 2 {
			for _, c := range []toolresult.Call{gone, other} {
				wantEqual(t, "code", toolresult.IdempotencyKeyExpired, d.send(p, c, alive).Code())
				pkg, err := d.Dispatch(context.Background(), p, c, nil)
				if err != nil || pkg.Code() != toolresult.IdempotencyKeyExpired {
					t.Errorf("without approval: %v, %v", pkg, err)
				}
				if problems := toolresult.Validate(d.bind(p, c), d.mustSpec(c.Name), pkg); len(problems) > 0 {
					t.Errorf("the package: %v", problems)
				}
			}
		}
		wantEqual(t, "operations", after.Operations, d.counts().Operations)
		// The same key of another tool is another one.
		elsewhere := callOf("lost_note", "secret-none-0", `{"text":"hello"}`)
		elsewhere.CallID = "call-elsewhere"
		wantEqual(t, "code", toolresult.OutcomeUnknown, d.send(p, elsewhere, alive).Code())
		d.wantPruned(p, gone, ref)
		d.wantAudit()
	})
}

func (d *desk) mustSpec(name string) *toolresult.Spec {
	d.t.Helper()
	spec, ok := d.Spec(name)
	if !ok {
		d.t.Fatal("no such tool")
	}
	return spec
}

// wantPruned asks in every other way for an operation that is no more.
func (d *desk) wantPruned(p toolresult.Principal, c toolresult.Call, ref string) {
	d.t.Helper()
	pkg, err := d.QueryStatus(context.Background(), p, c.StatusQuery(ref), ref, nil)
	if err != nil || pkg.Code() != toolresult.NotFound {
		d.t.Errorf("status query: %v, %v", pkg, err)
	}
	h, err := d.History(context.Background(), ref)
	if err != nil {
		d.t.Fatal(err)
	}
	var what []string
	for _, m := range h.Moments {
		what = append(what, string(m.What))
	}
	wantEqual(d.t, "history", "accepted succeeded pruned", strings.Join(what, " "))
	if err := d.Wait(context.Background(), ref); !errors.Is(err, toolruntime.ErrInvalidInput) {
		d.t.Errorf("wait: %v", err)
	}
}

// TestPruneOptions: what makes no sense is refused.
func TestPruneOptions(t *testing.T) {
	d := newDesk(t, engines[0])
	for _, o := range []toolruntime.PruneOptions{
		{}, {OlderThan: time.Minute}, {OlderThan: time.Hour, Limit: -1}, {OlderThan: time.Hour, BatchSize: -1},
		{OlderThan: time.Hour, BatchSize: 100_000}, {OlderThan: time.Hour, States: []toolruntime.State{"in_review"}},
	} {
		if _, err := d.Prune(context.Background(), &o); !errors.Is(err, toolruntime.ErrInvalidInput) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestPruneLimits: batches and the limit are kept, the oldest goes first, and the
// newest operation stays, so that its number is never given again.
func TestPruneLimits(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		d := newDesk(t, e)
		p := user("user-1")
		for i := range 8 {
			d.send(p, refundCall(fmt.Sprint("key-", i)), alive)
		}
		d.setTime(d.time() + day)
		if r := d.pruneAll(toolruntime.PruneOptions{Limit: 3, BatchSize: 2}); r.Pruned != 3 || r.Batches != 2 {
			t.Errorf("%+v", r)
		}
		wantEqual(t, "the third", toolresult.IdempotencyKeyExpired, d.send(p, refundCall("key-2"), alive).Code())
		wantEqual(t, "the fourth", toolresult.OK, d.send(p, refundCall("key-3"), alive).Code())
		if r := d.pruneAll(toolruntime.PruneOptions{BatchSize: 2}); r.Pruned != 4 {
			t.Errorf("%+v", r)
		}
		wantEqual(t, "operations", int64(1), d.counts().Operations)
		var newest, next int64
		d.scan("SELECT MAX(operation_pk) FROM operations", &newest)
		d.send(p, refundCall("key-8"), alive)
		d.scan("SELECT MAX(operation_pk) FROM operations", &next)
		if next <= newest {
			t.Errorf("operation %d came after %d", next, newest)
		}
		d.wantAudit()
	})
}

// TestPruneReviewed: an operation that a person has ended goes with its attempts and
// the rejected answer, and the decision stays with the tombstone; one that still
// waits stays.
func TestPruneReviewed(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		d := mixedLedger(t, e)
		p := user("user-1")
		ref := d.bind(p, callOf("bad_note", "secret-bad-1", `{"text":"hello"}`)).StatusRef()
		if err := d.Resolve(context.Background(), toolruntime.Resolution{StatusRef: ref, Decision: toolruntime.Abandoned, Actor: "dana", Reason: "long ago"}); err != nil {
			t.Fatal(err)
		}
		d.setTime(d.time() + day)
		if r := d.pruneAll(toolruntime.PruneOptions{States: []toolruntime.State{"failed"}}); r.Pruned != 1 {
			t.Errorf("%+v", r)
		}
		for table, want := range map[string]int64{"resolutions": 0, "rejected_receipts": 1, "tombstones": 1, "tombstone_resolutions": 1} {
			var n int64
			d.scan("SELECT COUNT(*) FROM "+table, &n)
			wantEqual(t, table, want, n)
		}
		h, err := d.History(context.Background(), ref)
		if err != nil {
			t.Fatal(err)
		}
		decided := utc(d.time() - day)
		wantEqual(t, "history", []toolruntime.Moment{
			{At: h.Moments[0].At, What: "accepted"},
			{At: decided, What: "resolved", Who: "dana", How: "abandoned", Why: "long ago"},
			{At: decided, What: "failed"},
			{At: utc(d.time()), What: "pruned"},
		}, h.Moments)
		d.wantAudit()
	})
}

// TestPruneDamaged: what was changed past the runtime gets no tombstone that
// would make it true, and keeps nothing else from being pruned.
func TestPruneDamaged(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		d := newDesk(t, e)
		p := user("user-1")
		for i := range 5 {
			d.send(p, refundCall(fmt.Sprint("key-", i)), alive)
		}
		d.mustSQL(`UPDATE local_receipts SET result_json = '{}' WHERE operation_pk = 2`)
		d.mustSQL(`UPDATE operations SET approver_id = 'mallory' WHERE operation_pk = 3`)
		d.setTime(d.time() + day)
		r := d.pruneAll(toolruntime.PruneOptions{})
		want := []string{d.bind(p, refundCall("key-1")).StatusRef(), d.bind(p, refundCall("key-2")).StatusRef()}
		if r.Pruned != 2 || !slices.Equal(r.Damaged, want) {
			t.Errorf("%+v, want %q damaged", r, want)
		}
		wantEqual(t, "operations", int64(3), d.counts().Operations)
	})
}

// TestPruneWhileDispatching: replays, new calls and two prunings at once. Nobody
// sees half of an operation, and no key has a second effect.
func TestPruneWhileDispatching(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	forEachEngine(t, func(t *testing.T, e engine) {
		const keys, callers, rounds = 60, 4, 3
		var mu sync.Mutex
		effects := map[string]int{}
		d := newDesk(t, e, withTools(countingNote("note", &mu, effects)))
		p := user("user-1")
		for i := range keys {
			d.send(p, noteCall(fmt.Sprint("old-", i)), alive)
		}
		d.setTime(d.time() + day)
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() { d.pruneAll(toolruntime.PruneOptions{BatchSize: 7}) })
		}
		for caller := range callers {
			all.Go(func() {
				for n := range rounds * keys {
					c := noteCall(fmt.Sprint("old-", (n*7+caller*15)%keys))
					c.CallID = fmt.Sprintf("call-%d-%d", caller, n)
					switch code := d.send(p, c, alive).Code(); code {
					case toolresult.OK, toolresult.IdempotencyKeyExpired:
					default:
						t.Errorf("a repetition: %s", code)
					}
					if n%4 == 0 {
						wantEqual(t, "a new call", toolresult.OK, d.send(p, noteCall(fmt.Sprintf("new-%d-%d", caller, n)), alive).Code())
					}
				}
			})
		}
		all.Wait()
		for key, n := range effects {
			if n != 1 {
				t.Errorf("%s had %d effects", key, n)
			}
		}
		var tombstones int64
		d.scan("SELECT COUNT(*) FROM tombstones", &tombstones)
		// The newest of the old ones is no longer the newest when the second
		// pruning comes to it, or is.
		if tombstones < keys-1 {
			t.Errorf("%d tombstones", tombstones)
		}
		d.wantAudit()
	})
}
