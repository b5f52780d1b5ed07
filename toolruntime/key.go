package toolruntime

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/ledger"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

const (
	// DefaultKeyMemory is for how long payment services commonly keep a key.
	DefaultKeyMemory = 24 * time.Hour
	// Forever is the KeyMemory of a downstream that never forgets.
	Forever time.Duration = math.MaxInt64
)

func (t Tool[In, Out]) memory() time.Duration {
	switch {
	case t.KeyMemory == 0 && t.Risk == Write && t.Effect == Idempotent:
		return DefaultKeyMemory
	case t.KeyMemory == 0 && t.Effect == Queryable:
		return Forever
	}
	return t.KeyMemory
}

// errKeyForgotten is why an effect is not repeated that may have happened.
var errKeyForgotten = fmt.Errorf("%s: %w", keyForgotten, ErrNeedsReview)

const keyForgotten = "the downstream may have forgotten the key, so a repetition could be a second effect"

// readKey reads what is known of the key, where the downstream forgets keys and
// there was an attempt before this one.
func (a *attempt) readKey(ctx context.Context) (err error) {
	if a.tool.mayForget() && a.claim.Fence() > 1 {
		a.key, err = a.rt.ledger.KeyUse(ctx, a.claim.Operation)
	}
	return err
}

// forgotten reports whether an earlier attempt may have had the effect, and the
// downstream may have forgotten its key before one that begins now is over.
func (a *attempt) forgotten(limit time.Duration) bool {
	return (a.uncertain || a.key.Doubtful) && a.tool.forgets(a.key, a.rt.now(), limit)
}

// mayForget reports whether there is a key that the downstream forgets.
func (t *tool) mayForget() bool { return t.keyMemory != 0 && t.keyMemory != Forever }

// forgets reports whether a key may be forgotten within limit. Seconds are whole,
// so it is up to one later than now.
func (t *tool) forgets(k ledger.KeyUse, now int64, limit time.Duration) bool {
	return t.mayForget() && k.Since > 0 && now+1-k.Since > int64((t.keyMemory-limit)/time.Second)
}

// mayTryAgain refuses a decision that no worker would carry out.
func (rt *Runtime) mayTryAgain(ctx context.Context, r *ledger.Operation) error {
	t := rt.carrier(r)
	if t == nil || !t.mayForget() || r.State() != ledger.InReview {
		return nil
	}
	k, err := rt.ledger.KeyUse(ctx, r)
	if err == nil && k.Doubtful && t.forgets(k, rt.now(), t.timeout) {
		err = &toolresult.InputError{Field: "decision",
			Rule: "must not be try_again: " + keyForgotten + "; if nothing was done say confirmed_not_done, and make a new call"}
	}
	return err
}
