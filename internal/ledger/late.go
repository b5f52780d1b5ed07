package ledger

import (
	"context"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/tables"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// keepRejected keeps an attempt's answer that is not accepted, as evidence. That
// of an attempt is kept once.
func (r *Operation) keepRejected(ctx context.Context, q dbgen.Querier, attempt int64, e toolresult.Evidence, why string, now int64) error {
	row := dbgen.RejectedReceipt{
		OperationPK: r.operation.OperationPK, Attempt: attempt, ReceiptID: e.ReceiptID,
		DownstreamRequestID: e.RequestID, ResultText: e.Data,
		ProducerRevision: e.ProducerRevision, ResourceRevision: e.ResourceRevision,
		ObservedAt: e.ObservedAt, Violation: why, RecordedAt: now,
	}
	tables.RejectedReceipts.Seal(&row)
	_, err := q.InsertRejectedReceipt(ctx, dbgen.InsertRejectedReceiptParams(row))
	return err
}

// KeepLate keeps an answer that came after the lease of its claim was lost. It
// changes nothing else: whoever has claimed the operation since has the say. One
// that has been accepted from another attempt is no news.
func (s *Ledger) KeepLate(ctx context.Context, c *Operation, e toolresult.Evidence, why string, now int64) error {
	return s.engine.Write(ctx, func(ctx context.Context, q engine.Querier) error {
		r, err := claimed(ctx, q, c)
		if err != nil {
			return err
		}
		if err := r.readLocal(ctx, q); err != nil {
			return err
		}
		if r.local != nil && r.local.ReceiptID == e.ReceiptID {
			return nil
		}
		return r.keepRejected(ctx, q, c.Fence(), e, why, now)
	})
}
