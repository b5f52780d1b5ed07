package pgstore

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A kept connection is that of a transaction in which code of the host's runs. Where
// that has ended it, against the rules, each further statement would be a transaction
// of its own: so there is none.
type kept struct{ *sql.Conn }

// errOver says that code of the host's has ended the transaction.
var errOver error = &toolresult.InputError{Field: "tx", Rule: "must not be ended by whom it was lent to: " +
	"what was done before is as that has left it, and nothing was done after it"}

// idle reports whether there is no transaction on a connection that is there.
func idle(conn *sql.Conn) (yes bool) {
	_ = conn.Raw(func(c any) error {
		pg := c.(*stdlib.Conn).Conn().PgConn()
		yes = !pg.IsClosed() && pg.TxStatus() == 'I'
		return nil
	})
	return yes
}

// context is ctx while there is a transaction; otherwise one that has ended.
func (k kept) context(ctx context.Context) (context.Context, error) {
	if !idle(k.Conn) {
		return ctx, nil
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	return over, errOver
}

func (k kept) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	ctx, err := k.context(ctx)
	if err != nil {
		return nil, err
	}
	return k.Conn.ExecContext(ctx, query, args...)
}

func (k kept) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	ctx, err := k.context(ctx)
	if err != nil {
		return nil, err
	}
	return k.Conn.QueryContext(ctx, query, args...)
}

func (k kept) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	ctx, _ = k.context(ctx)
	return k.Conn.QueryRowContext(ctx, query, args...)
}
