package ledger

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/tables"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// ending is r's row among the endings.
func (r *Operation) ending() *dbgen.Ending {
	row := &dbgen.Ending{StatusRef: r.StatusRef()}
	tables.Endings.Seal(row)
	return row
}

// Feed finds a cursor's place, and holds it against the ledger.
func (s *Ledger) Feed(ctx context.Context, after Cursor) (*Feed, error) {
	f, err := feedAt(after)
	if err != nil {
		return nil, err
	}
	err = s.engine.Snapshot(ctx, func(ctx context.Context, q engine.Snapshot) error {
		if q.Writers != nil { // where it cannot be asked, say so now and not at the first gap
			if _, err := q.Writers(ctx); err != nil {
				return err
			}
		}
		for _, t := range []struct {
			*track
			read readEnds
		}{{&f.receipts, byReceipt}, {&f.endings, byEnding}} {
			if t.check == 0 {
				continue
			}
			rows, _, err := t.read(ctx, q, t.check-1, t.check)
			if err != nil {
				return err
			}
			if len(rows) == 0 || nameOf(rows[0].StatusRef) != t.name {
				return &toolresult.InputError{Field: "after",
					Rule: "is a cursor of another ledger, or of a later state of this one; go on from an older cursor, or from \"\""}
			}
		}
		return nil
	})
	return f, err
}

// More reads what has ended since, a page of each track; more says that there is more
// at once.
func (s *Ledger) More(ctx context.Context, f *Feed) (ends []End, more bool, err error) {
	// Once more for what is missing: mostly nobody is about to commit it, and who listens
	// is not told again, when it goes on from its cursor, what lies behind.
	for first := true; first || f.receipts.unasked() || f.endings.unasked(); first = false {
		writers, err := s.writers(ctx, f)
		if err != nil {
			return nil, false, err
		}
		// The state is changed when the snapshot is over.
		var receipts, endings []End
		err = s.engine.Snapshot(ctx, func(ctx context.Context, q engine.Snapshot) (err error) {
			if receipts, err = f.receipts.missing(ctx, q, byReceipt); err != nil {
				return err
			}
			if endings, err = f.endings.missing(ctx, q, byEnding); err != nil || !first {
				return err
			}
			more = false
			if receipts, err = f.receipts.page(ctx, q, byReceipt, receipts, &more); err == nil {
				endings, err = f.endings.page(ctx, q, byEnding, endings, &more)
			}
			return err
		})
		if err != nil {
			return nil, false, err
		}
		for _, t := range []struct {
			*track
			rows []End
		}{{&f.receipts, receipts}, {&f.endings, endings}} {
			for _, e := range t.read(t.rows, writers) {
				e.on = t.track
				ends = append(ends, e)
			}
		}
	}
	slices.SortStableFunc(ends, func(a, b End) int { return cmp.Compare(a.key, b.key) })
	return ends, more, nil
}

// writers are the transactions that may commit under a key smaller than one that is
// there, where there is something missing. It is not the snapshot that is looked at: a
// transaction that ended between that and this would be missed.
func (s *Ledger) writers(ctx context.Context, f *Feed) (writers []string, err error) {
	if len(f.receipts.gaps)+len(f.endings.gaps) == 0 {
		return nil, nil
	}
	err = s.engine.Snapshot(ctx, func(ctx context.Context, q engine.Snapshot) (err error) {
		if q.Writers != nil {
			writers, err = q.Writers(ctx)
		}
		return err
	})
	return writers, err
}

// FeedPage is how many ends of a track are read at once; a test has fewer.
var FeedPage int64 = 500

// readEnds reads ends between two keys, the first excluded; to is the key up to which it
// has read.
type readEnds func(ctx context.Context, q dbgen.Querier, after, to int64) (rows []End, upTo int64, err error)

// missing reads what is in t's gaps.
func (t *track) missing(ctx context.Context, q dbgen.Querier, read readEnds) (all []End, err error) {
	for _, g := range t.ranges() {
		for after := g.from - 1; after < g.to; {
			rows, upTo, err := read(ctx, q, after, g.to)
			if err != nil {
				return nil, err
			}
			all, after = append(all, rows...), upTo
		}
	}
	return all, nil
}

// page adds a page behind t's head to rows.
func (t *track) page(ctx context.Context, q dbgen.Querier, read readEnds, rows []End, more *bool) ([]End, error) {
	fresh, upTo, err := read(ctx, q, t.head, math.MaxInt64)
	*more = *more || upTo < math.MaxInt64
	return append(rows, fresh...), err
}

func byEnding(ctx context.Context, q dbgen.Querier, after, to int64) (rows []End, upTo int64, err error) {
	found, err := q.EndedByEnding(ctx, dbgen.EndedByEndingParams{AfterPK: after, ToPK: to, Page: FeedPage})
	for _, r := range found {
		rows = append(rows, End{key: r.EndingPK, StatusRef: r.StatusRef, Tool: r.ToolName, State: State(r.State),
			Reason: toolresult.Code(r.Reason), At: r.EndedAt})
	}
	if int64(len(found)) == FeedPage {
		to = found[FeedPage-1].EndingPK
	}
	return rows, to, err
}

// byReceipt reads what is there and what was pruned, which has left its key with its
// tombstone.
func byReceipt(ctx context.Context, q dbgen.Querier, after, to int64) (rows []End, upTo int64, err error) {
	there, err := q.EndedByReceipt(ctx, dbgen.EndedByReceiptParams{AfterPK: after, ToPK: to, Page: FeedPage})
	if err != nil {
		return nil, to, err
	}
	pruned, err := q.EndedByTombstone(ctx, dbgen.EndedByTombstoneParams{AfterPK: after, ToPK: to, Page: FeedPage})
	if int64(len(there)) == FeedPage {
		to = there[FeedPage-1].DownstreamPK
	}
	if int64(len(pruned)) == FeedPage {
		to = min(to, pruned[FeedPage-1].ReceiptPK)
	}
	for _, r := range there {
		rows = append(rows, End{key: r.DownstreamPK, StatusRef: r.StatusRef, Tool: r.ToolName, State: State(r.State),
			Reason: toolresult.Code(r.Reason), At: r.UpdatedAt, receipt: true})
	}
	for _, r := range pruned {
		rows = append(rows, End{key: r.ReceiptPK, StatusRef: r.StatusRef, Tool: r.ToolName, State: State(r.State),
			At: r.CompletedAt, receipt: true})
	}
	rows = slices.DeleteFunc(rows, func(e End) bool { return e.key > to })
	slices.SortFunc(rows, func(a, b End) int { return cmp.Compare(a.key, b.key) })
	return rows, to, err
}

// endingsOf examines every ending: that it is some operation's, as it was written.
func endingsOf(ctx context.Context, s engine.Snapshot, w *walk) (n int64, more bool, err error) {
	rows, err := s.AuditEndings(ctx, dbgen.AuditEndingsParams{AfterPK: w.ending, Page: w.page})
	for _, r := range rows {
		w.ending = r.Ending.EndingPK
		if !tables.Endings.Intact(&r.Ending) {
			w.add("AUDIT_ROW_DIGEST", r.Ending.StatusRef, "an ending's row does not fit its digest")
		}
		if r.Operations != 1 {
			w.add("AUDIT_ENDING", r.Ending.StatusRef, "an ending is no operation's")
		}
	}
	return int64(len(rows)), int64(len(rows)) == w.page, err
}

// endings brings over in which order operations have ended.
func (c *copier) endings(ctx context.Context) error {
	for after := int64(0); ; {
		page, err := copyRows(ctx, c, func(ctx context.Context, q dbgen.Querier) ([]dbgen.Ending, error) {
			return q.ListEndings(ctx, dbgen.ListEndingsParams{AfterPK: after, Page: copyPage})
		}, func(e dbgen.Ending) bool {
			return tables.Endings.Intact(&e)
		}, func(ctx context.Context, q dbgen.Querier, e dbgen.Ending) error {
			return q.CopyEnding(ctx, dbgen.CopyEndingParams(e))
		})
		if err != nil || len(page) < copyPage {
			return err
		}
		after = page[len(page)-1].EndingPK
	}
}
