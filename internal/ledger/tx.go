package ledger

import (
	"context"
	"database/sql"
	"sync"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// lend is tx for the statements of the host, which must not touch the ledger: the
// engine keeps them from it, where it can.
func lend(tx dbgen.DBTX) *Lent {
	if g, ok := tx.(engine.Guarded); ok {
		tx = g.Guard()
	}
	return &Lent{tx: tx}
}

// A lentTx is a transaction while it is the host's, and nothing after that: the
// connection is the store's own then, and soon somebody else's.
type Lent struct {
	tx dbgen.DBTX

	mu    sync.Mutex // held by each statement while it begins
	ended bool
}

func (l *Lent) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}

func (l *Lent) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil, sql.ErrTxDone
	}
	return l.tx.ExecContext(ctx, query, args...)
}

func (l *Lent) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil, sql.ErrTxDone
	}
	return l.tx.QueryContext(ctx, query, args...)
}

func (l *Lent) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended { // a Row cannot be made, but one that has failed can be had
		over, cancel := context.WithCancel(ctx)
		cancel()
		ctx = over
	}
	return l.tx.QueryRowContext(ctx, query, args...)
}

// CommitWith runs effect and accepts its receipt in one transaction, under the
// fence of a claim. It shares its commit with nobody.
func (s *Ledger) CommitWith(ctx context.Context, c *Operation, effect func(*Lent) (toolresult.Evidence, error), clock func() int64) (r *Operation, err error) {
	defer Endings.Ring(c.StatusRef())
	fence := c.Fence()
	err = s.engine.WriteWith(ctx, func(ctx context.Context, q engine.Querier, tx dbgen.DBTX) (err error) {
		if r, err = claimed(ctx, q, c); err != nil {
			return err
		}
		if err := r.mayEnd(fence); err != nil {
			return err
		}
		lent := lend(tx)
		defer lent.end() // whatever the handler does
		e, err := effect(lent)
		lent.end()
		if err != nil {
			return err
		}
		return r.end(ctx, q, Commitment{Operation: r, Evidence: &e, Fence: fence, Now: clock()})
	})
	return r, err
}
