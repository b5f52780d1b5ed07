package toolruntime

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync/atomic"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/engine"
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
	// Progress is called from time to time, by the goroutine that called Audit,
	// with how many rows were examined and how many there are. A snapshot may be
	// open meanwhile, so it must be short.
	Progress func(done, total int64)
}

const (
	auditPage       = 500
	maxAuditErrors  = 1000
	maxUnregistered = 100
)

// sizes say in which portions an audit works.
type sizes struct {
	// snapshot is about how many rows are examined in one snapshot. A snapshot
	// keeps the write-ahead log from being reset, so a ledger with more rows is
	// audited in several; each operation is seen whole, with its event and
	// receipts, in one.
	snapshot int64
	// span is how many operation keys are examined in one snapshot: with all that
	// belongs to them about as many rows.
	span int64
	// keys is how many operation keys are read at once. It bounds the memory of an
	// audit, because arguments and results can be large.
	keys int64
	// page is how many other rows are read at once.
	page int64
}

var auditSizes = sizes{snapshot: 50_000, span: 8192, keys: 256, page: auditPage}

// Audit examines the whole ledger in constant memory, beside the work that goes
// on: integrity and durability of the database, every row recomputed and held
// against the others, orphans of every kind. It changes nothing. A malformed
// stored value is a finding; an error means that the audit could not be made.
//
// It uses several processors where there are. The report does not depend on it:
// findings stand in the order of the rows.
func (rt *Runtime) Audit(ctx context.Context, opts *AuditOptions) (*AuditReport, error) {
	r, err := rt.audit(ctx, opts, auditSizes)
	if err != nil {
		return nil, fmt.Errorf("toolruntime: audit: %w", err)
	}
	return r, nil
}

func (rt *Runtime) audit(ctx context.Context, opts *AuditOptions, by sizes) (*AuditReport, error) {
	a := newAuditor(rt, opts, by)
	small := false
	err := rt.store.engine.Snapshot(ctx, func(ctx context.Context, s engine.Snapshot) error {
		rows, err := s.AuditFewRows(ctx, by.snapshot+1)
		if err != nil {
			return err
		}
		for _, step := range a.beginning() {
			if err := step(ctx, s); err != nil {
				return err
			}
		}
		if small = rows <= by.snapshot; !small {
			return nil
		}
		return a.inOneSnapshot(ctx, s)
	})
	switch {
	case unreadable(err, true):
		// From the beginning, each part by itself: what can be read is examined.
		a = newAuditor(rt, opts, by)
		if err = a.beginApart(ctx); err == nil {
			err = a.inManySnapshots(ctx)
		}
	case err != nil:
	case small:
		err = a.operations.askApprovers(ctx)
	default:
		err = a.inManySnapshots(ctx)
	}
	if err != nil {
		return nil, err
	}
	a.done.Store(math.MaxInt64)
	a.tellProgress()
	return a.finish(), nil
}

func newAuditor(rt *Runtime, opts *AuditOptions, by sizes) *auditor {
	a := &auditor{rt: rt, sizes: by, report: &AuditReport{}, ledger: part{rt: rt}, operations: part{rt: rt}}
	a.total.Store(-1)
	if opts != nil {
		a.progress = opts.Progress
	}
	for _, w := range []walk{
		{next: downstream, what: "observed receipts"}, {next: tombstones, what: "tombstones"}, {next: calls, what: "call identities"},
		{next: endingsOf, what: "endings"},
	} {
		w.part, w.page, w.done = part{rt: rt}, by.page, &a.done
		a.walks = append(a.walks, &w)
	}
	return a
}

// unreadable reports whether an error says that what is stored cannot be read: that
// is a finding, and the audit goes on with the rest. An error that the database
// gives no kind is of that sort where the schema is another.
func unreadable(err error, schemaDiffers bool) bool {
	var e *engine.Error
	return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrContract) ||
		schemaDiffers && errors.As(err, &e) && e.Kind == ErrDatabase
}

// An auditor makes one audit. Its parts are filled beside each other, each by one
// goroutine at a time.
type auditor struct {
	rt       *Runtime
	sizes    sizes
	report   *AuditReport
	durable  bool
	differs  bool // the schema, from that of this version
	progress func(done, total int64)
	done     atomic.Int64
	// unreadable says that the operations after some key could not be found.
	unreadable atomic.Bool
	blind      int          // how often the next key could not be read
	total      atomic.Int64 // -1 until it is known

	ledger     part
	counted    part
	operations part
	walks      []*walk
}

// tellProgress counts operations with their observed receipts, and call
// identities, as soon as it is known how many there are.
func (a *auditor) tellProgress() {
	if total := a.total.Load(); a.progress != nil && total >= 0 {
		a.progress(min(a.done.Load(), total), total)
	}
}

// beginning is what an audit looks at first.
func (a *auditor) beginning() []func(context.Context, engine.Snapshot) error {
	return []func(context.Context, engine.Snapshot) error{a.schema, a.metadata, a.pauses}
}

// beginApart begins in a ledger of which not all can be read.
func (a *auditor) beginApart(ctx context.Context) error {
	for _, step := range a.beginning() {
		err := a.rt.store.engine.Snapshot(ctx, step)
		if unreadable(err, a.differs) {
			a.ledger.add("AUDIT_DAMAGED", "", "what the ledger says of itself cannot be read")
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// schema holds the database's schema against the one that this version makes.
func (a *auditor) schema(ctx context.Context, s engine.Snapshot) error {
	differences, err := s.Schema(ctx)
	for _, d := range differences {
		a.ledger.add("AUDIT_SCHEMA", "", d)
	}
	a.differs = len(differences) > 0
	return err
}

// metadata reads what the ledger says of itself.
func (a *auditor) metadata(ctx context.Context, s engine.Snapshot) error {
	r := a.report
	metadata, err := s.ListMetadata(ctx)
	if err != nil {
		return err
	}
	for _, m := range metadata {
		switch {
		case m.MetadataKey == "schema_version":
			r.SchemaVersion = m.MetadataValue
		case m.MetadataKey == "tombstones", m.MetadataKey == "pauses": // see count, and pauses
		case m.MetadataKey != "adopted_from":
			a.ledger.add("AUDIT_METADATA", "", "the ledger's metadata has an unknown entry")
		}
	}
	if r.SchemaVersion != engine.SchemaVersion {
		r.SchemaVersion = ""
		a.ledger.add("AUDIT_SCHEMA_VERSION", "", "the ledger's schema version is not "+engine.SchemaVersion)
	}
	return nil
}

// count counts the rows that there are, and tombstones against what the ledger
// says of their number.
func (a *auditor) count(ctx context.Context, s engine.Snapshot) error {
	counts, err := s.CountRows(ctx)
	if err != nil {
		return err
	}
	t, err := s.CountTombstones(ctx)
	if err != nil {
		return err
	}
	if strconv.FormatInt(t.Found, 10) != t.Counted {
		a.counted.add("AUDIT_TOMBSTONE", "", "there are not as many tombstones as the ledger counts")
	}
	a.report.Counts = Counts(counts)
	a.total.Store(counts.Operations + counts.DownstreamReceipts + counts.CallBindings)
	return nil
}

// inspect asks the database about its own health.
func (a *auditor) inspect(ctx context.Context, s engine.Snapshot) error {
	h, err := s.Inspect(ctx)
	r := a.report
	r.SQLiteVersion, r.PostgreSQLVersion, r.Settings = h.SQLiteVersion, h.PostgreSQLVersion, h.Settings
	r.JournalMode, r.Synchronous = h.JournalMode, h.Synchronous
	r.IntegrityCheck, r.ForeignKeyViolations = h.IntegrityCheck, h.ForeignKeyViolations
	a.durable = h.Durable
	return err
}

// inspectApart is inspect where it may meet what cannot be read.
func (a *auditor) inspectApart(c *crew) error {
	err := c.snapshot(a.inspect)
	if unreadable(err, a.differs) {
		r := a.report
		r.IntegrityCheck, err = append(r.IntegrityCheck, "the database cannot be checked"), nil
	}
	return err
}

// countApart is count where it may meet what cannot be read.
func (a *auditor) countApart(c *crew) error {
	err := c.snapshot(a.count)
	if unreadable(err, a.differs) {
		a.counted.add("AUDIT_DAMAGED", "", "the rows cannot be counted")
		err = nil
	}
	return err
}

func (a *auditor) finish() *AuditReport {
	r := a.report
	var all part
	all.merge(&a.ledger)
	all.merge(&a.counted)
	all.merge(&a.operations)
	if a.unreadable.Load() {
		all.add("AUDIT_DAMAGED", "", unreadableOperations)
	}
	for _, w := range a.walks {
		all.merge(&w.part)
	}
	r.SemanticErrors, r.Unregistered = append([]string{}, all.findings...), all.unregistered
	if all.count > maxAuditErrors {
		r.SemanticErrors = append(r.SemanticErrors, fmt.Sprintf("AUDIT_MORE: %d errors in all", all.count))
	}
	r.Unregistered.StatusRefs = append([]string{}, r.Unregistered.StatusRefs...)
	r.ForeignKeyViolations = append([]string{}, r.ForeignKeyViolations...)
	r.Passed = a.durable && len(r.SemanticErrors) == 0 && len(r.ForeignKeyViolations) == 0 &&
		len(r.IntegrityCheck) == 1 && r.IntegrityCheck[0] == "ok"
	return r
}

// A part is what was found in a part of the ledger, in the order of its rows.
type part struct {
	rt           *Runtime
	findings     []string // the first of them
	count        int64    // of all of them
	unregistered Unregistered
	approvals    []approval // to ask about once the snapshot has ended
}

// An approval of an operation that has not ended.
type approval struct {
	statusRef string
	tool      *tool
	owner     toolresult.Principal
	approver  string
}

// add reports a finding. A row has no name when it never had one, or when its
// name is no status_ref any more: whatever was written there could be anything.
func (p *part) add(code, ref, rule string) {
	if p.count++; p.count > maxAuditErrors {
		return
	}
	text := code
	if contract.ValidStatusRef(ref) {
		text += "[" + ref + "]"
	}
	if rule != "" {
		text += ": " + rule
	}
	p.findings = append(p.findings, text)
}

func (p *part) addAll(ref string, fs findings) {
	for _, f := range fs {
		p.add(f.code, ref, f.rule)
	}
}

// merge adds what was found in the rows that come next.
func (p *part) merge(next *part) {
	p.findings = append(p.findings, next.findings[:min(len(next.findings), maxAuditErrors-len(p.findings))]...)
	p.count += next.count
	u, v := &p.unregistered, &next.unregistered
	u.StatusRefs = append(u.StatusRefs, v.StatusRefs[:min(len(v.StatusRefs), maxUnregistered-len(u.StatusRefs))]...)
	u.Count += v.Count
	p.approvals = append(p.approvals, next.approvals...)
}

// askApprovers asks the host about the approvals of operations that have not
// ended.
func (p *part) askApprovers(ctx context.Context) error {
	for _, v := range p.approvals {
		// About a principal that nobody knows any more nobody is asked: it is denied.
		current, known, err := p.rt.resolve(ctx, v.tool.timeout, v.owner)
		if err != nil {
			return err
		}
		if !known {
			continue
		}
		eligible, err := p.rt.mayApprove(ctx, v.tool, current, v.approver)
		if err != nil {
			return err
		}
		if !eligible {
			p.add("AUDIT_APPROVAL", v.statusRef, "approval evidence: the approver is not eligible")
		}
	}
	p.approvals = nil
	return nil
}
