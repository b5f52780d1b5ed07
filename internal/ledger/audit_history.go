package ledger

import (
	"slices"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/tables"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// What an operation has been through leaves rows: one for every attempt that has
// ended, every decision of a person, and every answer that was refused. The audit
// holds them against what the event counts and against each other, so that one
// that is gone is missed.

// unrecordedWorker stands in the rows of attempts that were counted before there
// were rows for them. A migration has written those, without a digest.
const unrecordedWorker = "unrecorded"

// unrecorded reports whether an attempt's row is such a one: it says nothing.
func unrecorded(o *dbgen.Operation, a dbgen.Attempt) bool {
	return len(a.RowDigest) == 0 && a.WorkerID == unrecordedWorker && a.Outcome == string(EndUnknown) &&
		a.StartedAt == o.CreatedAt && a.EndedAt == o.CreatedAt
}

// checkAttempts holds the rows of attempts against their operation's event: there
// is one for each that has ended, which all have but the one that holds the lease.
func checkAttempts(r *Operation, rows []dbgen.Attempt, lacksEvent bool) (fs findings) {
	next, recorded, gap := int64(1), false, false
	for _, a := range rows {
		legacy := !recorded && unrecorded(&r.operation, a) // what came before the rows
		recorded = recorded || !legacy
		switch {
		case !legacy && !tables.Attempts.Intact(&a):
			fs.add("AUDIT_ROW_DIGEST", "an attempt's row does not fit its digest")
		case a.Attempt > r.Fence():
			fs.add("AUDIT_ATTEMPT", "an attempt was recorded that its event does not count")
		}
		gap = gap || a.Attempt != next
		next = a.Attempt + 1
	}
	ended := r.Fence()
	if r.event.State == string(eventProcessing) {
		ended--
	}
	if !lacksEvent && (gap || next <= ended) {
		fs.add("AUDIT_ATTEMPT", "an attempt that has ended was not recorded")
	}
	return fs
}

// ends says in which state a decision leaves its operation for good, and why; ""
// where it goes on.
var ends = map[Decision]struct {
	state  State
	reason toolresult.Code
}{
	ConfirmedDone:    {Succeeded, ""},
	ConfirmedNotDone: {Failed, toolresult.ToolError},
	Abandoned:        {Failed, toolresult.OutcomeUnknown},
	Cancelled:        {Failed, toolresult.Cancelled},
}

// checkResolutions holds decisions against their operation and its event.
func checkResolutions(r *Operation, rows []dbgen.Resolution) (fs findings) {
	for i, v := range rows {
		end, final := ends[Decision(v.Decision)]
		switch {
		case !tables.Resolutions.Intact(&v):
			fs.add("AUDIT_ROW_DIGEST", "a resolution's row does not fit its digest")
		case v.Seq > max(r.Fence(), 1):
			fs.add("AUDIT_RESOLUTION", "a resolution was recorded after more attempts than there were")
		case final && (i < len(rows)-1 || v.Seq != max(r.Fence(), 1)):
			fs.add("AUDIT_RESOLUTION", "it went on after a resolution that is final")
		case final && (r.State() != end.state || r.Reason() != end.reason):
			fs.add("AUDIT_RESOLUTION", "it has not ended as a person has decided")
		}
	}
	// Decisions from before they were counted are not; then none is.
	if n := r.event.Decisions; n != 0 && n != int64(len(rows)) {
		fs.add("AUDIT_RESOLUTION", "there are not as many resolutions as its event counts")
	}
	return fs
}

// checkHistory holds what follows an attempt against how it has ended: of an
// answer that was refused there is a row, and what ends or goes on without a
// reason in its attempts needs one in a person's decision.
func checkHistory(w *whole) (fs findings) {
	decided := func(seq int64) Decision {
		for _, v := range w.resolutions { // hardly ever any
			if v.Seq == seq {
				return Decision(v.Decision)
			}
		}
		return ""
	}
	refused := func(attempt int64) bool {
		return slices.ContainsFunc(w.rejected, func(r dbgen.RejectedReceipt) bool { return r.Attempt == attempt })
	}
	last := Ending("")
	for _, a := range w.attempts {
		how := Ending(a.Outcome)
		if how == EndRejected && !refused(a.Attempt) {
			fs.add("AUDIT_ATTEMPT", "the answer is missing that was refused in an attempt")
		}
		if a.Attempt == w.Fence() {
			last = how
		} else if a.Attempt < w.Fence() && (how == EndRejected || how.final()) && decided(a.Attempt) != TryAgain {
			fs.add("AUDIT_RESOLUTION", "it went on after an attempt without a resolution")
		}
	}
	decision := decided(max(w.Fence(), 1))
	switch {
	case w.lacksEvent:
	case w.State() == Succeeded && (last == EndRejected || last == endGivenUp) && decision != ConfirmedDone,
		w.State() == Failed && w.Reason() == toolresult.OutcomeUnknown && decision != Abandoned,
		w.State() == Failed && w.Reason() == toolresult.Cancelled && (decision != Cancelled || w.Fence() > 0),
		w.State() == Failed && w.Reason() == toolresult.ToolError && last != endGivenUp && decision != ConfirmedNotDone:
		fs.add("AUDIT_RESOLUTION", "it has ended without an attempt or a resolution that ends it")
	}
	return fs
}

// final reports whether an attempt that ends so ends its operation.
func (e Ending) final() bool { return e == endSucceeded || e == endReconciled || e == endGivenUp }
