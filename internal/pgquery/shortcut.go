package pgquery

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/toolruntime/toolruntime-go/internal/dbgen/postgres"
	"github.com/toolruntime/toolruntime-go/internal/engine"
)

// Each statement here is for sessions with the search_path that it is given.

// NextOperationKeys takes keys for operations.
func NextOperationKeys(path string, keys []int64) Statement {
	q := recorded(func(ctx context.Context, q *postgres.Queries) error {
		return q.NextOperationKeys(ctx, postgres.NextOperationKeysParams{Keys: int64(len(keys)), SearchPath: path})
	})
	q.read = func(rows pgx.Rows) error {
		for i := range keys {
			if !rows.Next() {
				return noRow(rows)
			}
			if err := rows.Scan(&keys[i]); err != nil {
				return err
			}
		}
		return nil
	}
	return q
}

// Reserve stores a reservation, and then calls stored with the key for the next.
func Reserve(path string, r engine.Reservation, stored func(next int64)) Statement {
	o, e, b := &r.Operation, &r.Event, &r.Binding
	arg := postgres.ReserveParams{
		SearchPath:  path,
		OperationPK: o.OperationPK,
		TenantID:    o.TenantID, SubjectID: o.SubjectID, ToolName: o.ToolName, IdempotencyKey: o.IdempotencyKey,
		RequestSha256: o.RequestSha256, ArgumentsJSON: o.ArgumentsJSON,
		InputSchemaRevision: o.InputSchemaRevision, OutputSchemaRevision: o.OutputSchemaRevision,
		EffectRevision: o.EffectRevision, HandlerRevision: o.HandlerRevision,
		ProducerRevision: o.ProducerRevision, PolicyRevision: o.PolicyRevision,
		ApprovalID: o.ApprovalID, ApproverID: o.ApproverID, ApprovalDigest: o.ApprovalDigest,
		ApprovalExpiresAt: o.ApprovalExpiresAt, ApprovedAt: o.ApprovedAt,
		FirstOperationID: o.FirstOperationID, FirstCallID: o.FirstCallID, FirstResponseID: o.FirstResponseID,
		FirstProvider: o.FirstProvider, FirstAPIFamily: o.FirstAPIFamily,
		FirstAdapterRevision: o.FirstAdapterRevision, StatusRef: o.StatusRef, State: o.State,
		CreatedAt: o.CreatedAt, UpdatedAt: o.UpdatedAt, CompletedAt: o.CompletedAt, Reason: o.Reason, RowDigest: o.RowDigest,
		EffectKind: o.EffectKind,

		EventID: e.EventID, PayloadJSON: e.PayloadJSON, EventState: e.State,
		LeaseOwner: e.LeaseOwner, LeaseUntil: e.LeaseUntil, AttemptCount: e.AttemptCount,
		EventCreatedAt: e.CreatedAt, EventUpdatedAt: e.UpdatedAt, EventDigest: e.RowDigest,
		NextAttemptAt: e.NextAttemptAt, Lane: e.Lane,

		Provider: b.Provider, APIFamily: b.APIFamily, ResponseID: b.ResponseID, CallID: b.CallID,
		FingerprintSha256: b.FingerprintSha256, BoundAt: b.CreatedAt, BoundRef: b.StatusRef, BindingDigest: b.RowDigest,

		ValidFrom: r.From, ValidUntil: r.Until,
	}
	s := recorded(func(ctx context.Context, q *postgres.Queries) error { return q.Reserve(ctx, arg) })
	s.read = key(stored)
	return s
}

// Commit stores a commitment, and then calls stored.
func Commit(path string, c engine.Commitment, stored func(pk int64)) Statement {
	from, o, fromEvent, e := &c.FromOperation, &c.Operation, &c.FromEvent, &c.Event
	a, d, l := &c.Attempt, &c.Observed, &c.Accepted
	arg := postgres.CommitParams{
		SearchPath:  path,
		OperationPK: from.OperationPK, FromDigest: from.RowDigest, FromState: from.State,
		FromUpdatedAt: from.UpdatedAt, FromReason: from.Reason,
		TenantID: from.TenantID, SubjectID: from.SubjectID, ToolName: from.ToolName, IdempotencyKey: from.IdempotencyKey,
		RequestSha256: from.RequestSha256, ArgumentsJSON: from.ArgumentsJSON,
		InputSchemaRevision: from.InputSchemaRevision, OutputSchemaRevision: from.OutputSchemaRevision,
		EffectRevision: from.EffectRevision, HandlerRevision: from.HandlerRevision,
		ProducerRevision: from.ProducerRevision, PolicyRevision: from.PolicyRevision,
		ApprovalID: from.ApprovalID, ApproverID: from.ApproverID, ApprovalDigest: from.ApprovalDigest,
		ApprovalExpiresAt: from.ApprovalExpiresAt, ApprovedAt: from.ApprovedAt,
		FirstOperationID: from.FirstOperationID, FirstCallID: from.FirstCallID, FirstResponseID: from.FirstResponseID,
		FirstProvider: from.FirstProvider, FirstAPIFamily: from.FirstAPIFamily,
		FirstAdapterRevision: from.FirstAdapterRevision, StatusRef: from.StatusRef, CreatedAt: from.CreatedAt,
		EffectKind: from.EffectKind,
		State:      o.State, UpdatedAt: o.UpdatedAt, CompletedAt: o.CompletedAt, Reason: o.Reason, RowDigest: o.RowDigest,

		FromEventDigest: fromEvent.RowDigest, FromEventState: fromEvent.State,
		FromLeaseOwner: fromEvent.LeaseOwner.String, FromLeaseUntil: fromEvent.LeaseUntil.Int64,
		FromNextAttemptAt: fromEvent.NextAttemptAt, FromEventUpdatedAt: fromEvent.UpdatedAt, FromDecisions: fromEvent.Decisions,
		EventID: fromEvent.EventID, PayloadJSON: fromEvent.PayloadJSON, Lane: fromEvent.Lane, EventCreatedAt: fromEvent.CreatedAt,
		EventState: e.State, EventUpdatedAt: e.UpdatedAt, EventDigest: e.RowDigest, NextAttemptAt: e.NextAttemptAt,

		Attempt: a.Attempt, WorkerID: a.WorkerID, StartedAt: a.StartedAt, EndedAt: a.EndedAt,
		Outcome: a.Outcome, AttemptDigest: a.RowDigest,

		ReceiptID: d.ReceiptID, DownstreamRequestID: d.DownstreamRequestID, ResultJSON: d.ResultJSON,
		ReceiptProducer: d.ProducerRevision, ResourceRevision: d.ResourceRevision, ObservedAt: d.ObservedAt,
		CommittedAt: d.CommittedAt, DownstreamDigest: d.RowDigest, ReconciledAt: l.ReconciledAt, LocalDigest: l.RowDigest,
	}
	s := recorded(func(ctx context.Context, q *postgres.Queries) error { return q.Commit(ctx, arg) })
	s.read = key(stored)
	return s
}

// key reads the key that a statement has returned, if it has.
func key(there func(int64)) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		if !rows.Next() {
			return nil
		}
		var pk int64
		err := rows.Scan(&pk)
		if err == nil {
			there(pk)
		}
		return err
	}
}
