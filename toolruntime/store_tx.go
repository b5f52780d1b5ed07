package toolruntime

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/failpoint"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// Tx is the transaction of a transactional tool's handler, for statements on
// tables of its own. It ends with the handler, and fails from then on with
// [sql.ErrTxDone] where it can say so. It must not be ended, or used to touch the
// ledger.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// lend is tx for the statements of the host, which must not touch the ledger: the
// engine keeps them from it, where it can.
func lend(tx dbgen.DBTX) *lentTx {
	if g, ok := tx.(engine.Guarded); ok {
		tx = g.Guard()
	}
	return &lentTx{tx: tx}
}

// A lentTx is a transaction while it is the host's, and nothing after that: the
// connection is the store's own then, and soon somebody else's.
type lentTx struct {
	tx Tx

	mu    sync.Mutex // held by each statement while it begins
	ended bool
}

func (l *lentTx) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}

func (l *lentTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil, sql.ErrTxDone
	}
	return l.tx.ExecContext(ctx, query, args...)
}

func (l *lentTx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil, sql.ErrTxDone
	}
	return l.tx.QueryContext(ctx, query, args...)
}

func (l *lentTx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended { // a Row cannot be made, but one that has failed can be had
		over, cancel := context.WithCancel(ctx)
		cancel()
		ctx = over
	}
	return l.tx.QueryRowContext(ctx, query, args...)
}

// runTx has a transactional effect and records it, in one transaction: both
// happen or neither does.
// The handler runs under limited, its record under ctx.
func (a *attempt) runTx(ctx, limited context.Context) (Outcome, error) {
	if a.stop == failpoint.AfterDownstreamCommit {
		return "", &toolresult.InputError{Field: "drill", Rule: "cannot fall between the effect and the receipt of a transactional tool"}
	}
	var refusal error
	done, err := a.rt.store.commitWith(ctx, a.claim.record, func(tx Tx) (toolresult.Evidence, error) {
		answer, err := a.rt.guard(limited, func(ctx context.Context, e Effect, in input) (observed, error) {
			return a.tool.runTx(ctx, tx, e, in)
		}, a.effect, a.input)
		e := a.rt.evidence(a.tool, answer, a.effect.StatusRef)
		if err == nil {
			if violation := a.violation(answer, e); violation != "" {
				err = GiveUp(fmt.Errorf("the output contract: %s", violation))
			}
		}
		if err == nil {
			err = limited.Err()
		}
		refusal = err
		return e, err
	}, a.rt.now)
	switch {
	case err == nil:
		*a.claim.record = *done
		return Succeeded, nil
	case refusal == nil || errors.Is(err, ErrCommitUnknown):
		return "", fmt.Errorf("toolruntime: commit %s: %w", a.effect.StatusRef, err)
	}
	// It was rolled back, whatever the handler says of it.
	nothing, ok := notDone(refusal)
	if !ok {
		nothing = &NotDoneError{Cause: refusal}
	}
	return a.nothingDone(ctx, nothing)
}

// commitWith runs effect and accepts its receipt in one transaction, under the
// fence of a claim. It shares its commit with nobody.
func (s *Store) commitWith(ctx context.Context, c *record, effect func(Tx) (toolresult.Evidence, error), clock func() int64) (r *record, err error) {
	defer endings.ring(c.statusRef())
	fence := c.fence()
	err = s.engine.WriteWith(ctx, func(ctx context.Context, q dbgen.Querier, tx dbgen.DBTX) (err error) {
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
		return r.end(ctx, q, commitment{record: r, evidence: &e, fence: fence, now: clock()})
	})
	return r, err
}
