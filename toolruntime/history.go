package toolruntime

import (
	"context"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/ledger"
	"github.com/toolruntime/toolruntime-go/internal/limits"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A History is an operation's whole life. Like the audit it names no tenant,
// subject, key, argument or result, and nothing of one that was refused; but the
// ids of receipts that were refused, by which a person finds them at the downstream.
type History struct {
	StatusRef string
	Tool      string
	State     ledger.State
	Reason    toolresult.Code // of in_review and failed
	Moments   []Moment
}

// A MomentKind says what has happened at a moment, in a word.
type MomentKind = ledger.MomentKind

// The kinds of moments. The last one of a history says how the operation stands.
const (
	MomentAccepted  MomentKind = ledger.MomentAccepted  // it was reserved, with an approval
	MomentAttempt   MomentKind = ledger.MomentAttempt   // an attempt, which has ended
	MomentRefused   MomentKind = ledger.MomentRefused   // an answer was refused, and kept
	MomentResolved  MomentKind = ledger.MomentResolved  // a person has decided
	MomentRunning   MomentKind = ledger.MomentRunning   // an attempt has it, under a lease
	MomentWaiting   MomentKind = ledger.MomentWaiting   // for its next attempt
	MomentSucceeded MomentKind = ledger.MomentSucceeded // ended: the receipt is accepted
	MomentFailed    MomentKind = ledger.MomentFailed    // ended without one
	MomentInReview  MomentKind = ledger.MomentInReview  // waits for a person
	MomentPruned    MomentKind = ledger.MomentPruned    // removed, but for its tombstone
)

// A Moment is something that happened to an operation, in order. Times are UTC in
// whole seconds.
type Moment struct {
	At      time.Time
	What    MomentKind
	Attempt int64     // of attempt, refused and running
	Until   time.Time // the end of an attempt or a lease, or the next attempt; zero for none
	Who     string    // the approver, the worker, or who has decided
	How     string    // how an attempt ended, the id of a receipt that was refused, or what was decided
	Why     string    // why an attempt ended so, in a word; why a receipt was refused; or a person's reason
}

// History returns the life of an operation: when and by whom it was approved,
// every attempt and how it ended, the answers that were refused, because they broke
// the output contract or came too late, what people have decided, and how it
// stands. Of one that was pruned, when it was accepted, what people have decided,
// how and when it ended, and when it was pruned is all that is left.
func (rt *Runtime) History(ctx context.Context, statusRef string) (*History, error) {
	if err := limits.StatusRef(statusRef); err != nil {
		return nil, err
	}
	l, err := rt.ledger.History(ctx, statusRef)
	if err == nil && l == nil {
		err = &toolresult.InputError{Field: "status_ref", Rule: "is not known"}
	}
	if err != nil {
		return nil, err
	}
	h := &History{StatusRef: l.StatusRef, Tool: l.Tool, State: l.State, Reason: l.Reason}
	for _, m := range l.Moments {
		h.Moments = append(h.Moments, Moment{At: contract.At(m.At), What: m.What, Attempt: m.Attempt,
			Until: contract.At(m.Until), Who: m.Who, How: m.How, Why: m.Why})
	}
	return h, nil
}

// Stats are the numbers of the ledger to watch. They cost as much as there is
// open and as leases were lost, whatever the ledger's size, and have no series
// per tenant, key or call. What a process does is in [Runtime.Metrics].
type Stats struct {
	Tools []ToolStats // by name
}

// ToolStats are the numbers of a tool. Times are UTC in whole seconds, zero for none.
type ToolStats struct {
	Tool           string
	Paused         bool
	Pending        int64 // wait for an attempt
	OldestPending  time.Time
	Processing     int64 // leased: running, or lost
	OldestRunning  time.Time
	InReview       int64 // wait for a person
	OldestInReview time.Time
	Unknown        int64 // … because nobody knows whether it happened
	// Attempts are those that what is pending and processing has had so far, the
	// running ones included: much more than there are operations means that they
	// are tried again and again.
	Attempts int64
	// NotKnownHere are those of what is pending and processing that no worker with
	// this runtime's tools takes, because the tool is not among them, or not with the
	// revisions and the effect kind with which they were accepted. What was accepted
	// before effect kinds were kept counts only where the tool is not among them.
	NotKnownHere       int64
	OldestNotKnownHere time.Time
	// LeasesLost are the attempts that ended without a word because their lease ran
	// out, over all operations that were not pruned, and those whose lease has run
	// out now and that nobody has claimed since.
	LeasesLost int64
}

// Stats returns the backlog, and the leases that were lost, by tool.
func (rt *Runtime) Stats(ctx context.Context) (*Stats, error) {
	all, err := rt.ledger.Stats(ctx, rt.now(), rt.knows)
	if err != nil {
		return nil, err
	}
	st := &Stats{Tools: make([]ToolStats, len(all))}
	for i, b := range all {
		st.Tools[i] = ToolStats{Tool: b.Tool, Paused: b.Paused, Pending: b.Pending, OldestPending: contract.At(b.OldestPending),
			Processing: b.Processing, OldestRunning: contract.At(b.OldestRunning), InReview: b.InReview,
			OldestInReview: contract.At(b.OldestInReview), Unknown: b.Unknown, Attempts: b.Attempts,
			NotKnownHere: b.NotKnownHere, OldestNotKnownHere: contract.At(b.OldestNotKnownHere), LeasesLost: b.LeasesLost}
	}
	return st, nil
}
