package ledger

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/tables"
)

// A Pruning says which operations may go.
type Pruning struct {
	Tool   string // or "" for every one
	States []State
	Before int64 // when it must have ended, or earlier
	Now    int64
}

func (p Pruning) wants(tool, state string, completedAt int64, completed bool) bool {
	return completed && completedAt <= p.Before && slices.Contains(p.States, State(state)) && (p.Tool == "" || p.Tool == tool)
}

const PrunePage = 1000

// Prunable looks through a page of operations after a key, and returns those that
// may be pruned. Nobody keeps an index for that: an operation ends after it was
// accepted, so the first page that was accepted too late is the last.
func (s *Ledger) Prunable(ctx context.Context, after int64, p Pruning) (pks []int64, last int64, rows int, more bool, err error) {
	err = s.engine.Read(ctx, func(ctx context.Context, q engine.Querier) error {
		pks, last, more = nil, after, false
		newest, receipt, err := newestOf(ctx, q)
		if err != nil {
			return err
		}
		page, err := q.ListAges(ctx, dbgen.ListAgesParams{AfterPK: after, Page: PrunePage})
		rows = len(page)
		for _, o := range page {
			last = o.OperationPK
			more = more || o.CreatedAt <= p.Before
			if o.OperationPK < newest && o.OperationPK != receipt && p.wants(o.ToolName, o.State, o.CompletedAt.Int64, o.CompletedAt.Valid) {
				pks = append(pks, o.OperationPK)
			}
		}
		more = more && len(page) == PrunePage
		return err
	})
	return pks, last, rows, more, err
}

// Bury prunes operations in one transaction. It decides again by the rows that
// are there: what has gone meanwhile is passed over, and what does not hold
// together is named and stays.
func (s *Ledger) Bury(ctx context.Context, pks []int64, p Pruning) (buried int64, damaged []string, err error) {
	err = s.engine.Write(ctx, func(ctx context.Context, q engine.Querier) error {
		buried, damaged = 0, nil
		newest, receipt, err := newestOf(ctx, q)
		if err != nil {
			return err
		}
		for _, pk := range pks {
			o, err := q.GetOperation(ctx, pk)
			there, err := found(err)
			if err != nil {
				return err
			}
			if !there || pk >= newest || pk == receipt || !p.wants(o.ToolName, o.State, o.CompletedAt.Int64, o.CompletedAt.Valid) {
				continue
			}
			r := &Operation{operation: o}
			switch err := r.bury(ctx, q, p.Now); {
			case err == nil:
				buried++
			case errors.Is(err, errDamaged):
				damaged = append(damaged, r.StatusRef())
			default:
				return err
			}
		}
		return countTombstones(ctx, q, buried)
	})
	return buried, damaged, err
}

// newestOf returns the newest operation, and the one with the newest receipt. They stay,
// because SQLite would give their keys to the next.
func newestOf(ctx context.Context, q dbgen.Querier) (operation, receipt int64, err error) {
	if operation, err = q.NewestOperation(ctx); err == nil {
		receipt, err = q.NewestReceipt(ctx)
	}
	return operation, receipt, err
}

// countTombstones adds to the number of tombstones that there should be, in the
// transaction that inserts them: nothing else would miss one.
func countTombstones(ctx context.Context, q dbgen.Querier, added int64) error {
	if added == 0 {
		return nil
	}
	n, err := q.AddTombstones(ctx, added)
	if err == nil && n != 1 {
		err = &ContractError{"", "the ledger does not say how many tombstones it has"}
	}
	return err
}

// errDamaged says that an operation is not as the runtime left it. A tombstone
// would be evidence for something that nobody knows.
var errDamaged = errors.New("the stored evidence does not hold together")

func (r *Operation) bury(ctx context.Context, q dbgen.Querier, now int64) error {
	switch err := r.readRest(ctx, q); {
	case errors.Is(err, engine.ErrContract):
		return errDamaged
	case err != nil:
		return err
	}
	o := &r.operation
	t := dbgen.Tombstone{TenantID: o.TenantID, SubjectID: o.SubjectID, ToolName: o.ToolName, IdempotencyKey: o.IdempotencyKey,
		StatusRef: o.StatusRef, State: o.State, RequestSha256: o.RequestSha256,
		CreatedAt: o.CreatedAt, CompletedAt: o.CompletedAt.Int64, PrunedAt: now}
	resolutions, err := q.ListResolutions(ctx, o.OperationPK)
	if err != nil {
		return err
	}
	t.Decisions = int64(len(resolutions))
	if r.downstream != nil {
		t.ReceiptPK = r.downstream.DownstreamPK
	}
	if r.intact() != nil || len(checkReceipts(r, nil, nil)) > 0 || len(checkTombstoneRef(&t)) > 0 || len(checkResolutions(r, resolutions)) > 0 {
		return errDamaged
	}
	tables.Tombstones.Seal(&t)
	n, err := q.InsertTombstone(ctx, dbgen.InsertTombstoneParams(t))
	if err != nil {
		return err
	}
	if n != 1 {
		return errDamaged // its scope has a tombstone, or its name
	}
	for _, v := range resolutions {
		if err := q.InsertTombstoneResolution(ctx, keptResolution(t.StatusRef, v)); err != nil {
			return err
		}
	}
	return r.remove(ctx, q, t.Decisions)
}

// keptResolution is a decision as it stands beside the tombstone.
func keptResolution(statusRef string, v dbgen.Resolution) dbgen.InsertTombstoneResolutionParams {
	row := dbgen.TombstoneResolution{StatusRef: statusRef, Seq: v.Seq, Decision: v.Decision,
		Actor: v.Actor, Reason: v.Reason, DecidedAt: v.DecidedAt}
	tables.TombstoneResolutions.Seal(&row)
	return dbgen.InsertTombstoneResolutionParams(row)
}

// remove deletes r with all that belongs to it, children first, and counts: a
// row more or less than what was read undoes the batch.
func (r *Operation) remove(ctx context.Context, q dbgen.Querier, decisions int64) error {
	o := &r.operation
	const some = -1 // or none
	count := func(there bool) int64 {
		if there {
			return 1
		}
		return 0
	}
	for _, d := range []struct {
		want   int64
		delete func() (int64, error)
	}{
		{some, func() (int64, error) { return q.DeleteAttempts(ctx, o.OperationPK) }},
		{decisions, func() (int64, error) { return q.DeleteResolutions(ctx, o.OperationPK) }},
		{some, func() (int64, error) { return q.DeleteRejectedReceipts(ctx, o.OperationPK) }},
		{count(r.local != nil), func() (int64, error) { return q.DeleteLocalReceipt(ctx, o.OperationPK) }},
		{count(r.downstream != nil), func() (int64, error) {
			return q.DeleteDownstreamReceipt(ctx, dbgen.DeleteDownstreamReceiptParams{
				TenantID: o.TenantID, SubjectID: o.SubjectID, ToolName: o.ToolName, IdempotencyKey: o.IdempotencyKey})
		}},
		{1, func() (int64, error) {
			return q.DeleteEvent(ctx, dbgen.DeleteEventParams{OperationPK: o.OperationPK, RowDigest: r.event.RowDigest})
		}},
		{1, func() (int64, error) {
			return q.DeleteOperation(ctx, dbgen.DeleteOperationParams{OperationPK: o.OperationPK, State: o.State, RowDigest: o.RowDigest})
		}},
	} {
		n, err := d.delete()
		if err != nil {
			return err
		}
		if d.want != some && n != d.want {
			return &ContractError{o.StatusRef, "it was changed while it was pruned"}
		}
	}
	return nil
}

// A StrayPage is a page of call identities, in the order of their keys.
type StrayPage struct {
	Calls []CallIdentity // those that may be pruned
	last  dbgen.CallBinding
	Rows  int
}

// A CallIdentity is what a call is bound by.
type CallIdentity struct{ row dbgen.CallBinding }

// Strays looks through the page after a given one for call identities that were
// bound before a time and whose operation is not there: it was pruned, or the
// call was refused. One that does not fit its digest stays for the audit.
func (s *Ledger) Strays(ctx context.Context, after StrayPage, before int64) (page StrayPage, err error) {
	err = s.engine.Read(ctx, func(ctx context.Context, q engine.Querier) error {
		k := after.last
		rows, err := q.ListCallBindingAges(ctx, dbgen.ListCallBindingAgesParams{Before: before, Page: PrunePage,
			TenantID: k.TenantID, SubjectID: k.SubjectID, Provider: k.Provider,
			APIFamily: k.APIFamily, ResponseID: k.ResponseID, CallID: k.CallID})
		page = StrayPage{Rows: len(rows)}
		for _, r := range rows {
			page.last = dbgen.CallBinding{TenantID: r.TenantID, SubjectID: r.SubjectID, Provider: r.Provider,
				APIFamily: r.APIFamily, ResponseID: r.ResponseID, CallID: r.CallID,
				FingerprintSha256: r.FingerprintSha256, CreatedAt: r.CreatedAt, StatusRef: r.StatusRef, RowDigest: r.RowDigest}
			if r.Prunable == 1 && bytes.Equal(r.RowDigest, tables.CallBindings.Digest(&page.last)) {
				page.Calls = append(page.Calls, CallIdentity{page.last})
			}
		}
		return err
	})
	return page, err
}

// Unbind removes call identities in one transaction. It decides again by the
// rows that are there: one whose operation has come meanwhile stays.
func (s *Ledger) Unbind(ctx context.Context, calls []CallIdentity) (removed int64, err error) {
	err = s.engine.Write(ctx, func(ctx context.Context, q engine.Querier) error {
		removed = 0
		for _, call := range calls {
			c := &call.row
			n, err := q.DeleteCallBinding(ctx, dbgen.DeleteCallBindingParams{
				TenantID: c.TenantID, SubjectID: c.SubjectID, Provider: c.Provider,
				APIFamily: c.APIFamily, ResponseID: c.ResponseID, CallID: c.CallID, RowDigest: c.RowDigest})
			if err != nil {
				return err
			}
			removed += n
		}
		return nil
	})
	return removed, err
}

// checkTombstoneRef recomputes the public name of what was pruned.
func checkTombstoneRef(t *dbgen.Tombstone) (fs findings) {
	if t.StatusRef != contract.StatusRef(contract.EffectIdentity(t.TenantID, t.SubjectID, t.ToolName, t.IdempotencyKey, t.RequestSha256)) {
		fs.add("AUDIT_TOMBSTONE", "a tombstone's status_ref does not match its scope and request")
	}
	return fs
}

// pruned is the history of an operation that is no more; nil when it never was.
func pruned(ctx context.Context, q dbgen.Querier, statusRef string) (*Life, error) {
	t, err := q.GetTombstoneByRef(ctx, statusRef)
	if ok, err := found(err); !ok {
		return nil, err
	}
	h := &Life{StatusRef: t.StatusRef, Tool: t.ToolName, State: State(t.State)}
	h.add(Moment{At: t.CreatedAt, What: MomentAccepted})
	resolutions, err := q.ListTombstoneResolutions(ctx, dbgen.ListTombstoneResolutionsParams{FromRef: statusRef, ToRef: statusRef})
	if err != nil {
		return nil, err
	}
	for _, v := range resolutions {
		h.add(Moment{At: v.DecidedAt, What: MomentResolved, Who: v.Actor, How: v.Decision, Why: v.Reason})
	}
	h.add(Moment{At: t.CompletedAt, What: MomentKind(t.State)})
	h.add(Moment{At: t.PrunedAt, What: MomentPruned})
	return h, nil
}
