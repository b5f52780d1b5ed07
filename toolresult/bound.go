package toolresult

import (
	"fmt"
	"unicode/utf8"

	"github.com/toolruntime/toolruntime-go/internal/contract"
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
	b.request = contract.RequestSHA256(contract.Request{TenantID: p.TenantID, SubjectID: p.SubjectID, Tool: t.Name,
		Arguments: b.args, InputSchema: t.InputSchema, OutputSchema: t.OutputSchema, Effect: t.Effect})
	b.effect = contract.EffectIdentity(p.TenantID, p.SubjectID, c.Name, c.IdempotencyKey, b.request)
	b.statusRef = contract.StatusRef(b.effect)
	return b
}

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
	e := contract.NewEncoder()
	e.Open()
	e.Str("subject_id", b.principal.SubjectID)
	e.Str("tenant_id", b.principal.TenantID)
	e.Close()
	return "sha256:" + e.Sum()
}

// Fingerprint is the identity of this very call, for one purpose.
func (b *Bound) Fingerprint(purpose Purpose) string {
	c := &b.call
	e := contract.NewEncoder()
	e.Open()
	e.Str("adapter_revision", c.AdapterRevision)
	e.Str("api_family", c.APIFamily)
	e.Str("call_id", c.CallID)
	e.Opt("idempotency_key", c.IdempotencyKey)
	e.Str("operation_id", c.OperationID)
	e.Str("provider", c.Provider)
	e.Str("purpose", string(purpose))
	e.Str("request_sha256", b.request)
	e.Str("response_id", c.ResponseID)
	e.Close()
	return e.Sum()
}

// ApprovalDigest covers everything that an approver accepts with this call.
func (b *Bound) ApprovalDigest(approverID string) string {
	c, r := &b.call, &b.contract
	return contract.ApprovalDigest(contract.Approval{Provider: c.Provider, APIFamily: c.APIFamily, ResponseID: c.ResponseID,
		CallID: c.CallID, OperationID: c.OperationID, IdempotencyKey: c.IdempotencyKey, AdapterRevision: c.AdapterRevision,
		RequestSHA256: b.request, InputSchema: r.InputSchema, OutputSchema: r.OutputSchema, Effect: r.Effect, Policy: r.Policy,
		ApproverID: approverID})
}

// CallBindingSHA256 binds a result and its downstream evidence to this call, so
// that a package cannot be moved to another call, key or receipt.
func (b *Bound) CallBindingSHA256(resultSHA256 string, d Downstream) string {
	c, t := &b.call, &b.contract
	e := contract.NewEncoder()
	e.Open()
	e.Str("adapter_revision", c.AdapterRevision)
	e.Str("api_family", c.APIFamily)
	e.Str("call_id", c.CallID)
	e.Object("downstream")
	e.Ptr("receipt_id", d.ReceiptID)
	e.Ptr("request_id", d.RequestID)
	e.Ptr("status_ref", d.StatusRef)
	e.Close()
	e.Opt("idempotency_key", c.IdempotencyKey)
	e.Str("operation_id", c.OperationID)
	e.Str("provider", c.Provider)
	e.Str("request_sha256", b.request)
	e.Str("response_id", c.ResponseID)
	e.Str("result_sha256", resultSHA256)
	e.Str("subject_id", b.principal.SubjectID)
	e.Str("tenant_id", b.principal.TenantID)
	e.Object("tool_contract")
	e.Str("effect_revision", t.Effect)
	e.Str("handler_revision", t.Handler)
	e.Str("input_schema_revision", t.InputSchema)
	e.Str("name", t.Name)
	e.Str("output_schema_revision", t.OutputSchema)
	e.Str("policy_revision", t.Policy)
	e.Str("producer_revision", t.Producer)
	e.Close()
	e.Close()
	return e.Sum()
}

// String names the operation; never its arguments, key or principal.
func (b *Bound) String() string { return fmt.Sprintf("%s %s", b.call.Name, b.StatusRef()) }
