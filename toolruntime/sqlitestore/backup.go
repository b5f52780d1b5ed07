package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// BackupOptions of [Backup]. The zero value is safe.
type BackupOptions struct {
	// Profiles are the provider profiles that the service has registered beside
	// those of the contract; the audit does not know their calls otherwise.
	Profiles []toolresult.Profile
	// Progress is called from time to time with about how many pages were copied
	// and how many there are to copy, by the goroutine that has called Backup.
	Progress func(done, total int64)
}

// backupTick is how often a backup says how far it is.
const backupTick = 100 * time.Millisecond

// Backup copies the ledger in the file from into the new file to, while other
// processes go on writing: the copy is the ledger of one moment. It is written
// under another name in to's folder, audited as a whole, flushed to the disk,
// and only then named; so what has the name is a good backup, one file without a
// write-ahead log that [Open] opens, and without the room that pruning has left. A
// file that exists is never overwritten.
//
// It returns the audit of the copy. One that does not pass is an error that
// matches toolruntime.ErrContract, and there is no backup. While it copies, the
// write-ahead log of the original cannot shrink.
func Backup(ctx context.Context, from, to string, opts *BackupOptions) (*toolruntime.AuditReport, error) {
	if opts == nil {
		opts = &BackupOptions{}
	}
	source, err := locate(from)
	var target location
	if err == nil {
		target, err = locate(to)
	}
	if err != nil {
		return nil, fmt.Errorf("sqlitestore: backup: %w", err)
	}
	report, err := backup(ctx, source.real, target.name, opts)
	if err != nil {
		return report, fmt.Errorf("sqlitestore: backup: %w", readOnly(source.real, err))
	}
	return report, nil
}

func backup(ctx context.Context, from, to string, opts *BackupOptions) (report *toolruntime.AuditReport, err error) {
	if err := existing(ctx, from, "from"); err != nil {
		return nil, err
	}
	if err := unused(to); err != nil {
		return nil, err
	}
	// Readable by its owner alone, as the ledger is.
	f, err := os.CreateTemp(filepath.Dir(to), "."+filepath.Base(to)+".*.tmp")
	if err != nil {
		return nil, fileError(err)
	}
	temporary := f.Name()
	defer func() {
		for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
			if removeErr := os.Remove(temporary + suffix); !errors.Is(removeErr, fs.ErrNotExist) {
				err = errors.Join(err, removeErr)
			}
		}
	}()
	if err := f.Close(); err != nil {
		return nil, fileError(err)
	}
	if err := copyPages(ctx, from, temporary, opts.Progress); err != nil {
		return nil, err
	}
	if report, err = auditCopy(ctx, temporary, opts.Profiles); err != nil {
		return report, err
	}
	return report, publish(temporary, to)
}

// existing checks that there is a ledger of this version at path.
func existing(ctx context.Context, path, field string) error {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return &toolresult.InputError{Field: field, Rule: "must be the file of a ledger"}
	}
	ms, err := migrations()
	if err != nil {
		return err
	}
	state, err := peek(ctx, path, DefaultBusyTimeout, ms)
	if err != nil {
		return err
	}
	return state.refusal(ms, "run `toolruntime migrate`")
}

// unused checks that neither path nor what SQLite would take for its log exists:
// a log that was left there would be played into the copy.
func unused(path string) error {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if _, err := os.Lstat(path + suffix); !errors.Is(err, fs.ErrNotExist) {
			return errBackupExists
		}
	}
	return nil
}

var errBackupExists = &toolresult.InputError{Field: "to", Rule: "must not exist, nor a -wal, -shm or -journal file beside it"}

// copyPages copies one snapshot into the empty file to.
func copyPages(ctx context.Context, from, to string, progress func(done, total int64)) (err error) {
	// Not query_only, by which SQLite would not write the copy either.
	source, err := connect(newConnector(from, DefaultBusyTimeout, url.Values{"mode": {"ro"}}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	pages, err := usedPages(source)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		_, err := source.ExecContext(ctx, "VACUUM INTO ?", []driver.NamedValue{{Ordinal: 1, Value: to}})
		done <- err
	}()
	tick := time.NewTicker(backupTick)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			if err == nil && progress != nil {
				progress(pages, pages)
			}
			return err
		case <-tick.C:
			if info, err := os.Stat(to); err == nil && progress != nil {
				progress(min(info.Size()/pageSize, pages), pages)
			}
		}
	}
}

// pageSize is that of a ledger: SQLite's default.
const pageSize = 4096

// usedPages is how many pages of a database hold something.
func usedPages(c *sqlite3.SQLiteConn) (int64, error) {
	all, err := pragma(c, "page_count")
	if err != nil {
		return 0, err
	}
	free, err := pragma(c, "freelist_count")
	if err != nil {
		return 0, err
	}
	return all.(int64) - free.(int64), nil
}

func connect(c *connector) (*sqlite3.SQLiteConn, error) {
	conn, err := c.Connect(context.Background())
	if err != nil {
		return nil, err
	}
	return conn.(*sqlite3.SQLiteConn), nil
}

// auditCopy audits the copy as a ledger whose tools nobody knows. Closing it
// leaves one file.
func auditCopy(ctx context.Context, path string, profiles []toolresult.Profile) (report *toolruntime.AuditReport, err error) {
	store, err := Open(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	rt, err := toolruntime.New(store, &toolruntime.Options{Profiles: profiles})
	if err != nil {
		return nil, err
	}
	if report, err = rt.Audit(ctx, nil); err != nil {
		return nil, err
	}
	if !report.Passed {
		return report, fmt.Errorf("%w: the copy does not pass the audit; audit the original", engine.ErrContract)
	}
	return report, nil
}

// publish flushes the copy and gives it its name. A link, unlike a renaming,
// never replaces what somebody has put there meanwhile.
func publish(temporary, to string) error {
	if _, err := os.Stat(temporary + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: the copy's write-ahead log is still there", engine.ErrDatabase)
	}
	if err := flush(temporary); err != nil {
		return err
	}
	if err := unused(to); err != nil {
		return err
	}
	err := os.Link(temporary, to)
	switch {
	case errors.Is(err, fs.ErrExist):
		return errBackupExists
	case err != nil:
		// A file system without links.
		if err := os.Rename(temporary, to); err != nil {
			return fileError(err)
		}
	}
	return flush(filepath.Dir(to))
}

// flush waits until a file, or the names in a folder, are on the disk.
func flush(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fileError(err)
	}
	return fileError(errors.Join(f.Sync(), f.Close()))
}
