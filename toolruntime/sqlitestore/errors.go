package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"strconv"

	"github.com/mattn/go-sqlite3"

	"github.com/toolruntime/toolruntime-go/internal/engine"
)

var kinds = map[sqlite3.ErrNo]error{
	sqlite3.ErrBusy:       engine.ErrBusy,
	sqlite3.ErrLocked:     engine.ErrBusy,
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
	var known *engine.Error
	var e sqlite3.Error
	if errors.As(err, &known) || !errors.As(err, &e) {
		return err
	}
	kind, ok := kinds[e.Code]
	if !ok {
		kind = engine.ErrDatabase
	}
	return &engine.Error{Kind: kind, Code: "sqlite " + strconv.Itoa(int(e.ExtendedCode)), Cause: err}
}

// A classified connection gives the errors of statements their kinds where they
// occur, so that a transaction sees them, and not only its caller.
type classified struct{ *sql.Conn }

func (c classified) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	r, err := c.Conn.ExecContext(ctx, query, args...)
	return r, classify(err)
}
