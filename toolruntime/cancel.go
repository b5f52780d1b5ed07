package toolruntime

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolruntime/toolruntime-go/internal/ledger"
	"github.com/toolruntime/toolruntime-go/internal/limits"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// ErrBegun says that an operation cannot be cancelled any more: an attempt of it has
// begun, and may have had its effect, or it has ended.
var ErrBegun = ledger.ErrBegun

// Cancel ends an operation that was accepted ([Runtime.Submit]) and of which no attempt
// has begun, and records who has said so, and why, forever. Nothing was done and
// nothing will be; every repetition of the call is answered with CANCELLED, and its key
// stays used. A worker that is about to claim it either does so first, and then it is
// [ErrBegun], or never. Repeating it changes nothing.
//
// actor is an identifier, and reason at most 1,000 code points. Of a call the
// status_ref is in the package of Submit, and in what [Runtime.Bind] returns.
func (rt *Runtime) Cancel(ctx context.Context, statusRef, actor, reason string) error {
	if err := limits.StatusRef(statusRef); err != nil {
		return err
	}
	if err := rt.checkActor(actor, reason); err != nil {
		return err
	}
	rec, err := rt.ledger.ByRef(ctx, statusRef, ledger.Anybodys)
	if err != nil {
		return err
	}
	if rec == nil {
		return &toolresult.InputError{Field: "status_ref", Rule: "is not known"}
	}
	s := ledger.Settlement{Operation: rec, Decision: ledger.Cancelled, Actor: actor, Reason: reason, Now: rt.now()}
	if err := limits.Time("now", s.Now); err != nil {
		return err
	}
	err = rt.ledger.Resolve(ctx, s)
	if errors.Is(err, ledger.ErrLeaseLost) { // a worker was faster by a hair
		err = ledger.ErrBegun
	}
	if err != nil {
		return fmt.Errorf("toolruntime: cancel %s: %w", statusRef, err)
	}
	return nil
}
