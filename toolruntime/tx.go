package toolruntime

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/failpoint"
	"github.com/toolruntime/toolruntime-go/internal/ledger"
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

// runTx has a transactional effect and records it, in one transaction: both
// happen or neither does.
// The handler runs under limited, its record under ctx.
func (a *attempt) runTx(ctx, limited context.Context) (Outcome, error) {
	if a.stop == failpoint.AfterDownstreamCommit {
		return "", &toolresult.InputError{Field: "drill", Rule: "cannot fall between the effect and the receipt of a transactional tool"}
	}
	var refusal error
	done, err := a.rt.ledger.CommitWith(ctx, a.claim.Operation, func(tx *ledger.Lent) (toolresult.Evidence, error) {
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
		*a.claim.Operation = *done
		return Succeeded, nil
	case refusal == nil || errors.Is(err, engine.ErrCommitUnknown):
		return "", fmt.Errorf("toolruntime: commit %s: %w", a.effect.StatusRef, err)
	}
	// It was rolled back, whatever the handler says of it.
	nothing, ok := notDone(refusal)
	if !ok {
		nothing = &NotDoneError{Cause: refusal}
	}
	return a.nothingDone(ctx, nothing)
}
