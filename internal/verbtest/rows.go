// Package verbtest holds the verbs of an engine against what they promise, with one table
// for every database.
package verbtest

import (
	"crypto/sha256"
	"database/sql"
	"fmt"
	"strings"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/tables"
)

// Reservation is one of the key and the call named, which its caller runs at once. Its
// rows are as the schema wants them, and sealed.
func Reservation(key, call string) *engine.Reservation {
	ref := fmt.Sprintf("status_%.16x", sha256.Sum256([]byte(key)))
	sha := strings.Repeat("a", 64)
	o := dbgen.Operation{TenantID: "t", SubjectID: "s", ToolName: "tool", IdempotencyKey: key,
		RequestSha256: sha, ArgumentsJSON: "{}", ApprovalDigest: sha, StatusRef: ref, State: "processing",
		CreatedAt: 1, UpdatedAt: 1}
	tables.Operations.Seal(&o)
	b := dbgen.CallBinding{TenantID: "t", SubjectID: "s", Provider: "p", APIFamily: "f", ResponseID: "r", CallID: call,
		FingerprintSha256: sha, CreatedAt: 1, StatusRef: ref}
	tables.CallBindings.Seal(&b)
	return &engine.Reservation{Binding: b, Until: contract.MaxTime, Make: func(pk int64) (dbgen.Operation, dbgen.Outbox) {
		o.OperationPK = pk
		e := dbgen.Outbox{OperationPK: pk, EventID: fmt.Sprint("event-", pk), State: "processing", Lane: "lane",
			LeaseOwner: sql.NullString{String: "worker", Valid: true}, LeaseUntil: sql.NullInt64{Int64: 30, Valid: true},
			AttemptCount: 1, CreatedAt: 1, UpdatedAt: 1, NextAttemptAt: 30}
		tables.Outbox.Seal(&e)
		return o, e
	}}
}

// changed is a reservation with other rows.
func changed(r *engine.Reservation, change func(*dbgen.Operation, *dbgen.Outbox)) *engine.Reservation {
	inner := r.Make
	r.Make = func(pk int64) (dbgen.Operation, dbgen.Outbox) {
		o, e := inner(pk)
		change(&o, &e)
		tables.Operations.Seal(&o)
		tables.Outbox.Seal(&e)
		return o, e
	}
	return r
}

// Pending is a reservation that waits for a worker.
func Pending(r *engine.Reservation) *engine.Reservation {
	return changed(r, func(o *dbgen.Operation, e *dbgen.Outbox) {
		o.State, e.State, e.AttemptCount, e.NextAttemptAt = "pending", "pending", 0, 1
		e.LeaseOwner, e.LeaseUntil = sql.NullString{}, sql.NullInt64{}
	})
}

// Commit ends what a reservation has stored, with a receipt.
func Commit(r *engine.Reservation) *engine.Motion {
	m := Stay(r)
	o, e := &m.Operation, &m.Event
	o.State, o.UpdatedAt, o.CompletedAt = "succeeded", 2, sql.NullInt64{Int64: 2, Valid: true}
	tables.Operations.Seal(o)
	e.State, e.UpdatedAt, e.LeaseOwner, e.LeaseUntil, e.NextAttemptAt = "delivered", 2, sql.NullString{}, sql.NullInt64{}, 0
	tables.Outbox.Seal(e)
	m.Attempt = attempt(r, "succeeded")
	m.Observed = &dbgen.DownstreamReceipt{TenantID: o.TenantID, SubjectID: o.SubjectID, ToolName: o.ToolName, IdempotencyKey: o.IdempotencyKey,
		RequestSha256: o.RequestSha256, ReceiptID: "receipt-" + o.IdempotencyKey, DownstreamRequestID: "request-" + o.IdempotencyKey,
		ResultJSON: "{}", ProducerRevision: "p", ResourceRevision: "r", ObservedAt: "now", EffectRevision: "e", CommittedAt: 2}
	accept(m)
	return m
}

// accept makes the accepted receipt of m what the observed one is.
func accept(m *engine.Motion) {
	d := m.Observed
	tables.DownstreamReceipts.Seal(d)
	m.Accepted = &dbgen.LocalReceipt{OperationPK: m.Operation.OperationPK, ReceiptID: d.ReceiptID, DownstreamRequestID: d.DownstreamRequestID,
		RequestSha256: d.RequestSha256, ResultJSON: d.ResultJSON, ProducerRevision: d.ProducerRevision,
		ResourceRevision: d.ResourceRevision, ObservedAt: d.ObservedAt, EffectRevision: d.EffectRevision, ReconciledAt: 2}
	tables.LocalReceipts.Seal(m.Accepted)
}

// Stay leaves what a reservation has stored as it is.
func Stay(r *engine.Reservation) *engine.Motion {
	return &engine.Motion{FromOperation: r.Operation, Operation: r.Operation, FromEvent: r.Event, Event: r.Event}
}

// renew moves the event alone.
func renew(r *engine.Reservation) *engine.Motion {
	m := Stay(r)
	m.Event.LeaseUntil, m.Event.NextAttemptAt = sql.NullInt64{Int64: 60, Valid: true}, 60
	tables.Outbox.Seal(&m.Event)
	return m
}

// release lets the operation wait for another attempt.
func release(r *engine.Reservation) *engine.Motion {
	m := Stay(r)
	m.Operation.State, m.Operation.UpdatedAt = "pending", 2
	tables.Operations.Seal(&m.Operation)
	m.Event.State, m.Event.UpdatedAt, m.Event.NextAttemptAt = "pending", 2, 5
	m.Event.LeaseOwner, m.Event.LeaseUntil = sql.NullString{}, sql.NullInt64{}
	tables.Outbox.Seal(&m.Event)
	m.Attempt = attempt(r, "not_done")
	return m
}

// fail ends the operation without a receipt.
func fail(r *engine.Reservation) *engine.Motion {
	m := Stay(r)
	m.Operation.State, m.Operation.UpdatedAt, m.Operation.Reason = "failed", 2, "REASON"
	m.Operation.CompletedAt = sql.NullInt64{Int64: 2, Valid: true}
	tables.Operations.Seal(&m.Operation)
	m.Event.State, m.Event.UpdatedAt, m.Event.NextAttemptAt, m.Event.Decisions = "parked", 2, 0, 1
	m.Event.LeaseOwner, m.Event.LeaseUntil = sql.NullString{}, sql.NullInt64{}
	tables.Outbox.Seal(&m.Event)
	m.Attempt = attempt(r, "given_up")
	m.Ending = &dbgen.Ending{StatusRef: m.Operation.StatusRef}
	tables.Endings.Seal(m.Ending)
	return m
}

func attempt(r *engine.Reservation, outcome string) *dbgen.Attempt {
	a := &dbgen.Attempt{OperationPK: r.Operation.OperationPK, Attempt: 1, WorkerID: "worker", StartedAt: 1, EndedAt: 2, Outcome: outcome, Cause: "timed_out"}
	tables.Attempts.Seal(a)
	return a
}
