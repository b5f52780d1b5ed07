package ledger

import (
	"bytes"
	"database/sql"
	"slices"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/schema"
	"github.com/toolruntime/toolruntime-go/internal/tables"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// The audit and the runtime hold stored evidence against the same rules: what
// the one reports as a finding, the other refuses to use.

// A finding is one rule that stored evidence breaks.
type finding struct {
	code string // AUDIT_…
	rule string
}

type findings []finding

func (fs *findings) add(code, rule string) { *fs = append(*fs, finding{code, rule}) }

// err is the first finding as an error.
func (fs findings) err(statusRef string) error {
	if len(fs) == 0 {
		return nil
	}
	return &ContractError{statusRef, fs[0].rule}
}

// Check holds r's operation against its evidence, as the audit does, and against the
// profiles that are registered. b is a bound call or nil, see checkOperation.
func (r *Operation) Check(profiles []toolresult.Profile, b *toolresult.Bound) error {
	return checkOperation(&r.operation, profiles, b).err(r.StatusRef())
}

// checkOperation recomputes everything in an operation's row that follows from
// the rest of the row. Where b, a bound call or nil, has the same values and
// digests, it has been computed already.
func checkOperation(o *dbgen.Operation, profiles []toolresult.Profile, b *toolresult.Bound) (fs findings) {
	if b == nil || !provesRequest(o, b) {
		checkRequest(&fs, o)
	}
	checkAcceptance(&fs, o, profiles)
	return fs
}

// checkRequest recomputes the digests of the request.
func checkRequest(fs *findings, o *dbgen.Operation) {
	t := contractOf(o)
	if _, err := canonjson.ParseCanonical(o.ArgumentsJSON); err != nil {
		fs.add("AUDIT_REQUEST", "request/contract evidence: the arguments: "+canonjson.Rule(err))
	} else if o.RequestSha256 != contract.RequestSHA256(contract.Request{TenantID: o.TenantID, SubjectID: o.SubjectID,
		Tool: t.Name, Arguments: o.ArgumentsJSON, InputSchema: t.InputSchema, OutputSchema: t.OutputSchema, Effect: t.Effect}) {
		fs.add("AUDIT_REQUEST", "request/contract evidence: the request digest does not match")
	}
	if o.StatusRef != contract.StatusRef(contract.EffectIdentity(o.TenantID, o.SubjectID, o.ToolName, o.IdempotencyKey, o.RequestSha256)) {
		fs.add("AUDIT_REQUEST", "request/contract evidence: the status_ref does not match")
	}
}

// provesRequest reports whether the digests of a bound call are those that
// checkRequest would recompute, because they were computed from what is stored,
// and match.
func provesRequest(o *dbgen.Operation, b *toolresult.Bound) bool {
	p, c := b.Principal(), b.Call()
	return o.TenantID == p.TenantID && o.SubjectID == p.SubjectID && o.ToolName == c.Name && o.IdempotencyKey == c.IdempotencyKey &&
		o.ArgumentsJSON == b.Arguments() && contractOf(o) == b.Contract() &&
		o.RequestSha256 == b.RequestSHA256() && o.StatusRef == b.StatusRef()
}

// checkAcceptance recomputes what else follows from the rest of the row: who
// called, and who approved.
func checkAcceptance(fs *findings, o *dbgen.Operation, profiles []toolresult.Profile) {
	r := Operation{operation: *o}
	first := r.FirstCall()
	if first.Check() != nil || !slices.Contains(profiles, first.Profile()) {
		fs.add("AUDIT_PROVIDER_CONTEXT", "the first call's provider context is malformed or not registered")
	}
	checkApproval(fs, o)
	if !tables.Operations.Intact(o) {
		fs.add("AUDIT_ROW_DIGEST", "the operation's row does not fit its digest")
	}
}

func checkApproval(fs *findings, o *dbgen.Operation) {
	switch {
	case schema.IsBlank(o.ApprovalID), contract.Identifier(o.ApproverID) != "":
		fs.add("AUDIT_APPROVAL", "approval evidence: an id is malformed")
	case o.ApprovalDigest != approvalDigest(o):
		fs.add("AUDIT_APPROVAL", "approval evidence: the approval digest does not match")
	case o.ApprovedAt != o.CreatedAt || o.CreatedAt >= o.ApprovalExpiresAt || o.ApprovalExpiresAt > contract.MaxTime:
		fs.add("AUDIT_APPROVAL", "approval evidence: the approval was not valid when the intent was accepted")
	}
}

// approvalDigest is the digest of the approval of what is stored.
func approvalDigest(o *dbgen.Operation) string {
	return contract.ApprovalDigest(contract.Approval{Provider: o.FirstProvider, APIFamily: o.FirstAPIFamily,
		ResponseID: o.FirstResponseID, CallID: o.FirstCallID, OperationID: o.FirstOperationID, IdempotencyKey: o.IdempotencyKey,
		AdapterRevision: o.FirstAdapterRevision, RequestSHA256: o.RequestSha256, InputSchema: o.InputSchemaRevision,
		OutputSchema: o.OutputSchemaRevision, Effect: o.EffectRevision, Policy: o.PolicyRevision, ApproverID: o.ApproverID})
}

// receiptRow is what both receipts of an operation have in common: they must be
// equal.
type receiptRow struct {
	receiptID, requestID, requestSHA256, result               string
	producerRevision, resourceRevision, observedAt, effectRev string
}

func observedRow(d *dbgen.DownstreamReceipt) receiptRow {
	return receiptRow{d.ReceiptID, d.DownstreamRequestID, d.RequestSha256, d.ResultJSON,
		d.ProducerRevision, d.ResourceRevision, d.ObservedAt, d.EffectRevision}
}

func acceptedRow(l *dbgen.LocalReceipt) receiptRow {
	return receiptRow{l.ReceiptID, l.DownstreamRequestID, l.RequestSha256, l.ResultJSON,
		l.ProducerRevision, l.ResourceRevision, l.ObservedAt, l.EffectRevision}
}

func (r receiptRow) evidence(statusRef string) toolresult.Evidence {
	return toolresult.Evidence{ReceiptID: r.receiptID, RequestID: r.requestID, StatusRef: statusRef, Data: r.result,
		ProducerRevision: r.producerRevision, ResourceRevision: r.resourceRevision, ObservedAt: r.observedAt}
}

// check holds a receipt against its operation, and against the output contract
// where the tool is known.
func (r receiptRow) check(o *dbgen.Operation, spec *toolresult.Spec, b *toolresult.Bound) (fs findings) {
	const code = "AUDIT_RECEIPT"
	switch {
	case r.requestSHA256 != o.RequestSha256:
		fs.add(code, "receipt evidence: the request digest is another's")
	case r.effectRev != o.EffectRevision || r.producerRevision != o.ProducerRevision:
		fs.add(code, "receipt evidence: the revisions are others")
	case schema.IsBlank(r.receiptID) || schema.IsBlank(r.requestID):
		fs.add(code, "receipt evidence: an id is blank")
	case !contract.ValidObservedAt(r.observedAt):
		fs.add(code, "receipt evidence: observed_at is no UTC instant")
	case spec != nil:
		if ps := spec.CheckOutput(b, r.evidence(o.StatusRef)); len(ps) > 0 {
			fs.add(code, "receipt evidence: the output contract: "+ps[0].Rule)
		}
	default:
		if _, err := canonjson.ParseCanonical(r.result); err != nil {
			fs.add(code, "receipt evidence: the result: "+canonjson.Rule(err))
		}
	}
	return fs
}

// CheckObserved holds the downstream's receipt against r's operation.
func (r *Operation) CheckObserved(spec *toolresult.Spec, b *toolresult.Bound) error {
	return r.observedFindings(spec, b).err(r.StatusRef())
}

func (r *Operation) observedFindings(spec *toolresult.Spec, b *toolresult.Bound) findings {
	fs := observedRow(r.downstream).check(&r.operation, spec, b)
	if !tables.DownstreamReceipts.Intact(r.downstream) {
		fs.add("AUDIT_ROW_DIGEST", "the downstream receipt's row does not fit its digest")
	}
	return fs
}

// checkAccepted holds the local receipt against r's operation.
func (r *Operation) checkAccepted(spec *toolresult.Spec, b *toolresult.Bound) findings {
	fs := acceptedRow(r.local).check(&r.operation, spec, b)
	if !tables.LocalReceipts.Intact(r.local) {
		fs.add("AUDIT_ROW_DIGEST", "the local receipt's row does not fit its digest")
	}
	return fs
}

// sameIntent reports whether two readings of an operation differ at most in
// what a move changes.
func sameIntent(a, b *dbgen.Operation) bool {
	if bytes.Equal(a.RowDigest, b.RowDigest) && tables.Operations.Intact(a) {
		return true
	}
	x, y := *a, *b
	for _, o := range []*dbgen.Operation{&x, &y} {
		o.State, o.UpdatedAt, o.CompletedAt, o.Reason = "", 0, sql.NullInt64{}, ""
	}
	return bytes.Equal(tables.Operations.Digest(&x), tables.Operations.Digest(&y))
}

// Evidence is that of the receipt which was accepted.
func (r *Operation) Evidence() toolresult.Evidence {
	return acceptedRow(r.local).evidence(r.StatusRef())
}

// Accepted returns the evidence with which a succeeded operation is answered,
// re-read and re-checked.
func (r *Operation) Accepted(spec *toolresult.Spec, b *toolresult.Bound) (toolresult.Evidence, error) {
	if r.local == nil {
		return toolresult.Evidence{}, &ContractError{r.StatusRef(), "it has succeeded and has no local receipt"}
	}
	if err := r.checkAccepted(spec, b).err(r.StatusRef()); err != nil {
		return toolresult.Evidence{}, err
	}
	return r.Evidence(), nil
}
