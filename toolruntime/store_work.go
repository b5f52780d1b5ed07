package toolruntime

import (
	"context"
	"slices"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
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
}

// due finds out of which lanes there are operations that may be claimed now, and
// shares out what there is room for: one of each lane after the other, from the
// lane after the cursor on, so that a lane with a long backlog does not keep the
// others waiting. Lanes of paused tools are passed over. last is the lane that
// had the last turn; where none had one, the last that was looked at, or "" when
// those were all.
func (s *Store) due(ctx context.Context, d demand) (shares []share, last string, err error) {
	err = s.engine.Read(ctx, func(ctx context.Context, q dbgen.Querier) error {
		lanes, err := lanesAfter(ctx, q, d.cursor)
		if err != nil {
			return err
		}
		paused, err := q.ListPausedTools(ctx)
		if err != nil {
			return err
		}
		room := map[string]int{}
		for _, lane := range lanes {
			room[toolOf(lane)] = d.room(toolOf(lane))
		}
		for _, p := range paused {
			room[p.ToolName] = 0
		}
		var waiting []share
		for _, lane := range lanes {
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
		shares, last = shareOut(waiting, room, d.limit)
		if len(shares) == 0 && len(lanes) == maxLanes {
			last = lanes[maxLanes-1]
		}
		return nil
	})
	return shares, last, err
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

// lanesAfter lists the lanes with open events, from the one after cursor on and
// around.
func lanesAfter(ctx context.Context, q dbgen.Querier, cursor string) ([]string, error) {
	var lanes []string
	for lane, wrapped := cursor, false; len(lanes) < maxLanes; {
		next, err := q.NextLane(ctx, lane)
		there, err := found(err)
		switch {
		case err != nil:
			return nil, err
		case there && wrapped && next > cursor:
			return lanes, nil
		case there:
			lanes, lane = append(lanes, next), next
		case wrapped || cursor == "":
			return lanes, nil
		default:
			lane, wrapped = "", true
		}
	}
	return lanes, nil
}

// held runs change on the present rows of a claimed operation, if the claim
// still holds.
func (s *Store) held(ctx context.Context, c *record, change func(context.Context, dbgen.Querier, *record) error) error {
	fence := c.fence()
	return s.engine.Write(ctx, func(ctx context.Context, q dbgen.Querier) error {
		r, err := claimed(ctx, q, c)
		if err != nil {
			return err
		}
		if err := r.mayEnd(fence); err != nil {
			return err
		}
		return change(ctx, q, r)
	})
}

// renew extends the lease of a claim that still holds.
func (s *Store) renew(ctx context.Context, c *record, leaseUntil int64) error {
	return s.held(ctx, c, func(ctx context.Context, q dbgen.Querier, r *record) error {
		return r.extend(ctx, q, leaseUntil)
	})
}

// note records how an attempt has ended, and leaves its lease to run out.
func (s *Store) note(ctx context.Context, c *record, how ending, now int64) error {
	return s.held(ctx, c, func(ctx context.Context, q dbgen.Querier, r *record) error {
		return endAttempt(ctx, q, r.attemptRow(how, now))
	})
}

// postpone ends an attempt of which nobody knows whether it had its effect. The
// event stays leased until the next attempt, which so knows that one was lost.
func (s *Store) postpone(ctx context.Context, c *record, how ending, now, until int64) error {
	return s.held(ctx, c, func(ctx context.Context, q dbgen.Querier, r *record) error {
		if err := endAttempt(ctx, q, r.attemptRow(how, now)); err != nil {
			return err
		}
		return r.extend(ctx, q, until)
	})
}

// release ends an attempt that did nothing: the operation waits for the next.
func (s *Store) release(ctx context.Context, c *record, how ending, now, notBefore int64) error {
	return s.held(ctx, c, func(ctx context.Context, q dbgen.Querier, r *record) error {
		return r.apply(ctx, q, move{to: pending, now: r.later(now), notBefore: notBefore, ending: how})
	})
}

// giveBack undoes a claim whose operation the caller does not run: another may,
// after a while.
func (s *Store) giveBack(ctx context.Context, c claim, now int64, after time.Duration) error {
	until := afterSeconds(now, after)
	if c.lost {
		return s.postpone(ctx, c.record, endInterrupted, now, until)
	}
	return s.release(ctx, c.record, endInterrupted, now, until)
}

// fail ends an operation of which nothing was done and nothing will be.
func (s *Store) fail(ctx context.Context, c *record, reason toolresult.Code, now int64) (done *record, err error) {
	err = s.held(ctx, c, func(ctx context.Context, q dbgen.Querier, r *record) error {
		done = r
		return r.apply(ctx, q, move{to: failed, now: r.later(now), reason: reason, ending: endGivenUp})
	})
	return done, err
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
