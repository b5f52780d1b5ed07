package toolruntime

import (
	"context"
	"errors"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/dbgen"
)

// A claimed operation. claimed is false when there was nothing to claim; the
// record is then as it was found, or nil.
type claim struct {
	*record
	claimed bool
	lost    bool // an earlier attempt ended without a word
	foreign bool // it could be claimed, by a worker that knows its contract
	paused  bool // it could be claimed, if its tool were not paused
}

// lostAttempt reports whether the attempt whose lease has run out, or one before
// it, may have had its effect; and whether it has ended without a word, so that it
// might still run where the lease has only seemed to run out.
func (r *record) lostAttempt(ctx context.Context, q dbgen.Querier) (lost, silent bool, err error) {
	rows, err := q.ListAttempts(ctx, r.operation.OperationPK)
	if err != nil || len(rows) == 0 {
		return true, true, err
	}
	last := rows[len(rows)-1]
	silent = last.Attempt != r.fence()
	return silent || last.Outcome != string(endDenied), silent, nil
}

// later is now, or the time of the operation's last change if a clock was put
// back since: what has happened is recorded all the same.
func (r *record) later(now int64) int64 { return max(now, r.operation.UpdatedAt) }

// A claiming says for whom operations are claimed, and for how long.
type claiming struct {
	worker string
	term
	knows func(*record) bool // whether its tool is here, under its contract
}

// claimByRef gives a worker the exclusive right to an operation for a while: if it
// is pending, or if its lease has run out.
func (s *Store) claimByRef(ctx context.Context, statusRef string, w claiming) (c claim, err error) {
	err = s.engine.Write(ctx, func(ctx context.Context, q dbgen.Querier) error {
		c, w.term = claim{}, s.anew(w.term)
		o, err := q.GetOperationByRef(ctx, statusRef)
		if ok, err := found(err); !ok {
			return err
		}
		r := &record{operation: o}
		if err := r.readEvent(ctx, q); err != nil {
			return err
		}
		c, err = w.claim(ctx, q, r, nil)
		return err
	})
	return c, err
}

// claim claims an operation in the open transaction. A worker's own sees tell which
// leases may still hold, and leaves out what waits for its next attempt; without it
// that is claimed early.
func (w claiming) claim(ctx context.Context, q dbgen.Querier, r *record, sees *sight) (claim, error) {
	c, o := claim{record: r}, &r.operation
	// Only an attempt leaves a receipt, so a first one has none to look for.
	if r.fence() > 0 {
		if err := r.readReceipts(ctx, q); err != nil {
			return c, err
		}
	}
	if c.event.State == string(eventProcessing) && r.astray(w.now) {
		return c, r.bringBack(ctx, q, w.now)
	}
	waiting := c.event.State == string(eventPending) && (sees == nil || c.event.NextAttemptAt <= w.now)
	expired := c.event.State == string(eventProcessing) && c.event.LeaseUntil.Int64 <= w.now
	if !waiting && !expired {
		return c, nil
	}
	if sees == nil { // a worker's lanes are those of tools that are not paused
		n, err := q.IsPaused(ctx, o.ToolName)
		if c.paused = n > 0; err != nil || c.paused {
			return c, err
		}
	}
	if !w.knows(r) {
		c.foreign = true
		return c, r.intact()
	}
	if c.event.PayloadJSON != contract.OutboxPayload(o.OperationPK, o.RequestSha256, o.ToolName) {
		return c, &ContractError{o.StatusRef, "the outbox payload is not the operation's canonical one"}
	}
	if expired {
		lost, silent, err := c.lostAttempt(ctx, q)
		if err != nil || silent && sees.alive(r) {
			return c, err
		}
		c.lost = lost
	}
	c.claimed = true
	return c, c.apply(ctx, q, move{to: processing, now: r.later(w.now), worker: w.worker, leaseUntil: w.until, ending: endLost})
}

// maxBatch bounds how many operations one transaction claims, and with it how
// long others wait for that.
const maxBatch = 64

// A share is how many operations of a lane a worker wants.
type share struct {
	lane string
	n    int
}

// A batch is what one transaction has claimed.
type batch struct {
	claims []claim
	// refused are operations that cannot be claimed, by key, and why: their stored
	// state breaks its contract.
	refused map[int64]error
	// waiting are operations that are not due after all.
	waiting []int64
	foreign map[int64]string // the tools of those whose contract the worker does not know
}

// claimDue claims up to so many due operations of each lane, except those to be
// passed over, in one transaction. What others are claiming at the same time is
// theirs, and what cannot be claimed keeps nothing else from it.
func (s *Store) claimDue(ctx context.Context, shares []share, w claiming, pass map[int64]bool, sees *sight) (b batch, err error) {
	claim := func(ctx context.Context, q dbgen.Querier) error {
		b, w.term = batch{refused: map[int64]error{}, foreign: map[int64]string{}}, s.anew(w.term)
		for _, share := range shares {
			if err := w.claimLane(ctx, q, share, pass, sees, &b); err != nil {
				return err
			}
		}
		return nil
	}
	err = s.engine.Write(ctx, claim)
	if tried := b; errors.Is(err, ErrCommitUnknown) {
		// Whoever waits for a worker that is shutting down waits for this, too: nobody
		// else could know that nothing has run.
		err = s.engine.Write(context.WithoutCancel(ctx), func(ctx context.Context, q dbgen.Querier) (err error) {
			if b, err = tried.stored(ctx, q); err != nil || len(b.claims) > 0 {
				return err
			}
			return claim(ctx, q)
		})
	}
	if err != nil {
		return batch{}, err
	}
	return b, nil
}

// stored is what has been claimed of b after all, where the answer to its commit
// was lost: all of it, but for what others have claimed since. Writing a row as it
// should be makes sure that what is found is as durable as any commit.
func (b batch) stored(ctx context.Context, q dbgen.Querier) (batch, error) {
	found := batch{refused: b.refused, foreign: b.foreign}
	for _, c := range b.claims {
		r := *c.record
		err := r.extend(ctx, q, r.event.LeaseUntil.Int64)
		if err == nil {
			found.claims = append(found.claims, c)
		} else if !errors.Is(err, ErrLeaseLost) {
			return batch{}, err
		}
	}
	return found, nil
}

func (w claiming) claimLane(ctx context.Context, q dbgen.Querier, s share, pass map[int64]bool, sees *sight, b *batch) error {
	due, err := q.LockDueInLane(ctx, dbgen.LockDueInLaneParams{Lane: s.lane, ToolName: toolOf(s.lane), Now: w.now, Page: int64(s.n + len(pass))})
	if err != nil {
		return err
	}
	for _, pk := range due {
		if s.n == 0 {
			break
		}
		if pass[pk] {
			continue
		}
		row, err := q.GetClaimed(ctx, pk)
		there, err := found(err)
		switch {
		case err != nil:
			return err
		case !there:
			b.refused[pk] = &ContractError{"", "an outbox event has no operation"}
			continue
		}
		c, err := w.claim(ctx, q, &record{operation: row.Operation, event: row.Outbox}, sees)
		switch {
		case errors.Is(err, ErrContract):
			b.refused[pk] = err // before anything was written of it
		case err != nil:
			return err
		case c.foreign:
			b.foreign[pk] = row.Operation.ToolName
		case c.claimed:
			b.claims = append(b.claims, c)
			s.n--
		default:
			b.waiting = append(b.waiting, pk)
		}
	}
	return nil
}
