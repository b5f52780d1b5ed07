package toolruntime

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
	"github.com/toolruntime/toolruntime-go/internal/ledger"
	"github.com/toolruntime/toolruntime-go/internal/limits"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// How an attempt that has no receipt ends. What is known is recorded whether or
// not the caller still waits for it.

const (
	firstBackoff = time.Second
	lastBackoff  = 5 * time.Minute
)

// backoff is how long an operation waits after its n-th attempt: exponential,
// with jitter, so that what failed together does not come back together.
func backoff(n int64) time.Duration {
	d := lastBackoff
	if shift := min(max(n-1, 0), 20); firstBackoff<<shift < lastBackoff {
		d = firstBackoff << shift
	}
	return d/2 + rand.N(d/2+1)
}

// because says why the attempt ends as it is about to.
func (a *attempt) because(why ledger.Cause) *attempt {
	a.claim.Because(why)
	return a
}

// causeOf is what an error says to who has to find out, without a word of its own.
func causeOf(err error) ledger.Cause {
	switch {
	case errors.Is(err, ErrCallback):
		return ledger.CausePanic
	case errors.Is(err, errKeyForgotten):
		return ledger.CauseForgotten
	case hopeless(err):
		return ledger.CauseReview
	case errors.Is(err, ErrContract):
		return ledger.CauseEvidence
	case errors.Is(err, context.DeadlineExceeded):
		return ledger.CauseTimeout
	case errors.Is(err, context.Canceled):
		return ledger.CauseCancelled
	default:
		return ledger.CauseError
	}
}

// note records that an attempt ends before its handler ran, so that nobody later
// takes it for one that may have had its effect. The lease simply runs out. An
// earlier attempt of which nobody knows stays what it is.
func (a *attempt) note(ctx context.Context, how ledger.Ending) error {
	if a.uncertain {
		how = ledger.EndUnknown
	}
	return a.settle(ctx, "note", func(ctx context.Context, l *ledger.Ledger, now int64) (*ledger.Operation, error) {
		return l.Note(ctx, a.claim.Operation, how, now)
	})
}

// denied lets go of an operation whose effect is not allowed now. Outside of a
// worker the lease simply runs out.
func (a *attempt) denied(ctx context.Context) error {
	a.because(ledger.CauseRule)
	if a.forbidden == AuthorizationDenied {
		a.because(ledger.CauseNotAllowed)
	}
	if a.worker == nil {
		return a.note(ctx, ledger.EndDenied)
	}
	return a.settle(ctx, "release", func(ctx context.Context, l *ledger.Ledger, now int64) (*ledger.Operation, error) {
		if a.uncertain {
			// An earlier attempt may have had its effect: that must stay known.
			return l.Postpone(ctx, a.claim.Operation, ledger.EndUnknown, now, limits.After(now, backoff(a.claim.Fence())))
		}
		return l.Release(ctx, a.claim.Operation, ledger.EndDenied, now, limits.After(now, backoff(a.claim.Fence())))
	})
}

// nothingDone ends an attempt of which the handler is certain that it did
// nothing.
func (a *attempt) nothingDone(ctx context.Context, e *NotDoneError) (Outcome, error) {
	if a.uncertain && a.tool.effect != Transactional {
		// This attempt did nothing, but an earlier one may have had the effect.
		return a.unknown(ctx, e)
	}
	a.log(ctx, e)
	if e.Final {
		return NothingDone, a.settle(ctx, "fail", func(ctx context.Context, l *ledger.Ledger, now int64) (*ledger.Operation, error) {
			return l.Fail(ctx, a.claim.Operation, toolresult.ToolError, now)
		})
	}
	wait := max(backoff(a.claim.Fence()), e.After)
	return NothingDone, a.settle(ctx, "release", func(ctx context.Context, l *ledger.Ledger, now int64) (*ledger.Operation, error) {
		return l.Release(ctx, a.claim.Operation, ledger.EndNotDone, now, limits.After(now, wait))
	})
}

// unknown leaves the operation to a later attempt, or to a person where the
// effect must not be repeated, or repeating it would tell nothing.
func (a *attempt) unknown(ctx context.Context, cause error) (Outcome, error) {
	a.because(ledger.CauseNoRepeat)
	if cause != nil {
		a.because(causeOf(cause)).log(ctx, cause)
	}
	how := ledger.EndUnknown
	if errors.Is(context.Cause(ctx), errDrained) {
		how = ledger.EndInterrupted
		a.because("")
	}
	if a.tool.effect == Once || hopeless(cause) {
		return a.park(ctx, ledger.Parking{Reason: toolresult.OutcomeUnknown, Ending: how})
	}
	wait := backoff(a.claim.Fence())
	// A downstream may have said when to ask again, whether nothing was done in
	// this attempt or the request is still in flight there.
	var hint interface{ AskAfter() time.Duration }
	if errors.As(cause, &hint) {
		wait = max(wait, hint.AskAfter())
	}
	if how == ledger.EndInterrupted {
		wait = 0
	}
	return OutcomeUnknown, a.settle(ctx, "postpone", func(ctx context.Context, l *ledger.Ledger, now int64) (*ledger.Operation, error) {
		return l.Postpone(ctx, a.claim.Operation, how, now, limits.After(now, wait))
	})
}

// reject keeps an answer that broke the contract after the effect may have
// happened: as evidence, for a person, and never for a second run.
func (a *attempt) reject(ctx context.Context, e toolresult.Evidence, violation string) (Outcome, error) {
	return OutcomeUnknown, a.record(ctx, "park", func(try try) (*ledger.Operation, error) { return a.rejecting(ctx, try, e, violation) })
}

func (a *attempt) rejecting(ctx context.Context, try try, e toolresult.Evidence, violation string) (*ledger.Operation, error) {
	e, violation = storable(e), bounded(violation, 1024)
	done, err := a.parking(ctx, try, ledger.Parking{Reason: toolresult.OutputContractViolation, Rejected: &e,
		Violation: violation, Ending: ledger.EndRejected})
	return done, a.late(ctx, try, err, e, violation)
}

// late keeps an answer that came after the lease was lost: it is refused like
// every other late write, but a person who has to find out what has happened
// should see it. It passes the error on.
func (a *attempt) late(ctx context.Context, try try, err error, e toolresult.Evidence, violation string) error {
	if !errors.Is(err, ledger.ErrLeaseLost) {
		return err
	}
	return errors.Join(err, try(func() error {
		return a.rt.ledger.KeepLate(context.WithoutCancel(ctx), a.claim.Operation, e, violation, a.rt.now())
	}))
}

// storable cuts an answer down to what every database can hold.
func storable(e toolresult.Evidence) toolresult.Evidence {
	e.Data = bounded(e.Data, canonjson.MaxBytes)
	e.ReceiptID, e.RequestID = bounded(e.ReceiptID, ledger.MaxReceiptID), bounded(e.RequestID, ledger.MaxReceiptID)
	e.ResourceRevision = bounded(e.ResourceRevision, 1024)
	return e
}

func (a *attempt) park(ctx context.Context, p ledger.Parking) (Outcome, error) {
	return OutcomeUnknown, a.record(ctx, "park", func(try try) (*ledger.Operation, error) { return a.parking(ctx, try, p) })
}

func (a *attempt) parking(ctx context.Context, try try, p ledger.Parking) (done *ledger.Operation, err error) {
	err = try(func() (err error) {
		p.Operation, p.Fence, p.Now = a.claim.Operation, a.claim.Fence(), a.rt.now()
		done, err = a.rt.ledger.Park(context.WithoutCancel(ctx), p)
		return err
	})
	return done, err
}

// settle records how an attempt has ended, by one write.
func (a *attempt) settle(ctx context.Context, what string, write func(context.Context, *ledger.Ledger, int64) (*ledger.Operation, error)) error {
	return a.record(ctx, what, func(try try) (done *ledger.Operation, err error) {
		err = try(func() (err error) {
			done, err = write(context.WithoutCancel(ctx), a.rt.ledger, a.rt.now())
			return err
		})
		return done, err
	})
}

// record insists on recording what the attempt has come to, whether or not its
// caller still waits; the attempt then has the operation as do has stored it, if it has.
// A worker waits until it shuts down: meanwhile it does not claim the operation, whose
// lease may have run out, from itself. A caller waits until its context ends, or the
// lease.
func (a *attempt) record(ctx context.Context, what string, do func(try) (*ledger.Operation, error)) error {
	key := keyOf(a.claim.Operation)
	again := false
	var stored atomic.Pointer[ledger.Operation] // do may outlast this
	err := a.rt.insist(func() (context.Context, context.CancelFunc) {
		again = true
		inHand.take(key, keepTrying)
		if a.worker != nil {
			return a.shutdown, func() {}
		}
		return context.WithTimeout(ctx, a.rt.left(a.claim.Operation))
	}, what, a.claim.StatusRef(), func(try try) error {
		if again {
			defer inHand.leave(key)
		}
		done, err := do(try)
		if err == nil && done != nil {
			stored.Store(done)
		}
		return err
	})
	a.pending = a.pending || errors.Is(err, ErrNotRecorded)
	if done := stored.Load(); err == nil && done != nil {
		*a.claim.Operation = *done
	}
	return err
}

// log tells the operator what a handler said: no answer carries it.
func (a *attempt) log(ctx context.Context, cause error) {
	a.rt.log.WarnContext(ctx, "handler failed", "status_ref", a.effect.StatusRef, "tool", a.effect.Tool,
		"attempt", a.effect.Attempt, "error", cause)
}

func bounded(s string, limit int) string {
	if len(s) > limit {
		s = s[:limit]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
