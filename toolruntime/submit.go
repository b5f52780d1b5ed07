package toolruntime

import (
	"context"

	"github.com/toolruntime/toolruntime-go/toolresult"
)

// Submit reserves a write for the workers ([Runtime.Work]) and answers at once:
// ACCEPTED with the status_ref for an intent that is in the ledger, from now on or
// since before, and of which no attempt has begun. It is on disk then, and will be
// carried out, whatever dies. OUTCOME_UNKNOWN is what it is for [Runtime.Dispatch]: an
// attempt is running, or was, and has not come to an end. So is all else: a read is
// answered at once, and a call that has ended from the ledger.
//
// ACCEPTED is no success: the status of its package is unknown, and it tells the model
// not to say that the action was done.
func (rt *Runtime) Submit(ctx context.Context, p toolresult.Principal, c toolresult.Call, approvals ...toolresult.Approval) (*toolresult.Package, error) {
	pkg, err := rt.submit(ctx, p, c, approvals, nil)
	if err == nil && pkg.Code() == toolresult.Accepted {
		rt.signal()
	}
	return pkg, err
}

// submit reserves a write for the workers, or puts a new one into later.
func (rt *Runtime) submit(ctx context.Context, p toolresult.Principal, c toolresult.Call, approvals []toolresult.Approval, later *Submission) (*toolresult.Package, error) {
	_, ctx, err := stopping(ctx, "Submit")
	if err != nil {
		return nil, err
	}
	r, err := rt.accept(p, c)
	if err != nil {
		return nil, err
	}
	r.tellAccepted, r.reserve, r.later = true, true, later
	return rt.dispatch(ctx, r, DispatchOptions{Approvals: approvals})
}

// signal wakes an idle worker of this process.
func (rt *Runtime) signal() {
	select {
	case rt.wake <- struct{}{}:
	default:
	}
}
