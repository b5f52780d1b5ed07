package toolruntime

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
func (s *Store) reserveAtOnce(ctx context.Context, v reservation, o dbgen.Operation, binding dbgen.InsertCallBindingParams) (r *record, stored bool, doubt error) {
	if s.shortcut == nil || v.admission == nil {
		return nil, false, nil
	}
	r = &record{operation: o}
	from, until := int64(0), contract.MaxTime
	if v.admission.own {
		from, until = v.now-clockTolerance, min(v.now+1+clockTolerance, v.admission.approval.ExpiresAt)
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
func (s *Store) commitAtOnce(ctx context.Context, p *engine.Commitment) (r *record, stored bool, doubt error) {
	if s.shortcut == nil || p == nil {
		return nil, false, nil
	}
	stored, doubt = s.shortcut.Commit(ctx, *p)
	return &record{operation: p.Operation, event: p.Event, downstream: &p.Observed, local: &p.Accepted}, stored, doubt
}

// recover finds out whether a reservation of which nobody knows has taken its
// scope: then the operation has its key, which nobody else was given.
func (r *record) recover(ctx context.Context, q dbgen.Querier) (*record, error) {
	row, err := q.GetClaimed(ctx, r.operation.OperationPK)
	there, err := found(err)
	if err != nil {
		return nil, err
	}
	if !there || !bytes.Equal(row.Operation.RowDigest, r.operation.RowDigest) || !bytes.Equal(row.Outbox.RowDigest, r.event.RowDigest) {
		return nil, errScopeChanged
	}
	return r, r.confirm(ctx, q)
}

// confirm writes the event as it is. A transaction that finds stored what it was
// to store would write nothing, and commit without waiting for anybody; with this
// it is durable no earlier than what it has found, on a standby, too.
func (r *record) confirm(ctx context.Context, q dbgen.Querier) error {
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
