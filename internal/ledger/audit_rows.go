package ledger

import (
	"context"
	"fmt"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/tables"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// checkEvent holds an outbox event against its operation.
func checkEvent(r *Operation) (fs findings) {
	o, e := &r.operation, &r.event
	payload := contract.OutboxPayload(o.OperationPK, o.RequestSha256, o.ToolName)
	if e.PayloadJSON != payload {
		if _, err := canonjson.ParseCanonical(e.PayloadJSON); err != nil {
			fs.add("AUDIT_OUTBOX", "the outbox payload: "+canonjson.Rule(err))
		} else {
			fs.add("AUDIT_OUTBOX", "the outbox payload is another operation's")
		}
	}
	if e.EventID != contract.OutboxEventID(e.PayloadJSON) {
		fs.add("AUDIT_OUTBOX_EVENT_ID", "the outbox event's id does not match its payload")
	}
	if want := eventOf[r.State()]; e.State != string(want) {
		fs.add("AUDIT_STATE", fmt.Sprintf("the outbox event is not %s, as its operation's state needs", want))
	}
	switch attempts := e.AttemptCount; {
	case r.State() == Processing && attempts < 1, r.State() == InReview && attempts < 1:
		fs.add("AUDIT_STATE", "the outbox event counts no attempt")
	}
	switch due := e.NextAttemptAt; {
	case e.State == string(eventPending):
	case e.State == string(eventProcessing) && due == e.LeaseUntil.Int64, e.State != string(eventProcessing) && due == 0:
	default:
		fs.add("AUDIT_STATE", "when the outbox event is due does not fit its lease")
	}
	if e.Lane != laneOf(o) {
		fs.add("AUDIT_OUTBOX", "the outbox event's lane is another operation's")
	}
	if e.CreatedAt != o.CreatedAt || e.UpdatedAt != o.UpdatedAt {
		fs.add("AUDIT_STATE", "the outbox event and its operation changed at different times")
	}
	if e.LeaseOwner.Valid && contract.WorkerID(e.LeaseOwner.String) != "" {
		fs.add("AUDIT_STATE", "the outbox event's lease owner is malformed")
	}
	if !tables.Outbox.Intact(e) {
		fs.add("AUDIT_ROW_DIGEST", "the outbox event's row does not fit its digest")
	}
	return fs
}

// checkReceipts holds both receipts against the operation's state and against
// each other. A downstream receipt alone is legal: it was observed and is not
// accepted yet.
func checkReceipts(r *Operation, spec *toolresult.Spec, b *toolresult.Bound) (fs findings) {
	done := r.State() == Succeeded
	ended := done || r.State() == Failed
	if ended != r.operation.CompletedAt.Valid {
		fs.add("AUDIT_STATE", "completed_at does not fit the operation's state")
	}
	var observed findings
	if r.downstream != nil {
		observed = observedRow(r.downstream).check(&r.operation, spec, b)
		fs = append(fs, observed...)
		if !tables.DownstreamReceipts.Intact(r.downstream) {
			fs.add("AUDIT_ROW_DIGEST", "the downstream receipt's row does not fit its digest")
		}
	} else if done {
		fs.add("AUDIT_RECEIPT_MISSING", "it has succeeded and has no downstream receipt")
	}
	switch {
	case r.local == nil && done:
		fs.add("AUDIT_RECEIPT_MISSING", "it has succeeded and has no local receipt")
	case r.local == nil:
	case !done:
		fs.add("AUDIT_STATE", "it has a local receipt and has not succeeded")
	case r.downstream == nil:
		fs = append(fs, r.checkAccepted(spec, b)...)
	case observedRow(r.downstream) != acceptedRow(r.local):
		fs = append(fs, r.checkAccepted(spec, b)...)
		fs.add("AUDIT_RECEIPT", "receipt evidence: the local receipt differs from the downstream's")
	default:
		// Equal receipts break the same rules: they are checked once.
		fs = append(fs, observed...)
		if !tables.LocalReceipts.Intact(r.local) {
			fs.add("AUDIT_ROW_DIGEST", "the local receipt's row does not fit its digest")
		}
	}
	return fs
}

func checkRejected(r *Operation, rows []dbgen.RejectedReceipt) (fs findings) {
	reason := false
	for _, row := range rows {
		reason = reason || row.Attempt == r.Fence()
		switch {
		case !tables.RejectedReceipts.Intact(&row):
			fs.add("AUDIT_ROW_DIGEST", "the rejected receipt's row does not fit its digest")
		case row.Attempt > r.Fence():
			fs.add("AUDIT_ATTEMPT", "an answer was rejected of an attempt that its event does not count")
		}
	}
	if r.State() == InReview && r.Reason() == toolresult.OutputContractViolation && !reason {
		fs.add("AUDIT_STATE", "it is in review for an answer that is not there")
	}
	if _, known := toolresult.Lookup(r.Reason()); r.Reason() != "" && !known {
		fs.add("AUDIT_STATE", "the operation's reason is no code of the contract")
	}
	return fs
}

// downstream looks for observed receipts whose scope has no operation. The others
// are examined with their operations. Hardly any of a page leaves the database.
func downstream(ctx context.Context, s engine.Snapshot, w *walk) (n int64, more bool, err error) {
	at := dbgen.AuditOrphanReceiptsParams{TenantID: w.scope.TenantID, SubjectID: w.scope.SubjectID,
		ToolName: w.scope.ToolName, IdempotencyKey: w.scope.IdempotencyKey, Page: 10 * w.page}
	orphans, err := s.AuditOrphanReceipts(ctx, at)
	if err != nil {
		return 0, false, err
	}
	for _, scope := range orphans {
		d, err := s.GetDownstreamReceipt(ctx, dbgen.GetDownstreamReceiptParams(scope))
		switch there, err := found(err); {
		case err != nil:
			return 0, false, err
		case !there: // its scope is no text, so that nothing is equal to it
			w.add("AUDIT_DAMAGED", "", w.what+" cannot be read")
			continue
		}
		w.add("AUDIT_ORPHAN_DOWNSTREAM_RECEIPT", contract.StatusRef(contract.EffectIdentity(
			d.TenantID, d.SubjectID, d.ToolName, d.IdempotencyKey, d.RequestSha256)), "")
	}
	last, err := s.AuditScopeAfter(ctx, dbgen.AuditScopeAfterParams{TenantID: at.TenantID, SubjectID: at.SubjectID,
		ToolName: at.ToolName, IdempotencyKey: at.IdempotencyKey, Page: at.Page - 1})
	more, err = found(err)
	w.scope = dbgen.GetDownstreamReceiptParams(last)
	return at.Page, more, err
}

// tombstones examines what remains of pruned operations.
func tombstones(ctx context.Context, s engine.Snapshot, w *walk) (n int64, more bool, err error) {
	rows, err := s.AuditTombstones(ctx, dbgen.AuditTombstonesParams{After: w.tombstone, Page: w.page})
	if err != nil {
		return 0, false, err
	}
	kept, err := keptWith(ctx, s, rows)
	if err != nil {
		return 0, false, err
	}
	for i := range rows {
		t := &rows[i].Tombstone
		w.tombstone = t.StatusRef
		w.addAll(t.StatusRef, checkKept(t, kept[t.StatusRef]))
		w.addAll(t.StatusRef, checkTombstoneRef(t))
		if !tables.Tombstones.Intact(t) {
			w.add("AUDIT_ROW_DIGEST", t.StatusRef, "a tombstone's row does not fit its digest")
		}
		if rows[i].Operations > 0 {
			w.add("AUDIT_TOMBSTONE", t.StatusRef, "the scope of a pruned operation has an operation")
		}
	}
	return int64(len(rows)), int64(len(rows)) == w.page, err
}

// keptWith reads the decisions that stand beside tombstones. One without its
// tombstone breaks a foreign key.
func keptWith(ctx context.Context, s engine.Snapshot, rows []dbgen.AuditTombstonesRow) (map[string][]dbgen.TombstoneResolution, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	all, err := s.ListTombstoneResolutions(ctx, dbgen.ListTombstoneResolutionsParams{
		FromRef: rows[0].Tombstone.StatusRef, ToRef: rows[len(rows)-1].Tombstone.StatusRef})
	kept := map[string][]dbgen.TombstoneResolution{}
	for _, v := range all {
		kept[v.StatusRef] = append(kept[v.StatusRef], v)
	}
	return kept, err
}

// checkKept holds the decisions beside a tombstone against it.
func checkKept(t *dbgen.Tombstone, rows []dbgen.TombstoneResolution) (fs findings) {
	for i, v := range rows {
		end, final := ends[Decision(v.Decision)]
		switch {
		case !tables.TombstoneResolutions.Intact(&v):
			fs.add("AUDIT_ROW_DIGEST", "a resolution's row does not fit its digest")
		case final && (i < len(rows)-1 || t.State != string(end.state)):
			fs.add("AUDIT_RESOLUTION", "it has not ended as a person has decided")
		}
	}
	if int64(len(rows)) != t.Decisions {
		fs.add("AUDIT_RESOLUTION", "there are not as many resolutions as its tombstone counts")
	}
	return fs
}

// calls examines every call identity. Most belong to no operation any more or
// never did, so what can be held against them is their digest.
func calls(ctx context.Context, s engine.Snapshot, w *walk) (n int64, more bool, err error) {
	rows, err := s.ListCallBindings(ctx, dbgen.ListCallBindingsParams{
		TenantID: w.call.TenantID, SubjectID: w.call.SubjectID, Provider: w.call.Provider,
		APIFamily: w.call.APIFamily, ResponseID: w.call.ResponseID, CallID: w.call.CallID, Page: w.page})
	for i := range rows {
		if !tables.CallBindings.Intact(&rows[i]) {
			w.add("AUDIT_ROW_DIGEST", rows[i].StatusRef, "a call binding's row does not fit its digest")
		}
		w.call = rows[i]
	}
	w.done.Add(int64(len(rows)))
	return int64(len(rows)), int64(len(rows)) == w.page, err
}
