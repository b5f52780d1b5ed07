package toolruntime

import (
	"context"
	"iter"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/ledger"
	"github.com/toolruntime/toolruntime-go/internal/limits"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A Cursor is a place in a list of the ledger's, to go on from: "" is its beginning. It
// is opaque, and may be stored. It names nobody.
type Cursor = ledger.Cursor

// A Completion says that an operation has ended, or waits for a person, and how it stood
// when it was read. It names no tenant, subject, key, argument or result.
type Completion struct {
	StatusRef string
	Tool      string
	State     ledger.State    // succeeded, failed or in_review
	Code      toolresult.Code // OK, or why it failed or is in review; "" of a failed one that was pruned
	At        time.Time       // when it ended, or went in review
	// Cursor goes on behind this one, and behind all that came before it.
	Cursor ledger.Cursor
}

// CompletionOptions of [Runtime.Completions]. The zero value is safe.
type CompletionOptions struct {
	// Poll is how long the ledger is not looked at for what other processes end, at
	// most; 0 means 2 s.
	Poll time.Duration
	// UntilNow ends the list where there is no more at the moment, instead of waiting.
	UntilNow bool
}

// Completions tells of every operation that has ended or has gone into review, behind a
// cursor; "" is the beginning. Then it waits for more, until ctx ends: what this process
// ends it sees at once, and what others end when it looks. It changes nothing, and any
// number of hosts may listen, each with a cursor of its own.
//
// Each operation is told at least once after it has ended, whatever dies: whoever stores
// the cursor of what he has dealt with, and goes on from it, misses nothing, neither what
// commits late nor what is pruned meanwhile, and no clock matters. Some are told again:
// after a restart those that came while something else had not committed yet, and a few
// whose receipt was accepted later than it was observed. Deal with StatusRef and State
// once. One that was in review is told again when a person has ended that; where the
// person was faster than the listener it is told as it ended. The order is about that of
// the ends.
//
// Operations that had failed or gone into review before migration 00009, and those that
// were pruned before it, are not told. On PostgreSQL it needs the primary, and says
// [ErrReadOnly] on a standby.
//
// The error is ctx's when it has ended. Any other ends the list as well: begin again with
// the last cursor. A cursor of another ledger, or from later than a backup that this
// ledger was restored from, is an [ErrInvalidInput].
func (rt *Runtime) Completions(ctx context.Context, after ledger.Cursor, opts *CompletionOptions) iter.Seq2[Completion, error] {
	o := given(opts)
	o.Poll = or(o.Poll, lastLook)
	return func(yield func(Completion, error) bool) {
		if err := rt.completions(ctx, after, o, func(c Completion) bool { return yield(c, nil) }); err != nil {
			yield(Completion{}, err)
		}
	}
}

func (rt *Runtime) completions(ctx context.Context, after ledger.Cursor, o CompletionOptions, tell func(Completion) bool) error {
	if err := limits.Wait.Check("poll", o.Poll); err != nil {
		return err
	}
	f, err := rt.ledger.Feed(ctx, after)
	if err != nil {
		return err
	}
	rung, leave := ledger.Endings.ExpectAny()
	defer leave()
	for rest := min(firstLook, o.Poll); ; rest = min(2*rest, o.Poll) {
		for more := true; more; {
			var ends []ledger.End
			if ends, more, err = rt.ledger.More(ctx, f); err != nil {
				return err
			}
			for _, e := range ends {
				if f.Tell(e); e.Told() {
					rest = min(firstLook, o.Poll)
					if !tell(completionOf(&e, f.Cursor())) {
						return nil
					}
				}
			}
		}
		if o.UntilNow {
			return nil
		}
		if err := sleep(ctx, rest, rung); err != nil {
			return err
		}
	}
}

func completionOf(e *ledger.End, c ledger.Cursor) Completion {
	code := e.Reason
	if e.State == StateSucceeded {
		code = toolresult.OK
	}
	return Completion{StatusRef: e.StatusRef, Tool: e.Tool, State: e.State, Code: code, At: contract.At(e.At), Cursor: c}
}
