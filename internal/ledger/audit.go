package ledger

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

const (
	AuditPage       = 500
	maxAuditErrors  = 1000
	maxUnregistered = 100
)

// Sizes say in which portions an audit works.
type Sizes struct {
	// Snapshot is about how many rows are examined in one snapshot. A snapshot
	// keeps the write-ahead log from being reset, so a ledger with more rows is
	// audited in several; each operation is seen whole, with its event and
	// receipts, in one.
	Snapshot int64
	// Span is how many operation keys are examined in one snapshot: with all that
	// belongs to them about as many rows.
	Span int64
	// Keys is how many operation keys are read at once. It bounds the memory of an
	// audit, because arguments and results can be large.
	Keys int64
	// Page is how many other rows are read at once.
	Page int64
}

var AuditSizes = Sizes{Snapshot: 50_000, Span: 8192, Keys: 256, Page: AuditPage}

// An Auditing says what the ledger is held against beside itself.
type Auditing struct {
	Profiles []toolresult.Profile                       // that are registered
	Spec     func(toolresult.Contract) *toolresult.Spec // that is registered, or nil
	// Approved reports whether the approver of an operation that has not ended may still
	// approve it. It is asked while no snapshot is open, and only where there is a spec.
	Approved func(ctx context.Context, c toolresult.Contract, owner toolresult.Principal, approver string) (bool, error)
	Progress func(done, total int64) // or nil
	Sizes    Sizes
}

// An AuditReport is what an audit has found. It names rows by their status_ref.
type AuditReport struct {
	SchemaVersion    string
	Health           engine.Health
	Findings         []string // at most maxAuditErrors; the last line then says how many there are
	Counts           Counts
	Unregistered     int64    // operations whose contract is not registered
	UnregisteredRefs []string // the first of them
	Passed           bool
}

// Audit examines the whole ledger in constant memory.
func (s *Ledger) Audit(ctx context.Context, how Auditing) (*AuditReport, error) {
	a, by := newAuditor(s, how), how.Sizes
	small := false
	err := s.engine.Snapshot(ctx, func(ctx context.Context, s engine.Snapshot) error {
		rows, err := s.AuditFewRows(ctx, by.Snapshot+1)
		if err != nil {
			return err
		}
		for _, step := range a.beginning() {
			if err := step(ctx, s); err != nil {
				return err
			}
		}
		if small = rows <= by.Snapshot; !small {
			return nil
		}
		return a.inOneSnapshot(ctx, s)
	})
	switch {
	case unreadable(err, true):
		// From the beginning, each part by itself: what can be read is examined.
		a = newAuditor(s, how)
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

func newAuditor(s *Ledger, how Auditing) *auditor {
	a := &auditor{store: s, Auditing: how, report: &AuditReport{}}
	a.ledger.how, a.operations.how = &a.Auditing, &a.Auditing
	a.total.Store(-1)
	for _, w := range []walk{
		{next: downstream, what: "observed receipts"}, {next: tombstones, what: "tombstones"}, {next: calls, what: "call identities"},
		{next: endingsOf, what: "endings"},
	} {
		w.part, w.page, w.done = part{how: &a.Auditing}, how.Sizes.Page, &a.done
		a.walks = append(a.walks, &w)
	}
	return a
}

// unreadable reports whether an error says that what is stored cannot be read: that
// is a finding, and the audit goes on with the rest. An error that the database
// gives no kind is of that sort where the schema is another.
func unreadable(err error, schemaDiffers bool) bool {
	var e *engine.Error
	return errors.Is(err, engine.ErrCorrupt) || errors.Is(err, engine.ErrContract) ||
		schemaDiffers && errors.As(err, &e) && e.Kind == engine.ErrDatabase
}

// An auditor makes one audit. Its parts are filled beside each other, each by one
// goroutine at a time.
type auditor struct {
	Auditing
	store   *Ledger
	report  *AuditReport
	differs bool // the schema, from that of this version
	done    atomic.Int64
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
	if total := a.total.Load(); a.Progress != nil && total >= 0 {
		a.Progress(min(a.done.Load(), total), total)
	}
}

// beginning is what an audit looks at first.
func (a *auditor) beginning() []func(context.Context, engine.Snapshot) error {
	return []func(context.Context, engine.Snapshot) error{a.schema, a.metadata, a.pauses}
}

// beginApart begins in a ledger of which not all can be read.
func (a *auditor) beginApart(ctx context.Context) error {
	for _, step := range a.beginning() {
		err := a.store.engine.Snapshot(ctx, step)
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
	a.report.Health = h
	return err
}

// inspectApart is inspect where it may meet what cannot be read.
func (a *auditor) inspectApart(c *crew) error {
	err := c.snapshot(a.inspect)
	if unreadable(err, a.differs) {
		h := &a.report.Health
		h.IntegrityCheck, err = append(h.IntegrityCheck, "the database cannot be checked"), nil
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
	r.Findings = append([]string{}, all.findings...)
	if all.count > maxAuditErrors {
		r.Findings = append(r.Findings, fmt.Sprintf("AUDIT_MORE: %d errors in all", all.count))
	}
	r.Unregistered, r.UnregisteredRefs = all.unregistered, append([]string{}, all.unregisteredRefs...)
	h := &r.Health
	h.ForeignKeyViolations = append([]string{}, h.ForeignKeyViolations...)
	r.Passed = h.Durable && len(r.Findings) == 0 && len(h.ForeignKeyViolations) == 0 &&
		len(h.IntegrityCheck) == 1 && h.IntegrityCheck[0] == "ok"
	return r
}

// A part is what was found in a part of the ledger, in the order of its rows.
type part struct {
	how      *Auditing
	findings []string // the first of them
	count    int64    // of all of them
	// unregistered are the operations whose contract is not, and the first of their refs.
	unregistered     int64
	unregisteredRefs []string
	approvals        []approval // to ask about once the snapshot has ended
}

// An approval of an operation that has not ended.
type approval struct {
	statusRef string
	contract  toolresult.Contract
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
	refs := next.unregisteredRefs
	p.unregisteredRefs = append(p.unregisteredRefs, refs[:min(len(refs), maxUnregistered-len(p.unregisteredRefs))]...)
	p.unregistered += next.unregistered
	p.approvals = append(p.approvals, next.approvals...)
}

// askApprovers asks the host about the approvals of operations that have not
// ended.
func (p *part) askApprovers(ctx context.Context) error {
	for _, v := range p.approvals {
		ok, err := p.how.Approved(ctx, v.contract, v.owner, v.approver)
		if err != nil {
			return err
		}
		if !ok {
			p.add("AUDIT_APPROVAL", v.statusRef, "approval evidence: the approver is not eligible")
		}
	}
	p.approvals = nil
	return nil
}
