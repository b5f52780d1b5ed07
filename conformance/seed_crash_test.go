package conformance

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
)

var crashAndReconciliationTests = map[string]seedTest{
	"test_default_persistence_policy_does_not_trust_presented_role_snapshot": onEvery(presentedRolesAreNotTrusted),
	"test_current_principal_resolver_allows_admin_write_and_worker_delivery": onEvery(currentRolesAllowWriteAndDelivery),
	"test_reservation_rechecks_current_principal_before_intent_commit":       onEvery(reservationRechecksPrincipal),
	"test_worker_rechecks_current_principal_roles_before_delivery":           onEvery(workerRechecksPrincipal),
	"test_worker_uses_persisted_provider_context_for_approval_evidence":      onEvery(workerUsesPersistedContext),
	"test_worker_rechecks_current_authorization_before_downstream_effect":    onEvery(workerRechecksAuthorization),
	"test_worker_rechecks_current_business_state_before_downstream_effect":   onEvery(workerRechecksBusinessState),
	"test_worker_rejects_contract_revision_drift_before_effect":              onEvery(workerRejectsDrift),
	"test_explicit_query_reconciles_downstream_receipt":                      onEvery(queryReconciles),
	"test_receipt_ledger_and_outbox_reconciliation_roll_back_together":       onEvery(reconciliationRollsBack),
	"test_status_query_call_identity_cannot_be_reused_for_dispatch":          onEvery(queryIdentityIsNoDispatch),
	"test_worker_can_finish_pending_intent_then_status_query_reconciles":     onEvery(workerThenQuery),
	"test_status_query_rechecks_current_authorization":                       onEvery(queryRechecksAuthorization),
	"test_wrong_expected_digest_is_status_conflict":                          onEvery(wrongDigestConflicts),
	"test_changed_key_cannot_query_status":                                   onEvery(changedKeyCannotQuery),
	"test_status_query_cannot_cross_approved_provider_context":               onEvery(queryCannotCrossProviders),

	"test_intent_commit_returns_unknown_without_downstream_effect": onEvery(func(t *testing.T, d *seedDesk) {
		wantCode(t, toolresult.OutcomeUnknown, d.dispatch(drill.AfterIntentCommit))
		wantEqual(t, "operations", int64(1), d.counts().Operations)
		wantEqual(t, "receipts", int64(0), d.counts().DownstreamReceipts)
	}),

	"test_repeat_dispatch_does_not_implicitly_process_unknown": onEvery(func(t *testing.T, d *seedDesk) {
		first, second := d.dispatch(drill.AfterIntentCommit), d.repeat()
		wantEqual(t, "status_ref", d.ref(first), d.ref(second))
		wantCode(t, toolresult.OutcomeUnknown, second)
		wantEqual(t, "receipts", int64(0), d.counts().DownstreamReceipts)
	}),

	"test_status_query_without_receipt_stays_unknown": onEvery(func(t *testing.T, d *seedDesk) {
		ref := d.ref(d.dispatch(drill.AfterIntentCommit))
		d.setTime(start + 1)
		wantCode(t, toolresult.OutcomeUnknown, d.query(d.call, ref))
	}),

	"test_active_lease_blocks_second_worker": onEvery(func(t *testing.T, d *seedDesk) {
		ref := d.ref(d.dispatch(drill.AfterIntentCommit))
		if d.claim(ref, "worker-a", 10*time.Second) == nil {
			t.Error("a pending operation was not claimed")
		}
		d.setTime(start + 9)
		if d.claim(ref, "worker-b", 10*time.Second) != nil {
			t.Error("an operation was claimed under somebody else's lease")
		}
	}),

	"test_expired_lease_can_be_reclaimed": onEvery(func(t *testing.T, d *seedDesk) {
		ref := d.ref(d.dispatch(drill.AfterIntentCommit))
		wantEqual(t, "first claim", &held{Worker: "worker-a", Until: start + 10, Attempt: 1},
			d.claim(ref, "worker-a", 10*time.Second))
		d.setTime(start + 10)
		wantEqual(t, "second claim", &held{Worker: "worker-b", Until: start + 20, Attempt: 2},
			d.claim(ref, "worker-b", 10*time.Second))
	}),

	"test_crash_after_claim_is_recoverable_after_lease_expiry": onEvery(func(t *testing.T, d *seedDesk) {
		ref := d.ref(d.dispatch(drill.AfterIntentCommit))
		wantEqual(t, "outcome", toolruntime.CrashedAfterClaim, d.processTo(drill.AfterClaim, ref, "crashing-worker",
			&toolruntime.ProcessOptions{Lease: 5 * time.Second}))
		d.setTime(start + 5)
		wantEqual(t, "outcome", toolruntime.Succeeded, d.process(ref, "recovery-worker", nil))
	}),

	"test_downstream_commit_before_local_receipt_stays_unknown": onEvery(func(t *testing.T, d *seedDesk) {
		wantCode(t, toolresult.OutcomeUnknown, d.dispatch(drill.AfterDownstreamCommit))
		wantEqual(t, "downstream receipts", int64(1), d.counts().DownstreamReceipts)
		wantEqual(t, "local receipts", int64(0), d.counts().LocalReceipts)
		wantCode(t, toolresult.OutcomeUnknown, d.repeat())
	}),

	"test_dispatch_after_explicit_reconciliation_is_local_replay": onEvery(func(t *testing.T, d *seedDesk) {
		ref := d.ref(d.dispatch(drill.AfterDownstreamCommit))
		d.setTime(start + 1)
		d.query(d.call, ref)
		d.setTime(start)
		wantDelivery(t, toolresult.LocalReplay, d.repeat())
		wantEqual(t, "receipts", int64(1), d.counts().DownstreamReceipts)
	}),

	"test_unknown_status_ref_is_not_found": onEvery(func(t *testing.T, d *seedDesk) {
		wantCode(t, toolresult.NotFound, d.query(d.call, "status_"+zeros[:32]))
	}),
}

func workerUsesPersistedContext(t *testing.T, d *seedDesk) {
	d.call = viaAnthropic(named(d.call, "anthropic"))
	blocked := d.dispatch(drill.AfterIntentCommit)
	wantCode(t, toolresult.OutcomeUnknown, blocked)
	var got toolresult.Profile
	d.scan("SELECT first_provider, first_api_family, first_adapter_revision FROM operations",
		&got.Provider, &got.APIFamily, &got.AdapterRevision)
	wantEqual(t, "profile", toolresult.Profile{Provider: "anthropic", APIFamily: "messages",
		AdapterRevision: "anthropic-messages-v1"}, got)
	d.setTime(start + 1)
	wantEqual(t, "outcome", toolruntime.Succeeded, d.process(d.ref(blocked), "anthropic-worker", nil))
}

func workerRechecksAuthorization(t *testing.T, d *seedDesk) {
	allowed := map[string]bool{"ORDER-7": true}
	d = d.another(allowing(allowed))
	ref := d.ref(d.dispatch(drill.AfterIntentCommit))
	clear(allowed)
	d.setTime(start + 1)
	wantEqual(t, "outcome", toolruntime.AuthorizationDenied,
		d.process(ref, "worker-denied", &toolruntime.ProcessOptions{Lease: 5 * time.Second}))
	wantEqual(t, "receipts", int64(0), d.counts().DownstreamReceipts)
	allowed["ORDER-7"] = true
	d.setTime(start + 6)
	wantEqual(t, "outcome", toolruntime.Succeeded, d.process(ref, "worker-restored", nil))
	wantEqual(t, "receipts", int64(1), d.counts().DownstreamReceipts)
}

func workerRechecksBusinessState(t *testing.T, d *seedDesk) {
	ref := d.ref(d.dispatch(drill.AfterIntentCommit))
	d.orders.SetStatus("ORDER-7", "refunded")
	d.setTime(start + 1)
	wantEqual(t, "outcome", toolruntime.BusinessRuleDenied,
		d.process(ref, "worker-business-denied", &toolruntime.ProcessOptions{Lease: 5 * time.Second}))
	wantEqual(t, "receipts", int64(0), d.counts().DownstreamReceipts)
}

func workerRejectsDrift(t *testing.T, d *seedDesk) {
	ref := d.ref(d.dispatch(drill.AfterIntentCommit))
	drifted := d.orders.CreateRefundDraft()
	drifted.Revisions.Effect = "create-refund-draft-v2"
	d = d.another(withTools(d.orders.GetOrder(), drifted))
	d.setTime(start + 1)
	_, err := d.Process(context.Background(), ref, "worker-new-contract", nil)
	wantError(t, toolruntime.ErrContract, err)
	wantEqual(t, "receipts", int64(0), d.counts().DownstreamReceipts)
}

func queryReconciles(t *testing.T, d *seedDesk) {
	ref := d.ref(d.dispatch(drill.AfterDownstreamCommit))
	d.setTime(start + 1)
	pkg := d.query(d.call, ref)
	wantCode(t, toolresult.OK, pkg)
	wantDelivery(t, toolresult.ReceiptReconciled, pkg)
	wantEqual(t, "local receipts", int64(1), d.counts().LocalReceipts)
	var state string
	d.scan("SELECT state FROM outbox", &state)
	wantEqual(t, "outbox state", "delivered", state)
}

// reconciliationRollsBack refuses the user's write, the end of the event, and the
// write that comes last here: after that, all the others have to be taken back.
func reconciliationRollsBack(t *testing.T, d *seedDesk) {
	ref := d.ref(d.dispatch(drill.AfterDownstreamCommit))
	d.setTime(start + 1)
	for _, late := range []struct{ table, change, condition string }{
		{"outbox", "BEFORE UPDATE OF state ON outbox", "NEW.state = 'delivered'"},
		{"local_receipts", "AFTER INSERT ON local_receipts", "TRUE"},
	} {
		d.refuse(late.change, late.condition)
		_, err := d.tryQuery(d.call, ref, d.digest(d.call))
		wantError(t, toolruntime.ErrConstraint, err)
		wantEqual(t, "local receipts", int64(0), d.counts().LocalReceipts)
		var operation, event string
		var completed sql.NullInt64
		var attempts int
		d.scan("SELECT state, completed_at FROM operations", &operation, &completed)
		d.scan("SELECT state FROM outbox", &event)
		d.scan("SELECT count(*) FROM attempts", &attempts)
		wantEqual(t, "operation", "processing", operation)
		wantEqual(t, "completed_at", sql.NullInt64{}, completed)
		wantEqual(t, "event", "processing", event)
		wantEqual(t, "attempts that have ended", 0, attempts)
		d.refuseNoMore(late.table)
	}
	wantDelivery(t, toolresult.ReceiptReconciled, d.query(d.call, ref))
}

func queryIdentityIsNoDispatch(t *testing.T, d *seedDesk) {
	ref := d.ref(d.dispatch(drill.AfterIntentCommit))
	d.setTime(start + 1)
	wantCode(t, toolresult.OutcomeUnknown, d.query(d.call, ref))
	query := d.call.StatusQuery(ref)
	approvals := d.approved(query)
	d.setTime(start + 2)
	wantCode(t, toolresult.CallIDConflict, d.dispatchCall(query, approvals, alive))
}

func workerThenQuery(t *testing.T, d *seedDesk) {
	ref := d.ref(d.dispatch(drill.AfterIntentCommit))
	d.setTime(start + 1)
	wantEqual(t, "outcome", toolruntime.Succeeded, d.process(ref, "recovery-worker", nil))
	d.setTime(start + 2)
	wantDelivery(t, toolresult.ReceiptReconciled, d.query(d.call, ref))
}

func queryRechecksAuthorization(t *testing.T, d *seedDesk) {
	allowed := map[string]bool{"ORDER-7": true}
	d = d.another(allowing(allowed))
	ref := d.ref(d.dispatch(drill.AfterDownstreamCommit))
	clear(allowed)
	d.setTime(start + 1)
	wantCode(t, toolresult.NotFound, d.query(d.call, ref))
}

func wrongDigestConflicts(t *testing.T, d *seedDesk) {
	ref := d.ref(d.dispatch(drill.AfterDownstreamCommit))
	d.setTime(start + 1)
	pkg, err := d.tryQuery(d.call, ref, zeros)
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, toolresult.StatusConflict, pkg)
}

func changedKeyCannotQuery(t *testing.T, d *seedDesk) {
	ref := d.ref(d.dispatch(drill.AfterDownstreamCommit))
	changed := d.call
	changed.IdempotencyKey, changed.CallID, changed.ResponseID = "other-key", "other-call", "other-response"
	d.setTime(start + 1)
	wantCode(t, toolresult.StatusConflict, d.query(changed, ref))
}

func queryCannotCrossProviders(t *testing.T, d *seedDesk) {
	ref := d.ref(d.dispatch(drill.AfterDownstreamCommit))
	changed := viaAnthropic(d.call)
	changed.ResponseID = "response-status-anthropic"
	d.setTime(start + 1)
	wantCode(t, toolresult.StatusConflict, d.query(changed, ref))
}
