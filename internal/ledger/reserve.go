package ledger

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
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
func (s *Ledger) Reserve(ctx context.Context, v Reservation) (*Operation, error) {
	if v.Admission == nil {
		return nil, s.bindAndCheck(ctx, v)
	}
	if err := s.mayReserve(v); err != nil {
		return nil, err
	}
	r := s.reservation(v)
	for again := 0; ; again++ {
		err := s.engine.Reserve(ctx, r)
		if errors.Is(err, engine.ErrCommitUnknown) {
			// An earlier try may have stored it.
			err = engine.Whole(engine.InDoubt(s.engine.Write(ctx, engine.Again(r))))
		}
		if err != nil {
			return nil, err
		}
		if r.Answer != engine.Late || again == maxLate {
			return s.reserved(ctx, v, r)
		}
		if v, err = s.later(v); err != nil {
			return nil, err
		}
		r = s.reservation(v)
	}
}

// mayReserve checks what needs no transaction.
func (s *Ledger) mayReserve(v Reservation) error {
	if v.Now >= v.Admission.Approval.ExpiresAt {
		return ErrApprovalExpired
	}
	return s.holdsCall(v)
}

// maxLate bounds how often rows are made anew because their time has passed before they
// were stored.
const maxLate = 8

// clockTolerance is by how many seconds the time that a reservation stores may differ from
// the ledger's at that moment.
const clockTolerance = 1

// reservation makes the rows of a new operation. By the ledger's own clock they are for
// the time of v, or a later one; a clock that the host gave is believed.
func (s *Ledger) reservation(v Reservation) *engine.Reservation {
	r := &engine.Reservation{}
	at := func(now int64) {
		v.Now = now
		o := newOperation(v)
		r.Binding, r.Until = bindingOf(v), contract.MaxTime
		r.Make = func(pk int64) (dbgen.Operation, dbgen.Outbox) {
			o.OperationPK = pk
			return o, newEvent(o, v)
		}
		if v.Admission.Own {
			r.From, r.Until = now-clockTolerance, min(now+1+clockTolerance, v.Admission.Approval.ExpiresAt)
		}
	}
	at(v.Now)
	r.Renew = func(now int64) bool {
		if now >= v.Admission.Approval.ExpiresAt {
			return false
		}
		at(now)
		return true
	}
	return r
}

// later is v at the present time of the ledger's clock.
func (s *Ledger) later(v Reservation) (Reservation, error) {
	v.Now = s.anew(v.term()).Now
	return v, s.mayReserve(v)
}

// reserved is what became of a reservation.
func (s *Ledger) reserved(ctx context.Context, v Reservation, r *engine.Reservation) (*Operation, error) {
	switch r.Answer {
	case engine.Stored:
		return &Operation{operation: r.Operation, event: r.Event}, nil
	case engine.Bound:
		return nil, ErrCallIDConflict
	case engine.Paused:
		v.Admission = nil // the call identity alone
		return nil, cmp.Or(s.BindCall(ctx, v), error(ErrPaused))
	}
	return nil, ErrScopeChanged
}

// bindAndCheck binds a call identity that makes no operation, while the scope is as the
// caller has found it.
func (s *Ledger) bindAndCheck(ctx context.Context, v Reservation) error {
	if err := s.holdsCall(v); err != nil {
		return err
	}
	binding := bindingOf(v)
	return s.engine.Write(ctx, func(ctx context.Context, q engine.Querier) error {
		if err := bindCall(ctx, q, &binding); err != nil {
			return err
		}
		return checkScope(ctx, q, v)
	})
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
	if err := s.holdsCall(v); err != nil {
		return err
	}
	binding := bindingOf(v)
	return s.engine.Write(ctx, func(ctx context.Context, q engine.Querier) error {
		return bindCall(ctx, q, &binding)
	})
}

func bindCall(ctx context.Context, q dbgen.Querier, b *dbgen.CallBinding) error {
	answer, err := engine.Bind(ctx, q, b)
	if err == nil && answer == engine.Bound {
		err = ErrCallIDConflict
	}
	return err
}

func bindingOf(v Reservation) dbgen.CallBinding {
	p, c := v.Bound.Principal(), v.Bound.Call()
	row := dbgen.CallBinding{
		TenantID: p.TenantID, SubjectID: p.SubjectID, Provider: c.Provider, APIFamily: c.APIFamily,
		ResponseID: c.ResponseID, CallID: c.CallID, FingerprintSha256: v.Bound.Fingerprint(v.Purpose),
		CreatedAt: v.Now, StatusRef: v.StatusRef,
	}
	tables.CallBindings.Seal(&row)
	return row
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
