package ledger

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
	"slices"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/tables"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A move is a change of an operation and its event together.
type move struct {
	to         State
	now        int64
	reason     toolresult.Code // of inReview and failed
	worker     string          // of processing
	leaseUntil int64           // of processing
	notBefore  int64           // of pending
	decisions  int64           // how many there are now, where one is the reason
	ending     Ending          // of the attempt that was running, if there was one
}

// apply makes the move in the open transaction, from exactly the rows that r
// holds: a row that is no longer so, or that was changed past the runtime, is
// not touched. r then holds the new rows. ErrLeaseLost says that the event has
// moved on since r was read; then nothing was written.
func (r *Operation) apply(ctx context.Context, q engine.Querier, m move) error {
	motion, err := r.motion(m)
	if err != nil {
		return err
	}
	return r.carryOut(ctx, q, motion)
}

// motion is the move as the engine makes it, if it is allowed.
func (r *Operation) motion(m move) (*engine.Motion, error) {
	o, e, err := r.moved(m)
	if err != nil {
		return nil, err
	}
	motion := &engine.Motion{FromOperation: r.operation, Operation: o, FromEvent: r.event, Event: e,
		Attempt: r.attemptRow(m.ending, m.now)}
	if m.to == Failed || m.to == InReview {
		// A place among the endings. What ends with a receipt that is inserted with it has
		// the receipt's own key for that.
		motion.Ending = r.ending()
	}
	return motion, nil
}

// move makes a move by itself, from rows that the caller has read a while ago, or
// otherwise runs a unit that reads them again: where they are others now, where there is no
// move, and where nobody knows whether it was stored.
func (s *Ledger) move(ctx context.Context, m *engine.Motion, otherwise engine.Unit) (moved bool, err error) {
	unknown := false
	if m != nil {
		err := s.engine.Move(ctx, m)
		unknown = errors.Is(err, engine.ErrCommitUnknown)
		if err == nil && m.Answer == engine.Stored || err != nil && !unknown {
			return err == nil, err
		}
	}
	err = s.engine.Write(ctx, otherwise)
	if unknown {
		err = engine.InDoubt(err)
	}
	return false, err
}

// carryOut makes a move of r in the open transaction.
func (r *Operation) carryOut(ctx context.Context, q engine.Querier, m *engine.Motion) error {
	changed := &ContractError{r.StatusRef(), "its evidence was changed while it ran"}
	err := q.Move(ctx, m)
	switch {
	case err != nil && engine.Whole(err) == nil: // the two rows always move together
		return changed
	case err != nil:
		return err
	case m.Answer == engine.Stored:
		r.operation, r.event = m.Operation, m.Event
		return nil
	}
	now := Operation{operation: r.operation}
	if err := now.readEvent(ctx, q); err != nil {
		return err
	}
	if reflect.DeepEqual(now.event, r.event) {
		return changed
	}
	return ErrLeaseLost
}

// confirm writes the event as it is. A transaction that finds stored what it was
// to store would write nothing, and commit without waiting for anybody; with this
// it is durable no earlier than what it has found, on a standby, too.
func (r *Operation) confirm(ctx context.Context, q engine.Querier) error {
	return r.carryOut(ctx, q, r.stay())
}

// stay is a move that changes nothing.
func (r *Operation) stay() *engine.Motion {
	return &engine.Motion{FromOperation: r.operation, Operation: r.operation, FromEvent: r.event, Event: r.event}
}

// moved is what a move makes of the rows that r holds, if it is allowed.
func (r *Operation) moved(m move) (o dbgen.Operation, e dbgen.Outbox, err error) {
	if err := r.intact(); err != nil {
		return o, e, err
	}
	if r.operation.CompletedAt.Valid || !slices.Contains(Transitions[r.State()], m.to) {
		return o, e, &ContractError{r.StatusRef(), "it cannot go from " + r.operation.State + " to " + string(m.to)}
	}
	o, e = r.operation, r.event
	o.State, o.UpdatedAt, o.Reason = string(m.to), m.now, string(m.reason)
	if m.to == Succeeded || m.to == Failed {
		o.CompletedAt = sql.NullInt64{Int64: m.now, Valid: true}
	}
	e.State, e.UpdatedAt, e.Decisions = string(eventOf[m.to]), m.now, max(e.Decisions, m.decisions)
	e.LeaseOwner, e.LeaseUntil, e.NextAttemptAt = sql.NullString{}, sql.NullInt64{}, m.notBefore
	if m.to == Processing {
		e.LeaseOwner = sql.NullString{String: m.worker, Valid: true}
		e.LeaseUntil = sql.NullInt64{Int64: m.leaseUntil, Valid: true}
		e.AttemptCount++
		e.NextAttemptAt = m.leaseUntil
	}
	o.RowDigest, e.RowDigest = tables.Operations.Digest(&o), tables.Outbox.Digest(&e)
	return o, e, nil
}

// attemptRow is how the attempt that is running ends, or nil where none is.
func (r *Operation) attemptRow(how Ending, now int64) *dbgen.Attempt {
	if r.event.State != string(eventProcessing) {
		return nil
	}
	a := &dbgen.Attempt{
		OperationPK: r.operation.OperationPK, Attempt: r.Fence(), WorkerID: r.event.LeaseOwner.String,
		StartedAt: r.event.UpdatedAt, EndedAt: max(now, r.event.UpdatedAt), Outcome: string(how),
		Cause: string(r.cause),
	}
	a.RowDigest = tables.Attempts.Digest(a)
	return a
}

// extended moves the end of the lease, under the fence that it was given with.
func (r *Operation) extended(leaseUntil int64) (*engine.Motion, error) {
	if err := r.intact(); err != nil {
		return nil, err
	}
	m := r.stay()
	m.Event.LeaseUntil, m.Event.NextAttemptAt = sql.NullInt64{Int64: leaseUntil, Valid: true}, leaseUntil
	tables.Outbox.Seal(&m.Event)
	return m, nil
}

// intact holds both rows against their digests: a move must not give a row that
// was changed past the runtime a digest that fits.
func (r *Operation) intact() error {
	if !tables.Operations.Intact(&r.operation) {
		return &ContractError{r.StatusRef(), "the operation's row does not fit its digest"}
	}
	if !tables.Outbox.Intact(&r.event) {
		return &ContractError{r.StatusRef(), "the outbox event's row does not fit its digest"}
	}
	return nil
}
