package conformance

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

// TestAdopted takes over the ledger of another implementation and goes on with
// it: what had succeeded is replayed, what was observed is reconciled, and what
// was left in between stays unknown. SQLite only: such ledgers are files.
func TestAdopted(t *testing.T) {
	ctx, d := context.Background(), adoptedDesk(t)
	if r := d.audit(); !r.Passed || r.Unregistered.Count != 0 {
		t.Errorf("audit: %+v", r)
	}
	got := map[string]int{}
	for _, o := range adoptedOperations(t, d) {
		replay, err := d.Dispatch(ctx, o.principal, o.call, nil)
		if err != nil {
			t.Fatal(err)
		}
		ref := d.bind(o.principal, o.call).StatusRef()
		asked, err := d.QueryStatus(ctx, o.principal, o.call.StatusQuery(ref), ref, nil)
		if err != nil {
			t.Fatal(err)
		}
		got[o.state+": "+string(replay.Code())+", then "+string(asked.Code())]++
		if asked.Code() == toolresult.OK && string(asked.ModelResult.Data) != o.result {
			t.Errorf("%s: the answer is not the receipt's", ref)
		}
	}
	want := map[string]int{
		"succeeded: OK, then OK":                            16,
		"observed: OUTCOME_UNKNOWN, then OK":                8,
		"processing: OUTCOME_UNKNOWN, then OUTCOME_UNKNOWN": 8,
		"pending: OUTCOME_UNKNOWN, then OUTCOME_UNKNOWN":    8,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r := d.audit(); !r.Passed || r.Counts.LocalReceipts != 24 {
		t.Errorf("audit afterwards: %+v", r)
	}
}

// TestAdoptedWork: operations from before effect kinds were kept go by their
// revisions. Workers that have others leave them, and hide no work of their own;
// those that have them do what the tool's effect kind allows.
func TestAdoptedWork(t *testing.T) {
	d := adoptedDesk(t)
	states := func() map[string]int {
		all := map[string]int{}
		for _, o := range adoptedOperations(t, d) {
			all[o.state]++
		}
		return all
	}
	before := states()
	drifted := d.orders.CreateRefundDraft()
	drifted.Revisions.Handler = "refund-draft-handler-v3"
	other := d.another(withTools(drifted))
	ref := other.submit(refundCall("own"))
	stop := other.work(toolruntime.WorkOptions{})
	other.await(ref)
	stop()
	before["succeeded"]++
	if diff := cmp.Diff(before, states()); diff != "" {
		t.Errorf("a worker of other revisions (-want +got):\n%s", diff)
	}
	d.work(toolruntime.WorkOptions{MaxAge: 100 * day * time.Second})
	for _, o := range adoptedOperations(t, d) {
		if o.call.IdempotencyKey != "own" {
			d.await(d.bind(o.principal, o.call).StatusRef())
		}
	}
	if diff := cmp.Diff(map[string]int{"succeeded": 41}, states()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r := d.audit(); !r.Passed {
		t.Errorf("audit: %q", r.SemanticErrors)
	}
}

// adoptedDesk is a desk over the ledger of another implementation.
func adoptedDesk(t *testing.T) *desk {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "reference-v3.sqlite3"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "adopted.sqlite3")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlitestore.Migrate(context.Background(), path, nil); err != nil {
		t.Fatal(err)
	}
	e := engines[0]
	e.create = func(testing.TB) string { return path }
	d := newDesk(t, e)
	d.setTime(start + 1_000_000)
	return d
}

type adopted struct {
	principal     toolresult.Principal
	call          toolresult.Call
	state, result string
}

func adoptedOperations(t *testing.T, d *desk) (all []adopted) {
	t.Helper()
	rows, err := d.engine.plain(t, d.address).Query(`SELECT o.tenant_id, o.subject_id, o.tool_name, o.arguments_json,
			o.first_provider, o.first_api_family, o.first_response_id, o.first_call_id, o.first_operation_id,
			o.idempotency_key, o.first_adapter_revision,
			CASE WHEN o.state = 'processing' AND r.downstream_pk IS NOT NULL THEN 'observed' ELSE o.state END, COALESCE(r.result_json, '')
		FROM operations o LEFT JOIN downstream_receipts r ON r.tenant_id = o.tenant_id AND r.subject_id = o.subject_id
			AND r.tool_name = o.tool_name AND r.idempotency_key = o.idempotency_key`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var o adopted
		var arguments string
		c := &o.call
		if err := rows.Scan(&o.principal.TenantID, &o.principal.SubjectID, &c.Name, &arguments, &c.Provider, &c.APIFamily,
			&c.ResponseID, &c.CallID, &c.OperationID, &c.IdempotencyKey, &c.AdapterRevision, &o.state, &o.result); err != nil {
			t.Fatal(err)
		}
		c.Arguments = []byte(arguments)
		all = append(all, o)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
