package toolruntime

import (
	"bytes"
	"context"
	"database/sql"
	"slices"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/rowdigest"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A move is a change of an operation and its event together.
type move struct {
	to         state
	now        int64
	reason     toolresult.Code // of inReview and failed
	worker     string          // of processing
	leaseUntil int64           // of processing
}

// apply makes the move in the open transaction, from exactly the rows that r
// holds: a row that is no longer so, or that was changed past the runtime, is
// not touched. r then holds the new rows.
func (r *record) apply(ctx context.Context, q dbgen.Querier, m move) error {
	if err := r.intact(); err != nil {
		return err
	}
	if !slices.Contains(transitions[r.state()], m.to) {
		return &ContractError{r.statusRef(), "it cannot go from " + r.operation.State + " to " + string(m.to)}
	}
	o, e := r.operation, r.event
	o.State, o.UpdatedAt, o.Reason = string(m.to), m.now, string(m.reason)
	if m.to == succeeded || m.to == failed {
		o.CompletedAt = sql.NullInt64{Int64: m.now, Valid: true}
	}
	e.State, e.UpdatedAt = string(eventOf[m.to]), m.now
	e.LeaseOwner, e.LeaseUntil = sql.NullString{}, sql.NullInt64{}
	if m.to == processing {
		e.LeaseOwner = sql.NullString{String: m.worker, Valid: true}
		e.LeaseUntil = sql.NullInt64{Int64: m.leaseUntil, Valid: true}
		e.AttemptCount++
	}
	o.RowDigest, e.RowDigest = rowdigest.Operation(o), rowdigest.Event(e)
	n, err := q.MoveEvent(ctx, dbgen.MoveEventParams{
		State: e.State, LeaseOwner: e.LeaseOwner, LeaseUntil: e.LeaseUntil, AttemptCount: e.AttemptCount,
		UpdatedAt: e.UpdatedAt, RowDigest: e.RowDigest,
		OperationPK: e.OperationPK, FromState: r.event.State, Fence: r.event.AttemptCount, FromDigest: r.event.RowDigest,
	})
	if err == nil && n == 1 {
		n, err = q.MoveOperation(ctx, dbgen.MoveOperationParams{
			State: o.State, UpdatedAt: o.UpdatedAt, CompletedAt: o.CompletedAt, Reason: o.Reason, RowDigest: o.RowDigest,
			OperationPK: o.OperationPK, FromState: r.operation.State, FromDigest: r.operation.RowDigest,
		})
	}
	if err != nil {
		return err
	}
	if n != 1 {
		return ErrLeaseLost
	}
	r.operation, r.event = o, e
	return nil
}

// intact holds both rows against their digests: a move must not give a row that
// was changed past the runtime a digest that fits.
func (r *record) intact() error {
	if !bytes.Equal(r.operation.RowDigest, rowdigest.Operation(r.operation)) {
		return &ContractError{r.statusRef(), "the operation's row does not fit its digest"}
	}
	if !bytes.Equal(r.event.RowDigest, rowdigest.Event(r.event)) {
		return &ContractError{r.statusRef(), "the outbox event's row does not fit its digest"}
	}
	return nil
}

// A claimed operation. claimed is false when there was nothing to claim; the
// record is then as it was found, or nil.
type claim struct {
	*record
	claimed bool
	lost    bool // an earlier attempt ended without a word
}

// claim gives a worker the exclusive right to an operation until leaseUntil: if
// it is pending, or if its lease has run out.
func (s *Store) claim(ctx context.Context, statusRef, worker string, now, leaseUntil int64) (c claim, err error) {
	err = s.engine.Write(ctx, func(ctx context.Context, q dbgen.Querier) error {
		c = claim{}
		o, err := q.GetOperationByRef(ctx, statusRef)
		if ok, err := found(err); !ok {
			return err
		}
		c.record = &record{operation: o}
		if err := c.readRest(ctx, q); err != nil {
			return err
		}
		expired := c.event.State == string(eventProcessing) && c.event.LeaseUntil.Int64 <= now
		if c.event.State != string(eventPending) && !expired {
			return nil
		}
		if c.event.PayloadJSON != toolresult.OutboxPayload(o.OperationPK, o.RequestSha256, o.ToolName) {
			return &ContractError{statusRef, "the outbox payload is not the operation's canonical one"}
		}
		c.claimed, c.lost = true, expired
		return c.apply(ctx, q, move{to: processing, now: now, worker: worker, leaseUntil: leaseUntil})
	})
	return c, err
}
