package conformance

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// tamperedResult is a well-formed result of another request.
const tamperedResult = `{"draft_id":"DRAFT-1","order_ref":"ORDER-7","reason":"damaged"}`

var storedStateTamperTests = map[string]seedTest{
	"test_approval_evidence_is_recomputed_before_worker_effect": onEvery(func(t *testing.T, d *seedDesk) {
		ref := d.ref(d.dispatch(toolruntime.AfterIntentCommit))
		d.mustSQL("UPDATE operations SET approval_digest = '" + zeros + "'")
		d.wantTampered("approval")
		d.setTime(start + 1)
		_, err := d.Process(context.Background(), ref, "worker", nil)
		wantError(t, toolruntime.ErrContract, err)
		wantEqual(t, "receipts", int64(0), d.counts().DownstreamReceipts)
	}),

	"test_persisted_approval_recomputation_binds_provider_api_and_adapter": onEvery(func(t *testing.T, d *seedDesk) {
		d.call = viaAnthropic(named(d.call, "anthropic-approval"))
		ref := d.ref(d.dispatch(toolruntime.AfterIntentCommit))
		d.mustSQL(`UPDATE operations SET first_provider = 'openai', first_api_family = 'responses',
			first_adapter_revision = 'openai-responses-v1'`)
		d.wantTampered("approval")
		d.setTime(start + 1)
		_, err := d.Process(context.Background(), ref, "provider-tamper-worker", nil)
		wantError(t, toolruntime.ErrContract, err)
		wantEqual(t, "receipts", int64(0), d.counts().DownstreamReceipts)
	}),

	"test_semantic_audit_detects_valid_shape_digest_tamper": onEvery(func(t *testing.T, d *seedDesk) {
		d.dispatch(toolruntime.AfterIntentCommit)
		d.mustSQL("UPDATE operations SET request_sha256 = '" + zeros + "'")
		d.wantTampered("request/contract")
	}),

	"test_semantic_audit_detects_outbox_binding_tamper": onEvery(func(t *testing.T, d *seedDesk) {
		d.dispatch(toolruntime.AfterIntentCommit)
		payload := d.payload()
		payload["tool"] = "other"
		text, err := json.Marshal(payload) // for these values the canonical form
		if err != nil {
			t.Fatal(err)
		}
		d.setPayload(string(text))
		d.wantTampered("outbox")
	}),

	"test_semantic_audit_rejects_nested_stored_json_without_crashing": onEvery(func(t *testing.T, d *seedDesk) {
		d.dispatch(toolruntime.AfterIntentCommit)
		d.setPayload(deeplyNestedJSON(t))
		d.wantTampered("nesting")
	}),

	"test_noncanonical_outbox_json_is_rejected": onEvery(func(t *testing.T, d *seedDesk) {
		ref := d.ref(d.dispatch(toolruntime.AfterIntentCommit))
		text, err := json.MarshalIndent(d.payload(), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		d.setPayload(string(text))
		_, err = d.Claim(context.Background(), ref, "worker", toolruntime.DefaultLeaseSeconds)
		wantError(t, toolruntime.ErrContract, err)
	}),

	"test_duplicate_key_in_stored_json_is_rejected": onEvery(func(t *testing.T, d *seedDesk) {
		ref := d.ref(d.dispatch(toolruntime.AfterIntentCommit))
		d.setPayload(`{"schema_version":"tool-outbox-event-v1","schema_version":"tool-outbox-event-v1",` +
			`"operation_pk":1,"request_sha256":"` + zeros + `","tool":"x"}`)
		_, err := d.Claim(context.Background(), ref, "worker", toolruntime.DefaultLeaseSeconds)
		wantError(t, toolruntime.ErrContract, err)
	}),

	"test_tampered_downstream_digest_is_rejected": onEvery(func(t *testing.T, d *seedDesk) {
		ref := d.ref(d.dispatch(toolruntime.AfterDownstreamCommit))
		d.mustSQL("UPDATE downstream_receipts SET request_sha256 = '" + zeros + "'")
		d.setTime(start + 1)
		_, err := d.tryQuery(d.call, ref, d.digest(d.call))
		wantError(t, toolruntime.ErrContract, err)
	}),

	"test_tampered_downstream_output_is_rejected": onEvery(func(t *testing.T, d *seedDesk) {
		ref := d.ref(d.dispatch(toolruntime.AfterDownstreamCommit))
		d.mustSQL("UPDATE downstream_receipts SET result_json = '" + tamperedResult + "'")
		d.setTime(start + 1)
		_, err := d.tryQuery(d.call, ref, d.digest(d.call))
		wantError(t, toolruntime.ErrContract, err)
	}),

	"test_tampered_local_output_is_rejected_on_replay": onEvery(func(t *testing.T, d *seedDesk) {
		d.dispatch(toolruntime.NoFailure)
		d.mustSQL("UPDATE local_receipts SET result_json = '" + tamperedResult + "'")
		_, err := d.Dispatch(context.Background(), d.actor, d.call, nil)
		wantError(t, toolruntime.ErrContract, err)
	}),
}

// wantTampered wants the audit to fail with an error that has the given part.
func (d *seedDesk) wantTampered(part string) {
	d.t.Helper()
	r := d.audit()
	wantEqual(d.t, "passed", false, r.Passed)
	wantMention(d.t, part, r.SemanticErrors)
}

// payload is that of the one event.
func (d *seedDesk) payload() map[string]any {
	d.t.Helper()
	var text string
	d.scan("SELECT payload_json FROM outbox", &text)
	in := json.NewDecoder(strings.NewReader(text))
	in.UseNumber()
	var payload map[string]any
	if err := in.Decode(&payload); err != nil {
		d.t.Fatal(err)
	}
	return payload
}

func (d *seedDesk) setPayload(text string) {
	d.t.Helper()
	d.mustSQL(d.engine.args("UPDATE outbox SET payload_json = {1}"), text)
}
