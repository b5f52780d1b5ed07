package ledger

import (
	"bytes"
	"context"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
)

// clockTolerance is by how many seconds the time that a shortcut stores may differ
// from the ledger's at that moment. Where it is more, the transaction takes a new
// one.
const clockTolerance = 1

// reserveAtOnce stores an operation by the engine's shortcut. Without stored the
// caller reserves in a transaction; doubt says that the record may be stored all
// the same.
func (s *Ledger) reserveAtOnce(ctx context.Context, v Reservation, o dbgen.Operation, binding dbgen.InsertCallBindingParams) (r *Operation, stored bool, doubt error) {
	if s.shortcut == nil || v.Admission == nil {
		return nil, false, nil
	}
	r = &Operation{operation: o}
	from, until := int64(0), contract.MaxTime
	if v.Admission.Own {
		from, until = v.Now-clockTolerance, min(v.Now+1+clockTolerance, v.Admission.Approval.ExpiresAt)
	}
	stored, doubt = s.shortcut.Reserve(ctx, func(pk int64) engine.Reservation {
		r.operation.OperationPK = pk
		r.event = newEvent(r.operation, v)
		return engine.Reservation{Operation: r.operation, Event: r.event, Binding: dbgen.CallBinding(binding),
			From: from, Until: until}
	})
	return r, stored, doubt
}

// commitAtOnce stores a plan by the engine's shortcut. Rows that may not move are
// left to the transaction, which says why.
func (s *Ledger) commitAtOnce(ctx context.Context, p *engine.Commitment) (r *Operation, stored bool, doubt error) {
	if s.shortcut == nil || p == nil {
		return nil, false, nil
	}
	stored, doubt = s.shortcut.Commit(ctx, *p)
	return &Operation{operation: p.Operation, event: p.Event, downstream: &p.Observed, local: &p.Accepted}, stored, doubt
}

// recover finds out whether a reservation of which nobody knows has taken its
// scope: then the operation has its key, which nobody else was given.
func (r *Operation) recover(ctx context.Context, q dbgen.Querier) (*Operation, error) {
	row, err := q.GetClaimed(ctx, r.operation.OperationPK)
	there, err := found(err)
	if err != nil {
		return nil, err
	}
	if !there || !bytes.Equal(row.Operation.RowDigest, r.operation.RowDigest) || !bytes.Equal(row.Outbox.RowDigest, r.event.RowDigest) {
		return nil, ErrScopeChanged
	}
	return r, r.confirm(ctx, q)
}

// confirm writes the event as it is. A transaction that finds stored what it was
// to store would write nothing, and commit without waiting for anybody; with this
// it is durable no earlier than what it has found, on a standby, too.
func (r *Operation) confirm(ctx context.Context, q dbgen.Querier) error {
	return r.moveEvent(ctx, q, r.event)
}

// inDoubt is the error of a transaction that was run because a shortcut's outcome
// was unknown, if it was.
func inDoubt(err, doubt error) error {
	if doubt == nil {
		return err
	}
	return engine.InDoubt(err)
}
