package toolruntime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/failpoint"
	"github.com/toolruntime/toolruntime-go/internal/ledger"
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
	CrashedAfterClaim   Outcome = "crashed_after_claim" // in a drill (package drill)
	OutcomeUnknown      Outcome = "outcome_unknown"
	AuthorizationDenied Outcome = "authorization_denied" // no effect; recoverable when the lease has run out
	BusinessRuleDenied  Outcome = "business_rule_denied" // no effect; recoverable when the lease has run out
	NothingDone         Outcome = "nothing_done"         // the handler is certain; it waits for a next attempt, or has failed
)

// ProcessOptions of [Runtime.Process]. The zero value is safe.
type ProcessOptions struct {
	// Lease is how long nobody else may carry it out, in whole seconds; 0 means
	// [DefaultLease].
	Lease time.Duration
}

// claim takes the exclusive right to an operation for a worker, if it is pending or
// its lease has run out.
func (rt *Runtime) claim(ctx context.Context, statusRef, workerID string, lease time.Duration) (ledger.Claim, error) {
	if err := limits.StatusRef(statusRef); err != nil {
		return ledger.Claim{}, err
	}
	if err := limits.WorkerID(workerID); err != nil {
		return ledger.Claim{}, err
	}
	if err := rt.ledger.Holds("worker_id", workerID); err != nil {
		return ledger.Claim{}, err
	}
	now := rt.now()
	if err := limits.LeaseFrom(now, lease); err != nil {
		return ledger.Claim{}, err
	}
	c, err := rt.ledger.ClaimByRef(ctx, statusRef, ledger.Claiming{Worker: workerID, Term: ledger.Term{Now: now, Until: limits.After(now, lease), Own: rt.own}, Knows: rt.carries})
	if err == nil && c.Paused {
		err = fmt.Errorf("toolruntime: claim %s: %w", statusRef, ledger.ErrPaused)
	}
	if err == nil && c.Foreign {
		err = &ledger.ContractError{StatusRef: statusRef, Rule: "its tool is not registered here under the contract with which it was accepted: it was not claimed"}
	}
	return c, err
}

// Process claims an operation and carries it out, or finishes what an earlier
// attempt has left: the same code serves both. What it may do about a lost
// attempt is what the tool's effect kind allows. It claims what is pending or whose
// lease has run out. One whose tool is not registered here, or not under the contract
// with which it was accepted, is left as it is: [NotClaimed] with a [*ContractError].
// So is one whose tool is paused: [NotClaimed] with [ErrPaused].
func (rt *Runtime) Process(ctx context.Context, statusRef, workerID string, opts *ProcessOptions) (Outcome, error) {
	lease := or(given(opts).Lease, DefaultLease)
	stop, ctx, err := stopping(ctx, "a processing", failpoint.AfterClaim, failpoint.AfterDownstreamCommit)
	if err != nil {
		return "", err
	}
	c, err := rt.claim(ctx, statusRef, workerID, lease)
	switch {
	case c.Foreign, c.Paused:
		return NotClaimed, err
	case err != nil:
		return "", err
	case c.Operation == nil:
		return NotClaimed, nil
	case !c.Claimed && c.State() == ledger.Succeeded:
		return Succeeded, nil
	case !c.Claimed:
		return NotClaimed, nil
	case stop == failpoint.AfterClaim:
		return CrashedAfterClaim, nil
	}
	return rt.attempt(ctx, rt.carrier(c.Operation), c, attemptOptions{stop: stop})
}

// attemptOptions say how an attempt is made.
type attemptOptions struct {
	// stop is where the process dies, in a drill, or "".
	stop string
	// worker is set for an attempt of [Runtime.Work], which lets go of what it
	// could not do instead of letting the lease run out.
	worker *WorkOptions
	// shutdown ends when the worker has no time left to wait for the database.
	shutdown context.Context
	// request is the call itself where it is its caller who makes the attempt.
	request *request
}

// attempt carries out a claimed operation. c's record follows what is stored.
func (rt *Runtime) attempt(ctx context.Context, t *tool, c ledger.Claim, o attemptOptions) (outcome Outcome, err error) {
	defer func() { rt.ended.add(c.ToolName(), outcome, err) }()
	hand := keyOf(c.Operation)
	inHand.take(hand, rt.left(c.Operation))
	log := rt.log.With("status_ref", c.StatusRef(), "tool", c.ToolName(), "attempt", c.Fence())
	a := attempt{rt: rt, tool: t, claim: c, uncertain: c.Lost, attemptOptions: o}
	defer func() {
		if !a.pending {
			inHand.leave(hand)
		}
	}()
	if a.clearance, err = a.clear(ctx); err != nil {
		return "", errors.Join(err, a.because(causeOf(err)).note(ctx, ledger.EndDenied))
	}
	if a.forbidden != "" {
		log.InfoContext(ctx, "attempt ended", "outcome", a.forbidden)
		return a.forbidden, a.denied(ctx)
	}
	outcome, err = a.run(ctx)
	if err != nil {
		log.ErrorContext(ctx, "attempt failed", "error", err)
	} else {
		log.InfoContext(ctx, "attempt ended", "outcome", outcome)
	}
	return outcome, err
}

func effectOf(rec *ledger.Operation, b *toolresult.Bound, p toolresult.Principal) Effect {
	return Effect{Identity: b.EffectIdentity(), StatusRef: rec.StatusRef(), Principal: p,
		Tool: rec.ToolName(), IdempotencyKey: rec.IdempotencyKey(), Attempt: rec.Fence()}
}

// An attempt is one claim of an operation that may have its effect now.
type attempt struct {
	rt    *Runtime
	tool  *tool
	claim ledger.Claim
	clearance
	// uncertain says that an earlier attempt may have had the effect.
	uncertain bool
	// pending says that what it has come to is still being recorded.
	pending bool
	key     ledger.KeyUse
	attemptOptions
}

// A clearance is what an attempt finds out before its handler may run.
type clearance struct {
	bound     *toolresult.Bound
	input     input
	effect    Effect
	forbidden Outcome // why it may not run, or ""
}

// clear asks everybody who has a say. The caller of a call waits for them himself;
// a worker waits for the tool's timeout, in all.
func (a *attempt) clear(ctx context.Context) (c clearance, err error) {
	if a.request == nil {
		return aside(ctx, a.tool.timeout, a.examine)
	}
	answered := false
	defer func() {
		if !answered { // a callback ends the caller's goroutine, and with it the attempt
			if err := a.because(ledger.CausePanic).note(ctx, ledger.EndDenied); err != nil {
				a.rt.log.ErrorContext(ctx, "attempt failed", "status_ref", a.claim.StatusRef(), "error", err)
			}
		}
	}()
	c, err = a.examine(ctx)
	answered = true
	return c, err
}

// examine changes nothing of a: it may outlast it.
func (a *attempt) examine(ctx context.Context) (c clearance, err error) {
	rt, t, rec := a.rt, a.tool, a.claim.Operation
	if c.bound, c.input, err = a.bind(ctx); err != nil {
		return c, err
	}
	current, allowed, err := rt.admit(ctx, t, rec.Owner(), c.input.resource)
	c.effect = effectOf(rec, c.bound, current)
	if err != nil {
		return c, err
	}
	if !allowed {
		c.forbidden = AuthorizationDenied
		return c, nil
	}
	if err := rt.trust(ctx, t, rec, c.bound, current); err != nil {
		return c, err
	}
	ok, err := rt.obeys(ctx, t, current, c.input)
	if !ok {
		c.forbidden = BusinessRuleDenied
	}
	return c, err
}

// bind binds the call that created the operation to its tool.
func (a *attempt) bind(ctx context.Context) (b *toolresult.Bound, in input, err error) {
	if r := a.request; r != nil {
		return r.bound, r.input, nil
	}
	rec := a.claim.Operation
	b, err = toolresult.Bind(rec.Owner(), rec.FirstCall(), a.tool.spec.Contract())
	fits := err == nil && len(a.tool.spec.CheckArguments(b)) == 0
	if fits {
		in, err = a.rt.decode(ctx, a.tool, rec.Arguments())
	}
	if !fits || err != nil && !errors.Is(err, ErrCallback) {
		err = &ledger.ContractError{StatusRef: rec.StatusRef(), Rule: "request/contract evidence: the stored arguments are not the tool's"}
	}
	return b, in, err
}

// run has the effect, unless it is known to have happened, and records it.
func (a *attempt) run(ctx context.Context) (Outcome, error) {
	rec := a.claim.Operation
	if rec.Observed() {
		if err := rec.CheckObserved(a.tool.spec, a.bound); err != nil {
			return "", err
		}
		return a.finish(ctx, nil)
	}
	if err := errors.Join(ctx.Err(), a.readKey(ctx)); err != nil {
		return "", errors.Join(err, a.because(causeOf(err)).note(ctx, ledger.EndDenied))
	}
	limit := a.limit()
	if limit <= 0 {
		// What came before has taken the whole lease: somebody else may run it.
		return OutcomeUnknown, a.because(ledger.CauseNoTime).note(ctx, ledger.EndDenied)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if a.tool.effect == Transactional {
		return a.runTx(ctx, limited)
	}
	answer, known, err := a.obtain(limited, limit)
	if nothing, ok := notDone(err); ok {
		return a.nothingDone(ctx, nothing)
	}
	if err != nil || !known {
		return a.unknown(ctx, err)
	}
	e := a.rt.evidence(a.tool, answer, rec.StatusRef())
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
	return min(a.tool.timeout, a.rt.left(a.claim.Operation))
}

// left is how long the lease of a claim still holds.
func (rt *Runtime) left(c *ledger.Operation) time.Duration {
	return time.Unix(c.LeaseUntil(), 0).Sub(rt.clock())
}

// obtain gets the receipt of the effect: from the downstream's memory where an
// earlier attempt may have had it, and otherwise by running the handler. It
// returns false when the effect may have happened and must not be repeated. It is
// over within limit.
func (a *attempt) obtain(ctx context.Context, limit time.Duration) (observed, bool, error) {
	if a.uncertain && a.tool.effect == Once {
		return observed{}, false, nil
	}
	forgotten := a.forgotten(limit)
	if a.uncertain && a.tool.effect == Queryable || forgotten && a.tool.find != nil {
		answer, found, err := a.rt.ask(ctx, a.tool, a.effect, a.input)
		if err != nil || found {
			return answer, found, err
		}
		a.uncertain = a.uncertain && a.tool.effect != Queryable
	}
	if forgotten {
		return observed{}, false, errKeyForgotten
	}
	answer, err := a.rt.guard(ctx, a.tool.run, a.effect, a.input)
	return answer, err == nil, err
}

// violation says how an answer breaks the output contract, or "".
func (a *attempt) violation(answer observed, e toolresult.Evidence) string {
	switch {
	case answer.malformed != nil:
		return "the data: " + canonjson.Rule(answer.malformed)
	case schema.IsBlank(e.ReceiptID) || schema.IsBlank(e.RequestID):
		return "a write's receipt needs an id and a request id"
	case !utf8.ValidString(e.ReceiptID + e.RequestID + e.ResourceRevision):
		return "the receipt is not valid UTF-8"
	case strings.ContainsRune(e.ReceiptID+e.RequestID+e.ResourceRevision, 0):
		return "the receipt holds a zero byte" // which no text of PostgreSQL can
	case len(e.ReceiptID) > ledger.MaxReceiptID || len(e.RequestID) > ledger.MaxReceiptID:
		return "an id of the receipt is longer than 1024 bytes" // for which fits has made room
	}
	if ps := a.tool.spec.CheckOutput(a.bound, e); len(ps) > 0 {
		return ps[0].Rule // without the place, whose names are the answer's
	}
	return ""
}

// finish records the effect. Only a lost lease keeps it from that: then somebody
// else has the say.
func (a *attempt) finish(ctx context.Context, e *toolresult.Evidence) (Outcome, error) {
	l, write := a.rt.ledger, context.WithoutCancel(ctx)
	rec, now := a.claim.Operation, a.rt.now()
	if a.stop == failpoint.AfterDownstreamCommit {
		if e == nil {
			return OutcomeUnknown, nil
		}
		return OutcomeUnknown, a.record(ctx, "observe receipt", func(try try) (*ledger.Operation, error) {
			return nil, try(func() error { return l.Observe(write, rec, *e, now) })
		})
	}
	refused := false
	err := a.record(ctx, "commit receipt", func(try try) (done *ledger.Operation, err error) {
		err = try(func() (err error) {
			done, err = l.Commit(write, ledger.Commitment{Operation: rec, Evidence: e, Fence: rec.Fence(), Now: now})
			return err
		})
		switch refused = e != nil && errors.Is(err, ledger.ErrReceiptRefused); {
		case refused:
			return a.rejecting(ctx, try, *e, "the ledger has its ids under another operation")
		case e != nil:
			err = a.late(ctx, try, err, storable(*e), "it came after the lease was lost")
		}
		return done, err
	})
	switch {
	case err != nil:
		return "", err
	case refused:
		return OutcomeUnknown, nil
	}
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
		ObservedAt: contract.FormatTime(at)}
}

// ask asks the downstream about an effect, without causing it, and so need not
// wait for who does not answer.
func (rt *Runtime) ask(ctx context.Context, t *tool, e Effect, in input) (answer observed, found bool, err error) {
	type recalled struct {
		observed
		found bool
	}
	f, err := aside(ctx, t.timeout, func(ctx context.Context) (f recalled, err error) {
		f.observed, err = rt.guard(ctx, func(ctx context.Context, e Effect, in input) (o observed, err error) {
			o, f.found, err = t.find(ctx, e, in)
			return o, err
		}, e, in)
		return f, err
	})
	return f.observed, f.found, err
}

// guard runs a tool's code; a panic there is an error here.
func (rt *Runtime) guard(ctx context.Context, run func(context.Context, Effect, input) (observed, error), e Effect, in input) (o observed, err error) {
	defer rt.contain(ctx, "handler of "+e.StatusRef, &err)
	return run(ctx, e, in)
}
