package toolruntime

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
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
func (a *attempt) because(why cause) *attempt {
	a.claim.cause = why
	return a
}

// causeOf is what an error says to who has to find out, without a word of its own.
func causeOf(err error) cause {
	switch {
	case errors.Is(err, ErrCallback):
		return causePanic
	case errors.Is(err, errKeyForgotten):
		return causeForgotten
	case hopeless(err):
		return causeReview
	case errors.Is(err, ErrContract):
		return causeEvidence
	case errors.Is(err, context.DeadlineExceeded):
		return causeTimeout
	case errors.Is(err, context.Canceled):
		return causeCancelled
	default:
		return causeError
	}
}

// note records that an attempt ends before its handler ran, so that nobody later
// takes it for one that may have had its effect. The lease simply runs out. An
// earlier attempt of which nobody knows stays what it is.
func (a *attempt) note(ctx context.Context, how ending) error {
	if a.uncertain {
		how = endUnknown
	}
	return a.settle(ctx, "note", func(ctx context.Context, s *Store, now int64) error {
		return s.note(ctx, a.claim.record, how, now)
	})
}

// denied lets go of an operation whose effect is not allowed now. Outside of a
// worker the lease simply runs out.
func (a *attempt) denied(ctx context.Context) error {
	a.because(causeRule)
	if a.forbidden == AuthorizationDenied {
		a.because(causeNotAllowed)
	}
	if a.worker == nil {
		return a.note(ctx, endDenied)
	}
	return a.settle(ctx, "release", func(ctx context.Context, s *Store, now int64) error {
		if a.uncertain {
			// An earlier attempt may have had its effect: that must stay known.
			return s.postpone(ctx, a.claim.record, endUnknown, now, limits.After(now, backoff(a.claim.fence())))
		}
		return s.release(ctx, a.claim.record, endDenied, now, limits.After(now, backoff(a.claim.fence())))
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
		var done *record
		err := a.settle(ctx, "fail", func(ctx context.Context, s *Store, now int64) (err error) {
			done, err = s.fail(ctx, a.claim.record, toolresult.ToolError, now)
			return err
		})
		if err == nil {
			*a.claim.record = *done
		}
		return NothingDone, err
	}
	wait := max(backoff(a.claim.fence()), e.After)
	err := a.settle(ctx, "release", func(ctx context.Context, s *Store, now int64) error {
		return s.release(ctx, a.claim.record, endNotDone, now, limits.After(now, wait))
	})
	if err == nil {
		a.claim.operation.State = string(pending)
	}
	return NothingDone, err
}

// unknown leaves the operation to a later attempt, or to a person where the
// effect must not be repeated, or repeating it would tell nothing.
func (a *attempt) unknown(ctx context.Context, cause error) (Outcome, error) {
	a.because(causeNoRepeat)
	if cause != nil {
		a.because(causeOf(cause)).log(ctx, cause)
	}
	how := endUnknown
	if errors.Is(context.Cause(ctx), errDrained) {
		how = endInterrupted
		a.because("")
	}
	if a.tool.effect == Once || hopeless(cause) {
		return a.park(ctx, parking{reason: toolresult.OutcomeUnknown, ending: how})
	}
	wait := backoff(a.claim.fence())
	// A downstream may have said when to ask again, whether nothing was done in
	// this attempt or the request is still in flight there.
	var hint interface{ AskAfter() time.Duration }
	if errors.As(cause, &hint) {
		wait = max(wait, hint.AskAfter())
	}
	if how == endInterrupted {
		wait = 0
	}
	return OutcomeUnknown, a.settle(ctx, "postpone", func(ctx context.Context, s *Store, now int64) error {
		return s.postpone(ctx, a.claim.record, how, now, limits.After(now, wait))
	})
}

// reject keeps an answer that broke the contract after the effect may have
// happened: as evidence, for a person, and never for a second run.
func (a *attempt) reject(ctx context.Context, e toolresult.Evidence, violation string) (Outcome, error) {
	err := a.record(ctx, "park", func(try try) error { return a.rejecting(ctx, try, e, violation) })
	return a.parked(toolresult.OutputContractViolation, err)
}

func (a *attempt) rejecting(ctx context.Context, try try, e toolresult.Evidence, violation string) error {
	e, violation = storable(e), bounded(violation, 1024)
	err := a.parking(ctx, try, parking{reason: toolresult.OutputContractViolation, rejected: &e,
		violation: violation, ending: endRejected})
	return a.late(ctx, try, err, e, violation)
}

// late keeps an answer that came after the lease was lost: it is refused like
// every other late write, but a person who has to find out what has happened
// should see it. It passes the error on.
func (a *attempt) late(ctx context.Context, try try, err error, e toolresult.Evidence, violation string) error {
	if !errors.Is(err, ErrLeaseLost) {
		return err
	}
	return errors.Join(err, try(func() error {
		return a.rt.store.keepLate(context.WithoutCancel(ctx), a.claim.record, e, violation, a.rt.now())
	}))
}

// storable cuts an answer down to what every database can hold.
func storable(e toolresult.Evidence) toolresult.Evidence {
	e.Data = bounded(e.Data, canonjson.MaxBytes)
	e.ReceiptID, e.RequestID = bounded(e.ReceiptID, maxReceiptID), bounded(e.RequestID, maxReceiptID)
	e.ResourceRevision = bounded(e.ResourceRevision, 1024)
	return e
}

func (a *attempt) park(ctx context.Context, p parking) (Outcome, error) {
	err := a.record(ctx, "park", func(try try) error { return a.parking(ctx, try, p) })
	return a.parked(p.reason, err)
}

func (a *attempt) parking(ctx context.Context, try try, p parking) error {
	return try(func() error {
		p.record, p.fence, p.now = a.claim.record, a.claim.fence(), a.rt.now()
		return a.rt.store.park(context.WithoutCancel(ctx), p)
	})
}

func (a *attempt) parked(reason toolresult.Code, err error) (Outcome, error) {
	if err == nil {
		a.claim.operation.State, a.claim.operation.Reason = string(inReview), string(reason)
	}
	return OutcomeUnknown, err
}

// settle records how an attempt has ended, by one write.
func (a *attempt) settle(ctx context.Context, what string, write func(context.Context, *Store, int64) error) error {
	return a.record(ctx, what, func(try try) error {
		return try(func() error { return write(context.WithoutCancel(ctx), a.rt.store, a.rt.now()) })
	})
}

// record insists on recording what the attempt has come to, whether or not its
// caller still waits. A worker waits until it shuts down: meanwhile it does not
// claim the operation, whose lease may have run out, from itself. A caller waits
// until its context ends, or the lease.
func (a *attempt) record(ctx context.Context, what string, do recording) error {
	key := keyOf(a.claim.record)
	again := false
	err := a.rt.insist(func() (context.Context, context.CancelFunc) {
		again = true
		inHand.take(key, keepTrying)
		if a.worker != nil {
			return a.shutdown, func() {}
		}
		return context.WithTimeout(ctx, a.rt.left(a.claim.record))
	}, what, a.claim.statusRef(), func(try try) error {
		if again {
			defer inHand.leave(key)
		}
		return do(try)
	})
	a.pending = a.pending || errors.Is(err, ErrNotRecorded)
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
