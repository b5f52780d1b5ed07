package toolruntime

import (
	"context"

	"github.com/toolruntime/toolruntime-go/toolresult"
)

// conflicts reports whether an operation that holds b's scope is another intent
// than b's, or was accepted under another contract or for another provider.
func (r *record) conflicts(b *toolresult.Bound) bool {
	return r.operation.RequestSha256 != b.RequestSHA256() || r.contract() != b.Contract() ||
		r.firstCall().Profile() != b.Call().Profile()
}

// trust re-validates the stored evidence of an operation for the call b, before
// anything of it is used. p is its owner with the roles of now: whoever is asked
// about approvers is asked about the same principal at every step.
func (rt *Runtime) trust(ctx context.Context, t *tool, r *record, b *toolresult.Bound, p toolresult.Principal) error {
	ref := r.statusRef()
	if err := checkOperation(&r.operation, rt.profiles, b).err(ref); err != nil {
		return err
	}
	switch {
	case r.contract() != b.Contract():
		return &ContractError{ref, "the tool's contract has other revisions now"}
	case r.arguments() != b.Arguments(), r.operation.RequestSha256 != b.RequestSHA256(), ref != b.StatusRef():
		return &ContractError{ref, "the request is another"}
	}
	eligible, err := rt.mayApprove(ctx, t, p, r.operation.ApproverID)
	if err != nil {
		return err
	}
	if !eligible {
		return &ContractError{ref, "approval evidence: the approver is not eligible"}
	}
	return nil
}

// accepted returns the evidence with which a succeeded operation is answered,
// re-read and re-checked.
func (r *record) accepted(t *tool, b *toolresult.Bound) (toolresult.Evidence, error) {
	if r.local == nil {
		return toolresult.Evidence{}, &ContractError{r.statusRef(), "it has succeeded and has no local receipt"}
	}
	if err := r.checkAccepted(t.spec, b).err(r.statusRef()); err != nil {
		return toolresult.Evidence{}, err
	}
	return acceptedRow(r.local).evidence(r.statusRef()), nil
}
