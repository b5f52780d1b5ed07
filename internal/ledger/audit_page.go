package ledger

import (
	"context"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A page is a range of operations with all that stands under their keys, read
// with one query for each table. Every list is in the order of the keys.
type page struct {
	operations  []dbgen.AuditOperationsRow
	downstream  []dbgen.AuditDownstreamReceiptsRow
	events      under[dbgen.Outbox]
	local       under[dbgen.LocalReceipt]
	rejected    under[dbgen.RejectedReceipt]
	attempts    under[dbgen.Attempt]
	resolutions under[dbgen.Resolution]
}

// under are rows that stand under the keys of operations.
type under[T any] struct {
	rows []T
	key  func(*T) int64
}

// take returns the rows under a key, and how many there were under smaller ones
// that nobody has taken: they have no operation.
func (u *under[T]) take(key int64) (rows []T, orphans int) {
	for orphans < len(u.rows) && u.key(&u.rows[orphans]) < key {
		orphans++
	}
	n := orphans
	for n < len(u.rows) && u.key(&u.rows[n]) == key {
		n++
	}
	rows, u.rows = u.rows[orphans:n], u.rows[n:]
	return rows, orphans
}

func first[T any](rows []T) *T {
	if len(rows) == 0 {
		return nil
	}
	return &rows[0]
}

func readPage(ctx context.Context, q dbgen.Querier, r span) (pg page, err error) {
	pg.events.key = func(e *dbgen.Outbox) int64 { return e.OperationPK }
	pg.local.key = func(l *dbgen.LocalReceipt) int64 { return l.OperationPK }
	pg.rejected.key = func(r *dbgen.RejectedReceipt) int64 { return r.OperationPK }
	pg.attempts.key = func(a *dbgen.Attempt) int64 { return a.OperationPK }
	pg.resolutions.key = func(v *dbgen.Resolution) int64 { return v.OperationPK }
	for _, read := range []func(dbgen.AuditOperationsParams) error{
		func(in dbgen.AuditOperationsParams) (err error) {
			pg.operations, err = q.AuditOperations(ctx, in)
			return err
		},
		func(in dbgen.AuditOperationsParams) (err error) {
			pg.downstream, err = q.AuditDownstreamReceipts(ctx, dbgen.AuditDownstreamReceiptsParams(in))
			return err
		},
		func(in dbgen.AuditOperationsParams) (err error) {
			pg.events.rows, err = q.AuditEvents(ctx, dbgen.AuditEventsParams(in))
			return err
		},
		func(in dbgen.AuditOperationsParams) (err error) {
			pg.local.rows, err = q.AuditLocalReceipts(ctx, dbgen.AuditLocalReceiptsParams(in))
			return err
		},
		func(in dbgen.AuditOperationsParams) (err error) {
			pg.rejected.rows, err = q.AuditRejectedReceipts(ctx, dbgen.AuditRejectedReceiptsParams(in))
			return err
		},
		func(in dbgen.AuditOperationsParams) (err error) {
			pg.attempts.rows, err = q.AuditAttempts(ctx, dbgen.AuditAttemptsParams(in))
			return err
		},
		func(in dbgen.AuditOperationsParams) (err error) {
			pg.resolutions.rows, err = q.AuditResolutions(ctx, dbgen.AuditResolutionsParams(in))
			return err
		},
	} {
		if err := read(dbgen.AuditOperationsParams{FromPK: r.from, ToPK: r.to}); err != nil {
			return pg, err
		}
	}
	return pg, nil
}

// examine examines the operations of a span in one snapshot, with all that
// belongs to them.
func (a *auditor) examine(ctx context.Context, s engine.Snapshot, sp span, p *part, moved func()) error {
	for r := spanFrom(sp.from, a.Sizes.Keys); ; r = spanFrom(r.to+1, a.Sizes.Keys) {
		r.to = min(r.to, sp.to)
		pg, err := readPage(ctx, s, r)
		if err != nil {
			return err
		}
		a.done.Add(int64(len(pg.operations) + len(pg.downstream)))
		for i := range pg.operations {
			p.operation(&pg, i)
		}
		p.addOrphans(len(pg.events.rows), len(pg.local.rows), len(pg.rejected.rows), len(pg.attempts.rows), len(pg.resolutions.rows))
		moved()
		if r.to == sp.to {
			return nil
		}
	}
}

// whole is an operation with all that belongs to it.
type whole struct {
	Operation
	lacksEvent  bool
	rejected    []dbgen.RejectedReceipt
	attempts    []dbgen.Attempt
	resolutions []dbgen.Resolution
	fingerprint string // of its first call; "" when that is not bound
}

// operation examines the i-th operation of a page, with what belongs to it. What
// stands before that in the page belongs to none.
func (p *part) operation(pg *page, i int) {
	row := &pg.operations[i]
	key := row.Operation.OperationPK
	w := whole{Operation: Operation{operation: row.Operation}, fingerprint: row.FirstFingerprint}
	if len(pg.downstream) > 0 && pg.downstream[0].OperationPK == key {
		w.downstream = downstreamOf(&row.Operation, &pg.downstream[0])
		pg.downstream = pg.downstream[1:]
	}
	events, e := pg.events.take(key)
	local, l := pg.local.take(key)
	var r, t, v int
	w.rejected, r = pg.rejected.take(key)
	w.attempts, t = pg.attempts.take(key)
	w.resolutions, v = pg.resolutions.take(key)
	w.local = first(local)
	if w.lacksEvent = len(events) == 0; !w.lacksEvent {
		w.event = events[0]
	}
	p.addOrphans(e, l, r, t, v)
	p.check(&w)
}

// downstreamOf is the receipt that was found by an operation's scope.
func downstreamOf(o *dbgen.Operation, d *dbgen.AuditDownstreamReceiptsRow) *dbgen.DownstreamReceipt {
	return &dbgen.DownstreamReceipt{DownstreamPK: d.DownstreamPK,
		TenantID: o.TenantID, SubjectID: o.SubjectID, ToolName: o.ToolName, IdempotencyKey: o.IdempotencyKey,
		RequestSha256: d.RequestSha256, ReceiptID: d.ReceiptID, DownstreamRequestID: d.DownstreamRequestID, ResultJSON: d.ResultJSON,
		ProducerRevision: d.ProducerRevision, ResourceRevision: d.ResourceRevision, ObservedAt: d.ObservedAt,
		EffectRevision: d.EffectRevision, CommittedAt: d.CommittedAt, RowDigest: d.RowDigest}
}

func (p *part) addOrphans(events, local, rejected, attempts, resolutions int) {
	for _, o := range [...]struct {
		n          int
		code, rule string
	}{
		{events, "AUDIT_ORPHAN_OUTBOX_EVENT", "an outbox event has no operation"},
		{local, "AUDIT_ORPHAN_LOCAL_RECEIPT", "a local receipt has no operation"},
		{rejected, "AUDIT_ORPHAN_REJECTED_RECEIPT", "a rejected receipt has no operation"},
		{attempts, "AUDIT_ORPHAN_ATTEMPT", "an attempt has no operation"},
		{resolutions, "AUDIT_ORPHAN_RESOLUTION", "a resolution has no operation"},
	} {
		for range o.n {
			p.add(o.code, "", o.rule)
		}
	}
}

// check examines an operation with all that belongs to it.
func (p *part) check(w *whole) {
	ref := w.StatusRef()
	b, err := toolresult.Bind(w.Owner(), w.FirstCall(), w.Contract())
	if err != nil {
		b = nil // the arguments are malformed, which checkOperation reports
	}
	p.addAll(ref, checkOperation(&w.operation, p.how.Profiles, b))
	spec := p.registered(&w.Operation, b)
	if w.lacksEvent {
		p.add("AUDIT_OUTBOX_MISSING", ref, "the outbox has no event for it")
	} else {
		p.addAll(ref, checkEvent(&w.Operation))
	}
	p.addAll(ref, checkReceipts(&w.Operation, spec, b))
	p.addAll(ref, checkAttempts(&w.Operation, w.attempts, w.lacksEvent))
	p.addAll(ref, checkResolutions(&w.Operation, w.resolutions))
	p.addAll(ref, checkRejected(&w.Operation, w.rejected))
	p.addAll(ref, checkHistory(w))
	switch {
	case w.fingerprint == "":
		p.add("AUDIT_CALL_BINDING_MISSING", ref, "the first call's identity is not bound")
	case b != nil && w.fingerprint != b.Fingerprint(toolresult.PurposeDispatch):
		p.add("AUDIT_CALL_BINDING", ref, "the first call's identity is bound to something else")
	}
}

// registered holds an operation against the registry. It returns the spec if the
// tool is known under the operation's revisions and the operation has a digest.
func (p *part) registered(rec *Operation, b *toolresult.Bound) *toolresult.Spec {
	spec := p.how.Spec(rec.Contract())
	if spec == nil {
		if p.unregistered++; p.unregistered <= maxUnregistered && contract.ValidStatusRef(rec.StatusRef()) {
			p.unregisteredRefs = append(p.unregisteredRefs, rec.StatusRef())
		}
		return nil
	}
	if b == nil {
		return nil
	}
	if len(spec.CheckArguments(b)) > 0 {
		p.add("AUDIT_REQUEST", rec.StatusRef(), "request/contract evidence: the arguments break the tool's input schema")
	}
	// Who may approve changes over the years. What is finished was approved by
	// somebody who could then; what is not must be approved by somebody who can.
	if !rec.operation.CompletedAt.Valid {
		p.approvals = append(p.approvals, approval{rec.StatusRef(), rec.Contract(), rec.Owner(), rec.operation.ApproverID})
	}
	return spec
}
