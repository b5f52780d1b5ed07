package toolruntime

import (
	"bytes"
	"context"
	"fmt"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/rowdigest"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// checkEvent holds an outbox event against its operation.
func checkEvent(r *record) (fs findings) {
	o, e := &r.operation, &r.event
	payload := toolresult.OutboxPayload(o.OperationPK, o.RequestSha256, o.ToolName)
	if _, err := canonjson.ParseCanonical([]byte(e.PayloadJSON)); err != nil {
		fs.add("AUDIT_OUTBOX", "the outbox payload: "+rule(err))
	} else if e.PayloadJSON != payload {
		fs.add("AUDIT_OUTBOX", "the outbox payload is another operation's")
	}
	if e.EventID != toolresult.OutboxEventID(e.PayloadJSON) {
		fs.add("AUDIT_OUTBOX_EVENT_ID", "the outbox event's id does not match its payload")
	}
	if want := eventOf[r.state()]; e.State != string(want) {
		fs.add("AUDIT_STATE", fmt.Sprintf("the outbox event is not %s, as its operation's state needs", want))
	}
	switch attempts := e.AttemptCount; {
	case r.state() == processing && attempts < 1, r.state() == inReview && attempts < 1:
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
	if e.LeaseOwner.Valid && toolresult.CheckWorkerID(e.LeaseOwner.String) != nil {
		fs.add("AUDIT_STATE", "the outbox event's lease owner is malformed")
	}
	if !bytes.Equal(e.RowDigest, rowdigest.Event(*e)) {
		fs.add("AUDIT_ROW_DIGEST", "the outbox event's row does not fit its digest")
	}
	return fs
}

// checkReceipts holds both receipts against the operation's state and against
// each other. A downstream receipt alone is legal: it was observed and is not
// accepted yet.
func checkReceipts(r *record, spec *toolresult.Spec, b *toolresult.Bound) (fs findings) {
	done := r.state() == succeeded
	ended := done || r.state() == failed
	if ended != r.operation.CompletedAt.Valid {
		fs.add("AUDIT_STATE", "completed_at does not fit the operation's state")
	}
	if r.downstream != nil {
		fs = append(fs, r.checkObserved(spec, b)...)
	} else if done {
		fs.add("AUDIT_RECEIPT_MISSING", "it has succeeded and has no downstream receipt")
	}
	switch {
	case r.local == nil && done:
		fs.add("AUDIT_RECEIPT_MISSING", "it has succeeded and has no local receipt")
	case r.local == nil:
	case !done:
		fs.add("AUDIT_STATE", "it has a local receipt and has not succeeded")
	default:
		fs = append(fs, r.checkAccepted(spec, b)...)
		if r.downstream != nil && observedRow(r.downstream) != acceptedRow(r.local) {
			fs.add("AUDIT_RECEIPT", "receipt evidence: the local receipt differs from the downstream's")
		}
	}
	return fs
}

func checkRejected(r *record, rows []dbgen.RejectedReceipt) (fs findings) {
	reason := false
	for _, row := range rows {
		reason = reason || row.Attempt == r.fence()
		switch {
		case !bytes.Equal(row.RowDigest, rowdigest.RejectedReceipt(row)):
			fs.add("AUDIT_ROW_DIGEST", "the rejected receipt's row does not fit its digest")
		case row.Attempt > r.fence():
			fs.add("AUDIT_ATTEMPT", "an answer was rejected of an attempt that its event does not count")
		}
	}
	if r.state() == inReview && r.reason() == toolresult.OutputContractViolation && !reason {
		fs.add("AUDIT_STATE", "it is in review for an answer that is not there")
	}
	if _, known := toolresult.Lookup(r.reason()); r.reason() != "" && !known {
		fs.add("AUDIT_STATE", "the operation's reason is no code of the contract")
	}
	return fs
}

func (a *auditor) orphanEvents(ctx context.Context, s engine.Snapshot) (int, error) {
	page, err := s.ListOrphanEvents(ctx, dbgen.ListOrphanEventsParams{AfterPK: a.after, Page: auditPage})
	for _, e := range page {
		a.after = e.OperationPK
		a.add("AUDIT_ORPHAN_OUTBOX_EVENT", "", "an outbox event has no operation")
	}
	return len(page), err
}

func (a *auditor) orphanLocal(ctx context.Context, s engine.Snapshot) (int, error) {
	page, err := s.ListOrphanLocalReceipts(ctx, dbgen.ListOrphanLocalReceiptsParams{AfterPK: a.after, Page: auditPage})
	for _, l := range page {
		a.after = l.OperationPK
		a.add("AUDIT_ORPHAN_LOCAL_RECEIPT", "", "a local receipt has no operation")
	}
	return len(page), err
}

func (a *auditor) orphanRejected(ctx context.Context, s engine.Snapshot) (int, error) {
	page, err := s.ListOrphanRejectedReceipts(ctx, dbgen.ListOrphanRejectedReceiptsParams{AfterPK: a.after, Page: auditPage})
	for _, r := range page {
		a.after = r.OperationPK
		a.add("AUDIT_ORPHAN_REJECTED_RECEIPT", "", "a rejected receipt has no operation")
	}
	return len(page), err
}

func (a *auditor) orphanAttempts(ctx context.Context, s engine.Snapshot) (int, error) {
	page, err := s.ListOrphanAttempts(ctx, dbgen.ListOrphanAttemptsParams{AfterPK: a.after, Page: auditPage})
	for _, t := range page {
		a.after = t.OperationPK
		a.add("AUDIT_ORPHAN_ATTEMPT", "", "an attempt has no operation")
	}
	return len(page), err
}

func (a *auditor) orphanResolutions(ctx context.Context, s engine.Snapshot) (int, error) {
	page, err := s.ListOrphanResolutions(ctx, dbgen.ListOrphanResolutionsParams{AfterPK: a.after, Page: auditPage})
	for _, v := range page {
		a.after = v.OperationPK
		a.add("AUDIT_ORPHAN_RESOLUTION", "", "a resolution has no operation")
	}
	return len(page), err
}

// calls examines every call identity. Most belong to no operation any more or
// never did, so what can be held against them is their digest.
func (a *auditor) calls(ctx context.Context, s engine.Snapshot) (int, error) {
	page, err := s.ListCallBindings(ctx, dbgen.ListCallBindingsParams{
		TenantID: a.call.TenantID, SubjectID: a.call.SubjectID, Provider: a.call.Provider,
		APIFamily: a.call.APIFamily, ResponseID: a.call.ResponseID, CallID: a.call.CallID, Page: auditPage})
	for _, c := range page {
		a.call = c
		if !bytes.Equal(c.RowDigest, rowdigest.CallBinding(c)) {
			a.add("AUDIT_ROW_DIGEST", c.StatusRef, "a call binding's row does not fit its digest")
		}
	}
	return len(page), err
}
