package toolruntime

import (
	"context"

	"github.com/toolruntime/toolruntime-go/internal/ledger"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// trust re-validates the stored evidence of an operation for the call b, before
// anything of it is used. p is its owner with the roles of now: whoever is asked
// about approvers is asked about the same principal at every step.
func (rt *Runtime) trust(ctx context.Context, t *tool, r *ledger.Operation, b *toolresult.Bound, p toolresult.Principal) error {
	ref := r.StatusRef()
	if err := r.Check(rt.profiles, b); err != nil {
		return err
	}
	switch {
	case r.Contract() != b.Contract():
		return &ledger.ContractError{StatusRef: ref, Rule: "the tool's contract has other revisions now"}
	case r.Arguments() != b.Arguments(), r.RequestSHA256() != b.RequestSHA256(), ref != b.StatusRef():
		return &ledger.ContractError{StatusRef: ref, Rule: "the request is another"}
	}
	eligible, err := rt.mayApprove(ctx, t, p, r.ApproverID())
	if err != nil {
		return err
	}
	if !eligible {
		return &ledger.ContractError{StatusRef: ref, Rule: "approval evidence: the approver is not eligible"}
	}
	return nil
}
