package ledger

import (
	"context"
	"errors"
	"slices"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
)

// A Claim is an operation that was claimed. Claimed is false when there was nothing to
// claim; the operation is then as it was found, or nil.
type Claim struct {
	*Operation
	Claimed bool
	Lost    bool // an earlier attempt ended without a word
	Foreign bool // it could be claimed, by a worker that knows its contract
	Paused  bool // it could be claimed, if its tool were not paused
}

// lostAttempt reports whether the attempt whose lease has run out, or one before
// it, may have had its effect; and whether it has ended without a word, so that it
// might still run where the lease has only seemed to run out.
func (r *Operation) lostAttempt(ctx context.Context, q dbgen.Querier) (lost, silent bool, err error) {
	rows, err := q.ListAttempts(ctx, r.operation.OperationPK)
	if err != nil || len(rows) == 0 {
		return true, true, err
	}
	last := rows[len(rows)-1]
	silent = last.Attempt != r.Fence()
	return silent || last.Outcome != string(EndDenied), silent, nil
}

// later is now, or the time of the operation's last change if a clock was put
// back since: what has happened is recorded all the same.
func (r *Operation) later(now int64) int64 { return max(now, r.operation.UpdatedAt) }

// A Claiming says for whom operations are claimed, and for how long.
type Claiming struct {
	Worker string
	Term
	Knows func(*Operation) bool // whether its tool is here, under its contract
	// Alive tells which attempts may still run although their lease has run out by the
	// ledger's clock. Who works off what is due has it, and leaves out what waits for its
	// next attempt; without it that is claimed early.
	Alive func(*Operation) bool
}

// ClaimByRef gives a worker the exclusive right to an operation for a while: if it
// is pending, or if its lease has run out.
func (s *Ledger) ClaimByRef(ctx context.Context, statusRef string, w Claiming) (c Claim, err error) {
	err = s.engine.Write(ctx, func(ctx context.Context, q engine.Querier) error {
		c, w.Term = Claim{}, s.anew(w.Term)
		o, err := q.GetOperationByRef(ctx, statusRef)
		if ok, err := found(err); !ok {
			return err
		}
		r := &Operation{operation: o}
		if err := r.readEvent(ctx, q); err != nil {
			return err
		}
		var m *engine.Motion
		if c, m, err = w.judge(ctx, q, r); err != nil || m == nil {
			return err
		}
		return r.carryOut(ctx, q, m)
	})
	return c, err
}

// judge finds out whether an operation may be claimed, and returns the move that does it.
// Where it may not, there may be another move, which lets it wait as long as it was to.
func (w Claiming) judge(ctx context.Context, q engine.Querier, r *Operation) (Claim, *engine.Motion, error) {
	c, o := Claim{Operation: r}, &r.operation
	// Only an attempt leaves a receipt, so a first one has none to look for.
	if r.Fence() > 0 {
		if err := r.readReceipts(ctx, q); err != nil {
			return c, nil, err
		}
	}
	if c.event.State == string(eventProcessing) && r.astray(w.Now) {
		m, err := r.broughtBack(w.Now)
		return c, m, err
	}
	waiting := c.event.State == string(eventPending) && (w.Alive == nil || c.event.NextAttemptAt <= w.Now)
	expired := c.event.State == string(eventProcessing) && c.event.LeaseUntil.Int64 <= w.Now
	if !waiting && !expired {
		return c, nil, nil
	}
	if w.Alive == nil { // a worker's lanes are those of tools that are not paused
		n, err := q.IsPaused(ctx, o.ToolName)
		if c.Paused = n > 0; err != nil || c.Paused {
			return c, nil, err
		}
	}
	if !w.Knows(r) {
		c.Foreign = true
		return c, nil, r.intact()
	}
	if c.event.PayloadJSON != contract.OutboxPayload(o.OperationPK, o.RequestSha256, o.ToolName) {
		return c, nil, &ContractError{o.StatusRef, "the outbox payload is not the operation's canonical one"}
	}
	if expired {
		lost, silent, err := c.lostAttempt(ctx, q)
		if err != nil || silent && w.Alive != nil && w.Alive(r) {
			return c, nil, err
		}
		c.Lost = lost
	}
	m, err := r.motion(move{to: Processing, now: r.later(w.Now), worker: w.Worker, leaseUntil: w.Until, ending: endLost})
	c.Claimed = err == nil
	return c, m, err
}

// MaxBatch bounds how many operations one transaction claims, and with it how
// long others wait for that.
const MaxBatch = 64

// A Share is how many operations of a lane a worker wants.
type Share struct {
	lane string
	n    int
}

// A Batch is what one transaction has claimed.
type Batch struct {
	Claims []Claim
	// Refused are operations that cannot be claimed, by key, and why: their stored
	// state breaks its contract.
	Refused map[int64]error
	// Waiting are operations that are not due after all.
	Waiting []int64
	Foreign map[int64]string // the tools of those whose contract the worker does not know
}

// ClaimDue claims up to so many due operations of each lane, except those to be
// passed over, in one transaction. What others are claiming at the same time is
// theirs, and what cannot be claimed keeps nothing else from it.
func (s *Ledger) ClaimDue(ctx context.Context, shares []Share, w Claiming, pass map[int64]bool) (b Batch, err error) {
	claim := func(ctx context.Context, q engine.Querier) error {
		b, w.Term = Batch{Refused: map[int64]error{}, Foreign: map[int64]string{}}, s.anew(w.Term)
		for _, share := range shares {
			if err := w.claimLane(ctx, q, share, pass, &b); err != nil {
				return err
			}
		}
		return nil
	}
	err = s.engine.Write(ctx, claim)
	if tried := b; errors.Is(err, engine.ErrCommitUnknown) {
		// Whoever waits for a worker that is shutting down waits for this, too: nobody
		// else could know that nothing has run.
		err = s.engine.Write(context.WithoutCancel(ctx), func(ctx context.Context, q engine.Querier) (err error) {
			if b, err = tried.stored(ctx, q); err != nil || len(b.Claims) > 0 {
				return err
			}
			return claim(ctx, q)
		})
	}
	if err != nil {
		return Batch{}, err
	}
	return b, nil
}

// stored is what has been claimed of b after all, where the answer to its commit
// was lost: all of it, but for what others have claimed since. Writing a row as it
// should be makes sure that what is found is as durable as any commit.
func (b Batch) stored(ctx context.Context, q engine.Querier) (Batch, error) {
	found := Batch{Refused: b.Refused, Foreign: b.Foreign}
	motions := make([]*engine.Motion, len(b.Claims))
	for i, c := range b.Claims {
		motions[i] = c.stay()
	}
	if err := q.Move(ctx, motions...); err != nil {
		return Batch{}, err
	}
	for i, m := range motions {
		if m.Answer == engine.Stored {
			found.Claims = append(found.Claims, b.Claims[i])
		}
	}
	return found, nil
}

// claimLane claims up to so many operations of a lane, all with one move.
func (w Claiming) claimLane(ctx context.Context, q engine.Querier, s Share, pass map[int64]bool, b *Batch) error {
	due, err := q.LockDueInLane(ctx, dbgen.LockDueInLaneParams{Lane: s.lane, ToolName: ToolOf(s.lane), Now: w.Now, Page: int64(s.n + len(pass))})
	if err != nil {
		return err
	}
	due = slices.DeleteFunc(due, func(pk int64) bool { return pass[pk] })
	rows, err := q.Claimed(ctx, due)
	if err != nil {
		return err
	}
	byKey := make(map[int64]*dbgen.GetClaimedRow, len(rows))
	for i := range rows {
		byKey[rows[i].Operation.OperationPK] = &rows[i]
	}
	var claims []Claim
	var motions []*engine.Motion
	for _, pk := range due {
		row := byKey[pk]
		if row == nil {
			b.Refused[pk] = &ContractError{"", "an outbox event has no operation"}
			continue
		}
		if s.n == 0 {
			break
		}
		c, m, err := w.judge(ctx, q, &Operation{operation: row.Operation, event: row.Outbox})
		switch {
		case errors.Is(err, engine.ErrContract):
			b.Refused[pk] = err
			continue
		case err != nil:
			return err
		case c.Foreign:
			b.Foreign[pk] = row.Operation.ToolName
		case c.Claimed:
			s.n--
		default:
			b.Waiting = append(b.Waiting, pk)
		}
		if m != nil {
			claims, motions = append(claims, c), append(motions, m)
		}
	}
	if err := q.Move(ctx, motions...); err != nil {
		return err
	}
	for i, m := range motions {
		switch c := claims[i]; {
		case !c.Claimed:
		case m.Answer == engine.Stored:
			c.operation, c.event = m.Operation, m.Event
			b.Claims = append(b.Claims, c)
		default: // it was locked: its evidence was changed past the runtime
			b.Refused[m.FromEvent.OperationPK] = &ContractError{c.StatusRef(), "its evidence was changed while it was claimed"}
		}
	}
	return nil
}
