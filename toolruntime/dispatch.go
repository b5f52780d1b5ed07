package toolruntime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/failpoint"
	"github.com/toolruntime/toolruntime-go/internal/ledger"
	"github.com/toolruntime/toolruntime-go/internal/limits"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// Defaults of a dispatch.
const (
	DefaultWorkerID = "inline-worker"
	DefaultLease    = 30 * time.Second
)

// DispatchOptions of [Runtime.Dispatch]. The zero value is safe.
type DispatchOptions struct {
	// Approvals are evidence that a person accepted exactly this call. A write
	// that is new needs one; a repetition needs none.
	Approvals []toolresult.Approval
	// WorkerID names who runs the effect; "" means [DefaultWorkerID].
	WorkerID string
	// Lease is how long nobody else may run it, in whole seconds; 0 means
	// [DefaultLease].
	Lease time.Duration
}

// Dispatch carries out a call: a read at once; a write once under its scope, if
// it is approved, and through the ledger. A repetition of a write is answered
// with the stored result, or with OUTCOME_UNKNOWN and the status_ref while
// there is none; it never causes an effect. A new call of a paused tool ends in
// TOOL_PAUSED ([Runtime.Pause]).
//
// The package says how the call ended, whatever the model has sent: arguments
// that nobody can read end in INVALID_ARGUMENTS, and Package.Problems say what to
// change. An error is the host's or the database's: the runtime could not find
// out, and it never means that the effect did not happen. While the database is
// away after the effect, it waits for it as long as the lease holds and ctx lasts;
// then the error is [ErrNotRecorded].
func (rt *Runtime) Dispatch(ctx context.Context, p toolresult.Principal, c toolresult.Call, opts *DispatchOptions) (*toolresult.Package, error) {
	o := given(opts)
	o.WorkerID = or(o.WorkerID, DefaultWorkerID)
	o.Lease = or(o.Lease, DefaultLease)
	stop, ctx, err := stopping(ctx, "a dispatch", failpoint.AfterIntentCommit, failpoint.AfterClaim, failpoint.AfterDownstreamCommit)
	if err != nil {
		return nil, err
	}
	r, err := rt.accept(p, c)
	if err != nil {
		return nil, err
	}
	r.stop, r.reserve = stop, stop == failpoint.AfterIntentCommit
	return rt.dispatch(ctx, r, o)
}

// stopping returns the point at which a call stops as if its process had died, or "",
// and the context for all that it does. what the call is, and the points that it has.
func stopping(ctx context.Context, what string, points ...string) (string, context.Context, error) {
	point, set, ctx := failpoint.Take(ctx)
	if set && !slices.Contains(points, point) {
		rule := fmt.Sprintf("is at the point %q, at which %s does not stop", point, what)
		if len(points) > 0 {
			rule += "; it has " + strings.Join(points, ", ")
		}
		return "", ctx, &toolresult.InputError{Field: "drill", Rule: rule}
	}
	return point, ctx, nil
}

// dispatch carries a call out, or leaves a write to the workers. With request.later a
// new write is not reserved but put there, and there is no answer.
func (rt *Runtime) dispatch(ctx context.Context, r request, o DispatchOptions) (*toolresult.Package, error) {
	if err := rt.store.mayBegin(ctx); err != nil {
		return nil, err
	}
	if err := rt.reversion(ctx, &r); err != nil {
		return nil, err
	}
	current, answer, err := rt.screen(ctx, &r)
	if err != nil || answer != nil {
		return answer, err
	}
	if r.tool.spec.Risk() == Read {
		return rt.read(ctx, &r, current)
	}
	if r.bound.Call().IdempotencyKey == "" {
		return r.fail(toolresult.IdempotencyKeyRequired), nil
	}
	if !r.reserve {
		if err := limits.WorkerID(o.WorkerID); err != nil {
			return nil, err
		}
		if err := limits.LeaseFrom(r.now, o.Lease); err != nil {
			return nil, err
		}
	}
	return rt.write(ctx, &r, o)
}

// maxLooks bounds how often a scope may change under a dispatch that looks at
// it. Each change is somebody else's commit on the very same scope.
const maxLooks = 16

// write takes the scope for a new intent and runs it, or answers for the one
// that holds the scope.
func (rt *Runtime) write(ctx context.Context, r *request, o DispatchOptions) (*toolresult.Package, error) {
	// Immediately before the reservation: the first look may be long ago.
	current, allowed, err := rt.admit(ctx, r.tool, r.bound.Principal(), r.input.resource)
	if err != nil {
		return nil, err
	}
	if !allowed {
		return r.fail(toolresult.NotFound), nil
	}
	for range maxLooks {
		// Not the time of the call: the host's callbacks may have taken long.
		r.now = rt.now()
		if !r.reserve {
			if err := limits.LeaseFrom(r.now, o.Lease); err != nil {
				return nil, err
			}
		}
		answer, err := rt.tryWrite(ctx, r, current, o)
		switch {
		case errors.Is(err, ledger.ErrScopeChanged), errors.Is(err, ledger.ErrApprovalExpired):
			continue
		case errors.Is(err, ledger.ErrCallIDConflict):
			return r.fail(toolresult.CallIDConflict), nil
		}
		return answer, err
	}
	return nil, fmt.Errorf("toolruntime: reserve %s: %w", r.bound.StatusRef(), ledger.ErrScopeChanged)
}

func (rt *Runtime) tryWrite(ctx context.Context, r *request, current toolresult.Principal, o DispatchOptions) (*toolresult.Package, error) {
	seen, err := rt.ledger.Lookup(ctx, r.bound, toolresult.PurposeDispatch)
	if err != nil {
		return nil, err
	}
	if seen.Bound && !seen.Same {
		return nil, ledger.ErrCallIDConflict
	}
	if seen.Current != nil {
		return rt.repeat(ctx, r, current, seen)
	}
	v := ledger.Reservation{Bound: r.bound, Purpose: toolresult.PurposeDispatch, Now: r.now, StatusRef: r.bound.StatusRef()}
	if seen.Pruned {
		_, err := rt.ledger.Reserve(ctx, v)
		return r.fail(toolresult.IdempotencyKeyExpired), err
	}
	approval, denied, err := rt.decide(ctx, r, current, o.Approvals)
	if err != nil {
		return nil, err
	}
	if denied != "" {
		_, err := rt.ledger.Reserve(ctx, v)
		return r.fail(denied), err
	}
	// The approval, and the lease, are held against the time of the commit, and what
	// has just been asked may have taken long, too.
	v.Now = rt.now()
	if v.Now >= approval.ExpiresAt {
		return nil, ledger.ErrApprovalExpired
	}
	v.Admission = &ledger.Admission{Approval: approval, Effect: r.tool.effect.String(), Version: r.tool.version, Own: rt.own}
	if !r.reserve {
		v.Admission.Worker, v.Admission.Lease = o.WorkerID, o.Lease
	}
	if r.later != nil {
		r.later.request, r.later.current, r.later.reservation = *r, current, v
		return nil, nil
	}
	rec, err := rt.ledger.Reserve(ctx, v)
	if errors.Is(err, ledger.ErrPaused) {
		return r.fail(toolresult.ToolPaused), nil
	}
	if err != nil {
		return nil, err
	}
	if r.reserve {
		return r.unfinished(rec), nil
	}
	return rt.inline(ctx, r, rec)
}

// repeat answers a call whose scope is taken. It never executes anything.
func (rt *Runtime) repeat(ctx context.Context, r *request, current toolresult.Principal, seen ledger.Known) (*toolresult.Package, error) {
	rec := seen.Current
	answer, err := rt.again(ctx, r, current, rec)
	if err != nil || seen.Bound {
		return answer, err
	}
	_, err = rt.ledger.Reserve(ctx, ledger.Reservation{Bound: r.bound, Purpose: toolresult.PurposeDispatch, Now: r.now,
		StatusRef: rec.StatusRef(), Existing: rec})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// again is the answer to a repetition of the call that made rec, or to another
// call that wants its scope.
func (rt *Runtime) again(ctx context.Context, r *request, current toolresult.Principal, rec *ledger.Operation) (*toolresult.Package, error) {
	if rec.Conflicts(r.bound) {
		return r.fail(toolresult.IdempotencyConflict), nil
	}
	if err := rt.trust(ctx, r.tool, rec, r.bound, current); err != nil {
		return nil, err
	}
	return rt.standing(r, rec, toolresult.LocalReplay)
}

// standing is the answer that an operation has as it stands.
func (rt *Runtime) standing(r *request, rec *ledger.Operation, d toolresult.Delivery) (*toolresult.Package, error) {
	switch rec.State() {
	case ledger.Succeeded:
		e, err := rec.Accepted(r.tool.spec, r.bound)
		if err != nil {
			return nil, err
		}
		return r.success(rec, e, d), nil
	case ledger.Failed:
		ref := ""
		if rec.Reason() == toolresult.OutcomeUnknown { // abandoned
			ref = rec.StatusRef()
		}
		ended := rec.Ended()
		answer := r.bound.Ended(rec.Reason(), ref, d, ended.At)
		answer.Ended = ended
		return answer, nil
	case ledger.InReview:
		return r.failAt(rec.Reason(), rec.StatusRef()), nil
	}
	return r.unfinished(rec), nil
}

// unfinished is the answer while there is none.
func (r *request) unfinished(rec *ledger.Operation) *toolresult.Package {
	if r.tellAccepted && rec.State() == ledger.Pending && rec.Fence() == 0 {
		return r.failAt(toolresult.Accepted, rec.StatusRef())
	}
	return r.failAt(toolresult.OutcomeUnknown, rec.StatusRef())
}

func (r *request) success(rec *ledger.Operation, e toolresult.Evidence, d toolresult.Delivery) *toolresult.Package {
	answer := r.bound.Success(r.tool.spec.Source(), e, d)
	answer.Ended = rec.Ended()
	return answer
}

// decide evaluates the business rule and the approvals for a new intent. It
// returns the approval to store, or the code with which the call is denied.
func (rt *Runtime) decide(ctx context.Context, r *request, p toolresult.Principal, approvals []toolresult.Approval) (toolresult.Approval, toolresult.Code, error) {
	var none toolresult.Approval
	ok, err := rt.obeys(ctx, r.tool, p, r.input)
	if err != nil {
		return none, "", err
	}
	if !ok {
		return none, toolresult.BusinessRuleViolation, nil
	}
	if len(approvals) == 0 {
		return none, toolresult.ApprovalRequired, nil
	}
	var failure error
	a, ok := toolresult.SelectApproval(r.bound, approvals, time.Unix(r.now, 0), func(approverID string) bool {
		eligible, err := rt.mayApprove(ctx, r.tool, p, approverID)
		failure = errors.Join(failure, err)
		return eligible && err == nil
	})
	if failure != nil {
		return none, "", failure
	}
	if !ok {
		return none, toolresult.ApprovalInvalid, nil
	}
	return a, "", nil
}

// inline runs a new operation in the caller's own time.
func (rt *Runtime) inline(ctx context.Context, r *request, rec *ledger.Operation) (*toolresult.Package, error) {
	if r.stop == failpoint.AfterClaim {
		return r.failAt(toolresult.OutcomeUnknown, rec.StatusRef()), nil
	}
	_, err := rt.attempt(ctx, r.tool, ledger.Claim{Operation: rec, Claimed: true},
		attemptOptions{stop: r.stop, request: r})
	if err != nil {
		return nil, err
	}
	if rec.State() != ledger.Succeeded {
		return rt.standing(r, rec, toolresult.Fresh)
	}
	// The receipt was held against the contract just now, before it was stored.
	return r.success(rec, rec.Evidence(), toolresult.Fresh), nil
}

// read answers a call of a read tool, which leaves nothing in the ledger.
func (rt *Runtime) read(ctx context.Context, r *request, p toolresult.Principal) (*toolresult.Package, error) {
	ok, err := rt.obeys(ctx, r.tool, p, r.input)
	if err != nil {
		return nil, err
	}
	if !ok {
		return r.fail(toolresult.BusinessRuleViolation), nil
	}
	if paused, err := rt.paused(ctx, r.bound.Call().Name); err != nil {
		return nil, err
	} else if paused {
		return r.fail(toolresult.ToolPaused), nil
	}
	limited, cancel := context.WithTimeout(ctx, r.tool.timeout)
	defer cancel()
	c := r.bound.Call()
	answer, err := rt.guard(limited, r.tool.run, Effect{Identity: r.bound.EffectIdentity(), Principal: p, Tool: c.Name,
		IdempotencyKey: c.IdempotencyKey}, r.input)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil && limited.Err() != nil:
		return r.fail(toolresult.TimeoutBeforeExecute), nil
	case err != nil:
		rt.log.WarnContext(ctx, "read failed", "tool", c.Name, "error", err)
		return r.fail(toolresult.ToolError), nil
	}
	e := rt.evidence(r.tool, answer, "")
	e.ReceiptID = ""
	if answer.malformed != nil || len(r.tool.spec.CheckOutput(r.bound, e)) > 0 {
		return r.fail(toolresult.OutputContractViolation), nil
	}
	return r.bound.Success(r.tool.spec.Source(), e, toolresult.Fresh), nil
}
