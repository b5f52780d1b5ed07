// Package rowdigest computes the row_digest of the ledger's rows: the SHA-256
// over the table's name and every other column in the table's order, so that a
// column that was changed past the runtime no longer fits its row.
//
// The encoding is injective for any bytes, also those that no JSON can hold: a
// text or blob is its length, a colon and its bytes; an integer is "i", its
// decimal digits and "e"; NULL is "n". An auditor can recompute it with a few
// lines in any language.
//
// Not covered are the keys that the database assigns (operation_pk in operations,
// which the event's payload binds, downstream_pk and ending_pk, which no row names),
// and in an event what follows from other columns: its lane, and when it is due
// while it is not waiting for a next attempt.
package rowdigest

import (
	"crypto/sha256"
	"database/sql"
	"strconv"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
)

type row []byte

// start begins a row. It must be small enough to be inlined: then a row of usual
// size costs no memory.
func start() row { return make(row, 0, 1024) }

func (r row) text(s string) row {
	r = strconv.AppendInt(r, int64(len(s)), 10)
	return append(append(r, ':'), s...)
}

func (r row) texts(values ...string) row {
	for _, s := range values {
		r = r.text(s)
	}
	return r
}

func (r row) integer(v int64) row {
	return append(strconv.AppendInt(append(r, 'i'), v, 10), 'e')
}

func (r row) nullInteger(v sql.NullInt64) row {
	if !v.Valid {
		return append(r, 'n')
	}
	return r.integer(v.Int64)
}

func (r row) nullText(v sql.NullString) row {
	if !v.Valid {
		return append(r, 'n')
	}
	return r.text(v.String)
}

func (r row) sum() []byte {
	s := sha256.Sum256(r)
	return s[:]
}

// CallBinding is the digest of a row of call_bindings.
func CallBinding(b dbgen.CallBinding) []byte {
	return start().text("call_bindings").
		texts(b.TenantID, b.SubjectID, b.Provider, b.APIFamily, b.ResponseID, b.CallID, b.FingerprintSha256).
		integer(b.CreatedAt).text(b.StatusRef).sum()
}

// Operation is the digest of a row of operations.
func Operation(o dbgen.Operation) []byte {
	return start().text("operations").
		texts(o.TenantID, o.SubjectID, o.ToolName, o.IdempotencyKey, o.RequestSha256, o.ArgumentsJSON,
			o.InputSchemaRevision, o.OutputSchemaRevision, o.EffectRevision, o.HandlerRevision,
			o.ProducerRevision, o.PolicyRevision, o.ApprovalID, o.ApproverID, o.ApprovalDigest).
		integer(o.ApprovalExpiresAt).integer(o.ApprovedAt).
		texts(o.FirstOperationID, o.FirstCallID, o.FirstResponseID, o.FirstProvider, o.FirstAPIFamily,
			o.FirstAdapterRevision, o.StatusRef, o.State).
		integer(o.CreatedAt).integer(o.UpdatedAt).nullInteger(o.CompletedAt).text(o.Reason).added(o.EffectKind).sum()
}

// added is a text of a column that was added: an empty one is left out, so that
// digests from before the column fit.
func (r row) added(s string) row {
	if s == "" {
		return r
	}
	return r.text(s)
}

// Event is the digest of a row of outbox.
func Event(e dbgen.Outbox) []byte {
	return start().text("outbox").
		integer(e.OperationPK).texts(e.EventID, e.PayloadJSON, e.State).
		nullText(e.LeaseOwner).nullInteger(e.LeaseUntil).
		integer(e.AttemptCount).integer(e.CreatedAt).integer(e.UpdatedAt).due(e).decisions(e.Decisions).sum()
}

// due adds when a waiting event is due. A zero is left out, so that digests from
// before the column fit.
func (r row) due(e dbgen.Outbox) row {
	if e.State != "pending" || e.NextAttemptAt == 0 {
		return r
	}
	return r.integer(e.NextAttemptAt)
}

// decisions adds how many decisions of people there are, with the column's name,
// because it may stand alone. A zero is left out, so that digests from before the
// column fit.
func (r row) decisions(n int64) row {
	if n == 0 {
		return r
	}
	return r.text("decisions").integer(n)
}

// receipt adds the key of a receipt, in the way of decisions.
func (r row) receipt(pk int64) row {
	if pk == 0 {
		return r
	}
	return r.text("receipt").integer(pk)
}

// Ending is the digest of a row of endings.
func Ending(e dbgen.Ending) []byte { return start().text("endings").text(e.StatusRef).sum() }

// Attempt is the digest of a row of attempts. A cause that is empty is left out, so
// that digests from before the column fit.
func Attempt(a dbgen.Attempt) []byte {
	r := start().text("attempts").
		integer(a.OperationPK).integer(a.Attempt).text(a.WorkerID).
		integer(a.StartedAt).integer(a.EndedAt).text(a.Outcome)
	if a.Cause != "" {
		r = r.text("cause").text(a.Cause)
	}
	return r.sum()
}

// DownstreamReceipt is the digest of a row of downstream_receipts.
func DownstreamReceipt(r dbgen.DownstreamReceipt) []byte {
	return start().text("downstream_receipts").
		texts(r.TenantID, r.SubjectID, r.ToolName, r.IdempotencyKey, r.RequestSha256, r.ReceiptID,
			r.DownstreamRequestID, r.ResultJSON, r.ProducerRevision, r.ResourceRevision, r.ObservedAt,
			r.EffectRevision).
		integer(r.CommittedAt).sum()
}

// LocalReceipt is the digest of a row of local_receipts.
func LocalReceipt(r dbgen.LocalReceipt) []byte {
	return start().text("local_receipts").
		integer(r.OperationPK).
		texts(r.ReceiptID, r.DownstreamRequestID, r.RequestSha256, r.ResultJSON, r.ProducerRevision,
			r.ResourceRevision, r.ObservedAt, r.EffectRevision).
		integer(r.ReconciledAt).sum()
}

// Resolution is the digest of a row of resolutions.
func Resolution(r dbgen.Resolution) []byte {
	return start().text("resolutions").
		integer(r.OperationPK).integer(r.Seq).texts(r.Decision, r.Actor, r.Reason).integer(r.DecidedAt).sum()
}

// TombstoneResolution is the digest of a row of tombstone_resolutions.
func TombstoneResolution(r dbgen.TombstoneResolution) []byte {
	return start().text("tombstone_resolutions").
		text(r.StatusRef).integer(r.Seq).texts(r.Decision, r.Actor, r.Reason).integer(r.DecidedAt).sum()
}

// PausedTool is the digest of a row of paused_tools.
func PausedTool(p dbgen.PausedTool) []byte {
	return start().text("paused_tools").texts(p.ToolName, p.Actor, p.Reason).integer(p.PausedAt).sum()
}

// PastPause is the digest of a row of past_pauses.
func PastPause(p dbgen.PastPause) []byte {
	return start().text("past_pauses").text(p.ToolName).integer(p.Seq).texts(p.Actor, p.Reason).integer(p.PausedAt).
		texts(p.ResumedBy, p.ResumeReason).integer(p.ResumedAt).sum()
}

// RejectedReceipt is the digest of a row of rejected_receipts.
func RejectedReceipt(r dbgen.RejectedReceipt) []byte {
	return start().text("rejected_receipts").
		integer(r.OperationPK).integer(r.Attempt).
		texts(r.ReceiptID, r.DownstreamRequestID, r.ResultText, r.ProducerRevision, r.ResourceRevision,
			r.ObservedAt, r.Violation).
		integer(r.RecordedAt).sum()
}

// Tombstone is the digest of a row of tombstones.
func Tombstone(t dbgen.Tombstone) []byte {
	return start().text("tombstones").
		texts(t.TenantID, t.SubjectID, t.ToolName, t.IdempotencyKey, t.StatusRef, t.State, t.RequestSha256).
		integer(t.CreatedAt).integer(t.CompletedAt).integer(t.PrunedAt).decisions(t.Decisions).receipt(t.ReceiptPK).sum()
}
