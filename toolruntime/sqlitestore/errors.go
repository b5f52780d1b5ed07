package sqlitestore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/mattn/go-sqlite3"

	"github.com/toolruntime/toolruntime-go/internal/engine"
)

var kinds = map[sqlite3.ErrNo]error{
	sqlite3.ErrBusy:       engine.ErrBusy,
	sqlite3.ErrLocked:     engine.ErrBusy,
	sqlite3.ErrProtocol:   engine.ErrBusy, // too many who start to read or write at once
	sqlite3.ErrConstraint: engine.ErrConstraint,
	sqlite3.ErrMismatch:   engine.ErrConstraint,
	sqlite3.ErrFull:       engine.ErrFull,
	sqlite3.ErrReadonly:   engine.ErrReadOnly,
	sqlite3.ErrCorrupt:    engine.ErrCorrupt,
	sqlite3.ErrNotADB:     engine.ErrCorrupt,
	sqlite3.ErrCantOpen:   engine.ErrCannotOpen,
	sqlite3.ErrPerm:       engine.ErrCannotOpen,
}

// classify gives a driver's error its kind. Other errors pass unchanged.
func classify(err error) error {
	if err == nil {
		return nil // before there is anything to allocate for: every statement ends here
	}
	var known *engine.Error
	var e sqlite3.Error
	switch {
	case errors.As(err, &known):
		return err
	case engine.Quotes(err):
		return engine.ErrMistyped
	case !errors.As(err, &e):
		return err
	}
	kind, ok := kinds[e.Code]
	switch {
	case noRoom(e.SystemErrno):
		kind = engine.ErrFull
	case !ok:
		kind = engine.ErrDatabase
	}
	return &engine.Error{Kind: kind, Code: "sqlite " + strconv.Itoa(int(e.ExtendedCode)), Cause: err}
}

// fileError gives an error of the file system its kind. Its text, which has the
// path, is not repeated.
func fileError(err error) error {
	kind := engine.ErrCannotOpen
	var errno syscall.Errno
	switch {
	case err == nil:
		return nil
	case errors.As(err, &errno) && noRoom(errno):
		kind = engine.ErrFull
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		kind = engine.ErrReadOnly
	}
	return &engine.Error{Kind: kind, Cause: err}
}

// noRoom reports whether a system call has failed for want of room: on the disk, of
// a quota, or of the largest size that a file may have.
func noRoom(errno syscall.Errno) bool {
	return errno == syscall.ENOSPC || errno == syscall.EDQUOT || errno == syscall.EFBIG
}

// readOnly tells a ledger that cannot be written from one that cannot be opened:
// SQLite says of both that it cannot open a file, when that is the write-ahead
// log beside the ledger. The ledger itself it opens to read.
func readOnly(path string, err error) error {
	err = classify(err)
	if !errors.Is(err, engine.ErrCannotOpen) {
		return err
	}
	f, fileErr := os.CreateTemp(filepath.Dir(path), ".probe.*.tmp")
	if fileErr == nil {
		_ = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if fileErr = fileError(fileErr); errors.Is(fileErr, engine.ErrReadOnly) {
		return fileErr
	}
	return err
}
