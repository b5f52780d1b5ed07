package ledger

import (
	"context"
	"database/sql"
	"slices"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/tables"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A move is a change of an operation and its event together.
type move struct {
	to         State
	now        int64
	reason     toolresult.Code // of inReview and failed
	worker     string          // of processing
	leaseUntil int64           // of processing
	notBefore  int64           // of pending
	decisions  int64           // how many there are now, where one is the reason
	ending     Ending          // of the attempt that was running, if there was one
}

// apply makes the move in the open transaction, from exactly the rows that r
// holds: a row that is no longer so, or that was changed past the runtime, is
// not touched. r then holds the new rows. ErrLeaseLost says that the event has
// moved on since r was read; then nothing was written.
func (r *Operation) apply(ctx context.Context, q dbgen.Querier, m move) error {
	o, e, err := r.moved(m)
	if err != nil {
		return err
	}
	err = r.write(ctx, q, o, e, r.attemptRow(m.ending, m.now))
	if err == nil && (m.to == Failed || m.to == InReview) {
		err = r.announce(ctx, q)
	}
	return err
}

// write makes a move whose rows are known.
func (r *Operation) write(ctx context.Context, q dbgen.Querier, o dbgen.Operation, e dbgen.Outbox, a *dbgen.Attempt) error {
	if err := r.moveEvent(ctx, q, e); err != nil {
		return err
	}
	if err := endAttempt(ctx, q, a); err != nil {
		return err
	}
	if err := r.moveOperation(ctx, q, o); err != nil {
		return err
	}
	r.operation, r.event = o, e
	return nil
}

// moved is what a move makes of the rows that r holds, if it is allowed.
func (r *Operation) moved(m move) (o dbgen.Operation, e dbgen.Outbox, err error) {
	if err := r.intact(); err != nil {
		return o, e, err
	}
	if r.operation.CompletedAt.Valid || !slices.Contains(Transitions[r.State()], m.to) {
		return o, e, &ContractError{r.StatusRef(), "it cannot go from " + r.operation.State + " to " + string(m.to)}
	}
	o, e = r.operation, r.event
	o.State, o.UpdatedAt, o.Reason = string(m.to), m.now, string(m.reason)
	if m.to == Succeeded || m.to == Failed {
		o.CompletedAt = sql.NullInt64{Int64: m.now, Valid: true}
	}
	e.State, e.UpdatedAt, e.Decisions = string(eventOf[m.to]), m.now, max(e.Decisions, m.decisions)
	e.LeaseOwner, e.LeaseUntil, e.NextAttemptAt = sql.NullString{}, sql.NullInt64{}, m.notBefore
	if m.to == Processing {
		e.LeaseOwner = sql.NullString{String: m.worker, Valid: true}
		e.LeaseUntil = sql.NullInt64{Int64: m.leaseUntil, Valid: true}
		e.AttemptCount++
		e.NextAttemptAt = m.leaseUntil
	}
	o.RowDigest, e.RowDigest = tables.Operations.Digest(&o), tables.Outbox.Digest(&e)
	return o, e, nil
}

func (r *Operation) moveEvent(ctx context.Context, q dbgen.Querier, to dbgen.Outbox) error {
	from := &r.event
	n, err := q.MoveEvent(ctx, dbgen.MoveEventParams{
		State: to.State, LeaseOwner: to.LeaseOwner, LeaseUntil: to.LeaseUntil, AttemptCount: to.AttemptCount,
		UpdatedAt: to.UpdatedAt, RowDigest: to.RowDigest, NextAttemptAt: to.NextAttemptAt, Decisions: to.Decisions,
		OperationPK: from.OperationPK, FromDigest: from.RowDigest, FromState: from.State, Fence: from.AttemptCount,
		FromLeaseOwner: from.LeaseOwner.String, FromLeaseUntil: from.LeaseUntil.Int64,
		FromNextAttemptAt: from.NextAttemptAt, FromUpdatedAt: from.UpdatedAt, FromDecisions: from.Decisions,
		EventID: from.EventID, PayloadJSON: from.PayloadJSON, Lane: from.Lane, CreatedAt: from.CreatedAt,
	})
	if err == nil && n != 1 {
		err = ErrLeaseLost
	}
	return err
}

// moveOperation follows its event. They always move together, so a row that is
// not as it was read was changed past the runtime.
func (r *Operation) moveOperation(ctx context.Context, q dbgen.Querier, to dbgen.Operation) error {
	from := &r.operation
	n, err := q.MoveOperation(ctx, dbgen.MoveOperationParams{
		State: to.State, UpdatedAt: to.UpdatedAt, CompletedAt: to.CompletedAt, Reason: to.Reason, RowDigest: to.RowDigest,
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
	})
	if err == nil && n != 1 {
		err = &ContractError{r.StatusRef(), "its evidence was changed while it ran"}
	}
	return err
}

// endAttempt records how an attempt has ended, if one was running. One of which
// that is known already, because its worker said that it does not know, keeps it.
func endAttempt(ctx context.Context, q dbgen.Querier, a *dbgen.Attempt) error {
	if a == nil {
		return nil
	}
	_, err := q.InsertAttempt(ctx, dbgen.InsertAttemptParams(*a))
	return err
}

// attemptRow is how the attempt that is running ends, or nil where none is.
func (r *Operation) attemptRow(how Ending, now int64) *dbgen.Attempt {
	if r.event.State != string(eventProcessing) {
		return nil
	}
	a := &dbgen.Attempt{
		OperationPK: r.operation.OperationPK, Attempt: r.Fence(), WorkerID: r.event.LeaseOwner.String,
		StartedAt: r.event.UpdatedAt, EndedAt: max(now, r.event.UpdatedAt), Outcome: string(how),
		Cause: string(r.cause),
	}
	a.RowDigest = tables.Attempts.Digest(a)
	return a
}

// extend moves the end of the lease, under the fence that it was given with.
func (r *Operation) extend(ctx context.Context, q dbgen.Querier, leaseUntil int64) error {
	if err := r.intact(); err != nil {
		return err
	}
	e := r.event
	e.LeaseUntil, e.NextAttemptAt = sql.NullInt64{Int64: leaseUntil, Valid: true}, leaseUntil
	tables.Outbox.Seal(&e)
	err := r.moveEvent(ctx, q, e)
	if err == nil {
		r.event = e
	}
	return err
}

// intact holds both rows against their digests: a move must not give a row that
// was changed past the runtime a digest that fits.
func (r *Operation) intact() error {
	if !tables.Operations.Intact(&r.operation) {
		return &ContractError{r.StatusRef(), "the operation's row does not fit its digest"}
	}
	if !tables.Outbox.Intact(&r.event) {
		return &ContractError{r.StatusRef(), "the outbox event's row does not fit its digest"}
	}
	return nil
}
