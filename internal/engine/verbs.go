package engine

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"reflect"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
)

// A Querier is what a unit asks and tells a database: sqlc's queries, and the verbs.
type Querier interface {
	dbgen.Querier
	Verbs
}

// Verbs are what calls and workers do all the time, with any number of operations at once.
// Each gets an answer of its own, and what cannot be stored of one keeps nothing of another
// from being stored. They may be repeated with equal arguments.
type Verbs interface {
	// Reserve takes the scopes of approved intents.
	Reserve(ctx context.Context, all ...*Reservation) error
	// Move moves operations with their events.
	Move(ctx context.Context, all ...*Motion) error
	// Claimed reads operations with their events, in any order. What is not there, or has
	// no event, is left out.
	Claimed(ctx context.Context, pks []int64) ([]dbgen.GetClaimedRow, error)
}

// An Answer says what has become of a reservation or a move.
type Answer string

// The answers.
const (
	Stored Answer = "stored"
	Taken  Answer = "taken"  // the scope has an operation, or had
	Bound  Answer = "bound"  // the call identity is bound to something else
	Paused Answer = "paused" // the tool is paused, and an attempt would follow at once
	Late   Answer = "late"   // the ledger's clock is not at the times that the rows are for
	Lost   Answer = "lost"   // the rows are not as they were read, or a receipt's ids are there
)

// A Reservation is an approved intent with its event, and the call identity that
// brought it.
type Reservation struct {
	Binding dbgen.CallBinding
	// Make makes the rows for the key that the database assigns. It may be called more
	// than once.
	Make func(pk int64) (dbgen.Operation, dbgen.Outbox)
	// The ledger's clock must be at From or later, and before Until, when this is
	// stored: the rows say when that was, and the approval must not have expired.
	From, Until int64
	// Renew makes it anew for another time, where who stores it has had to wait for his
	// turn; false says that it must not be stored at that time. It may be nil.
	Renew func(now int64) bool

	// What was stored, or was to be.
	Operation dbgen.Operation
	Event     dbgen.Outbox
	Answer    Answer
}

// Stored finds out whether a reservation of which that is not known has been stored: then
// its operation has its key, which nobody else was given.
func (r *Reservation) Stored(ctx context.Context, q Querier) (bool, error) {
	if r.Operation.OperationPK == 0 {
		return false, nil
	}
	rows, err := q.Claimed(ctx, []int64{r.Operation.OperationPK})
	if err != nil || len(rows) == 0 || !bytes.Equal(rows[0].Operation.RowDigest, r.Operation.RowDigest) ||
		!bytes.Equal(rows[0].Outbox.RowDigest, r.Event.RowDigest) {
		return false, err
	}
	// The event is written as it is: what is found here is durable no earlier than this
	// transaction, on a standby, too, which would otherwise commit without waiting for it.
	m := &Motion{FromOperation: r.Operation, Operation: r.Operation, FromEvent: r.Event, Event: r.Event}
	err = q.Move(ctx, m)
	r.Answer = m.Answer
	return m.Answer == Stored, err
}

// Again is a unit that reserves what an earlier try, or an earlier run of it, may have
// stored: under a key that was given to that.
func Again(r *Reservation) Unit {
	tried := []Reservation{*r}
	return func(ctx context.Context, q Querier) error {
		for i := range tried {
			*r = tried[i]
			if there, err := r.Stored(ctx, q); err != nil || there {
				return err
			}
		}
		err := q.Reserve(ctx, r)
		tried = append(tried, *r)
		return err
	}
}

// A Motion moves an operation and its event from the rows that were read to new ones. What
// else is there is inserted with it: how the attempt has ended, the receipt, of which
// Accepted repeats Observed, and a place among the endings.
type Motion struct {
	FromOperation, Operation dbgen.Operation
	FromEvent, Event         dbgen.Outbox
	Attempt                  *dbgen.Attempt
	Observed                 *dbgen.DownstreamReceipt
	Accepted                 *dbgen.LocalReceipt
	Ending                   *dbgen.Ending

	Answer Answer // Stored or Lost
}

// Rows are the verbs of a database that does best row by row, within a transaction that
// excludes every other.
type Rows struct {
	dbgen.Querier
	Now func() int64 // the ledger's clock
}

// errPartly says that a part of a reservation or a move was stored before it was found out
// that the whole cannot be: its transaction must be rolled back.
var errPartly = errors.New("a part was stored")

// Whole is the error of a unit that has done one thing by a verb; where only a part of it
// was stored, the thing is answered, and the transaction must not be committed.
func Whole(err error) error {
	if errors.Is(err, errPartly) {
		return nil
	}
	return err
}

// Reserve implements [Verbs].
func (q Rows) Reserve(ctx context.Context, all ...*Reservation) error {
	for _, r := range all {
		if err := q.reserve(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// Timely reports whether it may be stored at a time of the ledger's clock, and makes it
// anew for that time where it has to be.
func (r *Reservation) Timely(now int64) bool {
	return r.isFor(now) || r.Renew != nil && r.Renew(now) && r.isFor(now)
}

func (r *Reservation) isFor(now int64) bool { return r.From <= now && now < r.Until }

func (q Rows) reserve(ctx context.Context, r *Reservation) error {
	if r.Answer = Late; !r.Timely(q.Now()) {
		return nil
	}
	r.Operation, r.Event = r.Make(0)
	o, b := &r.Operation, &r.Binding
	scope, err := q.ScopeTaken(ctx, dbgen.ScopeTakenParams{
		TenantID: o.TenantID, SubjectID: o.SubjectID, ToolName: o.ToolName, IdempotencyKey: o.IdempotencyKey})
	switch {
	case err != nil:
		return err
	case scope.Taken != 0:
		r.Answer = Taken
		return nil
	case scope.Paused != 0 && r.Event.State != "pending":
		r.Answer = Paused
		return nil
	}
	if r.Answer, err = Bind(ctx, q, b); err != nil || r.Answer != Stored {
		return err
	}
	pk, err := q.InsertOperation(ctx, dbgen.InsertOperationParams{
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
	})
	if err != nil {
		return err
	}
	r.Operation, r.Event = r.Make(pk)
	if err := q.InsertEvent(ctx, dbgen.InsertEventParams(r.Event)); err != nil {
		return err
	}
	if !r.isFor(q.Now()) { // nothing comes between this and the commit
		r.Answer = Late
		return errPartly
	}
	return nil
}

// Bind binds a call identity: Stored says that it is bound so, since now or before, and
// Bound that it is bound to something else.
func Bind(ctx context.Context, q dbgen.Querier, b *dbgen.CallBinding) (Answer, error) {
	n, err := q.InsertCallBinding(ctx, dbgen.InsertCallBindingParams(*b))
	if err != nil || n == 1 {
		return Stored, err
	}
	// The row is written, because an intent may rest on it now, and a pruning that
	// does not see the intent yet must not remove it.
	fingerprint, err := q.HoldCallBinding(ctx, dbgen.HoldCallBindingParams{
		TenantID: b.TenantID, SubjectID: b.SubjectID, Provider: b.Provider,
		APIFamily: b.APIFamily, ResponseID: b.ResponseID, CallID: b.CallID,
	})
	if err == nil && fingerprint != b.FingerprintSha256 {
		return Bound, nil
	}
	return Stored, err
}

// Observe inserts a receipt as the downstream gave it; false says that its scope has one.
func Observe(ctx context.Context, q dbgen.Querier, d *dbgen.DownstreamReceipt) (bool, error) {
	n, err := q.InsertDownstreamReceipt(ctx, dbgen.InsertDownstreamReceiptParams{
		TenantID: d.TenantID, SubjectID: d.SubjectID, ToolName: d.ToolName, IdempotencyKey: d.IdempotencyKey,
		RequestSha256: d.RequestSha256, ReceiptID: d.ReceiptID, DownstreamRequestID: d.DownstreamRequestID,
		ResultJSON: d.ResultJSON, ProducerRevision: d.ProducerRevision, ResourceRevision: d.ResourceRevision,
		ObservedAt: d.ObservedAt, EffectRevision: d.EffectRevision, CommittedAt: d.CommittedAt, RowDigest: d.RowDigest,
	})
	return n == 1, err
}

// Announce inserts a place among the endings.
func Announce(ctx context.Context, q dbgen.Querier, e *dbgen.Ending) error {
	return q.InsertEnding(ctx, dbgen.InsertEndingParams{StatusRef: e.StatusRef, RowDigest: e.RowDigest})
}

// Claimed implements [Verbs].
func (q Rows) Claimed(ctx context.Context, pks []int64) ([]dbgen.GetClaimedRow, error) {
	var all []dbgen.GetClaimedRow
	for _, pk := range pks {
		row, err := q.GetClaimed(ctx, pk)
		switch {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return nil, err
		default:
			all = append(all, row)
		}
	}
	return all, nil
}

// Move implements [Verbs].
func (q Rows) Move(ctx context.Context, all ...*Motion) error {
	for _, m := range all {
		if err := q.move(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

func (q Rows) move(ctx context.Context, m *Motion) error {
	m.Answer = Lost
	if moved, err := q.moveEvent(ctx, m); err != nil || !moved {
		return err
	}
	if a := m.Attempt; a != nil {
		// One of which it is known already how it ended, because its worker said that it
		// does not know, keeps that.
		if _, err := q.InsertAttempt(ctx, dbgen.InsertAttemptParams(*a)); err != nil {
			return err
		}
	}
	if moved, err := q.moveOperation(ctx, m); err != nil {
		return err // and no answer
	} else if !moved {
		return errPartly
	}
	if d := m.Observed; d != nil {
		inserted, err := Observe(ctx, q, d)
		if errors.Is(err, ErrConstraint) || err == nil && !inserted {
			return errPartly
		} else if err != nil {
			return err
		}
	}
	if l := m.Accepted; l != nil {
		if n, err := q.InsertLocalReceipt(ctx, dbgen.InsertLocalReceiptParams(*l)); err != nil {
			return err
		} else if n != 1 {
			return errPartly
		}
	}
	if e := m.Ending; e != nil {
		if err := Announce(ctx, q, e); err != nil {
			return err
		}
	}
	m.Answer = Stored
	return nil
}

func (q Rows) moveEvent(ctx context.Context, m *Motion) (bool, error) {
	from, to := &m.FromEvent, &m.Event
	n, err := q.MoveEvent(ctx, dbgen.MoveEventParams{
		State: to.State, LeaseOwner: to.LeaseOwner, LeaseUntil: to.LeaseUntil, AttemptCount: to.AttemptCount,
		UpdatedAt: to.UpdatedAt, RowDigest: to.RowDigest, NextAttemptAt: to.NextAttemptAt, Decisions: to.Decisions,
		OperationPK: from.OperationPK, FromDigest: from.RowDigest, FromState: from.State, Fence: from.AttemptCount,
		FromLeaseOwner: from.LeaseOwner.String, FromLeaseUntil: from.LeaseUntil.Int64,
		FromNextAttemptAt: from.NextAttemptAt, FromUpdatedAt: from.UpdatedAt, FromDecisions: from.Decisions,
		EventID: from.EventID, PayloadJSON: from.PayloadJSON, Lane: from.Lane, CreatedAt: from.CreatedAt,
	})
	return n == 1, err
}

func (q Rows) moveOperation(ctx context.Context, m *Motion) (bool, error) {
	from, to := &m.FromOperation, &m.Operation
	if bytes.Equal(from.RowDigest, to.RowDigest) {
		return q.unmoved(ctx, *from)
	}
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
	return n == 1, err
}

// unmoved reports whether an operation is as it was read, where only its event moves.
func (q Rows) unmoved(ctx context.Context, from dbgen.Operation) (bool, error) {
	now, err := q.GetOperation(ctx, from.OperationPK)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	same := bytes.Equal(now.RowDigest, from.RowDigest)
	now.RowDigest, from.RowDigest = nil, nil
	return same && reflect.DeepEqual(now, from), err
}
