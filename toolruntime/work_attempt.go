package toolruntime

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/ledger"
	"github.com/toolruntime/toolruntime-go/internal/limits"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// lease is one that lasts for at least Lease: the ledger's clock counts whole
// seconds, and up to one of them has passed already.
func (w *worker) lease() ledger.Term {
	now := w.rt.now()
	return ledger.Term{Now: now, Until: limits.After(now, limits.Plus(w.Lease, time.Second)), Own: w.rt.own}
}

// insist is [Runtime.insist] for a claim of which no attempt is made: unrecorded, it
// would pass for one that may have had its effect.
func (w *worker) insist(ctx context.Context, what string, c ledger.Claim, write func(context.Context) error) error {
	free := context.WithoutCancel(ctx)
	return w.rt.insist(func() (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, w.Lease) },
		what, c.StatusRef(), func(try try) error { return try(func() error { return write(free) }) })
}

// unrun gives back an operation of which no attempt could be made.
func (w *worker) unrun(ctx context.Context, c ledger.Claim, cause error) error {
	if errors.Is(cause, ledger.ErrLeaseLost) {
		return cause
	}
	return errors.Join(cause, w.giveBack(ctx, c, backoff(c.Fence())))
}

// giveBack lets others have an operation after a while.
func (w *worker) giveBack(ctx context.Context, c ledger.Claim, after time.Duration) error {
	return w.insist(ctx, "give back", c, func(ctx context.Context) error {
		_, err := w.rt.ledger.GiveBack(ctx, c, w.rt.now(), after)
		return err
	})
}

// exhausted puts an operation in review that was attempted too often or for too
// long.
func (w *worker) exhausted(ctx context.Context, c ledger.Claim) (bool, error) {
	now, maxAge := w.rt.now(), int64(w.MaxAge/time.Second)
	if c.Fence() <= w.MaxAttempts && now-c.CreatedAt() <= maxAge {
		return false, nil
	}
	n, since, err := w.rt.ledger.Tries(ctx, c.Operation)
	if err != nil || n < w.MaxAttempts && now-since <= maxAge {
		return false, err
	}
	c.Because(ledger.CauseExhausted)
	p := ledger.Parking{Operation: c.Operation, Fence: c.Fence(), Reason: toolresult.ToolError, Now: now, Ending: ledger.EndNotDone}
	if c.Lost {
		p.Reason, p.Ending = toolresult.OutcomeUnknown, ledger.EndUnknown
	}
	return true, w.insist(ctx, "park", c, func(ctx context.Context) error {
		_, err := w.rt.ledger.Park(ctx, p)
		return err
	})
}

func (w *worker) run(ctx context.Context, c ledger.Claim) error {
	if over, err := w.exhausted(ctx, c); over {
		return err
	} else if err != nil {
		return w.unrun(ctx, c, err)
	}
	// The claim may have taken long, and begin with little of its lease left.
	left := w.rt.left(c.Operation)
	if left < w.Lease/3*2 {
		left = w.Lease // from before it is renewed
		begun := time.Now()
		if err := w.rt.ledger.Renew(ctx, c.Operation, w.lease()); err != nil {
			return w.unrun(ctx, c, err)
		}
		left -= time.Since(begun)
	}
	held, release := w.hold(ctx, c.Operation, left)
	defer release()
	_, err := w.rt.attempt(held, w.rt.carrier(c.Operation), c, attemptOptions{worker: w.WorkOptions, shutdown: ctx})
	return err
}

// hold renews the lease of a claim until release is called. The context that it
// returns ends when the lease is lost, or may be: when as much time has passed, by
// the monotonic clock, as was left of it or as the last renewal gave. Renewing goes
// on then, because a lease that nobody has taken can be had again, for what the
// handler has come to.
func (w *worker) hold(ctx context.Context, c *ledger.Operation, left time.Duration) (context.Context, func()) {
	renewals, stop := context.WithCancel(ctx)
	held, cancel := context.WithCancelCause(ctx)
	over := time.AfterFunc(left, func() { cancel(ledger.ErrLeaseLost) })
	key, claimed := keyOf(c), *c // the attempt changes c
	var renewing sync.WaitGroup
	renewing.Go(func() {
		tick := time.NewTicker(w.Lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-renewals.Done():
				return
			case <-tick.C:
			}
			begun := time.Now()
			switch err := w.rt.ledger.Renew(renewals, &claimed, w.lease()); {
			case err == nil:
				over.Reset(w.Lease - time.Since(begun))
				inHand.extend(key, w.Lease)
			case errors.Is(err, ledger.ErrLeaseLost):
				cancel(ledger.ErrLeaseLost)
				return
			}
		}
	})
	return held, func() {
		stop()
		renewing.Wait()
		over.Stop()
		cancel(nil)
	}
}
