package main

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/tables"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// The rows that a call leaves in the ledger.
type rows struct {
	binding    dbgen.CallBinding
	operation  dbgen.Operation
	event      dbgen.Outbox
	downstream dbgen.DownstreamReceipt
	local      dbgen.LocalReceipt
	attempt    dbgen.Attempt
}

const worker = "bench-worker"

// endedRows makes the rows of an operation that has ended, with digests that the
// audit accepts: pk must be the key that the database will give to it.
func (l *ledger) endedRows(n, pk, now int64) (r rows, err error) {
	b, err := l.bind(n)
	if err != nil {
		return r, err
	}
	c, approval := b.Call(), approve(b)
	receipt, err := refunds.NewOrders().CreateRefundDraft().Run(context.Background(),
		toolruntime.Effect{Identity: b.EffectIdentity()}, refunds.RefundArgs{OrderRef: "ORDER-7", Reason: "duplicate"})
	if err != nil {
		return r, err
	}
	result := fmt.Sprintf(`{"draft_id":%q,"order_ref":"ORDER-7","reason":"duplicate"}`, receipt.Data.DraftID)
	t, ended := b.Contract(), sql.NullInt64{Int64: now, Valid: true}
	r.binding = dbgen.CallBinding{TenantID: owner.TenantID, SubjectID: owner.SubjectID, Provider: c.Provider, APIFamily: c.APIFamily,
		ResponseID: c.ResponseID, CallID: c.CallID, FingerprintSha256: b.Fingerprint(toolresult.PurposeDispatch), CreatedAt: now, StatusRef: b.StatusRef()}
	r.operation = dbgen.Operation{OperationPK: pk, TenantID: owner.TenantID, SubjectID: owner.SubjectID, ToolName: c.Name, IdempotencyKey: c.IdempotencyKey,
		RequestSha256: b.RequestSHA256(), ArgumentsJSON: b.Arguments(), InputSchemaRevision: t.InputSchema, OutputSchemaRevision: t.OutputSchema,
		EffectRevision: t.Effect, HandlerRevision: t.Handler, ProducerRevision: t.Producer, PolicyRevision: t.Policy,
		ApprovalID: approval.ApprovalID, ApproverID: approval.ApproverID, ApprovalDigest: approval.ApprovalDigest, ApprovalExpiresAt: approval.ExpiresAt, ApprovedAt: now,
		FirstOperationID: c.OperationID, FirstCallID: c.CallID, FirstResponseID: c.ResponseID, FirstProvider: c.Provider, FirstAPIFamily: c.APIFamily,
		FirstAdapterRevision: c.AdapterRevision, StatusRef: b.StatusRef(), State: "succeeded", CreatedAt: now, UpdatedAt: now, CompletedAt: ended}
	payload := contract.OutboxPayload(pk, b.RequestSHA256(), c.Name)
	r.event = dbgen.Outbox{OperationPK: pk, EventID: contract.OutboxEventID(payload), PayloadJSON: payload, State: "delivered",
		AttemptCount: 1, CreatedAt: now, UpdatedAt: now, Lane: c.Name + "\n" + owner.TenantID}
	r.downstream = dbgen.DownstreamReceipt{TenantID: owner.TenantID, SubjectID: owner.SubjectID, ToolName: c.Name, IdempotencyKey: c.IdempotencyKey,
		RequestSha256: b.RequestSHA256(), ReceiptID: receipt.ID, DownstreamRequestID: receipt.RequestID, ResultJSON: result, ProducerRevision: t.Producer,
		ResourceRevision: receipt.ResourceRevision, ObservedAt: contract.FormatTime(now), EffectRevision: t.Effect, CommittedAt: now}
	d := r.downstream
	r.local = dbgen.LocalReceipt{OperationPK: pk, ReceiptID: d.ReceiptID, DownstreamRequestID: d.DownstreamRequestID, RequestSha256: d.RequestSha256,
		ResultJSON: d.ResultJSON, ProducerRevision: d.ProducerRevision, ResourceRevision: d.ResourceRevision, ObservedAt: d.ObservedAt,
		EffectRevision: d.EffectRevision, ReconciledAt: now}
	r.attempt = dbgen.Attempt{OperationPK: pk, Attempt: 1, WorkerID: worker, StartedAt: now, EndedAt: now, Outcome: "succeeded"}
	r.seal()
	return r, nil
}

func (r *rows) seal() {
	tables.CallBindings.Seal(&r.binding)
	tables.Operations.Seal(&r.operation)
	tables.Outbox.Seal(&r.event)
	tables.DownstreamReceipts.Seal(&r.downstream)
	tables.LocalReceipts.Seal(&r.local)
	tables.Attempts.Seal(&r.attempt)
}

// insertOperation binds the call and inserts operation and event: what the ledger
// does before an effect.
func (r *rows) insertOperation(ctx context.Context, q dbgen.Querier) error {
	if _, err := q.InsertCallBinding(ctx, dbgen.InsertCallBindingParams(r.binding)); err != nil {
		return err
	}
	o := &r.operation
	pk, err := q.InsertOperation(ctx, dbgen.InsertOperationParams{
		TenantID: o.TenantID, SubjectID: o.SubjectID, ToolName: o.ToolName, IdempotencyKey: o.IdempotencyKey, RequestSha256: o.RequestSha256,
		ArgumentsJSON: o.ArgumentsJSON, InputSchemaRevision: o.InputSchemaRevision, OutputSchemaRevision: o.OutputSchemaRevision,
		EffectRevision: o.EffectRevision, HandlerRevision: o.HandlerRevision, ProducerRevision: o.ProducerRevision, PolicyRevision: o.PolicyRevision,
		ApprovalID: o.ApprovalID, ApproverID: o.ApproverID, ApprovalDigest: o.ApprovalDigest, ApprovalExpiresAt: o.ApprovalExpiresAt,
		ApprovedAt: o.ApprovedAt, FirstOperationID: o.FirstOperationID, FirstCallID: o.FirstCallID, FirstResponseID: o.FirstResponseID,
		FirstProvider: o.FirstProvider, FirstAPIFamily: o.FirstAPIFamily, FirstAdapterRevision: o.FirstAdapterRevision, StatusRef: o.StatusRef,
		State: o.State, CreatedAt: o.CreatedAt, UpdatedAt: o.UpdatedAt, CompletedAt: o.CompletedAt, Reason: o.Reason, RowDigest: o.RowDigest})
	if err != nil {
		return err
	}
	o.OperationPK, r.event.OperationPK, r.local.OperationPK, r.attempt.OperationPK = pk, pk, pk, pk
	return q.InsertEvent(ctx, dbgen.InsertEventParams(r.event))
}

// insertReceipts inserts what the downstream said, and the attempt.
func (r *rows) insertReceipts(ctx context.Context, q dbgen.Querier) error {
	d := &r.downstream
	if _, err := q.InsertDownstreamReceipt(ctx, dbgen.InsertDownstreamReceiptParams{
		TenantID: d.TenantID, SubjectID: d.SubjectID, ToolName: d.ToolName, IdempotencyKey: d.IdempotencyKey, RequestSha256: d.RequestSha256,
		ReceiptID: d.ReceiptID, DownstreamRequestID: d.DownstreamRequestID, ResultJSON: d.ResultJSON, ProducerRevision: d.ProducerRevision,
		ResourceRevision: d.ResourceRevision, ObservedAt: d.ObservedAt, EffectRevision: d.EffectRevision, CommittedAt: d.CommittedAt,
		RowDigest: d.RowDigest}); err != nil {
		return err
	}
	if _, err := q.InsertLocalReceipt(ctx, dbgen.InsertLocalReceiptParams(r.local)); err != nil {
		return err
	}
	_, err := q.InsertAttempt(ctx, dbgen.InsertAttemptParams(r.attempt))
	return err
}

// fillTransaction is how many operations are filled in together. Each touches a page
// of its own in seven indexes, so the more there are, the fewer times a page is
// written.
const fillTransaction = 200_000

// fill adds the operations numbered from first on, ended an hour ago, to a ledger
// on which nobody else works. The rows are made beside the insertion.
func (l *ledger) fill(ctx context.Context, c bare, first, n int64) error {
	var last int64
	if err := c.QueryRowContext(ctx, "SELECT COALESCE(MAX(operation_pk), 0) FROM operations").Scan(&last); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	made := make(chan rows, 256)
	go func() {
		defer close(made)
		now := time.Now().Add(-time.Hour).Unix()
		for i := first; i < first+n && ctx.Err() == nil; i++ {
			r, err := l.endedRows(i, last+1+i-first, now)
			if err != nil {
				stop(err)
				return
			}
			made <- r
		}
	}()
	defer func() {
		stop(nil)
		for range made { // its maker must not wait for ever
		}
	}()
	for left := n; left > 0; left -= fillTransaction {
		err := c.transact(ctx, func() error {
			for range min(left, fillTransaction) {
				r, ok := <-made
				if !ok {
					return context.Cause(ctx)
				}
				pk := r.operation.OperationPK
				if err := r.insertOperation(ctx, c); err != nil {
					return err
				}
				if r.operation.OperationPK != pk {
					return fmt.Errorf("operation %d has got the key %d", pk, r.operation.OperationPK)
				}
				if err := r.insertReceipts(ctx, c); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("fill: %w", err)
		}
	}
	return nil
}
