package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"

	"github.com/toolruntime/toolruntime-go/internal/engine"
)

// A Compaction reports what [Compact] has done, in bytes of the ledger's file.
type Compaction struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

// Compact gives the room back to the disk that pruning has left in the ledger's file,
// which otherwise keeps it for what comes. It needs as much room as the ledger will
// have twice more, in the folder for temporary files (SQLITE_TMPDIR) and beside the
// ledger for the write-ahead log, and keeps every writer out meanwhile: they wait as
// long as their BusyTimeout, and then fail with ErrBusy. Where that cannot be, stop
// them; or make a backup, which is compact as well.
//
// It is one transaction: a crash leaves the ledger as it was. The file becomes smaller
// when no reader holds on to what was in it; until then Compact waits, up to its own
// BusyTimeout, and fails with ErrBusy, after which the next checkpoint does it.
func Compact(ctx context.Context, path string, opts *Options) (Compaction, error) {
	wait, err := opts.wait()
	var at location
	if err == nil {
		at, err = locate(path)
	}
	if err != nil {
		return Compaction{}, fmt.Errorf("sqlitestore: compact: %w", err)
	}
	if err := existing(ctx, at.real, "database"); err != nil {
		return Compaction{}, fmt.Errorf("sqlitestore: compact: %w", readOnly(at.real, err))
	}
	db := sql.OpenDB(writerConnector(at.real, wait))
	c, err := compact(ctx, db, at.real)
	if err = errors.Join(err, db.Close()); err != nil {
		return Compaction{}, fmt.Errorf("sqlitestore: compact: %w", readOnly(at.real, err))
	}
	return c, nil
}

func compact(ctx context.Context, db *sql.DB, path string) (c Compaction, err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	// What the log has of the ledger belongs to its size.
	if err := truncateLog(ctx, conn); err != nil {
		return c, err
	}
	if c.Before, err = fileSize(path); err != nil {
		return c, err
	}
	if _, err := conn.ExecContext(ctx, "VACUUM"); err != nil {
		return c, err
	}
	if err := truncateLog(ctx, conn); err != nil {
		return c, err
	}
	c.After, err = fileSize(path)
	return c, err
}

func truncateLog(ctx context.Context, conn *sql.Conn) error {
	var busy, frames, copied int64
	err := conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &copied)
	if err == nil && busy != 0 {
		err = &engine.Error{Kind: engine.ErrBusy}
	}
	return err
}

func fileSize(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, fileError(err)
	}
	return info.Size(), nil
}
