package toolruntime

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/ledger"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// ErrRepeat says that a transaction of the host's must be rolled back, and may be
// repeated as a whole: the server has ended it, or it has met another (a deadlock, a
// serialization failure, a lock that was not given in time). The store repeats its own
// transactions by itself; it does not know what else is in the host's.
var ErrRepeat = engine.ErrRepeat

// A Submission is a write that may be accepted: who asks for it and who has approved it
// were looked at. What is left is to store it, in a transaction of the host's.
//
// It may be stored more than once, say in the repetition of a transaction, and is
// answered from the ledger then. It does not grow old by itself: the approval must hold
// when it is stored, and everything else is asked again before the effect.
type Submission struct {
	rt          *Runtime
	answer      *toolresult.Package
	request     request
	current     toolresult.Principal
	reservation ledger.Reservation
}

// Prepare does what [Runtime.Submit] does, and stops before a new write is stored: that
// is [Submission.SubmitTx]'s, in the same transaction as rows of the host's. Resolver,
// authorizer, approvers and the business rule are asked here, so call it before the
// transaction begins.
//
// Whatever needs no transaction ends here, as it does in Submit: see
// [Submission.Answer].
func (rt *Runtime) Prepare(ctx context.Context, p toolresult.Principal, c toolresult.Call, approvals ...toolresult.Approval) (*Submission, error) {
	s := &Submission{rt: rt}
	var err error
	s.answer, err = rt.submit(ctx, p, c, approvals, s)
	if err != nil {
		return nil, err
	}
	s.request.later = nil
	return s, nil
}

// Answer is the answer to a call that is not a new write, or may not be one: a
// repetition, a read, arguments that do not fit, an approval that is missing. There is
// nothing to store then, and the host needs no transaction. It is nil for a new write.
func (s *Submission) Answer() *toolresult.Package { return s.answer }

// SubmitTx stores the write in a transaction of the host's, which the host commits or
// rolls back with all that is in it. The package is the one that [Runtime.Submit] would
// give, but ACCEPTED becomes true only when the host has committed: tell the model
// nothing before. After the commit call [Runtime.Wake]; [Store.Update] does it by
// itself.
//
// stored says that the transaction has the operation now, and that this call has put it
// there. Otherwise the package is the answer to a call that was made before, or refuses
// this one: then roll back what belongs to the call, which would be there twice or for
// nothing. Of two who submit one key at the same time the second waits for the end of
// the first's transaction, as long as the lock timeout allows.
//
// The host's transaction is as it was when SubmitTx has failed, and may go on without
// the call, unless the error matches [ErrRepeat]. [ErrInvalidInput] says that it is not
// one that can hold the call, and why. After a commit of which the host does not know
// whether it has taken, it calls Prepare again, which answers from the ledger.
//
// No callback of the host is asked, unless somebody else has taken the key since
// Prepare; then the approver of what is there is asked about, while nothing of the
// ledger is locked on PostgreSQL, and while the ledger is held on SQLite. ctx is obeyed
// until the first statement; what follows is bounded by the store's timeouts.
//
// A transaction is used by one goroutine at a time.
func (s *Submission) SubmitTx(ctx context.Context, tx HostTx) (pkg *toolresult.Package, stored bool, err error) {
	if s.answer != nil {
		return s.answer, false, nil
	}
	rt, r, v := s.rt, s.request, s.reservation
	r.now = rt.now()
	v.Now = r.now
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	if tx == nil {
		return nil, false, fmt.Errorf("toolruntime: submit %s: %w", v.StatusRef,
			&toolresult.InputError{Field: "tx", Rule: "must be the transaction of Store.Update, or of pgstore.SQLTx or PgxTx"})
	}
	rec, seen, err := rt.ledger.ReserveWith(ctx, tx.HostTx(), rt.signal, v)
	switch {
	case errors.Is(err, ledger.ErrCallIDConflict):
		return r.fail(toolresult.CallIDConflict), false, nil
	case errors.Is(err, ledger.ErrApprovalExpired):
		return r.fail(toolresult.ApprovalInvalid), false, nil
	case err != nil:
		return nil, false, fmt.Errorf("toolruntime: submit %s: %w", v.StatusRef, err)
	case rec != nil:
		return r.unfinished(rec), true, nil
	case seen.Pruned:
		return r.fail(toolresult.IdempotencyKeyExpired), false, nil
	}
	answer, err := rt.again(ctx, &r, s.current, seen.Current)
	return answer, false, err
}

// Wake lets an idle worker of this runtime ([Runtime.Work]) look for work at once: for
// the host that has committed a transaction in which [Submission.SubmitTx] was. Without
// it, and in other processes, workers find the operation when they look next.
func (rt *Runtime) Wake() { rt.signal() }
