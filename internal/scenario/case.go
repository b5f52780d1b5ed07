package scenario

import (
	"time"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/limits"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

const (
	caseVersion = "persistent-tool-case-v1"
	writeTool   = "create_refund_draft"

	// defaultLease is kept free after a case's time, so that the lease of its
	// dispatch ends at a portable time.
	defaultLease = 30
)

// A Case is one write call in its surroundings.
type Case struct {
	Principal    toolresult.Principal
	Call         toolresult.Call
	ApprovalMode string
	Now          int64 // Unix seconds
}

// ReadCase reads a persistence case. Every error is a [*FixtureError].
//
// It checks the shape of the file. The limits of trusted input, such as the
// length of an identifier or the number of roles, are the runtime's to check:
// it answers them with a [*toolresult.InputError], whoever the caller is.
func ReadCase(data []byte) (*Case, error) {
	r, root, err := readDocument(data, caseVersion,
		"schema_version", "principal", "proposal", "execution_context", "approval_mode", "now")
	if err != nil {
		return nil, err
	}
	c := &Case{
		Principal: root.principal(notBlank),
		Call: root.call(notBlank, only(writeTool), func(context object) string {
			key, _ := context.text("idempotency_key", keyLength)
			return key
		}),
		Now: root.integer("now", contract.MaxTime-defaultLease),
	}
	c.ApprovalMode, _ = root.text("approval_mode", oneOf(approvalModes...))
	if err := r.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// Approvals makes the case's approvals of b, at the case's time.
func (c *Case) Approvals(b *toolresult.Bound) ([]toolresult.Approval, error) {
	return Approvals(b, c.ApprovalMode, c.Now)
}

// The approval modes of a scenario.
const (
	noApproval         = "none"
	validApproval      = "valid"
	expiredApproval    = "expired"    // a second ago
	mismatchedApproval = "mismatched" // of something else
)

var approvalModes = []string{noApproval, validApproval, expiredApproval, mismatchedApproval}

// approvalSeconds is how long a fixture approval is valid.
const approvalSeconds = 60

// noDigest has the form of a digest and is nobody's.
const noDigest = "0000000000000000000000000000000000000000000000000000000000000000"

// Approvals makes the approvals of b that a mode stands for. An unknown mode,
// and a time that leaves no room for the approval to end, is a
// [*toolresult.InputError].
//
// A fixture approval stands in for a person's decision. It belongs in tests and
// drills and nowhere else.
func Approvals(b *toolresult.Bound, mode string, now int64) ([]toolresult.Approval, error) {
	if mode == noApproval {
		return nil, nil
	}
	if broken := oneOf(approvalModes...)(mode); broken != "" {
		return nil, &toolresult.InputError{Field: "approval_mode", Rule: broken}
	}
	if err := limits.Time("now", now); err != nil {
		return nil, err
	}
	if now > contract.MaxTime-approvalSeconds {
		return nil, &toolresult.InputError{Field: "now + approval_seconds", Rule: "must not pass 9999-12-31T23:59:59Z"}
	}
	expires := now + approvalSeconds
	if mode == expiredApproval {
		expires = now - 1
	}
	a := toolresult.NewApproval(b, "approval-"+b.Call().CallID, refunds.ApproverID, time.Unix(expires, 0))
	if mode == mismatchedApproval {
		a.ApprovalDigest = noDigest
	}
	return []toolresult.Approval{a}, nil
}
