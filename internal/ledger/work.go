package ledger

import (
	"context"
	"slices"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/limits"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// maxLanes bounds how many lanes are looked at for a batch of candidates.
const maxLanes = 64

// A Demand is what a worker has room for.
type Demand struct {
	Cursor string         // the lane that had its turn last
	Now    int64          // when it must be due, or earlier
	Limit  int            // of operations in all
	Pass   map[int64]bool // operations to be passed over
	Room   func(tool string) int
	Known  func(version string) bool // whether the worker can carry it out
}

// A Supply is what there is of it.
type Supply struct {
	Shares []Share
	// Last is the lane that had the last turn; where none had one, the last that was
	// looked at, or "" when those were all.
	Last    string
	Foreign []string // versions that have open events and that the worker does not know
}

// Due finds out of which lanes there are operations that may be claimed now, and
// shares out what there is room for: one of each lane after the other, from the
// lane after the cursor on, so that a lane with a long backlog does not keep the
// others waiting. Lanes of paused tools, and of versions that the worker does not
// know, are passed over.
func (s *Ledger) Due(ctx context.Context, d Demand) (u Supply, err error) {
	err = s.engine.Read(ctx, func(ctx context.Context, q engine.Querier) error {
		tools, err := q.ListPausedTools(ctx)
		if err != nil {
			return err
		}
		paused := map[string]bool{}
		for _, p := range tools {
			paused[p.ToolName] = true
		}
		r, err := lanesAfter(ctx, q, d.Cursor, paused, d.Known)
		if err != nil {
			return err
		}
		u = Supply{Foreign: r.foreign}
		room := map[string]int{}
		for _, lane := range r.lanes {
			room[ToolOf(lane)] = d.Room(ToolOf(lane))
		}
		var waiting []Share
		for _, lane := range r.lanes {
			if room[ToolOf(lane)] == 0 {
				continue
			}
			pks, err := q.ListDueInLane(ctx, dbgen.ListDueInLaneParams{Lane: lane, Now: d.Now, Page: int64(d.Limit + len(d.Pass))})
			if err != nil {
				return err
			}
			pks = slices.DeleteFunc(pks, func(pk int64) bool { return d.Pass[pk] })
			waiting = append(waiting, Share{lane, len(pks)})
		}
		u.Shares, u.Last = shareOut(waiting, room, d.Limit)
		if len(u.Shares) == 0 {
			u.Last = r.end
		}
		return nil
	})
	return u, err
}

// shareOut gives lanes turns until the limit is reached, nothing waits, or the
// tools have no room.
func shareOut(waiting []Share, room map[string]int, limit int) (shares []Share, last string) {
	given := make([]int, len(waiting))
	for more := true; more; {
		more = false
		for i, w := range waiting {
			if tool := ToolOf(w.lane); limit > 0 && given[i] < w.n && room[tool] > 0 {
				given[i]++
				room[tool]--
				limit--
				last, more = w.lane, true
			}
		}
	}
	for i, w := range waiting {
		if given[i] > 0 {
			shares = append(shares, Share{w.lane, given[i]})
		}
	}
	return shares, last
}

// held makes a move of a claimed operation, if the claim still holds, and returns the
// record. One whose attempt has ended in this way already is left as it is: the answer to
// the commit was lost.
func (s *Ledger) held(ctx context.Context, c *Operation, how Ending, change func(*Operation) (*engine.Motion, error)) (r *Operation, err error) {
	fence := c.Fence()
	var m *engine.Motion // from the rows of the claim, if nobody has touched them
	if c.mayEnd(fence) == nil {
		if m, err = change(c); err != nil {
			m = nil // the transaction says why
		}
	}
	moved, err := s.move(ctx, m, func(ctx context.Context, q engine.Querier) (err error) {
		if r, err = claimed(ctx, q, c); err != nil {
			return err
		}
		lost := r.mayEnd(fence)
		if lost == nil {
			m, err := change(r)
			if err != nil {
				return err
			}
			return r.carryOut(ctx, q, m)
		}
		rows, err := q.ListAttempts(ctx, r.operation.OperationPK)
		if err != nil {
			return err
		}
		for _, a := range rows {
			if a.Attempt == fence && a.WorkerID == c.event.LeaseOwner.String && a.Outcome == string(how) {
				return r.confirm(ctx, q)
			}
		}
		return lost
	})
	if moved {
		r = &Operation{operation: m.Operation, event: m.Event, cause: c.cause}
	}
	return r, err
}

// renewing is how no attempt ends.
const renewing Ending = ""

// Renew gives a claim that still holds a new lease.
func (s *Ledger) Renew(ctx context.Context, c *Operation, lease Term) error {
	_, err := s.held(ctx, c, renewing, func(r *Operation) (*engine.Motion, error) {
		return r.extended(s.anew(lease).Until)
	})
	return err
}

// Note records how an attempt has ended, and leaves its lease to run out.
func (s *Ledger) Note(ctx context.Context, c *Operation, how Ending, now int64) (*Operation, error) {
	return s.held(ctx, c, how, func(r *Operation) (*engine.Motion, error) {
		m := r.stay()
		m.Attempt = r.attemptRow(how, now)
		return m, nil
	})
}

// Postpone ends an attempt of which nobody knows whether it had its effect. The
// event stays leased until the next attempt, which so knows that one was lost.
func (s *Ledger) Postpone(ctx context.Context, c *Operation, how Ending, now, until int64) (*Operation, error) {
	return s.held(ctx, c, how, func(r *Operation) (*engine.Motion, error) {
		m, err := r.extended(until)
		if err == nil {
			m.Attempt = r.attemptRow(how, now)
		}
		return m, err
	})
}

// Release ends an attempt that did nothing: the operation waits for the next.
func (s *Ledger) Release(ctx context.Context, c *Operation, how Ending, now, notBefore int64) (*Operation, error) {
	return s.held(ctx, c, how, func(r *Operation) (*engine.Motion, error) {
		return r.motion(move{to: Pending, now: r.later(now), notBefore: notBefore, ending: how})
	})
}

// GiveBack undoes a claim whose operation the caller does not run: another may,
// after a while.
func (s *Ledger) GiveBack(ctx context.Context, c Claim, now int64, after time.Duration) (*Operation, error) {
	until := limits.After(now, after)
	if c.Lost {
		return s.Postpone(ctx, c.Operation, EndInterrupted, now, until)
	}
	return s.Release(ctx, c.Operation, EndInterrupted, now, until)
}

// Fail ends an operation of which nothing was done and nothing will be.
func (s *Ledger) Fail(ctx context.Context, c *Operation, reason toolresult.Code, now int64) (*Operation, error) {
	defer Endings.Ring(c.StatusRef())
	return s.held(ctx, c, endGivenUp, func(r *Operation) (*engine.Motion, error) {
		return r.motion(move{to: Failed, now: r.later(now), reason: reason, ending: endGivenUp})
	})
}

// Tries is how often an operation was attempted, and since when: since it was
// accepted, or since a person has last said to try again. An attempt that was
// stopped from outside does not count.
func (s *Ledger) Tries(ctx context.Context, r *Operation) (n, since int64, err error) {
	o := &r.operation
	err = s.engine.Read(ctx, func(ctx context.Context, q engine.Querier) error {
		n, since = 0, o.CreatedAt
		resolutions, err := q.ListResolutions(ctx, o.OperationPK)
		if err != nil {
			return err
		}
		before := int64(0)
		for _, r := range resolutions {
			before, since = r.Seq, r.DecidedAt
		}
		attempts, err := q.ListAttempts(ctx, o.OperationPK)
		for _, a := range attempts {
			if a.Attempt > before && a.Outcome != string(EndInterrupted) {
				n++
			}
		}
		return err
	})
	return n, since, err
}

// A KeyUse is what the ledger knows of an operation's key at the downstream.
type KeyUse struct {
	Since    int64 // when the first attempt began that may have reached it; 0 for none
	Doubtful bool  // since it was last certain that nothing was done, something may have been
}

// KeyUse reads what an operation's attempts say of its key. A person's decision
// to try again changes nothing about that.
func (s *Ledger) KeyUse(ctx context.Context, r *Operation) (k KeyUse, err error) {
	err = s.engine.Read(ctx, func(ctx context.Context, q engine.Querier) error {
		k = KeyUse{}
		rows, err := q.ListAttempts(ctx, r.operation.OperationPK)
		for _, a := range rows {
			how := Ending(a.Outcome)
			if how != EndDenied && k.Since == 0 {
				k.Since = a.StartedAt
			}
			switch how {
			case EndUnknown, endLost, EndRejected:
				k.Doubtful = true
			case EndNotDone, endGivenUp:
				k.Doubtful = false
			}
		}
		return err
	})
	return k, err
}
