package toolruntime

import (
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/ledger"
	"github.com/toolruntime/toolruntime-go/internal/limits"
)

// ErrPaused says that a person has paused the tool of an operation, so that it was
// not claimed. Nothing was changed.
var ErrPaused = ledger.ErrPaused

// A Pause is a time for which a person took a tool out of use.
type Pause struct {
	Tool   string
	Actor  string // who has paused it
	Reason string
	At     time.Time // UTC in whole seconds, as ResumedAt is
	// How it ended: zero while it holds.
	ResumedBy    string
	ResumeReason string
	ResumedAt    time.Time
}

// Holds reports whether the tool is paused by it.
func (p Pause) Holds() bool { return p.ResumedBy == "" }

// Pause takes a tool out of use, for all who share the ledger: no worker and no
// [Runtime.Process] claims its operations, and a new call of it, of a read too, ends in
// TOOL_PAUSED and has no effect. What runs at that moment goes on. [Runtime.Submit]
// still accepts writes, which wait. What has ended is answered from the ledger as ever,
// and so is every question for a status.
//
// actor and reason are kept, beyond the end of the pause ([Runtime.Pauses]). A tool that
// is paused stays so, by whom and why it was first.
func (rt *Runtime) Pause(ctx context.Context, tool, actor, reason string) error {
	now, err := rt.pausing(tool, actor, reason)
	if err != nil {
		return err
	}
	return rt.ledger.Pause(ctx, tool, actor, reason, now)
}

// Resume ends the pause of a tool, and keeps who has ended it and why. It changes
// nothing where there is none.
func (rt *Runtime) Resume(ctx context.Context, tool, actor, reason string) error {
	now, err := rt.pausing(tool, actor, reason)
	if err != nil {
		return err
	}
	err = rt.ledger.Resume(ctx, tool, actor, reason, now)
	rt.signal()
	return err
}

// pausing checks who says what of which tool, and returns the time.
func (rt *Runtime) pausing(tool, actor, reason string) (now int64, err error) {
	now = rt.now()
	return now, cmp.Or(limits.Identifier("tool", tool), rt.checkActor(actor, reason),
		rt.ledger.Holds("tool", tool), limits.Time("now", now))
}

// Pauses lists the pauses of a tool, or those of every tool for "": first what holds
// now, and then what has ended, by the tools' names and the oldest first. They are kept
// for good. Each page is one short read; an error ends the list.
func (rt *Runtime) Pauses(ctx context.Context, tool string) iter.Seq2[Pause, error] {
	return func(yield func(Pause, error) bool) {
		if tool != "" {
			err := cmp.Or(limits.Identifier("tool", tool), rt.ledger.Holds("tool", tool))
			if err != nil {
				yield(Pause{}, err)
				return
			}
		}
		for last, more := (*ledger.PastPause)(nil), true; more; more = last != nil {
			var page []ledger.Pause
			var err error
			if page, last, err = rt.ledger.Pauses(ctx, tool, last); err != nil {
				yield(Pause{}, err)
				return
			}
			for _, p := range page {
				if !yield(Pause{p.Tool, p.Actor, p.Reason, contract.At(p.At), p.ResumedBy, p.ResumeReason, contract.At(p.ResumedAt)}, nil) {
					return
				}
			}
		}
	}
}

// paused reports whether a tool is paused. A store that was not opened has no pauses.
func (rt *Runtime) paused(ctx context.Context, tool string) (bool, error) {
	if rt.ledger == nil {
		return false, nil
	}
	return rt.ledger.Paused(ctx, tool)
}
