package toolruntime

import (
	"context"

	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A History is an operation's whole life. Like the audit it names no tenant,
// subject, key, argument or result, and nothing of one that was refused; but the
// ids of receipts that were refused, by which a person finds them at the downstream.
type History struct {
	StatusRef string          `json:"status_ref"`
	Tool      string          `json:"tool"`
	State     string          `json:"state"`
	Reason    toolresult.Code `json:"reason"` // of in_review and failed
	Moments   []Moment        `json:"moments"`
}

// A Moment is something that happened to an operation, in order.
type Moment struct {
	At      int64  `json:"at"`                // Unix seconds
	What    string `json:"what"`              // accepted, attempt, refused, resolved, running, waiting, succeeded, failed, in_review, pruned
	Attempt int64  `json:"attempt,omitempty"` // of attempt, refused and running
	Until   int64  `json:"until,omitempty"`   // Unix seconds: the end of an attempt or a lease, or the next attempt
	Who     string `json:"who,omitempty"`     // the approver, the worker, or who has decided
	How     string `json:"how,omitempty"`     // how an attempt ended, the id of a receipt that was refused, or what was decided
	Why     string `json:"why,omitempty"`     // why a receipt was refused, or a person's reason
}

// History returns the life of an operation: when and by whom it was approved,
// every attempt and how it ended, the answers that were refused, because they broke
// the output contract or came too late, what people have decided, and how it
// stands. Of one that was pruned, when it was accepted, what people have decided,
// how and when it ended, and when it was pruned is all that is left.
func (rt *Runtime) History(ctx context.Context, statusRef string) (*History, error) {
	if !toolresult.ValidStatusRef(statusRef) {
		return nil, &toolresult.InputError{Field: "status_ref", Rule: "must be status_ and 32 lower-case hexadecimal digits"}
	}
	h, err := rt.store.history(ctx, statusRef)
	if err == nil && h == nil {
		err = &toolresult.InputError{Field: "status_ref", Rule: "is not known"}
	}
	return h, err
}

// Stats are the numbers of the ledger to watch. They cost as much as there is
// open and as leases were lost, whatever the ledger's size, and have no series
// per tenant, key or call. What a process does is in [Runtime.Metrics].
type Stats struct {
	Tools []ToolStats `json:"tools"`
}

// ToolStats are the numbers of a tool. Times are Unix seconds, 0 for none.
type ToolStats struct {
	Tool           string `json:"tool"`
	Paused         bool   `json:"paused"`
	Pending        int64  `json:"pending"` // wait for an attempt
	OldestPending  int64  `json:"oldest_pending"`
	Processing     int64  `json:"processing"` // leased: running, or lost
	OldestRunning  int64  `json:"oldest_processing"`
	InReview       int64  `json:"in_review"` // wait for a person
	OldestInReview int64  `json:"oldest_in_review"`
	Unknown        int64  `json:"in_review_unknown"` // … because nobody knows whether it happened
	// Attempts are those that what is pending and processing has had so far, the
	// running ones included: much more than there are operations means that they
	// are tried again and again.
	Attempts int64 `json:"attempts"`
	// NotKnownHere are those of what is pending and processing that no worker with
	// this runtime's tools takes, because the tool is not among them, or not with the
	// revisions and the effect kind with which they were accepted. What was accepted
	// before effect kinds were kept counts only where the tool is not among them.
	NotKnownHere       int64 `json:"not_known_here,omitempty"`
	OldestNotKnownHere int64 `json:"oldest_not_known_here,omitempty"`
	// LeasesLost are the attempts that ended without a word because their lease ran
	// out, over all operations that were not pruned, and those whose lease has run
	// out now and that nobody has claimed since.
	LeasesLost int64 `json:"leases_lost"`
}

// Stats returns the backlog, and the leases that were lost, by tool.
func (rt *Runtime) Stats(ctx context.Context) (*Stats, error) {
	return rt.store.stats(ctx, rt.now(), rt.knows)
}
