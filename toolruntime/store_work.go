package toolruntime

import (
	"context"
	"slices"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/rowdigest"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// maxLanes bounds how many lanes are looked at for a batch of candidates.
const maxLanes = 64

// A candidate is an operation whose turn it is.
type candidate struct {
	pk   int64
	lane string
}

// due lists operations that may be claimed now, at most limit, one lane after
// the other from the lane after cursor on: a lane with a long backlog does not
// keep the others waiting. Lanes of tools that are paused, or that closed names,
// are passed over.
func (s *Store) due(ctx context.Context, cursor string, now int64, limit int, closed func(tool string) bool) (all []candidate, err error) {
	err = s.engine.Read(ctx, func(ctx context.Context, q dbgen.Querier) error {
		all = nil
		lanes, err := lanesAfter(ctx, q, cursor)
		if err != nil {
			return err
		}
		paused, err := q.ListPausedTools(ctx)
		if err != nil {
			return err
		}
		lanes = slices.DeleteFunc(lanes, func(lane string) bool {
			tool := toolOf(lane)
			return closed(tool) || slices.ContainsFunc(paused, func(p dbgen.PausedTool) bool { return p.ToolName == tool })
		})
		queues := make([][]int64, len(lanes))
		for i, lane := range lanes {
			queues[i], err = q.ListDueInLane(ctx, dbgen.ListDueInLaneParams{Lane: lane, Now: now, Page: int64(limit)})
			if err != nil {
				return err
			}
		}
		for took := true; took && len(all) < limit; {
			took = false
			for i, queue := range queues {
				if len(queue) > 0 && len(all) < limit {
					all, queues[i], took = append(all, candidate{queue[0], lanes[i]}), queue[1:], true
				}
			}
		}
		return nil
	})
	return all, err
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
		return r.endAttempt(ctx, q, how, now)
	})
}

// postpone ends an attempt of which nobody knows whether it had its effect. The
// event stays leased until the next attempt, which so knows that one was lost.
func (s *Store) postpone(ctx context.Context, c *record, how ending, now, until int64) error {
	return s.held(ctx, c, func(ctx context.Context, q dbgen.Querier, r *record) error {
		if err := r.endAttempt(ctx, q, how, now); err != nil {
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

// giveBack undoes a claim whose operation the caller cannot run.
func (s *Store) giveBack(ctx context.Context, c claim, now int64) error {
	until := afterSeconds(now, backoff(c.fence()))
	if c.lost {
		return s.postpone(ctx, c.record, endInterrupted, now, until)
	}
	return s.release(ctx, c.record, endInterrupted, now, until)
}

// fail ends an operation of which nothing was done and nothing will be.
func (s *Store) fail(ctx context.Context, c *record, reason toolresult.Code, now int64) error {
	return s.held(ctx, c, func(ctx context.Context, q dbgen.Querier, r *record) error {
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

// checkAttempts holds the rows of attempts against their operation's event.
func checkAttempts(r *record, rows []dbgen.Attempt) (fs findings) {
	for _, a := range rows {
		switch {
		case string(a.RowDigest) != string(rowdigest.Attempt(a)):
			fs.add("AUDIT_ROW_DIGEST", "an attempt's row does not fit its digest")
		case a.Attempt > r.fence():
			fs.add("AUDIT_ATTEMPT", "an attempt was recorded that its event does not count")
		}
	}
	return fs
}
