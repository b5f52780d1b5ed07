package ledger

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/tables"
)

// CopyTo copies every row of s into to, which nobody else may use meanwhile:
// pgstore.Copy sees to that. It works in pages, in the order
// of the keys: each is inserted, read back and compared in one transaction, and
// one that is there already is compared. So a copy that was interrupted is
// continued by beginning again. At the end all is compared once more: it fails
// when s was written to while it was copied.
func (s *Ledger) CopyTo(ctx context.Context, to *Ledger, progress func(done, total int64)) (Counts, error) {
	total, err := s.Counts(ctx)
	if err != nil {
		return Counts{}, fmt.Errorf("toolruntime: copy: %w", err)
	}
	c := copier{from: s, to: to, progress: progress, total: 2 * (total.Operations + total.DownstreamReceipts + total.CallBindings)}
	for _, c.verifying = range []bool{false, true} {
		for _, step := range []func(context.Context) error{c.metadata, c.operations, c.downstream, c.calls, c.tombstones, c.endings, c.paused} {
			if err := step(ctx); err != nil {
				return Counts{}, fmt.Errorf("toolruntime: copy: %w", err)
			}
		}
	}
	copied, err := to.Counts(ctx)
	if err == nil && copied != total {
		err = errCopyDiffers
	}
	if err != nil {
		return Counts{}, fmt.Errorf("toolruntime: copy: %w", err)
	}
	return copied, nil
}

var errCopyDiffers = fmt.Errorf("%w: the copy is not as its original; was the original written to, or the copy not empty?", engine.ErrContract)

const copyPage = 200

type copier struct {
	from, to    *Ledger
	verifying   bool // insert nothing
	progress    func(done, total int64)
	done, total int64
}

// copyRows reads a page of the original, and brings it over in one transaction.
func copyRows[T any](ctx context.Context, c *copier, read func(context.Context, dbgen.Querier) ([]T, error),
	intact func(T) bool, insert func(context.Context, dbgen.Querier, T) error) ([]T, error) {
	var want []T
	err := c.from.engine.Snapshot(ctx, func(ctx context.Context, s engine.Snapshot) (err error) {
		want, err = read(ctx, s)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, row := range want {
		if !intact(row) {
			return nil, &ContractError{"", "a row of the original does not fit its digest"}
		}
	}
	err = c.to.engine.Write(ctx, func(ctx context.Context, q engine.Querier) error {
		got, err := read(ctx, q)
		if err == nil && len(got) < len(want) && !c.verifying {
			for _, row := range want[len(got):] {
				if err := insert(ctx, q, row); err != nil {
					return err
				}
			}
			got, err = read(ctx, q)
		}
		if err == nil && (len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want)) {
			err = errCopyDiffers
		}
		return err
	})
	if c.done += int64(len(want)); c.progress != nil {
		c.progress(min(c.done, c.total), c.total)
	}
	return want, err
}

// metadata brings over where the original came from.
func (c *copier) metadata(ctx context.Context) error {
	var rows []dbgen.RuntimeMetadatum
	err := c.from.engine.Read(ctx, func(ctx context.Context, q engine.Querier) (err error) {
		rows, err = q.ListMetadata(ctx)
		return err
	})
	if err != nil {
		return err
	}
	return c.to.engine.Write(ctx, func(ctx context.Context, q engine.Querier) error {
		for _, m := range rows {
			// schema_version is there already.
			if _, err := q.InsertMetadata(ctx, dbgen.InsertMetadataParams(m)); err != nil {
				return err
			}
		}
		return nil
	})
}

// A wholeOperation is an operation with all that stands under its key.
type wholeOperation struct {
	operation dbgen.Operation
	event     *dbgen.Outbox
	local     *dbgen.LocalReceipt

	rejected    []dbgen.RejectedReceipt
	attempts    []dbgen.Attempt
	resolutions []dbgen.Resolution
}

func (c *copier) operations(ctx context.Context) error {
	for after := int64(0); ; {
		page, err := copyRows(ctx, c, func(ctx context.Context, q dbgen.Querier) ([]wholeOperation, error) {
			return readWhole(ctx, q, after)
		}, wholeOperation.intact, insertWhole)
		if err != nil || len(page) < copyPage {
			return err
		}
		after = page[len(page)-1].operation.OperationPK
	}
}

func readWhole(ctx context.Context, q dbgen.Querier, after int64) ([]wholeOperation, error) {
	rows, err := q.ListOperations(ctx, dbgen.ListOperationsParams{AfterPK: after, Page: copyPage})
	if err != nil {
		return nil, err
	}
	page := make([]wholeOperation, len(rows))
	for i, o := range rows {
		w := wholeOperation{operation: o}
		if w.event, err = optionalRow(q.GetEvent(ctx, o.OperationPK)); err != nil {
			return nil, err
		}
		if w.local, err = optionalRow(q.GetLocalReceipt(ctx, o.OperationPK)); err != nil {
			return nil, err
		}
		if w.rejected, err = q.ListRejectedReceipts(ctx, o.OperationPK); err != nil {
			return nil, err
		}
		if w.attempts, err = q.ListAttempts(ctx, o.OperationPK); err != nil {
			return nil, err
		}
		if w.resolutions, err = q.ListResolutions(ctx, o.OperationPK); err != nil {
			return nil, err
		}
		page[i] = w
	}
	return page, nil
}

func optionalRow[T any](row T, err error) (*T, error) {
	if ok, err := found(err); !ok {
		return nil, err
	}
	return &row, nil
}

func (w wholeOperation) intact() bool {
	return tables.Operations.Intact(&w.operation) &&
		(w.event == nil || tables.Outbox.Intact(w.event)) &&
		(w.local == nil || tables.LocalReceipts.Intact(w.local)) &&
		!slices.ContainsFunc(w.rejected, func(r dbgen.RejectedReceipt) bool { return !tables.RejectedReceipts.Intact(&r) }) &&
		!slices.ContainsFunc(w.attempts, func(a dbgen.Attempt) bool {
			return !tables.Attempts.Intact(&a) && !unrecorded(&w.operation, a)
		}) &&
		!slices.ContainsFunc(w.resolutions, func(v dbgen.Resolution) bool { return !tables.Resolutions.Intact(&v) })
}

func insertWhole(ctx context.Context, q dbgen.Querier, w wholeOperation) error {
	err := q.CopyOperation(ctx, dbgen.CopyOperationParams(w.operation))
	if err == nil && w.event != nil {
		err = q.InsertEvent(ctx, dbgen.InsertEventParams(*w.event))
	}
	if err == nil && w.local != nil {
		err = inserted(q.InsertLocalReceipt(ctx, dbgen.InsertLocalReceiptParams(*w.local)))
	}
	for i := 0; err == nil && i < len(w.rejected); i++ {
		err = inserted(q.InsertRejectedReceipt(ctx, dbgen.InsertRejectedReceiptParams(w.rejected[i])))
	}
	for i := 0; err == nil && i < len(w.attempts); i++ {
		err = inserted(q.InsertAttempt(ctx, dbgen.InsertAttemptParams(w.attempts[i])))
	}
	for i := 0; err == nil && i < len(w.resolutions); i++ {
		err = q.InsertResolution(ctx, dbgen.InsertResolutionParams(w.resolutions[i]))
	}
	return err
}

// inserted turns a row that was not inserted into an error.
func inserted(n int64, err error) error {
	if err == nil && n != 1 {
		err = errCopyDiffers
	}
	return err
}

func (c *copier) downstream(ctx context.Context) error {
	for after := int64(0); ; {
		page, err := copyRows(ctx, c, func(ctx context.Context, q dbgen.Querier) ([]dbgen.DownstreamReceipt, error) {
			return q.ListDownstreamReceipts(ctx, dbgen.ListDownstreamReceiptsParams{AfterPK: after, Page: copyPage})
		}, func(d dbgen.DownstreamReceipt) bool {
			return tables.DownstreamReceipts.Intact(&d)
		}, func(ctx context.Context, q dbgen.Querier, d dbgen.DownstreamReceipt) error {
			return q.CopyDownstreamReceipt(ctx, dbgen.CopyDownstreamReceiptParams(d))
		})
		if err != nil || len(page) < copyPage {
			return err
		}
		after = page[len(page)-1].DownstreamPK
	}
}

func (c *copier) calls(ctx context.Context) error {
	for last := (dbgen.CallBinding{}); ; {
		page, err := copyRows(ctx, c, func(ctx context.Context, q dbgen.Querier) ([]dbgen.CallBinding, error) {
			return q.ListCallBindings(ctx, dbgen.ListCallBindingsParams{
				TenantID: last.TenantID, SubjectID: last.SubjectID, Provider: last.Provider,
				APIFamily: last.APIFamily, ResponseID: last.ResponseID, CallID: last.CallID, Page: copyPage})
		}, func(b dbgen.CallBinding) bool {
			return tables.CallBindings.Intact(&b)
		}, func(ctx context.Context, q dbgen.Querier, b dbgen.CallBinding) error {
			return inserted(q.InsertCallBinding(ctx, dbgen.InsertCallBindingParams(b)))
		})
		if err != nil || len(page) < copyPage {
			return err
		}
		last = page[len(page)-1]
	}
}

// tombstones brings over the keys that are refused for good.
func (c *copier) tombstones(ctx context.Context) error {
	for after := ""; ; {
		page, err := copyRows(ctx, c, func(ctx context.Context, q dbgen.Querier) ([]buried, error) {
			return readBuried(ctx, q, after)
		}, buried.intact, insertBuried)
		if err != nil || len(page) < copyPage {
			return err
		}
		after = page[len(page)-1].tombstone.StatusRef
	}
}

// buried is what remains of an operation that was pruned.
type buried struct {
	tombstone   dbgen.Tombstone
	resolutions []dbgen.TombstoneResolution
}

func readBuried(ctx context.Context, q dbgen.Querier, after string) ([]buried, error) {
	rows, err := q.ListTombstones(ctx, dbgen.ListTombstonesParams{After: after, Page: copyPage})
	page := make([]buried, len(rows))
	for i, t := range rows {
		page[i].tombstone = t
		if err == nil {
			page[i].resolutions, err = q.ListTombstoneResolutions(ctx,
				dbgen.ListTombstoneResolutionsParams{FromRef: t.StatusRef, ToRef: t.StatusRef})
		}
	}
	return page, err
}

func (b buried) intact() bool {
	return tables.Tombstones.Intact(&b.tombstone) &&
		!slices.ContainsFunc(b.resolutions, func(v dbgen.TombstoneResolution) bool {
			return !tables.TombstoneResolutions.Intact(&v)
		})
}

func insertBuried(ctx context.Context, q dbgen.Querier, b buried) error {
	err := inserted(q.InsertTombstone(ctx, dbgen.InsertTombstoneParams(b.tombstone)))
	if err == nil {
		err = countTombstones(ctx, q, 1)
	}
	for i := 0; err == nil && i < len(b.resolutions); i++ {
		err = q.InsertTombstoneResolution(ctx, dbgen.InsertTombstoneResolutionParams(b.resolutions[i]))
	}
	return err
}
