package conformance

import (
	"bytes"
	"context"
	"regexp"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
)

// approvalSeconds is how long the approvals of these tests are valid.
const approvalSeconds = 60

var idempotencyDispatchTests = map[string]seedTest{
	"test_time_and_lease_overflow_fail_before_reservation": onEvery(func(t *testing.T, d *seedDesk) {
		approvals := d.approved(d.call)
		for _, overflow := range []struct {
			now, lease int64
			text       string
		}{
			{contract.MaxTime + 1, 0, "UTC datetime"},
			{contract.MaxTime, 1, `now \+ lease_seconds`},
		} {
			d.setTime(overflow.now)
			_, err := d.Dispatch(context.Background(), d.actor, d.call, &toolruntime.DispatchOptions{
				Approvals: approvals, Lease: time.Duration(overflow.lease) * time.Second})
			wantError(t, toolruntime.ErrInvalidInput, err)
			if err != nil && !regexp.MustCompile(overflow.text).MatchString(err.Error()) {
				t.Errorf("error %q does not match %q", err, overflow.text)
			}
		}
		wantEqual(t, "operations", int64(0), d.counts().Operations)
		d.setTime(contract.MaxTime - max(int64(toolruntime.DefaultLease/time.Second), approvalSeconds))
		wantCode(t, toolresult.OK, d.dispatch(alive))
	}),

	"test_first_dispatch_is_fresh_and_durable": onEvery(func(t *testing.T, d *seedDesk) {
		pkg := d.dispatch(alive)
		wantCode(t, toolresult.OK, pkg)
		wantDelivery(t, toolresult.Fresh, pkg)
		d.reopen()
		wantEqual(t, "receipts", int64(1), d.counts().DownstreamReceipts)
	}),

	"test_same_key_same_intent_replays_without_second_effect": onEvery(func(t *testing.T, d *seedDesk) {
		wantCode(t, toolresult.OK, d.dispatch(alive))
		wantDelivery(t, toolresult.LocalReplay, d.repeat())
		wantEqual(t, "receipts", int64(1), d.counts().DownstreamReceipts)
	}),

	"test_same_key_different_intent_conflicts": onEvery(func(t *testing.T, d *seedDesk) {
		d.dispatch(drill.AfterIntentCommit)
		changed := identified(seedCall("ORDER-7", "damaged"), "changed", "changed-response")
		wantCode(t, toolresult.IdempotencyConflict, d.dispatchCall(changed, d.approved(changed), alive))
		wantEqual(t, "receipts", int64(0), d.counts().DownstreamReceipts)
	}),

	"test_different_key_same_intent_is_a_new_operation": onEvery(func(t *testing.T, d *seedDesk) {
		wantCode(t, toolresult.OK, d.dispatch(alive))
		second := keyed(identified(d.call, "call-2", "response-2"), "persistent-key-2")
		wantCode(t, toolresult.OK, d.dispatchCall(second, d.approved(second), alive))
		wantEqual(t, "receipts", int64(2), d.counts().DownstreamReceipts)
	}),

	"test_missing_key_is_rejected_before_reservation": onEvery(func(t *testing.T, d *seedDesk) {
		pkg := d.dispatchCall(keyed(d.call, ""), nil, alive)
		wantCode(t, toolresult.IdempotencyKeyRequired, pkg)
		wantEqual(t, "operations", int64(0), d.counts().Operations)
	}),

	"test_missing_approval_does_not_create_intent": onEvery(func(t *testing.T, d *seedDesk) {
		wantCode(t, toolresult.ApprovalRequired, d.repeat())
		wantEqual(t, "operations", int64(0), d.counts().Operations)
	}),

	"test_expired_approval_does_not_create_intent": onEvery(func(t *testing.T, d *seedDesk) {
		pkg := d.dispatchCall(d.call, d.approval(d.actor, d.call, "expired"), alive)
		wantCode(t, toolresult.ApprovalInvalid, pkg)
		wantEqual(t, "operations", int64(0), d.counts().Operations)
	}),

	"test_approval_above_portable_time_boundary_does_not_create_intent": onEvery(func(t *testing.T, d *seedDesk) {
		approvals := d.approved(d.call)
		approvals[0].ExpiresAt = contract.MaxTime + 1
		wantCode(t, toolresult.ApprovalInvalid, d.dispatchCall(d.call, approvals, alive))
		wantEqual(t, "operations", int64(0), d.counts().Operations)
		wantEqual(t, "events", int64(0), d.counts().Outbox)
	}),

	"test_persisted_approval_records_bound_approver_identity": onEvery(func(t *testing.T, d *seedDesk) {
		d.dispatch(alive)
		var approver, digest, provider, family, revision string
		d.scan("SELECT approver_id, approval_digest, first_provider, first_api_family, first_adapter_revision FROM operations",
			&approver, &digest, &provider, &family, &revision)
		wantEqual(t, "approver", refunds.ApproverID, approver)
		wantEqual(t, "provider", "openai", provider)
		wantEqual(t, "API family", "responses", family)
		wantEqual(t, "adapter revision", "openai-responses-v1", revision)
		wantEqual(t, "approval digest", d.bind(d.actor, d.call).ApprovalDigest(approver), digest)
	}),

	"test_approval_cannot_cross_provider_or_idempotency_key": onEvery(func(t *testing.T, d *seedDesk) {
		approvals := d.approved(d.call)
		for _, changed := range []toolresult.Call{viaAnthropic(d.call), keyed(d.call, "other-persistent-key")} {
			wantCode(t, toolresult.ApprovalInvalid, d.dispatchCall(changed, approvals, alive))
			wantEqual(t, "operations", int64(0), d.counts().Operations)
		}
	}),

	"test_unauthorized_resource_does_not_create_call_binding": onEvery(func(t *testing.T, d *seedDesk) {
		foreign := seedCall("ORDER-8", "duplicate")
		wantCode(t, toolresult.NotFound, d.dispatchCall(foreign, d.approved(foreign), alive))
		wantEqual(t, "call bindings", int64(0), d.counts().CallBindings)
	}),

	"test_invalid_arguments_do_not_reach_database": onEvery(func(t *testing.T, d *seedDesk) {
		pkg := d.dispatchCall(seedCall("ORDER-7", "invented"), nil, alive)
		wantCode(t, toolresult.InvalidArguments, pkg)
		wantEqual(t, "counts", toolruntime.Counts{}, d.counts())
	}),

	"test_invalid_current_business_state_does_not_create_intent": onEvery(func(t *testing.T, d *seedDesk) {
		d.orders.SetStatus("ORDER-7", "refunded")
		wantCode(t, toolresult.BusinessRuleViolation, d.dispatch(alive))
		wantEqual(t, "operations", int64(0), d.counts().Operations)
	}),

	"test_call_identity_cannot_be_rebound_to_another_key": onEvery(func(t *testing.T, d *seedDesk) {
		d.dispatch(drill.AfterIntentCommit)
		changed := keyed(d.call, "other-key")
		wantCode(t, toolresult.CallIDConflict, d.dispatchCall(changed, d.approved(changed), alive))
	}),

	"test_replay_survives_process_restart": onEvery(func(t *testing.T, d *seedDesk) {
		d.dispatch(alive)
		d.reopen()
		d.setTime(start + 1)
		wantDelivery(t, toolresult.LocalReplay, d.repeat())
		wantEqual(t, "receipts", int64(1), d.counts().DownstreamReceipts)
	}),

	"test_replay_cannot_cross_the_approved_provider_context": onEvery(func(t *testing.T, d *seedDesk) {
		d.dispatch(alive)
		changed := viaAnthropic(d.call)
		changed.ResponseID = "response-persistent-anthropic"
		d.setTime(start + 1)
		wantCode(t, toolresult.IdempotencyConflict, d.dispatchCall(changed, nil, alive))
		wantEqual(t, "receipts", int64(1), d.counts().DownstreamReceipts)
	}),

	"test_returned_result_is_a_defensive_projection": onEvery(func(t *testing.T, d *seedDesk) {
		first := d.dispatch(alive)
		for _, pkg := range []*toolresult.Package{first, d.repeat()} {
			// In place, so that memory shared with the ledger would show.
			data := pkg.ModelResult.Data
			at := bytes.Index(data, []byte("duplicate"))
			if at < 0 {
				t.Fatalf("data %s does not have the reason", data)
			}
			copy(data[at:], "tampered!")
			var draft refunds.RefundDraft
			if err := d.repeat().Decode(&draft); err != nil {
				t.Fatal(err)
			}
			wantEqual(t, "reason", "duplicate", draft.Reason)
		}
	}),

	"test_replay_rechecks_current_authorization": onEvery(func(t *testing.T, d *seedDesk) {
		allowed := map[string]bool{"ORDER-7": true}
		d = d.another(allowing(allowed))
		wantCode(t, toolresult.OK, d.dispatch(alive))
		clear(allowed)
		d.setTime(start + 1)
		wantCode(t, toolresult.NotFound, d.repeat())
	}),
}
