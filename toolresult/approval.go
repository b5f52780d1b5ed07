package toolresult

import (
	"time"

	"github.com/toolruntime/toolruntime-go/internal/contract"
)

// An Approval is evidence that an eligible human accepted exactly one call.
// Response and tenant are not fields: the digest binds them.
type Approval struct {
	ApprovalID       string `json:"approval_id"`
	ApproverID       string `json:"approver_id"`
	ExpiresAt        int64  `json:"expires_at"` // Unix seconds; valid strictly before it
	ToolName         string `json:"tool_name"`
	SubjectID        string `json:"subject_id"`
	Provider         string `json:"provider"`
	APIFamily        string `json:"api_family"`
	AdapterRevision  string `json:"adapter_revision"`
	CallID           string `json:"call_id"`
	OperationID      string `json:"operation_id"`
	IdempotencyKey   string `json:"idempotency_key"`
	SchemaVersion    string `json:"schema_version"`    // the input schema revision
	ApprovalRevision string `json:"approval_revision"` // the policy revision
	ApprovalDigest   string `json:"approval_digest"`
}

// NewApproval is the approval of b by the given approver, valid strictly before
// expiresAt, of which fractions of a second are cut off. It is only as good as the
// process that calls it: make one where a human has decided.
func NewApproval(b *Bound, approvalID, approverID string, expiresAt time.Time) Approval {
	return approvalOf(b, approvalID, approverID, expiresAt.Unix())
}

func approvalOf(b *Bound, approvalID, approverID string, expiresAt int64) Approval {
	c := b.call
	return Approval{
		ApprovalID: approvalID, ApproverID: approverID, ExpiresAt: expiresAt,
		ToolName: b.contract.Name, SubjectID: b.principal.SubjectID,
		Provider: c.Provider, APIFamily: c.APIFamily, AdapterRevision: c.AdapterRevision,
		CallID: c.CallID, OperationID: c.OperationID, IdempotencyKey: c.IdempotencyKey,
		SchemaVersion: b.contract.InputSchema, ApprovalRevision: b.contract.Policy,
		ApprovalDigest: b.ApprovalDigest(approverID),
	}
}

// Covers reports whether a, by its own fields and at time now, approves exactly
// b. Whether the approver is eligible is for the host to say.
func (a Approval) Covers(b *Bound, now time.Time) bool {
	if contract.Identifier(a.ApprovalID) != "" || contract.Identifier(a.ApproverID) != "" {
		return false
	}
	return now.Unix() < a.ExpiresAt && a.ExpiresAt <= contract.MaxTime &&
		a == approvalOf(b, a.ApprovalID, a.ApproverID, a.ExpiresAt)
}

// less orders approvals: of several valid ones the smallest is stored.
func (a Approval) less(other Approval) bool {
	if a.ApprovalID != other.ApprovalID {
		return a.ApprovalID < other.ApprovalID
	}
	return a.ExpiresAt < other.ExpiresAt
}

// SelectApproval returns the approval to store: the smallest by id, then by
// expiry, of those that cover b at time now and whose approver is eligible.
func SelectApproval(b *Bound, approvals []Approval, now time.Time, eligible func(approverID string) bool) (Approval, bool) {
	var best Approval
	found := false
	for _, a := range approvals {
		if (!found || a.less(best)) && a.Covers(b, now) && eligible(a.ApproverID) {
			best, found = a, true
		}
	}
	return best, found
}
