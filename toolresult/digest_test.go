package toolresult_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// words returns random text that a canonical form could get wrong.
func words(r *rand.Rand) string {
	alphabet := []rune("aZ0 \"\\/<>&\u0000\u0008\u001f\u007f\u2028\u2029é\u0301\ufb33\uffff\U0001f600\U0010ffff")
	s := make([]rune, 1+r.IntN(12))
	for i := range s {
		s[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(s)
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func pointer(r *rand.Rand) *string {
	if r.IntN(3) == 0 {
		return nil
	}
	s := words(r)
	return &s
}

func orNil(s *string) any {
	if s == nil {
		return nil
	}
	return *s
}

func digest(t *testing.T, v any) string {
	t.Helper()
	sum, err := canonjson.Digest(v)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// TestDigestsEqualTheGenericOnes holds the encoder, which orders keys by hand,
// against the sorting of a map.
func TestDigestsEqualTheGenericOnes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		p := toolresult.Principal{TenantID: words(r), SubjectID: words(r)}
		args := map[string]any{words(r): words(r), words(r): []any{int64(r.Int32()), r.Float64(), nil}}
		c := toolresult.NewCall(toolresult.Proposal{Name: words(r), Arguments: json.RawMessage(canonical(t, args))}, toolresult.ExecutionContext{
			Provider: words(r), APIFamily: words(r), ResponseID: words(r), CallID: words(r), OperationID: words(r), AdapterRevision: words(r)})
		if r.IntN(2) == 0 {
			c.IdempotencyKey = words(r)
		}
		rev := toolresult.Revisions{InputSchema: words(r), OutputSchema: words(r), Effect: words(r), Handler: words(r), Producer: words(r), Policy: words(r)}
		b, err := toolresult.Bind(p, c, toolresult.Contract{Name: c.Name, Revisions: rev})
		if err != nil {
			t.Fatal(err)
		}
		approver, result := words(r), words(r)
		d := toolresult.Downstream{RequestID: pointer(r), ReceiptID: pointer(r), StatusRef: pointer(r)}
		key, request := orNull(c.IdempotencyKey), b.RequestSHA256()
		identity := func(more map[string]any) map[string]any {
			m := map[string]any{"provider": c.Provider, "api_family": c.APIFamily, "response_id": c.ResponseID, "call_id": c.CallID,
				"operation_id": c.OperationID, "idempotency_key": key, "adapter_revision": c.AdapterRevision, "request_sha256": request}
			for k, v := range more {
				m[k] = v
			}
			return m
		}
		payload := map[string]any{"schema_version": "tool-outbox-event-v1", "operation_pk": int64(7), "request_sha256": request, "tool": c.Name}
		query := digest(t, map[string]any{"provider": c.Provider, "api_family": c.APIFamily, "response_id": c.ResponseID, "call_id": c.CallID, "status_ref": b.StatusRef()})[:24]
		for name, pair := range map[string][2]string{
			"request": {request, digest(t, map[string]any{"tenant_id": p.TenantID, "subject_id": p.SubjectID, "tool": c.Name, "arguments": args,
				"input_schema_revision": rev.InputSchema, "output_schema_revision": rev.OutputSchema, "effect_revision": rev.Effect})},
			"fingerprint": {b.Fingerprint("query_status"), digest(t, identity(map[string]any{"purpose": "query_status"}))},
			"approval": {b.ApprovalDigest(approver), digest(t, identity(map[string]any{"approver_id": approver, "approval_revision": rev.Policy,
				"input_schema_revision": rev.InputSchema, "output_schema_revision": rev.OutputSchema, "effect_revision": rev.Effect}))},
			"call binding": {b.CallBindingSHA256(result, d), digest(t, identity(map[string]any{
				"tenant_id": p.TenantID, "subject_id": p.SubjectID, "result_sha256": result,
				"downstream": map[string]any{"request_id": orNil(d.RequestID), "receipt_id": orNil(d.ReceiptID), "status_ref": orNil(d.StatusRef)},
				"tool_contract": map[string]any{"name": c.Name, "input_schema_revision": rev.InputSchema, "output_schema_revision": rev.OutputSchema,
					"effect_revision": rev.Effect, "handler_revision": rev.Handler, "producer_revision": rev.Producer, "policy_revision": rev.Policy}}))},
			"principal":       {b.PrincipalRef(), "sha256:" + digest(t, map[string]any{"tenant_id": p.TenantID, "subject_id": p.SubjectID})},
			"effect identity": {b.EffectIdentity(), digest(t, map[string]any{"scope": []any{p.TenantID, p.SubjectID, c.Name, key}, "request_sha256": request})},
			"outbox payload":  {contract.OutboxPayload(7, request, c.Name), canonical(t, payload)},
			"status query":    {c.StatusQuery(b.StatusRef()).CallID, "status-call-" + query},
		} {
			if pair[0] != pair[1] {
				t.Fatalf("%s of %+v: got %s, want %s", name, c, pair[0], pair[1])
			}
		}
		resultDigest(t, b, d, words(r))
	}
}

// resultDigest compares the hand-ordered model result with its own JSON.
func resultDigest(t *testing.T, b *toolresult.Bound, d toolresult.Downstream, text string) {
	t.Helper()
	success := b.Success(text, toolresult.Evidence{Data: canonical(t, map[string]any{"x": text}), ProducerRevision: text,
		ResourceRevision: text, ObservedAt: text}, toolresult.Fresh)
	for _, p := range []*toolresult.Package{success, b.Failure(toolresult.RateLimit, "", time.Unix(now, 0)), b.Failure(toolresult.NotFound, "", time.Unix(now, 0))} {
		want := digest(t, tree(t, encode(t, p.ModelResult)))
		if got := p.ProtectedAudit.Binding.ResultSHA256; got != want || p.ModelResult.SHA256() != want || canonjson.Sum([]byte(p.ModelResult.Text())) != want {
			t.Fatalf("result of %q: got %s, want %s", text, got, want)
		}
	}
}
