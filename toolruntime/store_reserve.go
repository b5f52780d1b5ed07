package toolruntime

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/limits"
	"github.com/toolruntime/toolruntime-go/internal/rowdigest"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A reservation binds a call identity and, with an admission, takes the scope.
type reservation struct {
	bound   *toolresult.Bound
	purpose toolresult.Purpose
	now     int64
	// statusRef is that of the operation that the call is about.
	statusRef string
	// existing is the operation that the caller found under the scope, if any.
	existing *record
	// admission is what makes a new operation, or nil.
	admission *admission
}

// An admission is the decision that a new intent may be accepted.
type admission struct {
	approval toolresult.Approval
	effect   EffectKind
	version  string // of the tool, as [versionOf] names it
	// worker claims the operation in the same transaction for so many seconds, for a
	// caller who will run it at once; without a worker it stays pending.
	worker string
	lease  time.Duration
	own    bool // the time is by the ledger's own clock, see term
}

var (
	// errScopeChanged says that the scope is not as the caller has found it;
	// nothing was stored, and the caller looks again.
	errScopeChanged = errors.New("the scope has changed meanwhile")
	// errApprovalExpired says that the approval has expired since it was accepted;
	// nothing was stored, and the caller looks again.
	errApprovalExpired = errors.New("the approval has expired meanwhile")
	// errCallIDConflict says that the call identity is bound to something else.
	errCallIDConflict = errors.New("the call identity is bound to something else")
)

// reserve binds the call identity and takes the scope in one transaction. It
// decides again what the caller has read: the row that is there wins. With an
// admission it returns the new record; where the tool is paused and an attempt would
// follow at once, it binds the call identity and returns ErrPaused.
func (s *Store) reserve(ctx context.Context, v reservation) (r *record, err error) {
	binding := bindingOf(v)
	var o dbgen.Operation
	if v.admission != nil {
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
		if doubt != nil && errors.Is(err, errScopeChanged) {
			r, err = tried.recover(ctx, q)
		}
		return err
	})
	if err == nil && v.admission != nil && r == nil {
		return nil, ErrPaused
	}
	return r, inDoubt(err, doubt)
}

// reserveIn is the body of a reservation's transaction, which is to end after it. The
// rows are made anew where the clock is no longer what it was. Without an error there is
// no record where the tool is paused.
func (s *Store) reserveIn(ctx context.Context, q dbgen.Querier, v reservation, o dbgen.Operation, binding dbgen.InsertCallBindingParams) (*record, error) {
	if now := s.anew(v.term()).now; v.admission != nil && now != v.now {
		v.now = now
		o, binding = newOperation(v), bindingOf(v)
	}
	if err := bindCall(ctx, q, binding); err != nil {
		return nil, err
	}
	if v.admission == nil {
		return nil, checkScope(ctx, q, v)
	}
	r, err := insertOperation(ctx, q, v, o)
	if err == nil && r != nil && s.anew(v.term()).now >= v.admission.approval.ExpiresAt {
		err = errApprovalExpired // nothing comes between this and the commit
	}
	return r, err
}

// term is the lease that the operation is reserved with.
func (v *reservation) term() term {
	if v.admission == nil {
		return term{now: v.now}
	}
	return term{v.now, limits.After(v.now, v.admission.lease), v.admission.own}
}

// bindCall binds a call identity in a transaction of its own: it stays, whatever
// the answer to the call is.
func (s *Store) bindCall(ctx context.Context, v reservation) error {
	if err := s.holdsCall(v, nil); err != nil {
		return err
	}
	binding := bindingOf(v)
	return s.engine.Write(ctx, func(ctx context.Context, q dbgen.Querier) error {
		return bindCall(ctx, q, binding)
	})
}

func bindingOf(v reservation) dbgen.InsertCallBindingParams {
	p, c := v.bound.Principal(), v.bound.Call()
	row := dbgen.CallBinding{
		TenantID: p.TenantID, SubjectID: p.SubjectID, Provider: c.Provider, APIFamily: c.APIFamily,
		ResponseID: c.ResponseID, CallID: c.CallID, FingerprintSha256: v.bound.Fingerprint(v.purpose),
		CreatedAt: v.now, StatusRef: v.statusRef,
	}
	row.RowDigest = rowdigest.CallBinding(row)
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
		err = errCallIDConflict
	}
	return err
}

// checkScope holds the scope against what the caller has read.
func checkScope(ctx context.Context, q dbgen.Querier, v reservation) error {
	o, err := q.GetOperationByScope(ctx, scopeOf(v.bound))
	there, err := found(err)
	if err != nil {
		return err
	}
	if there != (v.existing != nil) || there && o.OperationPK != v.existing.operation.OperationPK {
		return errScopeChanged
	}
	return nil
}

// insertOperation inserts an approved intent and its event together, unless the
// scope is taken or was. It returns nil where the tool is paused and an attempt would
// follow at once.
func insertOperation(ctx context.Context, q dbgen.Querier, v reservation, o dbgen.Operation) (*record, error) {
	scope, err := q.ScopeTaken(ctx, dbgen.ScopeTakenParams(scopeOf(v.bound)))
	switch {
	case err != nil:
		return nil, err
	case scope.Taken != 0:
		return nil, errScopeChanged
	case scope.Paused != 0 && v.admission.worker != "":
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
		return nil, errScopeChanged
	}
	o.OperationPK = pk
	e := newEvent(o, v)
	return &record{operation: o, event: e}, q.InsertEvent(ctx, dbgen.InsertEventParams(e))
}

func newOperation(v reservation) dbgen.Operation {
	b, a := v.bound, v.admission.approval
	p, c, t := b.Principal(), b.Call(), b.Contract()
	o := dbgen.Operation{
		TenantID: p.TenantID, SubjectID: p.SubjectID, ToolName: c.Name, IdempotencyKey: c.IdempotencyKey,
		RequestSha256: b.RequestSHA256(), ArgumentsJSON: b.Arguments(),
		InputSchemaRevision: t.InputSchema, OutputSchemaRevision: t.OutputSchema,
		EffectRevision: t.Effect, HandlerRevision: t.Handler,
		ProducerRevision: t.Producer, PolicyRevision: t.Policy,
		ApprovalID: a.ApprovalID, ApproverID: a.ApproverID, ApprovalDigest: a.ApprovalDigest,
		ApprovalExpiresAt: a.ExpiresAt, ApprovedAt: v.now,
		FirstOperationID: c.OperationID, FirstCallID: c.CallID, FirstResponseID: c.ResponseID,
		FirstProvider: c.Provider, FirstAPIFamily: c.APIFamily, FirstAdapterRevision: c.AdapterRevision,
		StatusRef: v.statusRef, State: string(pending), CreatedAt: v.now, UpdatedAt: v.now,
		EffectKind: v.admission.effect.String(),
	}
	if v.admission.worker != "" {
		o.State = string(processing)
	}
	o.RowDigest = rowdigest.Operation(o)
	return o
}

func newEvent(o dbgen.Operation, v reservation) dbgen.Outbox {
	payload := contract.OutboxPayload(o.OperationPK, o.RequestSha256, o.ToolName)
	e := dbgen.Outbox{
		OperationPK: o.OperationPK, EventID: contract.OutboxEventID(payload), PayloadJSON: payload,
		State: string(eventPending), CreatedAt: v.now, UpdatedAt: v.now,
		NextAttemptAt: v.now, Lane: laneIn(v.admission.version, o.TenantID),
	}
	if a := v.admission; a.worker != "" {
		e.State = string(eventProcessing)
		e.LeaseOwner = sql.NullString{String: a.worker, Valid: true}
		e.NextAttemptAt = v.term().until
		e.LeaseUntil = sql.NullInt64{Int64: e.NextAttemptAt, Valid: true}
		e.AttemptCount = 1
	}
	e.RowDigest = rowdigest.Event(e)
	return e
}
