package toolruntime

import (
	"context"
	"errors"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A claimed operation. claimed is false when there was nothing to claim; the
// record is then as it was found, or nil.
type claim struct {
	*record
	claimed bool
	lost    bool // an earlier attempt ended without a word
	foreign bool // it could be claimed, by a worker that knows its contract
}

// lostAttempt reports whether the attempt whose lease has run out, or one before
// it, may have had its effect.
func (r *record) lostAttempt(ctx context.Context, q dbgen.Querier) (bool, error) {
	rows, err := q.ListAttempts(ctx, r.operation.OperationPK)
	if err != nil || len(rows) == 0 {
		return true, err
	}
	last := rows[len(rows)-1]
	return last.Attempt != r.fence() || last.Outcome != string(endDenied), nil
}

// later is now, or the time of the operation's last change if a clock was put
// back since: what has happened is recorded all the same.
func (r *record) later(now int64) int64 { return max(now, r.operation.UpdatedAt) }

// A claiming says for whom operations are claimed, and until when.
type claiming struct {
	worker          string
	now, leaseUntil int64
	knows           func(*record) bool // whether its tool is here, under its contract
}

// claimByRef gives a worker the exclusive right to an operation until
// leaseUntil: if it is pending, or if its lease has run out.
func (s *Store) claimByRef(ctx context.Context, statusRef string, w claiming) (c claim, err error) {
	err = s.engine.Write(ctx, func(ctx context.Context, q dbgen.Querier) error {
		c = claim{}
		o, err := q.GetOperationByRef(ctx, statusRef)
		if ok, err := found(err); !ok {
			return err
		}
		r := &record{operation: o}
		if err := r.readEvent(ctx, q); err != nil {
			return err
		}
		c, err = w.claim(ctx, q, r, true)
		return err
	})
	return c, err
}

// claim claims an operation in the open transaction. One that waits for its next
// attempt is claimed only early.
func (w claiming) claim(ctx context.Context, q dbgen.Querier, r *record, early bool) (claim, error) {
	c, o := claim{record: r}, &r.operation
	// Only an attempt leaves a receipt, so a first one has none to look for.
	if r.fence() > 0 {
		if err := r.readReceipts(ctx, q); err != nil {
			return c, err
		}
	}
	waiting := c.event.State == string(eventPending) && (early || c.event.NextAttemptAt <= w.now)
	expired := c.event.State == string(eventProcessing) && c.event.LeaseUntil.Int64 <= w.now
	if !waiting && !expired {
		return c, nil
	}
	if !w.knows(r) {
		c.foreign = true
		return c, r.intact()
	}
	if c.event.PayloadJSON != toolresult.OutboxPayload(o.OperationPK, o.RequestSha256, o.ToolName) {
		return c, &ContractError{o.StatusRef, "the outbox payload is not the operation's canonical one"}
	}
	if expired {
		var err error
		if c.lost, err = c.lostAttempt(ctx, q); err != nil {
			return c, err
		}
	}
	c.claimed = true
	return c, c.apply(ctx, q, move{to: processing, now: w.now, worker: w.worker, leaseUntil: w.leaseUntil, ending: endLost})
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
	foreign map[int64]string // the tools of those whose contract the worker does not know
}

// claimDue claims up to so many due operations of each lane, except those to be
// passed over, in one transaction. What others are claiming at the same time is
// theirs, and what cannot be claimed keeps nothing else from it.
func (s *Store) claimDue(ctx context.Context, shares []share, w claiming, pass map[int64]bool) (b batch, err error) {
	claim := func(ctx context.Context, q dbgen.Querier) error {
		b = batch{refused: map[int64]error{}, foreign: map[int64]string{}}
		for _, share := range shares {
			if err := w.claimLane(ctx, q, share, pass, &b); err != nil {
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

func (w claiming) claimLane(ctx context.Context, q dbgen.Querier, s share, pass map[int64]bool, b *batch) error {
	due, err := q.LockDueInLane(ctx, dbgen.LockDueInLaneParams{Lane: s.lane, Now: w.now, Page: int64(s.n + len(pass))})
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
		case row.Operation.CreatedAt > w.now:
			// By this clock it does not exist yet, and the schema would refuse the
			// whole batch for it.
			b.refused[pk] = &ContractError{row.Operation.StatusRef, "it was accepted later than now"}
			continue
		}
		c, err := w.claim(ctx, q, &record{operation: row.Operation, event: row.Outbox}, false)
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
		}
	}
	return nil
}
