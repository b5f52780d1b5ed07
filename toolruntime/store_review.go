package toolruntime

import (
	"context"
	"fmt"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/rowdigest"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A settlement is a person's decision about an operation, in review or, to cancel it,
// before its first attempt.
type settlement struct {
	record        *record
	decision      Decision
	actor, reason string
	now           int64
	notBefore     int64                // of TryAgain
	evidence      *toolresult.Evidence // of ConfirmedDone
}

// resolve records a decision and does what it says, in one transaction. A
// repetition of the decision that was made finds it done.
func (s *Store) resolve(ctx context.Context, v settlement) error {
	defer endings.ring(v.record.statusRef())
	return s.engine.Write(ctx, func(ctx context.Context, q dbgen.Querier) error {
		o, err := q.GetOperation(ctx, v.record.operation.OperationPK)
		if there, err := found(err); err != nil {
			return err
		} else if !there {
			return v.refused() // it has ended long ago, and was pruned
		}
		r := &record{operation: o}
		if err := r.readEvent(ctx, q); err != nil {
			return err
		}
		if !v.decides(r) {
			return r.resolvedBefore(ctx, q, v)
		}
		if !sameIntent(&o, &v.record.operation) {
			return &ContractError{r.statusRef(), "its evidence was changed while it was looked at"}
		}
		row := dbgen.Resolution{OperationPK: o.OperationPK, Seq: max(r.fence(), 1), Decision: string(v.decision),
			Actor: v.actor, Reason: v.reason, DecidedAt: v.now}
		row.RowDigest = rowdigest.Resolution(row)
		if err := q.InsertResolution(ctx, dbgen.InsertResolutionParams(row)); err != nil {
			return err
		}
		rows, err := q.ListResolutions(ctx, o.OperationPK)
		if err != nil {
			return err
		}
		return r.settle(ctx, q, v, int64(len(rows)))
	})
}

// decides reports whether the decision can be made about r as it stands.
func (v settlement) decides(r *record) bool {
	if v.decision == cancelled {
		return r.state() == pending && r.fence() == 0
	}
	return r.state() == inReview
}

// refused is the error of a decision that cannot be made.
func (v settlement) refused() error {
	if v.decision == cancelled {
		return ErrBegun
	}
	return ErrNotInReview
}

// settle does what was decided. decisions is how many there are with it: the event
// counts them, so that the audit misses one that is gone.
func (r *record) settle(ctx context.Context, q dbgen.Querier, v settlement, decisions int64) error {
	switch v.decision {
	case ConfirmedDone:
		if err := r.accept(ctx, q, commitment{record: r, evidence: v.evidence, now: v.now}); err != nil {
			return err
		}
		return r.apply(ctx, q, move{to: succeeded, now: v.now, decisions: decisions})
	case ConfirmedNotDone:
		return r.apply(ctx, q, move{to: failed, now: v.now, reason: toolresult.ToolError, decisions: decisions})
	case cancelled:
		return r.apply(ctx, q, move{to: failed, now: r.later(v.now), reason: toolresult.Cancelled, decisions: decisions})
	case Abandoned:
		return r.apply(ctx, q, move{to: failed, now: v.now, reason: toolresult.OutcomeUnknown, decisions: decisions})
	}
	return r.apply(ctx, q, move{to: pending, now: v.now, notBefore: max(v.notBefore, v.now), decisions: decisions})
}

// resolvedBefore finds out whether v was decided before.
func (r *record) resolvedBefore(ctx context.Context, q dbgen.Querier, v settlement) error {
	rows, err := q.ListResolutions(ctx, r.operation.OperationPK)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return v.refused()
	}
	last := rows[len(rows)-1]
	if last.Decision != string(v.decision) || last.Actor != v.actor || last.Reason != v.reason {
		return fmt.Errorf("%w: it was resolved otherwise", v.refused())
	}
	if v.decision == ConfirmedDone {
		if err := r.readLocal(ctx, q); err != nil {
			return err
		}
		if r.local == nil || r.local.ReceiptID != v.evidence.ReceiptID || r.local.ResultJSON != v.evidence.Data {
			return fmt.Errorf("%w: it was resolved with another receipt", ErrNotInReview)
		}
	}
	return nil
}

// review lists operations in review after the one that after names.
func (s *Store) review(ctx context.Context, after string, limit int) (items []Item, err error) {
	err = s.engine.Read(ctx, func(ctx context.Context, q dbgen.Querier) error {
		items = []Item{}
		var pk int64
		if after != "" {
			o, err := q.GetOperationByRef(ctx, after)
			if ok, err := found(err); err != nil {
				return err
			} else if !ok {
				return &toolresult.InputError{Field: "status_ref", Rule: "is not known"}
			}
			pk = o.OperationPK
		}
		rows, err := q.ListInReview(ctx, dbgen.ListInReviewParams{AfterPK: pk, Page: int64(limit)})
		if err != nil {
			return err
		}
		for _, o := range rows {
			e, err := q.GetEvent(ctx, o.OperationPK)
			if err != nil {
				return err
			}
			items = append(items, Item{StatusRef: o.StatusRef, Tool: o.ToolName, Reason: toolresult.Code(o.Reason),
				Attempts: e.AttemptCount, CreatedAt: at(o.CreatedAt), Since: at(o.UpdatedAt)})
		}
		return nil
	})
	return items, err
}
