package toolruntime

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/rowdigest"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// observe records a receipt as the downstream gave it, and no more: the
// operation stays as it is until the receipt is accepted.
func (s *Store) observe(ctx context.Context, r *record, e toolresult.Evidence, now int64) error {
	return s.engine.Write(ctx, func(ctx context.Context, q dbgen.Querier) error {
		_, err := observe(ctx, q, &r.operation, observedReceipt(&r.operation, e, now))
		return err
	})
}

// observe inserts a receipt; one that the scope has already must be the same,
// but for when it was observed.
func observe(ctx context.Context, q dbgen.Querier, o *dbgen.Operation, d dbgen.DownstreamReceipt) (*dbgen.DownstreamReceipt, error) {
	n, err := q.InsertDownstreamReceipt(ctx, dbgen.InsertDownstreamReceiptParams{
		TenantID: d.TenantID, SubjectID: d.SubjectID, ToolName: d.ToolName, IdempotencyKey: d.IdempotencyKey,
		RequestSha256: d.RequestSha256, ReceiptID: d.ReceiptID, DownstreamRequestID: d.DownstreamRequestID,
		ResultJSON: d.ResultJSON, ProducerRevision: d.ProducerRevision, ResourceRevision: d.ResourceRevision,
		ObservedAt: d.ObservedAt, EffectRevision: d.EffectRevision, CommittedAt: d.CommittedAt, RowDigest: d.RowDigest,
	})
	if errors.Is(err, ErrConstraint) {
		return nil, fmt.Errorf("%w: %w", errReceiptRefused, err)
	}
	if err != nil || n == 1 {
		return &d, err
	}
	r := &record{operation: *o}
	if err := r.readDownstream(ctx, q); err != nil {
		return nil, err
	}
	if !bytes.Equal(r.downstream.RowDigest, rowdigest.DownstreamReceipt(*r.downstream)) {
		return nil, &ContractError{o.StatusRef, "the downstream receipt's row does not fit its digest"}
	}
	first, again := observedRow(r.downstream), observedRow(&d)
	again.observedAt = first.observedAt
	if first != again {
		return nil, &ContractError{o.StatusRef, "the downstream gave two different receipts for it"}
	}
	return r.downstream, nil
}

func observedReceipt(o *dbgen.Operation, e toolresult.Evidence, now int64) dbgen.DownstreamReceipt {
	d := dbgen.DownstreamReceipt{
		TenantID: o.TenantID, SubjectID: o.SubjectID, ToolName: o.ToolName, IdempotencyKey: o.IdempotencyKey,
		RequestSha256: o.RequestSha256, ReceiptID: e.ReceiptID, DownstreamRequestID: e.RequestID,
		ResultJSON: e.Data, ProducerRevision: e.ProducerRevision, ResourceRevision: e.ResourceRevision,
		ObservedAt: e.ObservedAt, EffectRevision: o.EffectRevision, CommittedAt: now,
	}
	d.RowDigest = rowdigest.DownstreamReceipt(d)
	return d
}

// errReceiptRefused says that the ledger cannot hold a receipt beside those that
// it has: its ids are another operation's.
var errReceiptRefused = errors.New("the receipt was refused by the ledger")

// A commitment accepts a receipt.
type commitment struct {
	record *record
	// evidence is what the downstream has just answered, or nil where the
	// receipt in record.downstream is to be accepted.
	evidence *toolresult.Evidence
	// fence is the claim under which a worker commits; 0 for a reconciliation,
	// which needs none, because the receipt says that the effect has happened.
	fence int64
	now   int64
}

// commit accepts a receipt, as observed and as the answer, and ends the
// operation, all or nothing. An operation that has ended with this very receipt
// is left as it is.
func (s *Store) commit(ctx context.Context, c commitment) (r *record, err error) {
	defer endings.ring(c.record.statusRef())
	plan := c.plan()
	tried, stored, doubt := s.commitAtOnce(ctx, plan)
	if stored {
		return tried, nil
	}
	err = s.engine.Write(ctx, func(ctx context.Context, q dbgen.Querier) (err error) {
		if plan != nil {
			if r, err = carryOut(ctx, q, plan); !errors.Is(err, ErrLeaseLost) {
				return err
			}
		}
		if r, err = claimed(ctx, q, c.record); err != nil {
			return err
		}
		if !sameIntent(&r.operation, &c.record.operation) {
			return &ContractError{r.statusRef(), "its evidence was changed while it ran"}
		}
		// An operation that has ended under this very claim is a repetition after
		// an ambiguous commit.
		if r.state() == succeeded && (c.fence == 0 || c.fence == r.fence()) {
			err = r.confirm(ctx, q)
		} else {
			err = r.mayEnd(c.fence)
		}
		if err != nil {
			return err
		}
		return r.end(ctx, q, c)
	})
	return r, inDoubt(err, doubt)
}

// plan is what a worker stores who has just got the receipt, if nobody has touched
// what it has claimed. Every digest of it is computed here, before others wait for
// the transaction. It is nil where the move is not allowed, or not a worker's.
func (c commitment) plan() *engine.Commitment {
	from := c.record
	if c.evidence == nil || c.fence == 0 || c.fence != from.fence() || from.state() != processing {
		return nil
	}
	m := c.move(from)
	o, e, err := from.moved(m)
	a := from.attemptRow(m.ending, m.now)
	if err != nil || a == nil {
		return nil
	}
	d := observedReceipt(&o, *c.evidence, c.now)
	return &engine.Commitment{
		FromOperation: from.operation, Operation: o, FromEvent: from.event, Event: e,
		Attempt: *a, Observed: d, Accepted: acceptedReceipt(o.OperationPK, &d, c.now),
	}
}

// carryOut stores a plan in the open transaction. It reads nothing: whether the
// rows are still those of the claim is what the moves find out, with ErrLeaseLost.
func carryOut(ctx context.Context, q dbgen.Querier, p *engine.Commitment) (*record, error) {
	r := &record{operation: p.FromOperation, event: p.FromEvent}
	if err := r.write(ctx, q, p.Operation, p.Event, &p.Attempt); err != nil {
		return r, err
	}
	var err error
	if r.downstream, err = observe(ctx, q, &r.operation, p.Observed); err != nil {
		return r, err
	}
	l := p.Accepted
	if !bytes.Equal(r.downstream.RowDigest, p.Observed.RowDigest) {
		l = acceptedReceipt(l.OperationPK, r.downstream, l.ReconciledAt) // it was observed before
	}
	return r, r.insertAccepted(ctx, q, l)
}

// move ends r's operation.
func (c commitment) move(r *record) move {
	if c.fence == 0 {
		return move{to: succeeded, now: c.now, ending: endReconciled}
	}
	return move{to: succeeded, now: r.later(c.now), ending: endSucceeded}
}

// end accepts a receipt and ends the operation, if it has not ended.
func (r *record) end(ctx context.Context, q dbgen.Querier, c commitment) error {
	if r.state() != succeeded {
		if err := r.apply(ctx, q, c.move(r)); err != nil {
			return err
		}
	}
	return r.accept(ctx, q, c)
}

// mayEnd holds a worker's fence against the event.
func (r *record) mayEnd(fence int64) error {
	switch s := r.state(); {
	case s != pending && s != processing:
		return ErrLeaseLost
	case fence != 0 && (fence != r.fence() || r.event.State != string(eventProcessing)):
		return ErrLeaseLost
	}
	return nil
}

// accept makes the receipts of r's operation what c says, or finds them so.
func (r *record) accept(ctx context.Context, q dbgen.Querier, c commitment) (err error) {
	if c.evidence != nil {
		r.downstream, err = observe(ctx, q, &r.operation, observedReceipt(&r.operation, *c.evidence, c.now))
	} else {
		err = r.readDownstream(ctx, q)
	}
	if err != nil {
		return err
	}
	// A receipt that was read before is accepted as it was checked, or not at all.
	if c.evidence == nil && (r.downstream == nil || !bytes.Equal(r.downstream.RowDigest, c.record.downstream.RowDigest) ||
		!bytes.Equal(r.downstream.RowDigest, rowdigest.DownstreamReceipt(*r.downstream))) {
		return &ContractError{r.statusRef(), "the downstream's receipt was changed while it was checked"}
	}
	return r.insertAccepted(ctx, q, acceptedReceipt(r.operation.OperationPK, r.downstream, c.now))
}

// insertAccepted inserts the accepted receipt of r's operation, or finds it so.
func (r *record) insertAccepted(ctx context.Context, q dbgen.Querier, l dbgen.LocalReceipt) error {
	r.local = &l
	n, err := q.InsertLocalReceipt(ctx, dbgen.InsertLocalReceiptParams(l))
	if err == nil && n == 1 && r.downstream.DownstreamPK != 0 { // it was there before
		return r.announce(ctx, q)
	}
	if err != nil || n == 1 {
		return err
	}
	if err := r.readLocal(ctx, q); err != nil {
		return err
	}
	if acceptedRow(r.local) != observedRow(r.downstream) {
		return &ContractError{r.statusRef(), "the local receipt differs from the downstream's"}
	}
	return nil
}

func acceptedReceipt(pk int64, d *dbgen.DownstreamReceipt, now int64) dbgen.LocalReceipt {
	l := dbgen.LocalReceipt{
		OperationPK: pk, ReceiptID: d.ReceiptID, DownstreamRequestID: d.DownstreamRequestID,
		RequestSha256: d.RequestSha256, ResultJSON: d.ResultJSON, ProducerRevision: d.ProducerRevision,
		ResourceRevision: d.ResourceRevision, ObservedAt: d.ObservedAt, EffectRevision: d.EffectRevision,
		ReconciledAt: now,
	}
	l.RowDigest = rowdigest.LocalReceipt(l)
	return l
}

// A parking takes an operation out of the workers' reach until a person looks
// at it.
type parking struct {
	record *record
	fence  int64
	reason toolresult.Code
	now    int64
	// rejected is the answer that broke the output contract, if that is why.
	rejected  *toolresult.Evidence
	violation string
	// ending is how the attempt has ended.
	ending ending
}

// park puts an operation in review, with the answer that is the reason.
func (s *Store) park(ctx context.Context, p parking) error {
	defer endings.ring(p.record.statusRef())
	return s.engine.Write(ctx, func(ctx context.Context, q dbgen.Querier) error {
		r, err := claimed(ctx, q, p.record)
		if err != nil {
			return err
		}
		if r.state() == inReview && r.reason() == p.reason && r.fence() == p.fence {
			return nil // a repetition after an ambiguous commit
		}
		if err := r.mayEnd(p.fence); err != nil {
			return err
		}
		if p.rejected != nil {
			if err := r.keepRejected(ctx, q, p.fence, *p.rejected, p.violation, p.now); err != nil {
				return err
			}
		}
		return r.apply(ctx, q, move{to: inReview, now: r.later(p.now), reason: p.reason, ending: p.ending})
	})
}
