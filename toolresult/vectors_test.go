package toolresult_test

import (
	"bufio"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

func eachVector[T any](t *testing.T, name string, do func(t *testing.T, v T)) {
	lines := bufio.NewScanner(vectorFile(t, name))
	lines.Buffer(nil, 1<<22)
	count := 0
	for ; lines.Scan(); count++ {
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatalf("line %d: %v", count+1, err)
		}
		do(t, v)
	}
	if lines.Err() != nil || count == 0 {
		t.Fatalf("%d vectors, %v", count, lines.Err())
	}
}

type digestVector struct {
	ID   string `json:"id"`
	Call struct {
		toolresult.ExecutionContext
		Name          string `json:"name"`
		ArgumentsJSON string `json:"arguments_json"`
	} `json:"call"`
	Principal    toolresult.Principal  `json:"principal"`
	Tool         toolresult.Revisions  `json:"tool"`
	ApproverID   string                `json:"approver_id"`
	Downstream   toolresult.Downstream `json:"downstream"`
	ResultSHA256 string                `json:"result_sha256"`
	OperationPK  int64                 `json:"operation_pk"`
	Want         map[string]string     `json:"want"`
}

func TestVectorsDigests(t *testing.T) {
	eachVector(t, "digests.jsonl", func(t *testing.T, v digestVector) {
		c := toolresult.NewCall(toolresult.Proposal{Name: v.Call.Name, Arguments: json.RawMessage(v.Call.ArgumentsJSON)}, v.Call.ExecutionContext)
		keyless := c
		keyless.IdempotencyKey = ""
		known := toolresult.Contract{Name: c.Name, Revisions: v.Tool}
		bound := func(c toolresult.Call, known toolresult.Contract) *toolresult.Bound {
			b, err := toolresult.Bind(v.Principal, c, known)
			if err != nil {
				t.Fatalf("%s: %v", v.ID, err)
			}
			return b
		}
		b, without := bound(c, known), bound(keyless, known)
		query := c.StatusQuery(b.StatusRef())
		payload := contract.OutboxPayload(v.OperationPK, b.RequestSHA256(), c.Name)
		got := map[string]string{
			"approval_digest":                   b.ApprovalDigest(v.ApproverID),
			"call_binding_sha256":               b.CallBindingSHA256(v.ResultSHA256, v.Downstream),
			"call_binding_sha256_no_downstream": b.CallBindingSHA256(v.ResultSHA256, toolresult.Downstream{}),
			"call_fingerprint_dispatch":         b.Fingerprint(toolresult.PurposeDispatch),
			"call_fingerprint_query_status":     b.Fingerprint(toolresult.PurposeQueryStatus),
			"call_fingerprint_without_key":      without.Fingerprint(toolresult.PurposeDispatch),
			"effect_identity":                   b.EffectIdentity(),
			"outbox_event_id":                   contract.OutboxEventID(payload),
			"outbox_payload_json":               payload,
			"principal_ref":                     b.PrincipalRef(),
			"request_sha256":                    b.RequestSHA256(),
			"request_sha256_unregistered_tool":  bound(c, toolresult.UnregisteredContract(c.Name)).RequestSHA256(),
			"request_sha256_without_key":        without.RequestSHA256(),
			"status_query_call_id":              query.CallID,
			"status_query_response_id":          query.ResponseID,
			"status_ref":                        b.StatusRef(),
		}
		if diff := cmp.Diff(v.Want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", v.ID, diff)
		}
	})
}

type packageVector struct {
	ID   string `json:"id"`
	Call struct {
		toolresult.Proposal
		toolresult.ExecutionContext
		TenantID  string `json:"tenant_id"`
		SubjectID string `json:"subject_id"`
	} `json:"call"`
	Change  *string         `json:"change"`
	Package json.RawMessage `json:"package"`
	Valid   bool            `json:"valid"`
}

func TestVectorsPackages(t *testing.T) {
	spec := refundSpec(t)
	eachVector(t, "packages.jsonl", func(t *testing.T, v packageVector) {
		p := toolresult.Principal{TenantID: v.Call.TenantID, SubjectID: v.Call.SubjectID}
		b, err := toolresult.Bind(p, toolresult.NewCall(v.Call.Proposal, v.Call.ExecutionContext), spec.Contract())
		if err != nil {
			t.Fatalf("%s: %v", v.ID, err)
		}
		change := "unchanged"
		if v.Change != nil {
			change = *v.Change
		}
		problems := toolresult.ValidateJSON(b, spec, v.Package)
		if valid := len(problems) == 0; valid != v.Valid {
			t.Errorf("%s, %s: valid is %t, want %t: %v", v.ID, change, valid, v.Valid, problems)
		}
		var p2 toolresult.Package
		if !v.Valid || json.Unmarshal(v.Package, &p2) != nil {
			return
		}
		if problems := toolresult.Validate(b, spec, &p2); len(problems) > 0 {
			t.Errorf("%s, %s: decoded: %v", v.ID, change, problems)
		}
	})
}
