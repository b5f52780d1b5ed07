package toolruntime

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/rowdigest"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// An AuditReport is what an audit of the ledger found. Nothing in it names a
// tenant, a subject, a tool or a key: rows are named by their status_ref.
type AuditReport struct {
	SchemaVersion     string `json:"schema_version"`
	SQLiteVersion     string `json:"sqlite_version,omitempty"`
	PostgreSQLVersion string `json:"postgresql_version,omitempty"`
	// Settings are the server's settings that durability rests on.
	Settings             map[string]string `json:"settings,omitempty"`
	JournalMode          string            `json:"journal_mode"`
	Synchronous          int64             `json:"synchronous"`
	IntegrityCheck       []string          `json:"integrity_check"`
	ForeignKeyViolations []string          `json:"foreign_key_violations"`
	// SemanticErrors are the rules that stored evidence breaks, as
	// AUDIT_CODE[status_ref] and, for most, what does not hold. At most
	// 1,000 are listed; the last line then says how many there are.
	SemanticErrors []string `json:"semantic_errors"`
	Counts         Counts   `json:"counts"`
	// Unregistered are operations whose tool, or whose revisions of it, this
	// runtime does not know: they were recomputed from what is stored and could
	// not be held against a registry. That is no error.
	Unregistered Unregistered `json:"unregistered"`
	Passed       bool         `json:"passed"`
}

// Unregistered counts operations and names the first of them.
type Unregistered struct {
	Count      int64    `json:"count"`
	StatusRefs []string `json:"status_refs"` // at most 100
}

// AuditOptions of [Runtime.Audit].
type AuditOptions struct {
	// Progress is called from time to time with how many rows were examined and
	// how many there are. It runs while a snapshot is open, so it must be short.
	Progress func(done, total int64)
}

const (
	auditPage       = 500
	maxAuditErrors  = 1000
	maxUnregistered = 100
	// snapshotRows is how many rows are examined in one snapshot. A snapshot
	// keeps the write-ahead log from being reset, so a large ledger is audited in
	// several; each operation is seen whole, with its event and receipts, in one.
	snapshotRows = 50_000
)

// Audit examines the whole ledger in constant memory, beside the work that goes
// on: integrity and durability of the database, every row recomputed and held
// against the others, orphans of every kind. It changes nothing. A malformed
// stored value is a finding; an error means that the audit could not be made.
func (rt *Runtime) Audit(ctx context.Context, opts *AuditOptions) (*AuditReport, error) {
	a := &auditor{rt: rt, report: &AuditReport{SemanticErrors: []string{}, Unregistered: Unregistered{StatusRefs: []string{}}}}
	if opts != nil {
		a.progress = opts.Progress
	}
	a.steps = []step{a.begin, a.operations, a.downstream, a.orphanEvents, a.orphanLocal, a.orphanRejected, a.orphanAttempts, a.orphanResolutions, a.tombstones, a.calls}
	for len(a.steps) > 0 {
		err := rt.store.engine.Snapshot(ctx, a.pass)
		if err == nil {
			err = a.askApprovers(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("toolruntime: audit: %w", err)
		}
	}
	return a.finish(), nil
}

// A step examines a page of rows and reports how many there were; fewer than a
// page end it.
type step func(ctx context.Context, s engine.Snapshot) (int, error)

type auditor struct {
	rt       *Runtime
	report   *AuditReport
	durable  bool
	progress func(done, total int64)
	done     int64
	errors   int64

	approvals []approval // to ask about once the snapshot has ended

	steps []step
	after int64 // the last key of the running step

	tombstone string // the last of tombstones
	call      dbgen.CallBinding
}

// pass runs steps in one snapshot until it has examined enough.
func (a *auditor) pass(ctx context.Context, s engine.Snapshot) error {
	for rows := 0; rows < snapshotRows && len(a.steps) > 0; {
		n, err := a.steps[0](ctx, s)
		if err != nil {
			return err
		}
		if n < auditPage {
			a.steps, a.after = a.steps[1:], 0
		}
		rows += n
		a.done += int64(n)
		if a.progress != nil {
			c := a.report.Counts
			total := c.Operations + c.DownstreamReceipts + c.CallBindings
			a.progress(min(a.done, total), total)
		}
	}
	return nil
}

func (a *auditor) begin(ctx context.Context, s engine.Snapshot) (int, error) {
	h, err := s.Inspect(ctx)
	if err != nil {
		return 0, err
	}
	r := a.report
	r.SQLiteVersion, r.PostgreSQLVersion, r.Settings = h.SQLiteVersion, h.PostgreSQLVersion, h.Settings
	r.JournalMode, r.Synchronous = h.JournalMode, h.Synchronous
	r.IntegrityCheck, r.ForeignKeyViolations = h.IntegrityCheck, h.ForeignKeyViolations
	a.durable = h.Durable
	metadata, err := s.ListMetadata(ctx)
	if err != nil {
		return 0, err
	}
	for _, m := range metadata {
		switch {
		case m.MetadataKey == "schema_version":
			r.SchemaVersion = m.MetadataValue
		case m.MetadataKey != "adopted_from":
			a.add("AUDIT_METADATA", "", "the ledger's metadata has an unknown entry")
		}
	}
	if r.SchemaVersion != engine.SchemaVersion {
		r.SchemaVersion = ""
		a.add("AUDIT_SCHEMA_VERSION", "", "the ledger's schema version is not "+engine.SchemaVersion)
	}
	paused, err := s.ListPausedTools(ctx)
	if err != nil {
		return 0, err
	}
	for _, p := range paused {
		if !bytes.Equal(p.RowDigest, rowdigest.PausedTool(p)) {
			a.add("AUDIT_ROW_DIGEST", "", "a paused tool's row does not fit its digest")
		}
	}
	counts, err := s.CountRows(ctx)
	r.Counts = Counts(counts)
	return 0, err
}

func (a *auditor) finish() *AuditReport {
	r := a.report
	if a.errors > maxAuditErrors {
		r.SemanticErrors = append(r.SemanticErrors, fmt.Sprintf("AUDIT_MORE: %d errors in all", a.errors))
	}
	r.Passed = a.durable && len(r.SemanticErrors) == 0 && len(r.ForeignKeyViolations) == 0 &&
		len(r.IntegrityCheck) == 1 && r.IntegrityCheck[0] == "ok"
	return r
}

// add reports a finding. A row has no name when it never had one, or when its
// name is no status_ref any more: whatever was written there could be anything.
func (a *auditor) add(code, ref, rule string) {
	if a.errors++; a.errors > maxAuditErrors {
		return
	}
	text := code
	if toolresult.ValidStatusRef(ref) {
		text += "[" + ref + "]"
	}
	if rule != "" {
		text += ": " + rule
	}
	a.report.SemanticErrors = append(a.report.SemanticErrors, text)
}

func (a *auditor) addAll(ref string, fs findings) {
	for _, f := range fs {
		a.add(f.code, ref, f.rule)
	}
}

func (a *auditor) operations(ctx context.Context, s engine.Snapshot) (int, error) {
	page, err := s.ListOperations(ctx, dbgen.ListOperationsParams{AfterPK: a.after, Page: auditPage})
	for _, o := range page {
		if err := a.operation(ctx, s, o); err != nil {
			return 0, err
		}
		a.after = o.OperationPK
	}
	return len(page), err
}

// operation examines an operation with all that belongs to it.
func (a *auditor) operation(ctx context.Context, s engine.Snapshot, o dbgen.Operation) error {
	rec := &record{operation: o}
	ref := rec.statusRef()
	a.addAll(ref, checkOperation(&o, a.rt.profiles))
	spec, b := a.registered(rec)
	var missing *ContractError
	err := rec.readEvent(ctx, s)
	switch {
	case errors.As(err, &missing):
		a.add("AUDIT_OUTBOX_MISSING", ref, missing.Rule)
	case err != nil:
		return err
	default:
		a.addAll(ref, checkEvent(rec))
	}
	if err := rec.readDownstream(ctx, s); err != nil {
		return err
	}
	if err := rec.readLocal(ctx, s); err != nil {
		return err
	}
	a.addAll(ref, checkReceipts(rec, spec, b))
	attempts, err := s.ListAttempts(ctx, o.OperationPK)
	if err != nil {
		return err
	}
	a.addAll(ref, checkAttempts(rec, attempts))
	resolutions, err := s.ListResolutions(ctx, o.OperationPK)
	if err != nil {
		return err
	}
	a.addAll(ref, checkResolutions(rec, resolutions))
	if err := a.rejected(ctx, s, rec); err != nil {
		return err
	}
	return a.firstCall(ctx, s, rec)
}

// registered holds an operation against the registry. It returns the spec and
// the bound call if the tool is known under the operation's revisions.
func (a *auditor) registered(rec *record) (*toolresult.Spec, *toolresult.Bound) {
	t, ok := a.rt.tools[rec.operation.ToolName]
	if !ok || t.spec.Contract() != rec.contract() {
		u := &a.report.Unregistered
		if u.Count++; u.Count <= maxUnregistered && toolresult.ValidStatusRef(rec.statusRef()) {
			u.StatusRefs = append(u.StatusRefs, rec.statusRef())
		}
		return nil, nil
	}
	b, err := toolresult.Bind(rec.owner(), rec.firstCall(), rec.contract())
	if err != nil {
		return nil, nil // checkOperation has reported the arguments
	}
	if len(t.spec.CheckArguments(b)) > 0 {
		a.add("AUDIT_REQUEST", rec.statusRef(), "request/contract evidence: the arguments break the tool's input schema")
	}
	// Who may approve changes over the years. What is finished was approved by
	// somebody who could then; what is not must be approved by somebody who can.
	if rec.operation.CompletedAt.Valid {
		return t.spec, b
	}
	a.approvals = append(a.approvals, approval{rec.statusRef(), rec.owner(), rec.operation.ToolName, rec.operation.ApproverID})
	return t.spec, b
}

// An approval of an operation that has not ended.
type approval struct {
	statusRef      string
	owner          toolresult.Principal
	tool, approver string
}

// askApprovers asks the host about the approvals of the last snapshot.
func (a *auditor) askApprovers(ctx context.Context) error {
	for _, v := range a.approvals {
		eligible, err := a.rt.approvers(ctx, v.owner, v.tool, v.approver)
		if err != nil {
			return fmt.Errorf("approvers: %w", err)
		}
		if !eligible {
			a.add("AUDIT_APPROVAL", v.statusRef, "approval evidence: the approver is not eligible")
		}
	}
	a.approvals = a.approvals[:0]
	return nil
}

func (a *auditor) rejected(ctx context.Context, s engine.Snapshot, rec *record) error {
	rows, err := s.ListRejectedReceipts(ctx, rec.operation.OperationPK)
	if err != nil {
		return err
	}
	a.addAll(rec.statusRef(), checkRejected(rec, rows))
	return nil
}

// firstCall looks for the identity of the call that created the operation.
func (a *auditor) firstCall(ctx context.Context, s engine.Snapshot, rec *record) error {
	o := &rec.operation
	fingerprint, err := s.GetCallFingerprint(ctx, dbgen.GetCallFingerprintParams{
		TenantID: o.TenantID, SubjectID: o.SubjectID, Provider: o.FirstProvider,
		APIFamily: o.FirstAPIFamily, ResponseID: o.FirstResponseID, CallID: o.FirstCallID,
	})
	there, err := found(err)
	if err != nil {
		return err
	}
	b, bindErr := toolresult.Bind(rec.owner(), rec.firstCall(), rec.contract())
	switch {
	case !there:
		a.add("AUDIT_CALL_BINDING_MISSING", rec.statusRef(), "the first call's identity is not bound")
	case bindErr == nil && fingerprint != b.Fingerprint(toolresult.PurposeDispatch):
		a.add("AUDIT_CALL_BINDING", rec.statusRef(), "the first call's identity is bound to something else")
	}
	return nil
}

func (a *auditor) downstream(ctx context.Context, s engine.Snapshot) (int, error) {
	page, err := s.ListDownstreamReceipts(ctx, dbgen.ListDownstreamReceiptsParams{AfterPK: a.after, Page: auditPage})
	for _, d := range page {
		a.after = d.DownstreamPK
		_, err := s.GetOperationByScope(ctx, dbgen.GetOperationByScopeParams{
			TenantID: d.TenantID, SubjectID: d.SubjectID, ToolName: d.ToolName, IdempotencyKey: d.IdempotencyKey})
		there, err := found(err)
		if err != nil {
			return 0, err
		}
		if !there {
			a.add("AUDIT_ORPHAN_DOWNSTREAM_RECEIPT", toolresult.StatusRefOf(toolresult.EffectIdentity(
				d.TenantID, d.SubjectID, d.ToolName, d.IdempotencyKey, d.RequestSha256)), "")
		}
	}
	return len(page), err
}
