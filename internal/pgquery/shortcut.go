package pgquery

import (
	"context"

	"github.com/toolruntime/toolruntime-go/internal/dbgen/postgres"
	"github.com/toolruntime/toolruntime-go/internal/engine"
)

// NextOperationKey takes a key for an operation.
func (s *Queries) NextOperationKey(ctx context.Context) (int64, error) {
	pk, err := s.q.NextOperationKey(ctx)
	return pk, s.classify(err)
}

// Reserve stores a reservation, and returns the key for the next.
func (s *Queries) Reserve(ctx context.Context, r engine.Reservation) (next int64, err error) {
	o, e, b := &r.Operation, &r.Event, &r.Binding
	next, err = s.q.Reserve(ctx, postgres.ReserveParams{
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

		EventID: e.EventID, PayloadJSON: e.PayloadJSON, EventState: e.State,
		LeaseOwner: e.LeaseOwner, LeaseUntil: e.LeaseUntil, AttemptCount: e.AttemptCount,
		EventCreatedAt: e.CreatedAt, EventUpdatedAt: e.UpdatedAt, EventDigest: e.RowDigest,
		NextAttemptAt: e.NextAttemptAt, Lane: e.Lane,

		Provider: b.Provider, APIFamily: b.APIFamily, ResponseID: b.ResponseID, CallID: b.CallID,
		FingerprintSha256: b.FingerprintSha256, BoundAt: b.CreatedAt, BoundRef: b.StatusRef, BindingDigest: b.RowDigest,
	})
	return next, s.classify(err)
}

// Commit stores a commitment.
func (s *Queries) Commit(ctx context.Context, c engine.Commitment) error {
	from, o, fromEvent, e := &c.FromOperation, &c.Operation, &c.FromEvent, &c.Event
	a, d, l := &c.Attempt, &c.Observed, &c.Accepted
	_, err := s.q.Commit(ctx, postgres.CommitParams{
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
		State: o.State, UpdatedAt: o.UpdatedAt, CompletedAt: o.CompletedAt, Reason: o.Reason, RowDigest: o.RowDigest,

		FromEventDigest: fromEvent.RowDigest, FromEventState: fromEvent.State,
		FromLeaseOwner: fromEvent.LeaseOwner.String, FromLeaseUntil: fromEvent.LeaseUntil.Int64,
		FromNextAttemptAt: fromEvent.NextAttemptAt, FromEventUpdatedAt: fromEvent.UpdatedAt,
		EventID: fromEvent.EventID, PayloadJSON: fromEvent.PayloadJSON, Lane: fromEvent.Lane, EventCreatedAt: fromEvent.CreatedAt,
		EventState: e.State, EventUpdatedAt: e.UpdatedAt, EventDigest: e.RowDigest, NextAttemptAt: e.NextAttemptAt,

		Attempt: a.Attempt, WorkerID: a.WorkerID, StartedAt: a.StartedAt, EndedAt: a.EndedAt,
		Outcome: a.Outcome, AttemptDigest: a.RowDigest,

		ReceiptID: d.ReceiptID, DownstreamRequestID: d.DownstreamRequestID, ResultJSON: d.ResultJSON,
		ReceiptProducer: d.ProducerRevision, ResourceRevision: d.ResourceRevision, ObservedAt: d.ObservedAt,
		CommittedAt: d.CommittedAt, DownstreamDigest: d.RowDigest, ReconciledAt: l.ReconciledAt, LocalDigest: l.RowDigest,
	})
	return s.classify(err)
}
