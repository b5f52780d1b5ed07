package toolruntime

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// history reads the life of an operation in one snapshot; nil when there is none.
func (s *Store) history(ctx context.Context, statusRef string) (h *History, err error) {
	err = s.engine.Snapshot(ctx, func(ctx context.Context, q engine.Snapshot) error {
		o, err := q.GetOperationByRef(ctx, statusRef)
		if ok, err := found(err); err != nil {
			return err
		} else if !ok {
			h, err = pruned(ctx, q, statusRef)
			return err
		}
		r := &record{operation: o}
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
		h = &History{StatusRef: o.StatusRef, Tool: o.ToolName, State: State(o.State), Reason: toolresult.Code(o.Reason)}
		h.add(Moment{At: at(o.CreatedAt), What: MomentAccepted, Who: o.ApproverID})
		for _, a := range attempts {
			for len(resolutions) > 0 && resolutions[0].Seq < a.Attempt {
				h.resolved(resolutions[0])
				resolutions = resolutions[1:]
			}
			h.add(Moment{At: at(a.StartedAt), What: MomentAttempt, Attempt: a.Attempt, Until: at(a.EndedAt), Who: a.WorkerID, How: a.Outcome, Why: a.Cause})
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
		h.standing(r, len(attempts) > 0 && attempts[len(attempts)-1].Attempt == r.fence())
		return nil
	})
	return h, err
}

func (h *History) add(m Moment) { h.Moments = append(h.Moments, m) }

func (h *History) resolved(v dbgen.Resolution) {
	h.add(Moment{At: at(v.DecidedAt), What: MomentResolved, Who: v.Actor, How: v.Decision, Why: v.Reason})
}

// refused adds an answer that was not accepted, where it came.
func (h *History) refused(row dbgen.RejectedReceipt) {
	i := slices.IndexFunc(h.Moments, func(m Moment) bool { return m.At.After(at(row.RecordedAt)) })
	if i < 0 {
		i = len(h.Moments)
	}
	h.Moments = slices.Insert(h.Moments, i, Moment{At: at(row.RecordedAt), What: MomentRefused, Attempt: row.Attempt, How: row.ReceiptID, Why: refusal(row.Violation)})
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
func (h *History) standing(r *record, told bool) {
	e := &r.event
	switch r.state() {
	case pending:
		h.add(Moment{At: at(r.operation.UpdatedAt), What: MomentWaiting, Until: at(e.NextAttemptAt)})
	case processing:
		m := Moment{At: at(e.UpdatedAt), What: MomentRunning, Attempt: r.fence(), Until: at(e.LeaseUntil.Int64), Who: e.LeaseOwner.String}
		if told {
			m = Moment{At: at(e.UpdatedAt), What: MomentWaiting, Until: at(e.LeaseUntil.Int64)}
		}
		h.add(m)
	default:
		h.add(Moment{At: at(r.operation.UpdatedAt), What: MomentKind(r.operation.State)})
	}
}

func (s *Store) stats(ctx context.Context, now int64, known func(version string) bool) (st *Stats, err error) {
	tools := map[string]*ToolStats{}
	of := func(tool string) *ToolStats {
		if tools[tool] == nil {
			tools[tool] = &ToolStats{Tool: tool}
		}
		return tools[tool]
	}
	err = s.engine.Snapshot(ctx, func(ctx context.Context, q engine.Snapshot) error {
		open, err := q.CountOpenEvents(ctx, now)
		if err != nil {
			return err
		}
		for _, row := range open {
			t := of(toolOf(row.Lane))
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
	st = &Stats{Tools: []ToolStats{}}
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		st.Tools = append(st.Tools, *tools[name])
	}
	return st, err
}

// older is the older of what there was and a stored time.
func older(a time.Time, unix int64) time.Time {
	if b := at(unix); a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
