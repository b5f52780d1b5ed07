package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/tables"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// Observe records a receipt as the downstream gave it, and no more: the
// operation stays as it is until the receipt is accepted.
func (s *Ledger) Observe(ctx context.Context, r *Operation, e toolresult.Evidence, now int64) error {
	return s.engine.Write(ctx, func(ctx context.Context, q engine.Querier) error {
		_, err := observe(ctx, q, &r.operation, observedReceipt(&r.operation, e, now))
		return err
	})
}

// observe inserts a receipt; one that the scope has already must be the same,
// but for when it was observed.
func observe(ctx context.Context, q dbgen.Querier, o *dbgen.Operation, d dbgen.DownstreamReceipt) (*dbgen.DownstreamReceipt, error) {
	inserted, err := engine.Observe(ctx, q, &d)
	if errors.Is(err, engine.ErrConstraint) {
		return nil, fmt.Errorf("%w: %w", ErrReceiptRefused, err)
	}
	if err != nil || inserted {
		return &d, err
	}
	r := &Operation{operation: *o}
	if err := r.readDownstream(ctx, q); err != nil {
		return nil, err
	}
	if !tables.DownstreamReceipts.Intact(r.downstream) {
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
	tables.DownstreamReceipts.Seal(&d)
	return d
}

// ErrReceiptRefused says that the ledger cannot hold a receipt beside those that
// it has: its ids are another operation's.
var ErrReceiptRefused = errors.New("the receipt was refused by the ledger")

// A Commitment accepts a receipt.
type Commitment struct {
	Operation *Operation
	// Evidence is what the downstream has just answered, or nil where the
	// receipt that was read with Operation is to be accepted.
	Evidence *toolresult.Evidence
	// Fence is the claim under which a worker commits; 0 for a reconciliation,
	// which needs none, because the receipt says that the effect has happened.
	Fence int64
	Now   int64
}

// Commit accepts a receipt, as observed and as the answer, and ends the
// operation, all or nothing. An operation that has ended with this very receipt
// is left as it is.
func (s *Ledger) Commit(ctx context.Context, c Commitment) (r *Operation, err error) {
	defer Endings.Ring(c.Operation.StatusRef())
	plan := c.plan()
	moved, err := s.move(ctx, plan, func(ctx context.Context, q engine.Querier) (err error) {
		if r, err = claimed(ctx, q, c.Operation); err != nil {
			return err
		}
		if !sameIntent(&r.operation, &c.Operation.operation) {
			return &ContractError{r.StatusRef(), "its evidence was changed while it ran"}
		}
		// An operation that has ended under this very claim is a repetition after
		// an ambiguous commit.
		if r.State() == Succeeded && (c.Fence == 0 || c.Fence == r.Fence()) {
			err = r.confirm(ctx, q)
		} else {
			err = r.mayEnd(c.Fence)
		}
		if err != nil {
			return err
		}
		return r.end(ctx, q, c)
	})
	if moved {
		r = &Operation{operation: plan.Operation, event: plan.Event, downstream: plan.Observed, local: plan.Accepted}
	}
	return r, err
}

// plan is what a worker stores who has just got the receipt, if nobody has touched
// what it has claimed. Every digest of it is computed here, before others wait for
// the transaction. It is nil where the move is not allowed, or not a worker's: then the
// transaction says why.
func (c Commitment) plan() *engine.Motion {
	from := c.Operation
	if c.Evidence == nil || c.Fence == 0 || c.Fence != from.Fence() || from.State() != Processing {
		return nil
	}
	m, err := from.motion(c.move(from))
	if err != nil || m.Attempt == nil {
		return nil
	}
	d := observedReceipt(&m.Operation, *c.Evidence, c.Now)
	l := acceptedReceipt(m.Operation.OperationPK, &d, c.Now)
	m.Observed, m.Accepted = &d, &l
	return m
}

// move ends r's operation.
func (c Commitment) move(r *Operation) move {
	if c.Fence == 0 {
		return move{to: Succeeded, now: c.Now, ending: endReconciled}
	}
	return move{to: Succeeded, now: r.later(c.Now), ending: endSucceeded}
}

// end accepts a receipt and ends the operation, if it has not ended.
func (r *Operation) end(ctx context.Context, q engine.Querier, c Commitment) error {
	if r.State() != Succeeded {
		if err := r.apply(ctx, q, c.move(r)); err != nil {
			return err
		}
	}
	return r.accept(ctx, q, c)
}

// mayEnd holds a worker's fence against the event.
func (r *Operation) mayEnd(fence int64) error {
	switch s := r.State(); {
	case s != Pending && s != Processing:
		return ErrLeaseLost
	case fence != 0 && (fence != r.Fence() || r.event.State != string(eventProcessing)):
		return ErrLeaseLost
	}
	return nil
}

// accept makes the receipts of r's operation what c says, or finds them so.
func (r *Operation) accept(ctx context.Context, q dbgen.Querier, c Commitment) (err error) {
	if c.Evidence != nil {
		r.downstream, err = observe(ctx, q, &r.operation, observedReceipt(&r.operation, *c.Evidence, c.Now))
	} else {
		err = r.readDownstream(ctx, q)
	}
	if err != nil {
		return err
	}
	// A receipt that was read before is accepted as it was checked, or not at all.
	if c.Evidence == nil && (r.downstream == nil || !bytes.Equal(r.downstream.RowDigest, c.Operation.downstream.RowDigest) ||
		!tables.DownstreamReceipts.Intact(r.downstream)) {
		return &ContractError{r.StatusRef(), "the downstream's receipt was changed while it was checked"}
	}
	return r.insertAccepted(ctx, q, acceptedReceipt(r.operation.OperationPK, r.downstream, c.Now))
}

// insertAccepted inserts the accepted receipt of r's operation, or finds it so.
func (r *Operation) insertAccepted(ctx context.Context, q dbgen.Querier, l dbgen.LocalReceipt) error {
	r.local = &l
	n, err := q.InsertLocalReceipt(ctx, dbgen.InsertLocalReceiptParams(l))
	if err == nil && n == 1 && r.downstream.DownstreamPK != 0 { // it was there before
		return engine.Announce(ctx, q, r.ending())
	}
	if err != nil || n == 1 {
		return err
	}
	if err := r.readLocal(ctx, q); err != nil {
		return err
	}
	if acceptedRow(r.local) != observedRow(r.downstream) {
		return &ContractError{r.StatusRef(), "the local receipt differs from the downstream's"}
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
	tables.LocalReceipts.Seal(&l)
	return l
}

// A Parking takes an operation out of the workers' reach until a person looks
// at it.
type Parking struct {
	Operation *Operation
	Fence     int64
	Reason    toolresult.Code
	Now       int64
	// Rejected is the answer that broke the output contract, if that is why.
	Rejected  *toolresult.Evidence
	Violation string
	// Ending is how the attempt has ended.
	Ending Ending
}

// Park puts an operation in review, with the answer that is the reason.
func (s *Ledger) Park(ctx context.Context, p Parking) (r *Operation, err error) {
	defer Endings.Ring(p.Operation.StatusRef())
	err = s.engine.Write(ctx, func(ctx context.Context, q engine.Querier) (err error) {
		if r, err = claimed(ctx, q, p.Operation); err != nil {
			return err
		}
		if r.State() == InReview && r.Reason() == p.Reason && r.Fence() == p.Fence {
			return nil // a repetition after an ambiguous commit
		}
		if err := r.mayEnd(p.Fence); err != nil {
			return err
		}
		if p.Rejected != nil {
			if err := r.keepRejected(ctx, q, p.Fence, *p.Rejected, p.Violation, p.Now); err != nil {
				return err
			}
		}
		return r.apply(ctx, q, move{to: InReview, now: r.later(p.Now), reason: p.Reason, ending: p.Ending})
	})
	return r, err
}
