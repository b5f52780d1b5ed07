package conformance

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
)

const seedWorkers = 8

var concurrentConnectionTests = map[string]seedTest{
	"test_concurrent_same_intent_creates_one_ledger_and_outbox": onEvery(func(t *testing.T, d *seedDesk) {
		calls := slices.Repeat([]toolresult.Call{d.call}, seedWorkers)
		codes := d.reserveAtOnce(calls, 1)
		wantEqual(t, "codes", slices.Repeat([]toolresult.Code{toolresult.OutcomeUnknown}, seedWorkers), codes)
		c := d.counts()
		wantEqual(t, "operations", int64(1), c.Operations)
		wantEqual(t, "events", int64(1), c.Outbox)
		wantEqual(t, "receipts", int64(0), c.DownstreamReceipts)
	}),

	"test_concurrent_different_intents_yield_one_conflict": onEvery(func(t *testing.T, d *seedDesk) {
		codes := d.reserveAtOnce([]toolresult.Call{
			identified(seedCall("ORDER-7", "duplicate"), "call-a", "response-a"),
			identified(seedCall("ORDER-7", "damaged"), "call-b", "response-b"),
		}, 0)
		slices.Sort(codes)
		wantEqual(t, "codes", []toolresult.Code{toolresult.IdempotencyConflict, toolresult.OutcomeUnknown}, codes)
		wantEqual(t, "operations", int64(1), d.counts().Operations)
	}),

	"test_concurrent_workers_commit_one_downstream_effect": onEvery(func(t *testing.T, d *seedDesk) {
		ref := d.ref(d.dispatch(drill.AfterIntentCommit))
		desks := d.others(seedWorkers)
		outcomes := atOnce(t, seedWorkers, func(i int) (toolruntime.Outcome, error) {
			desks[i].setTime(start + 1)
			return desks[i].Process(context.Background(), ref, fmt.Sprintf("worker-%d", i), nil)
		})
		if !slices.Contains(outcomes, toolruntime.Succeeded) {
			t.Errorf("outcomes: %q, want one that is %q", outcomes, toolruntime.Succeeded)
		}
		c := d.counts()
		wantEqual(t, "downstream receipts", int64(1), c.DownstreamReceipts)
		wantEqual(t, "local receipts", int64(1), c.LocalReceipts)
	}),

	"test_two_connections_observe_persisted_replay": onEvery(func(t *testing.T, d *seedDesk) {
		first, second := d.another(), d.another()
		wantDelivery(t, toolresult.Fresh, first.dispatch(alive))
		second.setTime(start + 1)
		wantDelivery(t, toolresult.LocalReplay, second.repeat())
		wantEqual(t, "receipts", int64(1), second.counts().DownstreamReceipts)
	}),
}

// others are n further runtimes, each over a store of its own.
func (d *seedDesk) others(n int) []*seedDesk {
	d.t.Helper()
	desks := make([]*seedDesk, n)
	for i := range desks {
		desks[i] = d.another()
	}
	return desks
}

// reserveAtOnce dispatches the calls at once, each from a runtime of its own and
// so many seconds apart, up to the commit of the intent.
func (d *seedDesk) reserveAtOnce(calls []toolresult.Call, apart int64) []toolresult.Code {
	d.t.Helper()
	desks := d.others(len(calls))
	approvals := make([][]toolresult.Approval, len(calls))
	for i, c := range calls {
		approvals[i] = d.approved(c)
	}
	return atOnce(d.t, len(calls), func(i int) (toolresult.Code, error) {
		desks[i].setTime(start + apart*int64(i))
		pkg, err := desks[i].Dispatch(dying(drill.AfterIntentCommit), d.actor, calls[i], &toolruntime.DispatchOptions{Approvals: approvals[i]})
		if err != nil {
			return "", err
		}
		return pkg.Code(), nil
	})
}
