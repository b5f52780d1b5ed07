package pgstore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/pgquery"
)

var _ engine.Shortcut = (*pgEngine)(nil)

// A write is a statement that stores all of its rows or none.
type write struct {
	rows        func(pk int64) engine.Reservation // of a reservation, or nil
	reservation engine.Reservation
	commitment  engine.Commitment
	stored      bool
}

// Reserve implements [engine.Shortcut].
func (e *pgEngine) Reserve(ctx context.Context, rows func(pk int64) engine.Reservation) (bool, error) {
	if e.noKeys.Load() {
		return false, nil
	}
	return e.atOnce(ctx, &write{rows: rows})
}

// Commit implements [engine.Shortcut].
func (e *pgEngine) Commit(ctx context.Context, c engine.Commitment) (bool, error) {
	return e.atOnce(ctx, &write{commitment: c})
}

func (e *pgEngine) atOnce(ctx context.Context, w *write) (stored bool, doubt error) {
	if e.enter() != nil {
		return false, nil
	}
	defer e.leave()
	err := e.writes.do(ctx, w)
	if errors.Is(err, engine.ErrCommitUnknown) {
		return false, err
	}
	return err == nil && w.stored, nil
}

// sendWrites runs statements that commit together. The server holds its commit to
// no statement timeout, so an answer means what that of a COMMIT means. From its
// turn on, nothing but a network that has gone dead cuts it short.
func (e *pgEngine) sendWrites(ctx context.Context, conn *sql.Conn, batch []*write) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.limit)
	defer cancel()
	err := native(conn, func(conn *pgx.Conn) error { return e.writeAll(ctx, conn, batch) })
	var refused *pgconn.PgError
	var unsent *notSent
	var unbuilt pgx.ErrPreprocessingBatch
	switch {
	case err == nil,
		errors.As(err, &refused) && refused.SeverityUnlocalized == "ERROR", // the server has rolled back
		errors.As(err, &unsent), errors.As(err, &unbuilt), errors.Is(err, driver.ErrBadConn), pgconn.SafeToRetry(err):
		return err
	}
	return fmt.Errorf("%w: %w", engine.ErrCommitUnknown, &engine.Error{Kind: engine.ErrUnavailable, Code: "postgres", Cause: err})
}

// notSent is the error of statements that the server has not seen.
type notSent struct{ cause error }

func (n *notSent) Error() string { return n.cause.Error() }

func (e *pgEngine) writeAll(ctx context.Context, conn *pgx.Conn, batch []*write) error {
	keys, err := e.takeKeys(ctx, conn, batch)
	if err != nil {
		return &notSent{err}
	}
	for _, w := range batch {
		if w.rows != nil {
			w.reservation, keys = w.rows(keys[0]), keys[1:]
		}
	}
	// Of two batches that write under the same scopes the one waits for the other,
	// and not each for the other.
	slices.SortFunc(batch, func(v, w *write) int { return compareScopes(v.operation(), w.operation()) })
	var statements []pgquery.Statement
	if len(batch) > 1 {
		statements = append(statements, pgquery.SetLocal("lock_timeout", e.lock))
	}
	for _, w := range batch {
		w.stored = false
		if w.rows != nil {
			statements = append(statements, pgquery.Reserve(e.path, w.reservation, func(next int64) { w.stored, keys = true, append(keys, next) }))
		} else {
			statements = append(statements, pgquery.Commit(e.path, w.commitment, func(int64) { w.stored = true }))
		}
	}
	err = pgquery.Send(ctx, conn, statements...)
	conn.PgConn().CustomData()[keptKeys] = keys
	return err
}

func (w *write) operation() *dbgen.Operation {
	if w.rows != nil {
		return &w.reservation.Operation
	}
	return &w.commitment.Operation
}

func compareScopes(o, p *dbgen.Operation) int {
	return cmp.Or(cmp.Compare(o.IdempotencyKey, p.IdempotencyKey), cmp.Compare(o.ToolName, p.ToolName),
		cmp.Compare(o.SubjectID, p.SubjectID), cmp.Compare(o.TenantID, p.TenantID))
}

// insufficientPrivilege is the code of a role that may not use the sequence.
const insufficientPrivilege = "42501"

// keptKeys is where a connection keeps keys for its next operations. A key must
// not outlive its connection: the server that comes back after a crash, or the
// standby that follows, may give it to somebody else.
const keptKeys = "toolruntime: keys of the next operations"

// takeKeys takes the keys that a connection keeps, and asks for those that the
// reservations of a batch need besides.
func (e *pgEngine) takeKeys(ctx context.Context, conn *pgx.Conn, batch []*write) ([]int64, error) {
	data := conn.PgConn().CustomData()
	keys, _ := data[keptKeys].([]int64)
	delete(data, keptKeys)
	missing := -len(keys)
	for _, w := range batch {
		if w.rows != nil {
			missing++
		}
	}
	if missing <= 0 {
		return keys, nil
	}
	more := make([]int64, missing)
	err := pgquery.Send(ctx, conn, pgquery.NextOperationKeys(e.path, more))
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) && refused.Code == insufficientPrivilege {
		e.noKeys.Store(true) // for good: asking costs a round trip and a line in the server's log
	}
	return append(keys, more...), err
}

// native gives access to the driver's connection.
func native(conn *sql.Conn, do func(*pgx.Conn) error) error {
	return conn.Raw(func(c any) error { return do(c.(*stdlib.Conn).Conn()) })
}
