package engine

import (
	"context"
	"database/sql"
	"errors"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
)

// ErrRepeat: the transaction of the host's in which this has happened must be rolled
// back, and may be repeated as a whole.
var ErrRepeat = errors.New("roll the transaction back, and repeat the whole of it")

// A HostTx is a transaction that the host has begun and will end. Tx is known to the
// engine that joins it.
type HostTx struct{ Tx any }

// A Joiner is what an engine may be besides: it runs a unit in a transaction of the
// host's.
type Joiner interface {
	// Join runs unit in tx. Unlike a transaction of the engine's own, tx may see what
	// others commit meanwhile, and a row that was there may be gone in the next
	// statement: a unit has its reasons in its statements, or finds them there. It may
	// run more than once.
	//
	// Whatever becomes of unit, the host's session is as it was afterwards, and where it
	// fails nothing of it is left: the transaction can go on, unless the error matches
	// ErrRepeat. What a nil means becomes true when the host commits.
	Join(ctx context.Context, tx HostTx, unit Unit) error
}

// Guarded is a transaction that an engine gives to a UnitWith, where it can keep
// statements of the host's from what is the store's.
type Guarded interface{ Guard() dbgen.DBTX }

// A Checked is a transaction that code of the host's takes part in, and may have ended
// past the store. Each further statement would be a transaction of its own: so there is
// none.
type Checked struct {
	dbgen.DBTX
	// Over is why there is no transaction any more; nil while there is one.
	Over func() error
}

// context is ctx while there is a transaction; otherwise one that has ended.
func (c Checked) context(ctx context.Context) (context.Context, error) {
	err := c.Over()
	if err == nil {
		return ctx, nil
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	return over, err
}

// ExecContext implements [dbgen.DBTX].
func (c Checked) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	ctx, err := c.context(ctx)
	if err != nil {
		return nil, err
	}
	return c.DBTX.ExecContext(ctx, query, args...)
}

// QueryContext implements [dbgen.DBTX].
func (c Checked) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	ctx, err := c.context(ctx)
	if err != nil {
		return nil, err
	}
	return c.DBTX.QueryContext(ctx, query, args...)
}

// QueryRowContext implements [dbgen.DBTX]. Its row can hold no other error than that the
// context has ended.
func (c Checked) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	ctx, _ = c.context(ctx)
	return c.DBTX.QueryRowContext(ctx, query, args...)
}
