package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/toolruntime/toolruntime-go/internal/bridge"
	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// Copy copies a ledger, which must not be in use, into an empty one in
// PostgreSQL, and makes the schema first where Options.Migrate says so. Every
// row is held against its digest, read back and compared. The new ledger cannot
// be opened before the copy is complete; a copy that was interrupted is
// continued by calling Copy again. progress may be nil.
func Copy(ctx context.Context, from *toolruntime.Store, url string, opts *Options, progress func(done, total int64)) (toolruntime.Counts, error) {
	e, err := open(ctx, url, opts, true)
	if err != nil {
		return toolruntime.Counts{}, fmt.Errorf("pgstore: copy: %w", err)
	}
	to := newStore(e)
	counts, err := e.copy(ctx, from, to, progress)
	if err = errors.Join(err, to.Close()); err != nil {
		return toolruntime.Counts{}, fmt.Errorf("pgstore: copy: %w", err)
	}
	return counts, nil
}

func (e *pgEngine) copy(ctx context.Context, from, to *toolruntime.Store, progress func(done, total int64)) (toolruntime.Counts, error) {
	var none toolruntime.Counts
	err := e.Write(ctx, func(ctx context.Context, q engine.Querier) error {
		marked, err := q.InsertMetadata(ctx, dbgen.InsertMetadataParams{MetadataKey: unfinishedCopy, MetadataValue: "1"})
		if err != nil || marked == 0 {
			return err
		}
		rows, err := q.CountRows(ctx)
		if err == nil && rows != (dbgen.CountRowsRow{}) {
			err = &toolresult.InputError{Field: "the ledger to copy into", Rule: "has rows already: copy into an empty one"}
		}
		return err
	})
	if err != nil {
		return none, err
	}
	copied, err := bridge.Ledger(from).CopyTo(ctx, bridge.Ledger(to), progress)
	if err != nil {
		return none, err
	}
	// New keys go on after those of the original. Then the ledger may be used.
	const finish = `BEGIN;
SELECT pg_catalog.setval(pg_catalog.pg_get_serial_sequence('operations', 'operation_pk')::regclass, COALESCE(MAX(operation_pk), 1), COUNT(*) > 0) FROM operations;
SELECT pg_catalog.setval(pg_catalog.pg_get_serial_sequence('downstream_receipts', 'downstream_pk')::regclass, COALESCE(MAX(downstream_pk), 1), COUNT(*) > 0) FROM downstream_receipts;
SELECT pg_catalog.setval(pg_catalog.pg_get_serial_sequence('endings', 'ending_pk')::regclass, COALESCE(MAX(ending_pk), 1), COUNT(*) > 0) FROM endings;
DELETE FROM runtime_metadata WHERE metadata_key = '` + unfinishedCopy + `';
COMMIT`
	err = e.with(ctx, func(conn *sql.Conn) error {
		_, err := run(ctx, conn, finish)
		return ended(ctx, err)
	})
	return toolruntime.Counts(copied), err
}
