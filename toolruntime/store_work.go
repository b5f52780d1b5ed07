package toolruntime

import (
	"context"
	"slices"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/limits"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// maxLanes bounds how many lanes are looked at for a batch of candidates.
const maxLanes = 64

// A demand is what a worker has room for.
type demand struct {
	cursor string         // the lane that had its turn last
	now    int64          // when it must be due, or earlier
	limit  int            // of operations in all
	pass   map[int64]bool // operations to be passed over
	room   func(tool string) int
	known  func(version string) bool // whether the worker can carry it out
}

// A supply is what there is of it.
type supply struct {
	shares []share
	// last is the lane that had the last turn; where none had one, the last that was
	// looked at, or "" when those were all.
	last    string
	foreign []string // versions that have open events and that the worker does not know
}

// due finds out of which lanes there are operations that may be claimed now, and
// shares out what there is room for: one of each lane after the other, from the
// lane after the cursor on, so that a lane with a long backlog does not keep the
// others waiting. Lanes of paused tools, and of versions that the worker does not
// know, are passed over.
func (s *Store) due(ctx context.Context, d demand) (u supply, err error) {
	err = s.engine.Read(ctx, func(ctx context.Context, q dbgen.Querier) error {
		tools, err := q.ListPausedTools(ctx)
		if err != nil {
			return err
		}
		paused := map[string]bool{}
		for _, p := range tools {
			paused[p.ToolName] = true
		}
		r, err := lanesAfter(ctx, q, d.cursor, paused, d.known)
		if err != nil {
			return err
		}
		u = supply{foreign: r.foreign}
		room := map[string]int{}
		for _, lane := range r.lanes {
			room[toolOf(lane)] = d.room(toolOf(lane))
		}
		var waiting []share
		for _, lane := range r.lanes {
			if room[toolOf(lane)] == 0 {
				continue
			}
			pks, err := q.ListDueInLane(ctx, dbgen.ListDueInLaneParams{Lane: lane, Now: d.now, Page: int64(d.limit + len(d.pass))})
			if err != nil {
				return err
			}
			pks = slices.DeleteFunc(pks, func(pk int64) bool { return d.pass[pk] })
			waiting = append(waiting, share{lane, len(pks)})
		}
		u.shares, u.last = shareOut(waiting, room, d.limit)
		if len(u.shares) == 0 {
			u.last = r.end
		}
		return nil
	})
	return u, err
}

// shareOut gives lanes turns until the limit is reached, nothing waits, or the
// tools have no room.
func shareOut(waiting []share, room map[string]int, limit int) (shares []share, last string) {
	given := make([]int, len(waiting))
	for more := true; more; {
		more = false
		for i, w := range waiting {
			if tool := toolOf(w.lane); limit > 0 && given[i] < w.n && room[tool] > 0 {
				given[i]++
				room[tool]--
				limit--
				last, more = w.lane, true
			}
		}
	}
	for i, w := range waiting {
		if given[i] > 0 {
			shares = append(shares, share{w.lane, given[i]})
		}
	}
	return shares, last
}

// held runs change on the present rows of a claimed operation, if the claim still
// holds, and returns the record. One whose attempt has ended in this way already is
// left as it is: the answer to the commit was lost.
func (s *Store) held(ctx context.Context, c *record, how ending, change func(context.Context, dbgen.Querier, *record) error) (r *record, err error) {
	fence := c.fence()
	err = s.engine.Write(ctx, func(ctx context.Context, q dbgen.Querier) (err error) {
		if r, err = claimed(ctx, q, c); err != nil {
			return err
		}
		lost := r.mayEnd(fence)
		if lost == nil {
			return change(ctx, q, r)
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
	return r, err
}

// renewing is how no attempt ends.
const renewing ending = ""

// renew gives a claim that still holds a new lease.
func (s *Store) renew(ctx context.Context, c *record, lease term) error {
	_, err := s.held(ctx, c, renewing, func(ctx context.Context, q dbgen.Querier, r *record) error {
		return r.extend(ctx, q, s.anew(lease).until)
	})
	return err
}

// note records how an attempt has ended, and leaves its lease to run out.
func (s *Store) note(ctx context.Context, c *record, how ending, now int64) error {
	_, err := s.held(ctx, c, how, func(ctx context.Context, q dbgen.Querier, r *record) error {
		return endAttempt(ctx, q, r.attemptRow(how, now))
	})
	return err
}

// postpone ends an attempt of which nobody knows whether it had its effect. The
// event stays leased until the next attempt, which so knows that one was lost.
func (s *Store) postpone(ctx context.Context, c *record, how ending, now, until int64) error {
	_, err := s.held(ctx, c, how, func(ctx context.Context, q dbgen.Querier, r *record) error {
		if err := endAttempt(ctx, q, r.attemptRow(how, now)); err != nil {
			return err
		}
		return r.extend(ctx, q, until)
	})
	return err
}

// release ends an attempt that did nothing: the operation waits for the next.
func (s *Store) release(ctx context.Context, c *record, how ending, now, notBefore int64) error {
	_, err := s.held(ctx, c, how, func(ctx context.Context, q dbgen.Querier, r *record) error {
		return r.apply(ctx, q, move{to: pending, now: r.later(now), notBefore: notBefore, ending: how})
	})
	return err
}

// giveBack undoes a claim whose operation the caller does not run: another may,
// after a while.
func (s *Store) giveBack(ctx context.Context, c claim, now int64, after time.Duration) error {
	until := limits.After(now, after)
	if c.lost {
		return s.postpone(ctx, c.record, endInterrupted, now, until)
	}
	return s.release(ctx, c.record, endInterrupted, now, until)
}

// fail ends an operation of which nothing was done and nothing will be.
func (s *Store) fail(ctx context.Context, c *record, reason toolresult.Code, now int64) (done *record, err error) {
	defer endings.ring(c.statusRef())
	return s.held(ctx, c, endGivenUp, func(ctx context.Context, q dbgen.Querier, r *record) error {
		return r.apply(ctx, q, move{to: failed, now: r.later(now), reason: reason, ending: endGivenUp})
	})
}

// tries is how often an operation was attempted, and since when: since it was
// accepted, or since a person has last said to try again. An attempt that was
// stopped from outside does not count.
func (s *Store) tries(ctx context.Context, o *dbgen.Operation) (n, since int64, err error) {
	err = s.engine.Read(ctx, func(ctx context.Context, q dbgen.Querier) error {
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
			if a.Attempt > before && a.Outcome != string(endInterrupted) {
				n++
			}
		}
		return err
	})
	return n, since, err
}

// A keyUse is what the ledger knows of an operation's key at the downstream.
type keyUse struct {
	since    int64 // when the first attempt began that may have reached it; 0 for none
	doubtful bool  // since it was last certain that nothing was done, something may have been
}

// keyUse reads what an operation's attempts say of its key. A person's decision
// to try again changes nothing about that.
func (s *Store) keyUse(ctx context.Context, r *record) (k keyUse, err error) {
	err = s.engine.Read(ctx, func(ctx context.Context, q dbgen.Querier) error {
		k = keyUse{}
		rows, err := q.ListAttempts(ctx, r.operation.OperationPK)
		for _, a := range rows {
			how := ending(a.Outcome)
			if how != endDenied && k.since == 0 {
				k.since = a.StartedAt
			}
			switch how {
			case endUnknown, endLost, endRejected:
				k.doubtful = true
			case endNotDone, endGivenUp:
				k.doubtful = false
			}
		}
		return err
	})
	return k, err
}
