package ledger

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/limits"
	"github.com/toolruntime/toolruntime-go/internal/tables"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A Reservation binds a call identity and, with an admission, takes the scope.
type Reservation struct {
	Bound   *toolresult.Bound
	Purpose toolresult.Purpose
	Now     int64
	// StatusRef is that of the operation that the call is about.
	StatusRef string
	// Existing is the operation that the caller found under the scope, if any.
	Existing *Operation
	// Admission is what makes a new operation, or nil.
	Admission *Admission
}

// An Admission is the decision that a new intent may be accepted.
type Admission struct {
	Approval toolresult.Approval
	Effect   string // the effect kind
	Version  string // of the tool, as [versionOf] names it
	// Worker claims the operation in the same transaction for so many seconds, for a
	// caller who will run it at once; without a worker it stays pending.
	Worker string
	Lease  time.Duration
	Own    bool // the time is by the ledger's own clock, see term
}

var (
	// ErrScopeChanged says that the scope is not as the caller has found it;
	// nothing was stored, and the caller looks again.
	ErrScopeChanged = errors.New("the scope has changed meanwhile")
	// ErrApprovalExpired says that the approval has expired since it was accepted;
	// nothing was stored, and the caller looks again.
	ErrApprovalExpired = errors.New("the approval has expired meanwhile")
	// ErrCallIDConflict says that the call identity is bound to something else.
	ErrCallIDConflict = errors.New("the call identity is bound to something else")
)

// Reserve binds the call identity and takes the scope in one transaction. It
// decides again what the caller has read: the row that is there wins. With an
// admission it returns the new record; where the tool is paused and an attempt would
// follow at once, it binds the call identity and returns ErrPaused.
func (s *Ledger) Reserve(ctx context.Context, v Reservation) (r *Operation, err error) {
	binding := bindingOf(v)
	var o dbgen.Operation
	if v.Admission != nil {
		o = newOperation(v)
	}
	if err := s.holdsCall(v, &o); err != nil {
		return nil, err
	}
	tried, stored, doubt := s.reserveAtOnce(ctx, v, o, binding)
	if stored {
		return tried, nil
	}
	err = s.engine.Write(ctx, func(ctx context.Context, q dbgen.Querier) error {
		r, err = s.reserveIn(ctx, q, v, o, binding)
		if doubt != nil && errors.Is(err, ErrScopeChanged) {
			r, err = tried.recover(ctx, q)
		}
		return err
	})
	if err == nil && v.Admission != nil && r == nil {
		return nil, ErrPaused
	}
	return r, inDoubt(err, doubt)
}

// reserveIn is the body of a reservation's transaction, which is to end after it. The
// rows are made anew where the clock is no longer what it was. Without an error there is
// no record where the tool is paused.
func (s *Ledger) reserveIn(ctx context.Context, q dbgen.Querier, v Reservation, o dbgen.Operation, binding dbgen.InsertCallBindingParams) (*Operation, error) {
	if now := s.anew(v.term()).Now; v.Admission != nil && now != v.Now {
		v.Now = now
		o, binding = newOperation(v), bindingOf(v)
	}
	if err := bindCall(ctx, q, binding); err != nil {
		return nil, err
	}
	if v.Admission == nil {
		return nil, checkScope(ctx, q, v)
	}
	r, err := insertOperation(ctx, q, v, o)
	if err == nil && r != nil && s.anew(v.term()).Now >= v.Admission.Approval.ExpiresAt {
		err = ErrApprovalExpired // nothing comes between this and the commit
	}
	return r, err
}

// term is the lease that the operation is reserved with.
func (v *Reservation) term() Term {
	if v.Admission == nil {
		return Term{Now: v.Now}
	}
	return Term{v.Now, limits.After(v.Now, v.Admission.Lease), v.Admission.Own}
}

// BindCall binds a call identity in a transaction of its own: it stays, whatever
// the answer to the call is.
func (s *Ledger) BindCall(ctx context.Context, v Reservation) error {
	if err := s.holdsCall(v, nil); err != nil {
		return err
	}
	binding := bindingOf(v)
	return s.engine.Write(ctx, func(ctx context.Context, q dbgen.Querier) error {
		return bindCall(ctx, q, binding)
	})
}

func bindingOf(v Reservation) dbgen.InsertCallBindingParams {
	p, c := v.Bound.Principal(), v.Bound.Call()
	row := dbgen.CallBinding{
		TenantID: p.TenantID, SubjectID: p.SubjectID, Provider: c.Provider, APIFamily: c.APIFamily,
		ResponseID: c.ResponseID, CallID: c.CallID, FingerprintSha256: v.Bound.Fingerprint(v.Purpose),
		CreatedAt: v.Now, StatusRef: v.StatusRef,
	}
	tables.CallBindings.Seal(&row)
	return dbgen.InsertCallBindingParams(row)
}

func bindCall(ctx context.Context, q dbgen.Querier, row dbgen.InsertCallBindingParams) error {
	n, err := q.InsertCallBinding(ctx, row)
	if err != nil || n == 1 {
		return err
	}
	// The row is written, because an intent may rest on it now, and a pruning that
	// does not see the intent yet must not remove it.
	fingerprint, err := q.HoldCallBinding(ctx, dbgen.HoldCallBindingParams{
		TenantID: row.TenantID, SubjectID: row.SubjectID, Provider: row.Provider,
		APIFamily: row.APIFamily, ResponseID: row.ResponseID, CallID: row.CallID,
	})
	if err == nil && fingerprint != row.FingerprintSha256 {
		err = ErrCallIDConflict
	}
	return err
}

// checkScope holds the scope against what the caller has read.
func checkScope(ctx context.Context, q dbgen.Querier, v Reservation) error {
	o, err := q.GetOperationByScope(ctx, scopeOf(v.Bound))
	there, err := found(err)
	if err != nil {
		return err
	}
	if there != (v.Existing != nil) || there && o.OperationPK != v.Existing.operation.OperationPK {
		return ErrScopeChanged
	}
	return nil
}

// insertOperation inserts an approved intent and its event together, unless the
// scope is taken or was. It returns nil where the tool is paused and an attempt would
// follow at once.
func insertOperation(ctx context.Context, q dbgen.Querier, v Reservation, o dbgen.Operation) (*Operation, error) {
	scope, err := q.ScopeTaken(ctx, dbgen.ScopeTakenParams(scopeOf(v.Bound)))
	switch {
	case err != nil:
		return nil, err
	case scope.Taken != 0:
		return nil, ErrScopeChanged
	case scope.Paused != 0 && v.Admission.Worker != "":
		return nil, nil
	}
	row := dbgen.InsertOperationParams{
		TenantID: o.TenantID, SubjectID: o.SubjectID, ToolName: o.ToolName, IdempotencyKey: o.IdempotencyKey,
		RequestSha256: o.RequestSha256, ArgumentsJSON: o.ArgumentsJSON,
		InputSchemaRevision: o.InputSchemaRevision, OutputSchemaRevision: o.OutputSchemaRevision,
		EffectRevision: o.EffectRevision, HandlerRevision: o.HandlerRevision,
		ProducerRevision: o.ProducerRevision, PolicyRevision: o.PolicyRevision,
		ApprovalID: o.ApprovalID, ApproverID: o.ApproverID, ApprovalDigest: o.ApprovalDigest,
		ApprovalExpiresAt: o.ApprovalExpiresAt, ApprovedAt: o.ApprovedAt,
		FirstOperationID: o.FirstOperationID, FirstCallID: o.FirstCallID, FirstResponseID: o.FirstResponseID,
		FirstProvider: o.FirstProvider, FirstAPIFamily: o.FirstAPIFamily,
		FirstAdapterRevision: o.FirstAdapterRevision, StatusRef: o.StatusRef, State: o.State,
		CreatedAt: o.CreatedAt, UpdatedAt: o.UpdatedAt, CompletedAt: o.CompletedAt, Reason: o.Reason,
		RowDigest: o.RowDigest, EffectKind: o.EffectKind,
	}
	pk, err := q.InsertOperation(ctx, row)
	if inserted, err := found(err); err != nil { // PostgreSQL does not see who is faster
		return nil, err
	} else if !inserted {
		return nil, ErrScopeChanged
	}
	o.OperationPK = pk
	e := newEvent(o, v)
	return &Operation{operation: o, event: e}, q.InsertEvent(ctx, dbgen.InsertEventParams(e))
}

func newOperation(v Reservation) dbgen.Operation {
	b, a := v.Bound, v.Admission.Approval
	p, c, t := b.Principal(), b.Call(), b.Contract()
	o := dbgen.Operation{
		TenantID: p.TenantID, SubjectID: p.SubjectID, ToolName: c.Name, IdempotencyKey: c.IdempotencyKey,
		RequestSha256: b.RequestSHA256(), ArgumentsJSON: b.Arguments(),
		InputSchemaRevision: t.InputSchema, OutputSchemaRevision: t.OutputSchema,
		EffectRevision: t.Effect, HandlerRevision: t.Handler,
		ProducerRevision: t.Producer, PolicyRevision: t.Policy,
		ApprovalID: a.ApprovalID, ApproverID: a.ApproverID, ApprovalDigest: a.ApprovalDigest,
		ApprovalExpiresAt: a.ExpiresAt, ApprovedAt: v.Now,
		FirstOperationID: c.OperationID, FirstCallID: c.CallID, FirstResponseID: c.ResponseID,
		FirstProvider: c.Provider, FirstAPIFamily: c.APIFamily, FirstAdapterRevision: c.AdapterRevision,
		StatusRef: v.StatusRef, State: string(Pending), CreatedAt: v.Now, UpdatedAt: v.Now,
		EffectKind: v.Admission.Effect,
	}
	if v.Admission.Worker != "" {
		o.State = string(Processing)
	}
	tables.Operations.Seal(&o)
	return o
}

func newEvent(o dbgen.Operation, v Reservation) dbgen.Outbox {
	payload := contract.OutboxPayload(o.OperationPK, o.RequestSha256, o.ToolName)
	e := dbgen.Outbox{
		OperationPK: o.OperationPK, EventID: contract.OutboxEventID(payload), PayloadJSON: payload,
		State: string(eventPending), CreatedAt: v.Now, UpdatedAt: v.Now,
		NextAttemptAt: v.Now, Lane: laneIn(v.Admission.Version, o.TenantID),
	}
	if a := v.Admission; a.Worker != "" {
		e.State = string(eventProcessing)
		e.LeaseOwner = sql.NullString{String: a.Worker, Valid: true}
		e.NextAttemptAt = v.term().Until
		e.LeaseUntil = sql.NullInt64{Int64: e.NextAttemptAt, Valid: true}
		e.AttemptCount = 1
	}
	tables.Outbox.Seal(&e)
	return e
}
