package conformance

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
)

var toolResultV2CompatibilityTests = map[string]seedTest{
	"test_request_digest_is_exact_v2_digest": onEvery(func(t *testing.T, d *seedDesk) {
		spec, _ := d.Spec(d.call.Name)
		r := spec.Contract().Revisions
		// For plain text, Go's encoding of a map is the canonical form.
		text, err := json.Marshal(map[string]any{
			"tenant_id": d.actor.TenantID, "subject_id": d.actor.SubjectID, "tool": d.call.Name,
			"arguments":             map[string]any{"order_ref": "ORDER-7", "reason": "duplicate"},
			"input_schema_revision": r.InputSchema, "output_schema_revision": r.OutputSchema,
			"effect_revision": r.Effect,
		})
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(text)
		want := hex.EncodeToString(sum[:])
		wantEqual(t, "digest of the call", want, d.digest(d.call))
		wantEqual(t, "digest of the package", want,
			d.dispatch(alive).ProtectedAudit.Binding.RequestSHA256)
	}),

	"test_request_digest_excludes_idempotency_key": onEvery(func(t *testing.T, d *seedDesk) {
		wantEqual(t, "digest", d.digest(d.call), d.digest(keyed(identified(d.call, "other-call", "other-response"), "another-key")))
	}),

	"test_call_binding_still_binds_idempotency_key": onEvery(func(t *testing.T, d *seedDesk) {
		pkg := d.dispatch(alive)
		wantMention(t, "call_binding", d.problems(keyed(d.call, "another-key"), pkg))
	}),

	"test_success_package_passes_v2_result_validation": onEvery(func(t *testing.T, d *seedDesk) {
		wantEqual(t, "problems", []string(nil), d.problems(d.call, d.dispatch(alive)))
	}),

	"test_unknown_package_passes_v2_result_validation": onEvery(func(t *testing.T, d *seedDesk) {
		wantEqual(t, "problems", []string(nil), d.problems(d.call, d.dispatch(drill.AfterIntentCommit)))
	}),
}
