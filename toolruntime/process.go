package toolruntime

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolruntime/toolruntime-go/internal/limits"
	"github.com/toolruntime/toolruntime-go/internal/schema"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// An Outcome says what became of an attempt to process an operation.
type Outcome string

// The outcomes.
const (
	Succeeded           Outcome = "succeeded"
	NotClaimed          Outcome = "not_claimed"         // leased by another, in review, or there is none
	CrashedAfterClaim   Outcome = "crashed_after_claim" // by failure injection
	OutcomeUnknown      Outcome = "outcome_unknown"
	AuthorizationDenied Outcome = "authorization_denied" // no effect; recoverable when the lease has run out
	BusinessRuleDenied  Outcome = "business_rule_denied" // no effect; recoverable when the lease has run out
	NothingDone         Outcome = "nothing_done"         // the handler is certain; it waits for a next attempt, or has failed
)

// ProcessOptions of [Runtime.Process]. The zero value is safe.
type ProcessOptions struct {
	LeaseSeconds int64   // 0 means [DefaultLeaseSeconds]
	Failure      Failure // none, after_claim or after_downstream_commit
}

// A Claim is a worker's exclusive right to an operation.
type Claim struct {
	StatusRef  string
	WorkerID   string
	LeaseUntil int64 // Unix seconds
	// AttemptCount is the number of this claim and its fence.
	AttemptCount int64
}

// Claim takes the exclusive right to an operation for a worker, if it is pending
// or its lease has run out. It returns nil when there is nothing to claim. The
// operation stays claimed until the lease runs out.
func (rt *Runtime) Claim(ctx context.Context, statusRef, workerID string, leaseSeconds int64) (*Claim, error) {
	c, err := rt.claim(ctx, statusRef, workerID, leaseSeconds)
	if err != nil || !c.claimed {
		return nil, err
	}
	return &Claim{StatusRef: statusRef, WorkerID: workerID, LeaseUntil: c.event.LeaseUntil.Int64, AttemptCount: c.fence()}, nil
}

func (rt *Runtime) claim(ctx context.Context, statusRef, workerID string, leaseSeconds int64) (claim, error) {
	if !toolresult.ValidStatusRef(statusRef) {
		return claim{}, &toolresult.InputError{Field: "status_ref", Rule: "must be status_ and 32 lower-case hexadecimal digits"}
	}
	if err := toolresult.CheckWorkerID(workerID); err != nil {
		return claim{}, err
	}
	now := rt.now()
	if err := toolresult.CheckLease(now, leaseSeconds); err != nil {
		return claim{}, err
	}
	return rt.store.claimByRef(ctx, statusRef, workerID, now, now+leaseSeconds)
}

// Process claims an operation and carries it out, or finishes what an earlier
// attempt has left: the same code serves both. What it may do about a lost
// attempt is what the tool's effect kind allows.
func (rt *Runtime) Process(ctx context.Context, statusRef, workerID string, opts *ProcessOptions) (Outcome, error) {
	var o ProcessOptions
	if opts != nil {
		o = *opts
	}
	o.LeaseSeconds = or(o.LeaseSeconds, DefaultLeaseSeconds)
	switch o.Failure {
	case "", NoFailure, AfterClaim, AfterDownstreamCommit:
	default:
		return "", &toolresult.InputError{Field: "failure", Rule: "is not a failure point of processing"}
	}
	c, err := rt.claim(ctx, statusRef, workerID, o.LeaseSeconds)
	switch {
	case err != nil:
		return "", err
	case c.record == nil:
		return NotClaimed, nil
	case !c.claimed && c.state() == succeeded:
		return Succeeded, nil
	case !c.claimed:
		return NotClaimed, nil
	case o.Failure == AfterClaim:
		return CrashedAfterClaim, nil
	}
	t, ok := rt.tools[c.operation.ToolName]
	if !ok {
		return "", &ContractError{statusRef, "its tool is not registered"}
	}
	return rt.attempt(ctx, t, c, attemptOptions{failure: o.Failure})
}

// attemptOptions say how an attempt is made.
type attemptOptions struct {
	failure Failure
	// worker is set for an attempt of [Runtime.Work], which lets go of what it
	// could not do instead of letting the lease run out.
	worker *WorkOptions
	// request is the call itself where it is its caller who makes the attempt.
	request *request
}

// attempt carries out a claimed operation. c's record follows what is stored.
func (rt *Runtime) attempt(ctx context.Context, t *tool, c claim, o attemptOptions) (outcome Outcome, err error) {
	defer func() { rt.ended.add(c.operation.ToolName, outcome, err) }()
	rec, log := c.record, rt.log.With("status_ref", c.statusRef(), "tool", c.operation.ToolName, "attempt", c.fence())
	a := attempt{rt: rt, tool: t, claim: c, uncertain: c.lost, attemptOptions: o}
	if err := a.bind(); err != nil {
		return "", err
	}
	current, allowed, err := rt.admit(ctx, t, rec.owner(), a.input.resource)
	a.effect = effectOf(rec, a.bound, current)
	if err != nil {
		return "", errors.Join(err, a.note(ctx, endDenied))
	}
	if !allowed {
		log.InfoContext(ctx, "attempt ended", "outcome", AuthorizationDenied)
		return AuthorizationDenied, a.denied(ctx)
	}
	if err := rt.trust(ctx, rec, a.bound); err != nil {
		return "", errors.Join(err, a.note(ctx, endDenied))
	}
	ok, err := t.rule(ctx, current, a.input)
	if err != nil {
		return "", errors.Join(fmt.Errorf("toolruntime: business rule: %w", err), a.note(ctx, endDenied))
	}
	if !ok {
		log.InfoContext(ctx, "attempt ended", "outcome", BusinessRuleDenied)
		return BusinessRuleDenied, a.denied(ctx)
	}
	outcome, err = a.run(ctx)
	if err != nil {
		log.ErrorContext(ctx, "attempt failed", "error", err)
	} else {
		log.InfoContext(ctx, "attempt ended", "outcome", outcome)
	}
	return outcome, err
}

func effectOf(rec *record, b *toolresult.Bound, p toolresult.Principal) Effect {
	return Effect{Identity: b.EffectIdentity(), StatusRef: rec.statusRef(), Principal: p,
		Tool: rec.operation.ToolName, IdempotencyKey: rec.operation.IdempotencyKey, Attempt: rec.fence()}
}

// An attempt is one claim of an operation that may have its effect now.
type attempt struct {
	rt     *Runtime
	tool   *tool
	claim  claim
	bound  *toolresult.Bound
	input  input
	effect Effect
	// uncertain says that an earlier attempt may have had the effect.
	uncertain bool
	attemptOptions
}

// bind binds the call that created the operation to the tool as it is now.
func (a *attempt) bind() (err error) {
	if r := a.request; r != nil {
		a.bound, a.input = r.bound, r.input
		return nil
	}
	rec := a.claim.record
	a.bound, err = toolresult.Bind(rec.owner(), rec.firstCall(), a.tool.spec.Contract())
	if err == nil {
		a.input, err = a.tool.decode(rec.arguments())
	}
	if err != nil {
		return &ContractError{rec.statusRef(), "request/contract evidence: the stored arguments are not the tool's"}
	}
	return nil
}

// run has the effect, unless it is known to have happened, and records it.
func (a *attempt) run(ctx context.Context) (Outcome, error) {
	rec := a.claim.record
	if rec.downstream != nil {
		if err := rec.checkObserved(a.tool.spec, a.bound).err(rec.statusRef()); err != nil {
			return "", err
		}
		return a.finish(ctx, nil)
	}
	if err := ctx.Err(); err != nil {
		return "", errors.Join(err, a.note(ctx, endDenied))
	}
	limit := a.limit()
	if limit <= 0 {
		// What came before has taken the whole lease: somebody else may run it.
		return OutcomeUnknown, a.note(ctx, endDenied)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if a.tool.effect == Transactional {
		return a.runTx(ctx, limited)
	}
	answer, known, err := a.obtain(limited)
	if nothing, ok := notDone(err); ok {
		return a.nothingDone(ctx, nothing)
	}
	if err != nil || !known {
		return a.unknown(ctx, err)
	}
	e := a.rt.evidence(a.tool, answer, rec.statusRef())
	if violation := a.violation(answer, e); violation != "" {
		return a.reject(ctx, e, violation)
	}
	return a.finish(ctx, &e)
}

// limit is how long the handler may take: it ends with what is left of the
// lease, unless somebody renews that, because after it somebody else may run.
func (a *attempt) limit() time.Duration {
	if a.worker != nil {
		return a.tool.timeout
	}
	left := limits.Duration(a.claim.event.LeaseUntil.Int64 - a.rt.now())
	return min(a.tool.timeout, left)
}

// obtain gets the receipt of the effect: from the downstream's memory where an
// earlier attempt may have had it, and otherwise by running the handler. It
// returns false when the effect may have happened and must not be repeated.
func (a *attempt) obtain(ctx context.Context) (observed, bool, error) {
	if a.uncertain {
		switch a.tool.effect {
		case Once:
			return observed{}, false, nil
		case Queryable:
			answer, found, err := a.rt.ask(ctx, a.tool, a.effect, a.input)
			if err != nil || found {
				return answer, found, err
			}
			a.uncertain = false
		}
	}
	answer, err := a.rt.guard(ctx, a.tool.run, a.effect, a.input)
	return answer, err == nil, err
}

// maxReceiptID bounds the ids of a receipt, in bytes.
const maxReceiptID = 1024

// violation says how an answer breaks the output contract, or "".
func (a *attempt) violation(answer observed, e toolresult.Evidence) string {
	switch {
	case answer.malformed != nil:
		return "the data: " + rule(answer.malformed)
	case schema.IsBlank(e.ReceiptID) || schema.IsBlank(e.RequestID):
		return "a write's receipt needs an id and a request id"
	case !utf8.ValidString(e.ReceiptID + e.RequestID + e.ResourceRevision):
		return "the receipt is not valid UTF-8"
	case strings.ContainsRune(e.ReceiptID+e.RequestID+e.ResourceRevision, 0):
		return "the receipt holds a zero byte" // which no text of PostgreSQL can
	case len(e.ReceiptID) > maxReceiptID || len(e.RequestID) > maxReceiptID:
		return "an id of the receipt is longer than 1024 bytes" // and too long for an index of PostgreSQL
	}
	if ps := a.tool.spec.CheckOutput(a.bound, e); len(ps) > 0 {
		return ps[0].Rule // without the place, whose names are the answer's
	}
	return ""
}

// finish records the effect, whether or not the caller still waits for it. Only
// a lost lease keeps it from that: then somebody else has the say.
func (a *attempt) finish(ctx context.Context, e *toolresult.Evidence) (Outcome, error) {
	ctx = context.WithoutCancel(ctx)
	rec, now := a.claim.record, a.rt.now()
	if a.failure == AfterDownstreamCommit {
		if e == nil {
			return OutcomeUnknown, nil
		}
		return OutcomeUnknown, a.rt.store.observe(ctx, rec, *e, now)
	}
	var done *record
	err := a.insist(func() (err error) {
		done, err = a.rt.store.commit(ctx, commitment{record: rec, evidence: e, fence: rec.fence(), now: now})
		return err
	})
	if e != nil && errors.Is(err, errReceiptRefused) {
		return a.reject(ctx, *e, "the ledger has its ids under another operation")
	}
	if err != nil {
		if e != nil {
			err = a.late(ctx, err, storable(*e), "it came after the lease was lost")
		}
		return "", fmt.Errorf("toolruntime: commit receipt %s: %w", rec.statusRef(), err)
	}
	*rec = *done
	return Succeeded, nil
}

// evidence is a handler's answer as a receipt.
func (rt *Runtime) evidence(t *tool, o observed, statusRef string) toolresult.Evidence {
	at := rt.now()
	if !o.at.IsZero() {
		at = o.at.Unix()
	}
	return toolresult.Evidence{ReceiptID: o.receiptID, RequestID: o.requestID, StatusRef: statusRef, Data: o.result,
		ProducerRevision: t.spec.Contract().Producer, ResourceRevision: o.resourceRevision,
		ObservedAt: toolresult.FormatTime(at)}
}

// ask asks the downstream about an effect, without causing it.
func (rt *Runtime) ask(ctx context.Context, t *tool, e Effect, in input) (answer observed, found bool, err error) {
	answer, err = rt.guard(ctx, func(ctx context.Context, e Effect, in input) (o observed, err error) {
		o, found, err = t.find(ctx, e, in)
		return o, err
	}, e, in)
	return answer, found, err
}

// guard runs a tool's code; a panic there is an error here.
func (rt *Runtime) guard(ctx context.Context, run func(context.Context, Effect, input) (observed, error), e Effect, in input) (o observed, err error) {
	defer func() {
		if r := recover(); r != nil {
			rt.log.ErrorContext(ctx, "handler panicked", "tool", e.Tool, "status_ref", e.StatusRef, "stack", string(debug.Stack()))
			err = errHandlerPanic
		}
	}()
	return run(ctx, e, in)
}
