package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

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
	// Progress is called from time to time with how many pages were copied and
	// how many there are.
	Progress func(done, total int64)
}

// backupPages is how many pages are copied between two looks at the context.
const backupPages = 2048

// Backup copies the ledger in the file from into the new file to, while other
// processes go on writing: the copy is the ledger of one moment. It is written
// under another name in to's folder, audited as a whole, flushed to the disk,
// and only then named; so what has the name is a good backup, one file without a
// write-ahead log that [Open] opens. A file that exists is never overwritten.
//
// It returns the audit of the copy. One that does not pass is an error that
// matches toolruntime.ErrContract, and there is no backup. While it copies, the
// write-ahead log of the original cannot shrink.
func Backup(ctx context.Context, from, to string, opts *BackupOptions) (*toolruntime.AuditReport, error) {
	if opts == nil {
		opts = &BackupOptions{}
	}
	report, err := backup(ctx, from, to, opts)
	if err != nil {
		return report, fmt.Errorf("sqlitestore: backup: %w", readOnly(from, err))
	}
	return report, nil
}

func backup(ctx context.Context, from, to string, opts *BackupOptions) (report *toolruntime.AuditReport, err error) {
	for _, path := range []string{from, to} {
		if _, err := check(path, nil); err != nil {
			return nil, err
		}
	}
	if err := backupSource(ctx, from); err != nil {
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

// backupSource checks that there is a ledger of this version at path.
func backupSource(ctx context.Context, path string) error {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return &toolresult.InputError{Field: "from", Rule: "must be the file of a ledger"}
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

// copyPages copies the pages of one snapshot.
func copyPages(ctx context.Context, from, to string, progress func(done, total int64)) (err error) {
	source, err := connect(readerConnector(from, DefaultBusyTimeout))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	// An open transaction keeps the snapshot from one step to the next. Without
	// it the copy would begin again whenever somebody writes.
	if _, err := source.Exec("BEGIN; SELECT COUNT(*) FROM runtime_metadata", nil); err != nil {
		return err
	}
	// Nobody uses the target yet, and it is flushed when it is whole.
	target, err := connect(&connector{dsn: dsn(to, url.Values{"_synchronous": {"OFF"}})})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	b, err := target.Backup("main", source, "main")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	for done := false; !done; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if done, err = b.Step(backupPages); err != nil {
			return err
		}
		if progress != nil {
			progress(int64(b.PageCount()-b.Remaining()), int64(b.PageCount()))
		}
	}
	return nil
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
