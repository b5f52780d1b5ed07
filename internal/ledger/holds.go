package ledger

import (
	"fmt"
	"strings"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A database may not be able to hold what the contract allows. That must be found out
// before anything is reserved: a receipt that cannot be kept comes after its effect.

// maxReceiptID bounds the ids of a receipt, in bytes.
const MaxReceiptID = 1024

// Holds checks that the database can hold texts, which are given as name, value, name,
// value and so on.
func (s *Ledger) Holds(texts ...string) error {
	if !s.engine.Limits().NoZero {
		return nil
	}
	for i := 0; i < len(texts); i += 2 {
		if strings.IndexByte(texts[i+1], 0) >= 0 {
			return &toolresult.InputError{Field: texts[i], Rule: "must not contain U+0000, which this ledger's database cannot hold"}
		}
	}
	return nil
}

// holdsScope checks the texts by which an operation and a call are looked up.
func (s *Ledger) holdsScope(k *dbgen.LookupParams) error {
	return s.Holds("principal.tenant_id", k.TenantID, "principal.subject_id", k.SubjectID, "name", k.ToolName,
		"idempotency_key", k.IdempotencyKey, "provider", k.Provider, "api_family", k.APIFamily,
		"response_id", k.ResponseID, "call_id", k.CallID)
}

// holdsCall checks a call identity, and with an admission the operation that is to be
// made, and every receipt that may come of it.
func (s *Ledger) holdsCall(v Reservation) error {
	key := lookupOf(v.Bound)
	if err := s.holdsScope(&key); err != nil {
		return err
	}
	if err := s.fits("principal.tenant_id, principal.subject_id, provider, api_family, response_id and call_id", 0,
		key.TenantID, key.SubjectID, key.Provider, key.APIFamily, key.ResponseID, key.CallID); err != nil || v.Admission == nil {
		return err
	}
	c, t, a := v.Bound.Call(), v.Bound.Contract(), &v.Admission.Approval
	if err := s.Holds("operation_id", c.OperationID, "adapter_revision", c.AdapterRevision,
		"approval_id", a.ApprovalID, "approver_id", a.ApproverID, "worker_id", v.Admission.Worker,
		"input_schema_revision", t.InputSchema, "output_schema_revision", t.OutputSchema,
		"effect_revision", t.Effect, "handler_revision", t.Handler,
		"producer_revision", t.Producer, "policy_revision", t.Policy); err != nil {
		return err
	}
	if err := s.fits("principal.tenant_id, principal.subject_id, name and idempotency_key", 0,
		key.TenantID, key.SubjectID, key.ToolName, key.IdempotencyKey); err != nil {
		return err
	}
	return s.fits("principal.tenant_id and name", MaxReceiptID, key.TenantID, key.ToolName)
}

// fits checks that texts are short enough to be a unique key together, with so many
// bytes of something else.
func (s *Ledger) fits(fields string, others int, texts ...string) error {
	limit := s.engine.Limits().KeyBytes
	if limit == 0 {
		return nil
	}
	n := others
	for _, text := range texts {
		n += len(text)
	}
	if n > limit {
		return &toolresult.InputError{Field: fields,
			Rule: fmt.Sprintf("must have at most %d bytes together: an index of this ledger's database holds no more", limit-others)}
	}
	return nil
}
