package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/toolruntime/toolruntime-go/internal/tables"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
)

// tamperedResult is a well-formed result of another request.
const tamperedResult = `{"draft_id":"DRAFT-1","order_ref":"ORDER-7","reason":"damaged"}`

// tampering is a test that changes stored values past the runtime, twice: as
// whoever has a database client can, and as somebody who also computes the row
// digests anew. Then it is the check that the test names which has to find it.
func tampering(test func(*testing.T, *seedDesk)) seedTest {
	return onEvery(func(t *testing.T, d *seedDesk) {
		test(t, d)
		forger := newSeedDesk(t, d.engine)
		forger.forges = true
		test(t, forger)
	})
}

// tamper changes stored values past the runtime.
func (d *seedDesk) tamper(statement string, args ...any) {
	d.t.Helper()
	d.mustSQL(statement, args...)
	if d.forges {
		reseal(d, tables.Operations)
		reseal(d, tables.Outbox)
		reseal(d, tables.DownstreamReceipts)
		reseal(d, tables.LocalReceipts)
	}
}

// reseal gives every row of a table the digest that fits it. Rows have the fields
// of Row, in their order; the first is the key.
func reseal[Row any](d *seedDesk, of *tables.Table[Row]) {
	d.t.Helper()
	db := d.engine.plain(d.t, d.address)
	defer db.Close()
	rows, err := db.Query("SELECT * FROM " + of.Name)
	if err != nil {
		d.t.Fatal(err)
	}
	digests := map[int64][]byte{}
	for rows.Next() {
		var row Row
		fields := reflect.ValueOf(&row).Elem()
		to := make([]any, fields.NumField())
		for i := range to {
			to[i] = fields.Field(i).Addr().Interface()
		}
		if err := rows.Scan(to...); err != nil {
			d.t.Fatal(err)
		}
		digests[fields.Field(0).Int()] = of.Digest(&row)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		d.t.Fatal(err)
	}
	key := map[string]string{"downstream_receipts": "downstream_pk"}[of.Name]
	if key == "" {
		key = "operation_pk"
	}
	for pk, sum := range digests {
		if _, err := db.Exec(d.engine.args("UPDATE "+of.Name+" SET row_digest = {1} WHERE "+key+" = {2}"), sum, pk); err != nil {
			d.t.Fatal(err)
		}
	}
}

var storedStateTamperTests = map[string]seedTest{
	"test_approval_evidence_is_recomputed_before_worker_effect": tampering(func(t *testing.T, d *seedDesk) {
		ref := d.ref(d.dispatch(drill.AfterIntentCommit))
		d.tamper("UPDATE operations SET approval_digest = '" + zeros + "'")
		d.wantTampered("approval")
		d.setTime(start + 1)
		_, err := d.Process(context.Background(), ref, "worker", nil)
		wantError(t, toolruntime.ErrContract, err)
		wantEqual(t, "receipts", int64(0), d.counts().DownstreamReceipts)
	}),

	"test_persisted_approval_recomputation_binds_provider_api_and_adapter": tampering(func(t *testing.T, d *seedDesk) {
		d.call = viaAnthropic(named(d.call, "anthropic-approval"))
		ref := d.ref(d.dispatch(drill.AfterIntentCommit))
		d.tamper(`UPDATE operations SET first_provider = 'openai', first_api_family = 'responses',
			first_adapter_revision = 'openai-responses-v1'`)
		d.wantTampered("approval")
		d.setTime(start + 1)
		_, err := d.Process(context.Background(), ref, "provider-tamper-worker", nil)
		wantError(t, toolruntime.ErrContract, err)
		wantEqual(t, "receipts", int64(0), d.counts().DownstreamReceipts)
	}),

	"test_semantic_audit_detects_valid_shape_digest_tamper": tampering(func(t *testing.T, d *seedDesk) {
		d.dispatch(drill.AfterIntentCommit)
		d.tamper("UPDATE operations SET request_sha256 = '" + zeros + "'")
		d.wantTampered("request/contract")
	}),

	"test_semantic_audit_detects_outbox_binding_tamper": tampering(func(t *testing.T, d *seedDesk) {
		d.dispatch(drill.AfterIntentCommit)
		payload := d.payload()
		payload["tool"] = "other"
		text, err := json.Marshal(payload) // for these values the canonical form
		if err != nil {
			t.Fatal(err)
		}
		d.setPayload(string(text))
		d.wantTampered("outbox")
	}),

	"test_semantic_audit_rejects_nested_stored_json_without_crashing": tampering(func(t *testing.T, d *seedDesk) {
		d.dispatch(drill.AfterIntentCommit)
		d.setPayload(deeplyNestedJSON(t))
		d.wantTampered("nesting")
	}),

	"test_noncanonical_outbox_json_is_rejected": tampering(func(t *testing.T, d *seedDesk) {
		ref := d.ref(d.dispatch(drill.AfterIntentCommit))
		text, err := json.MarshalIndent(d.payload(), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		d.setPayload(string(text))
		_, err = hold(context.Background(), d.Runtime, ref, "worker", toolruntime.DefaultLease)
		wantError(t, toolruntime.ErrContract, err)
	}),

	"test_duplicate_key_in_stored_json_is_rejected": tampering(func(t *testing.T, d *seedDesk) {
		ref := d.ref(d.dispatch(drill.AfterIntentCommit))
		d.setPayload(`{"schema_version":"tool-outbox-event-v1","schema_version":"tool-outbox-event-v1",` +
			`"operation_pk":1,"request_sha256":"` + zeros + `","tool":"x"}`)
		_, err := hold(context.Background(), d.Runtime, ref, "worker", toolruntime.DefaultLease)
		wantError(t, toolruntime.ErrContract, err)
	}),

	"test_tampered_downstream_digest_is_rejected": tampering(func(t *testing.T, d *seedDesk) {
		ref := d.ref(d.dispatch(drill.AfterDownstreamCommit))
		d.tamper("UPDATE downstream_receipts SET request_sha256 = '" + zeros + "'")
		d.setTime(start + 1)
		_, err := d.tryQuery(d.call, ref, d.digest(d.call))
		wantError(t, toolruntime.ErrContract, err)
	}),

	"test_tampered_downstream_output_is_rejected": tampering(func(t *testing.T, d *seedDesk) {
		ref := d.ref(d.dispatch(drill.AfterDownstreamCommit))
		d.tamper("UPDATE downstream_receipts SET result_json = '" + tamperedResult + "'")
		d.setTime(start + 1)
		_, err := d.tryQuery(d.call, ref, d.digest(d.call))
		wantError(t, toolruntime.ErrContract, err)
	}),

	"test_tampered_local_output_is_rejected_on_replay": tampering(func(t *testing.T, d *seedDesk) {
		d.dispatch(alive)
		d.tamper("UPDATE local_receipts SET result_json = '" + tamperedResult + "'")
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
	d.tamper(d.engine.args("UPDATE outbox SET payload_json = {1}"), text)
}
