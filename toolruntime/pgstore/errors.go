package pgstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/pgquery"
)

// kinds are those of SQLSTATE codes, and of classes of codes where the code
// itself is not listed.
var kinds = map[string]error{
	"08":    engine.ErrUnavailable, // connection exception
	"22":    engine.ErrConstraint,  // data exception: a value that the column cannot hold
	"23":    engine.ErrConstraint,  // integrity constraint violation
	"25006": engine.ErrReadOnly,    // read-only transaction: a standby
	"25P03": engine.ErrUnavailable, // idle in transaction: the session was ended
	"25P04": engine.ErrUnavailable, // transaction timeout: the session was ended
	"26000": engine.ErrUnavailable, // a prepared statement is missing: another session answers
	"28":    engine.ErrCannotOpen,  // authorization
	"3D":    engine.ErrCannotOpen,  // no such database
	"40001": engine.ErrBusy,        // serialization failure
	"40002": engine.ErrConstraint,  // integrity constraint violation at the commit
	"40P01": engine.ErrBusy,        // deadlock
	"42501": engine.ErrCannotOpen,  // privilege
	"42P05": engine.ErrUnavailable, // a prepared statement is there already: the same
	"53100": engine.ErrFull,
	"53200": engine.ErrDatabase,    // out of memory: nobody holds anything, and no space on a disk would help
	"53300": engine.ErrUnavailable, // too many connections
	"54000": engine.ErrConstraint,  // a key longer than an index can hold
	"55006": engine.ErrBusy,        // object in use
	"55P03": engine.ErrBusy,        // lock timeout
	"57014": engine.ErrBusy,        // statement timeout
	"57P01": engine.ErrUnavailable, // shutting down
	"57P02": engine.ErrUnavailable, // crashed
	"57P03": engine.ErrUnavailable, // starting up
	"57P04": engine.ErrCannotOpen,  // the database was dropped
	"57P05": engine.ErrUnavailable, // idle session
	"P0001": engine.ErrConstraint,  // a trigger of the operator refused the row
	"XX001": engine.ErrCorrupt,
	"XX002": engine.ErrCorrupt,
}

// classify gives a driver's error its kind. Other errors pass unchanged.
func classify(err error) error {
	var known *engine.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	var e *pgconn.PgError
	if errors.As(err, &e) && len(e.Code) == 5 {
		kind, ok := kinds[e.Code]
		if !ok {
			kind, ok = kinds[e.Code[:2]]
		}
		if !ok {
			kind = engine.ErrDatabase
		}
		return &engine.Error{Kind: kind, Code: "postgres " + e.Code, Cause: err}
	}
	if lost(err) || errors.Is(err, pgquery.ErrElsewhere) {
		return &engine.Error{Kind: engine.ErrUnavailable, Code: "postgres", Cause: err}
	}
	var scan pgx.ScanArgError
	if errors.As(err, &scan) || engine.Quotes(err) {
		return engine.ErrMistyped
	}
	return err
}

// fromDriver gives every error of a statement a kind. One that the driver has no type
// for quotes values: that of a value which is not as its column or parameter is.
func fromDriver(err error) error {
	err = classify(err)
	for _, known := range []error{sql.ErrNoRows, engine.ErrDatabase, engine.ErrContract, context.Canceled, context.DeadlineExceeded} {
		if err == nil || errors.Is(err, known) {
			return err
		}
	}
	return &engine.Error{Kind: engine.ErrDatabase, Code: "postgres", Cause: err}
}

// lost reports whether an error is that of a connection rather than of the
// server. An expired context is neither: it is the caller's.
func lost(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var network net.Error
	var connect *pgconn.ConnectError
	return errors.As(err, &network) || errors.As(err, &connect) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone)
}

// useless reports whether an error will come again on the same connection, and may
// not on another: the server has become a standby, whose successor may be found, or
// the session is not the one that was made.
func useless(err error) bool {
	c := code(err)
	return errors.Is(err, engine.ErrReadOnly) || errors.Is(err, pgquery.ErrElsewhere) || c == "26000" || c == "42P05"
}

// drop keeps a connection out of the pool.
func drop(conn *sql.Conn) { _ = conn.Raw(func(any) error { return driver.ErrBadConn }) }

// code is the SQLSTATE of an error, or "".
func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
