package pgstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/pgquery"
)

var _ engine.Shortcut = (*pgEngine)(nil)

// Reserve implements [engine.Shortcut].
func (e *pgEngine) Reserve(ctx context.Context, rows func(pk int64) engine.Reservation) (bool, error) {
	if e.noKeys.Load() {
		return false, nil
	}
	return e.atOnce(ctx, func(ctx context.Context, conn *sql.Conn) error {
		q := pgquery.New(conn, classify)
		pk, err := takeKey(ctx, conn, q)
		if err != nil {
			if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) && refused.Code == insufficientPrivilege {
				e.noKeys.Store(true) // for good: asking costs a round trip and a line in the server's log
			}
			return &notSent{err}
		}
		next, err := q.Reserve(ctx, rows(pk))
		if err == nil {
			keepKey(conn, next)
		}
		return err
	})
}

// Commit implements [engine.Shortcut].
func (e *pgEngine) Commit(ctx context.Context, c engine.Commitment) (bool, error) {
	return e.atOnce(ctx, func(ctx context.Context, conn *sql.Conn) error {
		return pgquery.New(conn, classify).Commit(ctx, c)
	})
}

// notSent is the error of a statement that the server has not seen.
type notSent struct{ cause error }

func (n *notSent) Error() string { return n.cause.Error() }

// atOnce runs a statement that commits by itself, once. The server holds its
// commit to no statement timeout, so an answer means what that of a COMMIT means.
// From its turn on, nothing but a network that has gone dead cuts it short.
func (e *pgEngine) atOnce(ctx context.Context, do func(context.Context, *sql.Conn) error) (stored bool, doubt error) {
	if e.enter() != nil {
		return false, nil
	}
	defer e.leave()
	conn, err := e.db.Conn(ctx)
	if err != nil {
		return false, nil
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.limit)
	defer cancel()
	err = do(ctx, conn)
	var unsent *notSent
	var refused *pgconn.PgError
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, sql.ErrNoRows),
		errors.As(err, &refused) && refused.SeverityUnlocalized == "ERROR", // the server has rolled back
		errors.As(err, &unsent), errors.Is(err, driver.ErrBadConn), pgconn.SafeToRetry(err):
		return false, nil
	}
	return false, fmt.Errorf("%w: %w", engine.ErrCommitUnknown, &engine.Error{Kind: engine.ErrUnavailable, Code: "postgres", Cause: err})
}

// insufficientPrivilege is the code of a role that may not use the sequence.
const insufficientPrivilege = "42501"

// keptKey is where a connection keeps the key for its next operation. A key must
// not outlive its connection: the server that comes back after a crash, or the
// standby that follows, may give it to somebody else.
const keptKey = "toolruntime: key of the next operation"

func takeKey(ctx context.Context, conn *sql.Conn, q *pgquery.Queries) (pk int64, err error) {
	kept := false
	err = custom(conn, func(data map[string]any) {
		pk, kept = data[keptKey].(int64)
		delete(data, keptKey)
	})
	if err != nil || kept {
		return pk, err
	}
	return q.NextOperationKey(ctx)
}

func keepKey(conn *sql.Conn, pk int64) {
	_ = custom(conn, func(data map[string]any) { data[keptKey] = pk })
}

// custom gives access to what goes with a connection.
func custom(conn *sql.Conn, do func(data map[string]any)) error {
	return conn.Raw(func(c any) error {
		do(c.(*stdlib.Conn).Conn().PgConn().CustomData())
		return nil
	})
}
