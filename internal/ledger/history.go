package ledger

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A Life is what an operation has been through. Times are in Unix seconds, 0 for none.
type Life struct {
	StatusRef, Tool string
	State           State
	Reason          toolresult.Code // of inReview and failed
	Moments         []Moment
}

// A MomentKind says what has happened at a moment.
type MomentKind string

// The kinds of moments. The last one of a life says how the operation stands.
const (
	MomentAccepted  MomentKind = "accepted"  // it was reserved, with an approval
	MomentAttempt   MomentKind = "attempt"   // an attempt, which has ended
	MomentRefused   MomentKind = "refused"   // an answer was refused, and kept
	MomentResolved  MomentKind = "resolved"  // a person has decided
	MomentRunning   MomentKind = "running"   // an attempt has it, under a lease
	MomentWaiting   MomentKind = "waiting"   // for its next attempt
	MomentSucceeded MomentKind = "succeeded" // ended: the receipt is accepted
	MomentFailed    MomentKind = "failed"    // ended without one
	MomentInReview  MomentKind = "in_review" // waits for a person
	MomentPruned    MomentKind = "pruned"    // removed, but for its tombstone
)

// A Moment is something that happened to an operation.
type Moment struct {
	At            int64
	What          MomentKind
	Attempt       int64 // of attempt, refused and running
	Until         int64 // the end of an attempt or a lease, or the next attempt
	Who, How, Why string
}

// History reads the life of an operation in one snapshot; nil when there is none.
func (s *Ledger) History(ctx context.Context, statusRef string) (h *Life, err error) {
	err = s.engine.Snapshot(ctx, func(ctx context.Context, q engine.Snapshot) error {
		o, err := q.GetOperationByRef(ctx, statusRef)
		if ok, err := found(err); err != nil {
			return err
		} else if !ok {
			h, err = pruned(ctx, q, statusRef)
			return err
		}
		r := &Operation{operation: o}
		if err := r.readEvent(ctx, q); err != nil {
			return err
		}
		attempts, err := q.ListAttempts(ctx, o.OperationPK)
		if err != nil {
			return err
		}
		resolutions, err := q.ListResolutions(ctx, o.OperationPK)
		if err != nil {
			return err
		}
		h = &Life{StatusRef: o.StatusRef, Tool: o.ToolName, State: State(o.State), Reason: toolresult.Code(o.Reason)}
		h.add(Moment{At: o.CreatedAt, What: MomentAccepted, Who: o.ApproverID})
		for _, a := range attempts {
			for len(resolutions) > 0 && resolutions[0].Seq < a.Attempt {
				h.resolved(resolutions[0])
				resolutions = resolutions[1:]
			}
			h.add(Moment{At: a.StartedAt, What: MomentAttempt, Attempt: a.Attempt, Until: a.EndedAt, Who: a.WorkerID, How: a.Outcome, Why: a.Cause})
		}
		for _, v := range resolutions {
			h.resolved(v)
		}
		refused, err := q.ListRejectedReceipts(ctx, o.OperationPK)
		if err != nil {
			return err
		}
		for _, row := range refused {
			h.refused(row)
		}
		h.standing(r, len(attempts) > 0 && attempts[len(attempts)-1].Attempt == r.Fence())
		return nil
	})
	return h, err
}

func (h *Life) add(m Moment) { h.Moments = append(h.Moments, m) }

func (h *Life) resolved(v dbgen.Resolution) {
	h.add(Moment{At: v.DecidedAt, What: MomentResolved, Who: v.Actor, How: v.Decision, Why: v.Reason})
}

// refused adds an answer that was not accepted, where it came.
func (h *Life) refused(row dbgen.RejectedReceipt) {
	i := slices.IndexFunc(h.Moments, func(m Moment) bool { return m.At > row.RecordedAt })
	if i < 0 {
		i = len(h.Moments)
	}
	h.Moments = slices.Insert(h.Moments, i, Moment{At: row.RecordedAt, What: MomentRefused, Attempt: row.Attempt, How: row.ReceiptID, Why: refusal(row.Violation)})
}

// refusal is why an answer was refused. Earlier versions have stored the place as
// well, whose names are the answer's.
func refusal(violation string) string {
	if strings.HasPrefix(violation, "data") {
		return "it breaks the output contract"
	}
	return violation
}

// standing adds how the operation stands. told says that the last attempt has
// ended, though the event may still be leased.
func (h *Life) standing(r *Operation, told bool) {
	e := &r.event
	switch r.State() {
	case Pending:
		h.add(Moment{At: r.operation.UpdatedAt, What: MomentWaiting, Until: e.NextAttemptAt})
	case Processing:
		m := Moment{At: e.UpdatedAt, What: MomentRunning, Attempt: r.Fence(), Until: e.LeaseUntil.Int64, Who: e.LeaseOwner.String}
		if told {
			m = Moment{At: e.UpdatedAt, What: MomentWaiting, Until: e.LeaseUntil.Int64}
		}
		h.add(m)
	default:
		h.add(Moment{At: r.operation.UpdatedAt, What: MomentKind(r.operation.State)})
	}
}

// A Backlog is what there is of a tool. Times are in Unix seconds, 0 for none.
type Backlog struct {
	Tool                             string
	Paused                           bool
	Pending, OldestPending           int64
	Processing, OldestRunning        int64
	InReview, OldestInReview         int64
	Unknown                          int64 // of those in review
	Attempts                         int64 // of what is open
	NotKnownHere, OldestNotKnownHere int64
	LeasesLost                       int64
}

// Stats counts what is open, in review and lost, by tool.
func (s *Ledger) Stats(ctx context.Context, now int64, known func(version string) bool) (all []Backlog, err error) {
	tools := map[string]*Backlog{}
	of := func(tool string) *Backlog {
		if tools[tool] == nil {
			tools[tool] = &Backlog{Tool: tool}
		}
		return tools[tool]
	}
	err = s.engine.Snapshot(ctx, func(ctx context.Context, q engine.Snapshot) error {
		open, err := q.CountOpenEvents(ctx, now)
		if err != nil {
			return err
		}
		for _, row := range open {
			t := of(ToolOf(row.Lane))
			t.Attempts, t.LeasesLost = t.Attempts+row.Attempts, t.LeasesLost+row.Expired
			if !known(versionIn(row.Lane)) {
				t.NotKnownHere, t.OldestNotKnownHere = t.NotKnownHere+row.Events, older(t.OldestNotKnownHere, row.Oldest)
			}
			if row.State == string(eventPending) {
				t.Pending, t.OldestPending = t.Pending+row.Events, older(t.OldestPending, row.Oldest)
			} else {
				t.Processing, t.OldestRunning = t.Processing+row.Events, older(t.OldestRunning, row.Oldest)
			}
		}
		lost, err := q.CountLostAttempts(ctx)
		if err != nil {
			return err
		}
		for _, row := range lost {
			of(row.ToolName).LeasesLost += row.Lost
		}
		review, err := q.CountInReview(ctx)
		if err != nil {
			return err
		}
		for _, row := range review {
			t := of(row.ToolName)
			t.InReview, t.OldestInReview = t.InReview+row.Operations, older(t.OldestInReview, row.Oldest)
			if row.Reason != string(toolresult.ToolError) {
				t.Unknown += row.Operations
			}
		}
		paused, err := q.ListPausedTools(ctx)
		for _, p := range paused {
			of(p.ToolName).Paused = true
		}
		return err
	})
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		all = append(all, *tools[name])
	}
	return all, err
}

// older is the older of what there was and a stored time.
func older(a, b int64) int64 {
	if a == 0 || b < a {
		return b
	}
	return a
}
