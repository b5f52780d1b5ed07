package toolresult

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
)

// A Purpose is what a call identity is used for. One identity serves one
// purpose: a status query cannot be reused for a dispatch, nor the reverse.
type Purpose string

// The purposes of a call.
const (
	PurposeDispatch    Purpose = "dispatch"
	PurposeQueryStatus Purpose = "query_status"
)

// Revisions are the six revisions of a tool's contract. An operation keeps
// those under which it was accepted, and is never run under others.
type Revisions struct {
	InputSchema  string `json:"input_schema_revision"`
	OutputSchema string `json:"output_schema_revision"`
	Effect       string `json:"effect_revision"`
	Handler      string `json:"handler_revision"`
	Producer     string `json:"producer_revision"`
	Policy       string `json:"policy_revision"`
}

// A Contract is a tool's name and revisions: the tool_contract of the audit.
type Contract struct {
	Name string `json:"name"`
	Revisions
}

// UnregisteredContract is the contract of a tool that no registry knows: every
// revision is the word "unregistered".
func UnregisteredContract(name string) Contract {
	const u = "unregistered"
	return Contract{name, Revisions{u, u, u, u, u, u}}
}

// Bound is a call bound to a principal and a tool contract: all that the
// digests of section 3 of the contract cover. It is immutable.
type Bound struct {
	principal Principal
	call      Call
	contract  Contract
	tree      any
	args      string // canonical
	request   string
	effect    string
	statusRef string
}

// Bind computes the digests of a call. It fails with an [*InputError], or with
// an error that matches [ErrInvalidInput] and names the rule and the place in
// the arguments, when no digest exists: arguments outside the JSON domain, or
// text that is not UTF-8. It checks no other limit; see [Call.Check].
func Bind(p Principal, c Call, t Contract) (*Bound, error) {
	if err := checkTexts(p, c, t); err != nil {
		return nil, err
	}
	tree, text, err := canonicalArguments(c.Arguments)
	if err != nil {
		return nil, err
	}
	return bind(p, c, t, tree, text), nil
}

// checkTexts checks that everything but the arguments has a digest.
func checkTexts(p Principal, c Call, t Contract) error {
	for _, f := range [...]struct{ name, value string }{
		{"principal.tenant_id", p.TenantID}, {"principal.subject_id", p.SubjectID},
		{"name", c.Name}, {"provider", c.Provider}, {"api_family", c.APIFamily},
		{"response_id", c.ResponseID}, {"call_id", c.CallID}, {"operation_id", c.OperationID},
		{"idempotency_key", c.IdempotencyKey}, {"adapter_revision", c.AdapterRevision},
		{"input_schema_revision", t.InputSchema}, {"output_schema_revision", t.OutputSchema},
		{"effect_revision", t.Effect}, {"handler_revision", t.Handler},
		{"producer_revision", t.Producer}, {"policy_revision", t.Policy},
	} {
		if !utf8.ValidString(f.value) {
			return &InputError{f.name, "must be valid UTF-8"}
		}
	}
	if c.Name != t.Name {
		return &InputError{"name", "must be the contract's"}
	}
	return nil
}

func bind(p Principal, c Call, t Contract, tree any, text []byte) *Bound {
	c.Arguments = text
	b := &Bound{principal: p, call: c, contract: t, tree: tree, args: string(text)}
	b.request = RequestSHA256(p.TenantID, p.SubjectID, b.args, t)
	b.effect = EffectIdentity(p.TenantID, p.SubjectID, c.Name, c.IdempotencyKey, b.request)
	b.statusRef = StatusRefOf(b.effect)
	return b
}

// RequestSHA256 is the request digest over stored values. arguments must be
// canonical JSON text.
func RequestSHA256(tenantID, subjectID, arguments string, t Contract) string {
	e := newEncoder()
	e.open()
	e.raw("arguments", arguments)
	e.str("effect_revision", t.Effect)
	e.str("input_schema_revision", t.InputSchema)
	e.str("output_schema_revision", t.OutputSchema)
	e.str("subject_id", subjectID)
	e.str("tenant_id", tenantID)
	e.str("tool", t.Name)
	e.close()
	return e.sum()
}

// EffectIdentity is the identity under which an effect may happen at most once:
// the digest of the scope and the request. An empty key stands for null.
func EffectIdentity(tenantID, subjectID, tool, key, requestSHA256 string) string {
	e := newEncoder()
	e.open()
	e.str("request_sha256", requestSHA256)
	e.key("scope")
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
	e.close()
	return e.sum()
}

// StatusRefOf is the status_ref of an effect identity.
func StatusRefOf(effectIdentity string) string { return "status_" + effectIdentity[:32] }

// Principal returns the principal, as presented.
func (b *Bound) Principal() Principal { return b.principal }

// Call returns the call; its arguments are canonical and must not be changed.
func (b *Bound) Call() Call { return b.call }

// Contract returns the tool contract that the call is bound to.
func (b *Bound) Contract() Contract { return b.contract }

// Arguments returns the canonical text of the arguments.
func (b *Bound) Arguments() string { return b.args }

// RequestSHA256 is the digest of the business intent. It leaves out the
// idempotency key and every provider id on purpose.
func (b *Bound) RequestSHA256() string { return b.request }

// EffectIdentity is the digest of the scope and the intent: what a downstream
// gets as its idempotency key.
func (b *Bound) EffectIdentity() string { return b.effect }

// StatusRef is the opaque public name of the operation.
func (b *Bound) StatusRef() string { return b.statusRef }

// PrincipalRef names the principal without saying who it is.
func (b *Bound) PrincipalRef() string {
	e := newEncoder()
	e.open()
	e.str("subject_id", b.principal.SubjectID)
	e.str("tenant_id", b.principal.TenantID)
	e.close()
	return "sha256:" + e.sum()
}

// Fingerprint is the identity of this very call, for one purpose.
func (b *Bound) Fingerprint(purpose Purpose) string {
	c := &b.call
	e := newEncoder()
	e.open()
	e.str("adapter_revision", c.AdapterRevision)
	e.str("api_family", c.APIFamily)
	e.str("call_id", c.CallID)
	e.opt("idempotency_key", c.IdempotencyKey)
	e.str("operation_id", c.OperationID)
	e.str("provider", c.Provider)
	e.str("purpose", string(purpose))
	e.str("request_sha256", b.request)
	e.str("response_id", c.ResponseID)
	e.close()
	return e.sum()
}

// ApprovalDigest covers everything that an approver accepts with this call.
func (b *Bound) ApprovalDigest(approverID string) string {
	return ApprovalDigest(b.call.ExecutionContext, b.request, b.contract.Revisions, approverID)
}

// ApprovalDigest is the approval digest over stored values.
func ApprovalDigest(c ExecutionContext, requestSHA256 string, r Revisions, approverID string) string {
	e := newEncoder()
	e.open()
	e.str("adapter_revision", c.AdapterRevision)
	e.str("api_family", c.APIFamily)
	e.str("approval_revision", r.Policy)
	e.str("approver_id", approverID)
	e.str("call_id", c.CallID)
	e.str("effect_revision", r.Effect)
	e.opt("idempotency_key", c.IdempotencyKey)
	e.str("input_schema_revision", r.InputSchema)
	e.str("operation_id", c.OperationID)
	e.str("output_schema_revision", r.OutputSchema)
	e.str("provider", c.Provider)
	e.str("request_sha256", requestSHA256)
	e.str("response_id", c.ResponseID)
	e.close()
	return e.sum()
}

// CallBindingSHA256 binds a result and its downstream evidence to this call, so
// that a package cannot be moved to another call, key or receipt.
func (b *Bound) CallBindingSHA256(resultSHA256 string, d Downstream) string {
	c, t := &b.call, &b.contract
	e := newEncoder()
	e.open()
	e.str("adapter_revision", c.AdapterRevision)
	e.str("api_family", c.APIFamily)
	e.str("call_id", c.CallID)
	e.object("downstream")
	e.ptr("receipt_id", d.ReceiptID)
	e.ptr("request_id", d.RequestID)
	e.ptr("status_ref", d.StatusRef)
	e.close()
	e.opt("idempotency_key", c.IdempotencyKey)
	e.str("operation_id", c.OperationID)
	e.str("provider", c.Provider)
	e.str("request_sha256", b.request)
	e.str("response_id", c.ResponseID)
	e.str("result_sha256", resultSHA256)
	e.str("subject_id", b.principal.SubjectID)
	e.str("tenant_id", b.principal.TenantID)
	e.object("tool_contract")
	e.str("effect_revision", t.Effect)
	e.str("handler_revision", t.Handler)
	e.str("input_schema_revision", t.InputSchema)
	e.str("name", t.Name)
	e.str("output_schema_revision", t.OutputSchema)
	e.str("policy_revision", t.Policy)
	e.str("producer_revision", t.Producer)
	e.close()
	e.close()
	return e.sum()
}

// OutboxPayload is the canonical payload of an operation's outbox event.
func OutboxPayload(operationPK int64, requestSHA256, tool string) string {
	e := newEncoder()
	e.open()
	e.raw("operation_pk", strconv.FormatInt(operationPK, 10))
	e.str("request_sha256", requestSHA256)
	e.str("schema_version", "tool-outbox-event-v1")
	e.str("tool", tool)
	e.close()
	return e.text()
}

// OutboxEventID is the id of the event that carries payload.
func OutboxEventID(payload string) string { return "outbox_" + canonjson.Sum([]byte(payload))[:32] }

// String names the operation; never its arguments, key or principal.
func (b *Bound) String() string { return fmt.Sprintf("%s %s", b.call.Name, b.StatusRef()) }
