package contract

import (
	"strconv"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
)

// A Request is what the request digest covers. The revisions are the tool's.
type Request struct {
	TenantID, SubjectID, Tool         string
	Arguments                         string // canonical JSON
	InputSchema, OutputSchema, Effect string
}

// RequestSHA256 is the digest of a business intent.
func RequestSHA256(r Request) string {
	e := NewEncoder()
	e.Open()
	e.Raw("arguments", r.Arguments)
	e.Str("effect_revision", r.Effect)
	e.Str("input_schema_revision", r.InputSchema)
	e.Str("output_schema_revision", r.OutputSchema)
	e.Str("subject_id", r.SubjectID)
	e.Str("tenant_id", r.TenantID)
	e.Str("tool", r.Tool)
	e.Close()
	return e.Sum()
}

// EffectIdentity is the identity under which an effect may happen at most once:
// the digest of the scope and the request. An empty key stands for null.
func EffectIdentity(tenantID, subjectID, tool, key, requestSHA256 string) string {
	e := NewEncoder()
	e.Open()
	e.Str("request_sha256", requestSHA256)
	e.Key("scope")
	e.b = append(e.b, '[')
	for _, s := range [...]string{tenantID, subjectID, tool} {
		e.b = append(canonjson.AppendString(e.b, s), ',')
	}
	if key == "" {
		e.b = append(e.b, "null"...)
	} else {
		e.b = canonjson.AppendString(e.b, key)
	}
	e.b = append(e.b, ']')
	e.Close()
	return e.Sum()
}

// StatusRef is the status_ref of an effect identity.
func StatusRef(effectIdentity string) string { return "status_" + effectIdentity[:32] }

// An Approval is what the approval digest covers: the call in its context, the request,
// the revisions of the tool, and who approves.
type Approval struct {
	Provider, APIFamily, ResponseID, CallID, OperationID, IdempotencyKey, AdapterRevision string
	RequestSHA256                                                                         string
	InputSchema, OutputSchema, Effect, Policy                                             string
	ApproverID                                                                            string
}

// ApprovalDigest covers everything that an approver accepts.
func ApprovalDigest(a Approval) string {
	e := NewEncoder()
	e.Open()
	e.Str("adapter_revision", a.AdapterRevision)
	e.Str("api_family", a.APIFamily)
	e.Str("approval_revision", a.Policy)
	e.Str("approver_id", a.ApproverID)
	e.Str("call_id", a.CallID)
	e.Str("effect_revision", a.Effect)
	e.Opt("idempotency_key", a.IdempotencyKey)
	e.Str("input_schema_revision", a.InputSchema)
	e.Str("operation_id", a.OperationID)
	e.Str("output_schema_revision", a.OutputSchema)
	e.Str("provider", a.Provider)
	e.Str("request_sha256", a.RequestSHA256)
	e.Str("response_id", a.ResponseID)
	e.Close()
	return e.Sum()
}

// OutboxPayload is the canonical payload of an operation's outbox event.
func OutboxPayload(operationPK int64, requestSHA256, tool string) string {
	e := NewEncoder()
	e.Open()
	e.Raw("operation_pk", strconv.FormatInt(operationPK, 10))
	e.Str("request_sha256", requestSHA256)
	e.Str("schema_version", "tool-outbox-event-v1")
	e.Str("tool", tool)
	e.Close()
	return e.Text()
}

// OutboxEventID is the id of the event that carries payload.
func OutboxEventID(payload string) string { return "outbox_" + canonjson.Sum([]byte(payload))[:32] }
