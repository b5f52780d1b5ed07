package ledger

import (
	"context"
	"fmt"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/tables"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A Decision is a person's answer to "did it happen?".
type Decision string

// The decisions.
const (
	// ConfirmedDone: the effect has happened. The receipt is the evidence, and the
	// answer from now on.
	ConfirmedDone Decision = "confirmed_done"
	// ConfirmedNotDone: nothing has happened, and nothing shall: it fails for good.
	ConfirmedNotDone Decision = "confirmed_not_done"
	// TryAgain: nothing has happened, and it shall be attempted again.
	TryAgain Decision = "try_again"
	// Abandoned: nobody will find out. It stays unknown for good.
	Abandoned Decision = "abandoned"
)

// cancelled is the decision of [Runtime.Cancel]. It is none of those that end a review.
const Cancelled Decision = "cancelled"

// A Settlement is a person's decision about an operation, in review or, to cancel it,
// before its first attempt.
type Settlement struct {
	Operation     *Operation
	Decision      Decision
	Actor, Reason string
	Now           int64
	NotBefore     int64                // of TryAgain
	Evidence      *toolresult.Evidence // of ConfirmedDone
}

// Resolve records a decision and does what it says, in one transaction. A
// repetition of the decision that was made finds it done.
func (s *Ledger) Resolve(ctx context.Context, v Settlement) error {
	defer Endings.Ring(v.Operation.StatusRef())
	return s.engine.Write(ctx, func(ctx context.Context, q engine.Querier) error {
		o, err := q.GetOperation(ctx, v.Operation.operation.OperationPK)
		if there, err := found(err); err != nil {
			return err
		} else if !there {
			return v.refused() // it has ended long ago, and was pruned
		}
		r := &Operation{operation: o}
		if err := r.readEvent(ctx, q); err != nil {
			return err
		}
		if !v.decides(r) {
			return r.resolvedBefore(ctx, q, v)
		}
		if !sameIntent(&o, &v.Operation.operation) {
			return &ContractError{r.StatusRef(), "its evidence was changed while it was looked at"}
		}
		row := dbgen.Resolution{OperationPK: o.OperationPK, Seq: max(r.Fence(), 1), Decision: string(v.Decision),
			Actor: v.Actor, Reason: v.Reason, DecidedAt: v.Now}
		tables.Resolutions.Seal(&row)
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
func (v Settlement) decides(r *Operation) bool {
	if v.Decision == Cancelled {
		return r.State() == Pending && r.Fence() == 0
	}
	return r.State() == InReview
}

// refused is the error of a decision that cannot be made.
func (v Settlement) refused() error {
	if v.Decision == Cancelled {
		return ErrBegun
	}
	return ErrNotInReview
}

// settle does what was decided. decisions is how many there are with it: the event
// counts them, so that the audit misses one that is gone.
func (r *Operation) settle(ctx context.Context, q engine.Querier, v Settlement, decisions int64) error {
	switch v.Decision {
	case ConfirmedDone:
		if err := r.accept(ctx, q, Commitment{Operation: r, Evidence: v.Evidence, Now: v.Now}); err != nil {
			return err
		}
		return r.apply(ctx, q, move{to: Succeeded, now: v.Now, decisions: decisions})
	case ConfirmedNotDone:
		return r.apply(ctx, q, move{to: Failed, now: v.Now, reason: toolresult.ToolError, decisions: decisions})
	case Cancelled:
		return r.apply(ctx, q, move{to: Failed, now: r.later(v.Now), reason: toolresult.Cancelled, decisions: decisions})
	case Abandoned:
		return r.apply(ctx, q, move{to: Failed, now: v.Now, reason: toolresult.OutcomeUnknown, decisions: decisions})
	}
	return r.apply(ctx, q, move{to: Pending, now: v.Now, notBefore: max(v.NotBefore, v.Now), decisions: decisions})
}

// resolvedBefore finds out whether v was decided before.
func (r *Operation) resolvedBefore(ctx context.Context, q engine.Querier, v Settlement) error {
	rows, err := q.ListResolutions(ctx, r.operation.OperationPK)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return v.refused()
	}
	last := rows[len(rows)-1]
	if last.Decision != string(v.Decision) || last.Actor != v.Actor || last.Reason != v.Reason {
		return fmt.Errorf("%w: it was resolved otherwise", v.refused())
	}
	if v.Decision == ConfirmedDone {
		if err := r.readLocal(ctx, q); err != nil {
			return err
		}
		if r.local == nil || r.local.ReceiptID != v.Evidence.ReceiptID || r.local.ResultJSON != v.Evidence.Data {
			return fmt.Errorf("%w: it was resolved with another receipt", ErrNotInReview)
		}
	}
	return nil
}

// A Reviewed operation waits for a person. Times are in Unix seconds.
type Reviewed struct {
	StatusRef, Tool  string
	Reason           toolresult.Code
	Attempts         int64
	CreatedAt, Since int64 // when it was accepted, and when it went into review
}

// Review lists operations in review after the one that after names.
func (s *Ledger) Review(ctx context.Context, after string, limit int) (items []Reviewed, err error) {
	err = s.engine.Read(ctx, func(ctx context.Context, q engine.Querier) error {
		items = nil
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
			items = append(items, Reviewed{StatusRef: o.StatusRef, Tool: o.ToolName, Reason: toolresult.Code(o.Reason),
				Attempts: e.AttemptCount, CreatedAt: o.CreatedAt, Since: o.UpdatedAt})
		}
		return nil
	})
	return items, err
}
