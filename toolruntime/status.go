package toolruntime

import (
	"context"
	"errors"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/ledger"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// QueryOptions of [Runtime.QueryStatus]. The zero value is safe.
type QueryOptions struct {
	// ExpectedRequestSHA256 is the request digest that the caller remembers; ""
	// means the digest of the call itself.
	ExpectedRequestSHA256 string
}

// QueryStatus answers what became of an operation. It never causes an effect,
// but it accepts a receipt that is there: one that an attempt has observed, or
// one that the downstream remembers (Tool.Find).
//
// c is the query's own call: the proposal and the idempotency key are those of
// the call that it asks about, and the call id and response id are new, as
// [toolresult.Call.StatusQuery] makes them. It is how a model's own question for a
// status is answered, under the contract. A host that wants to know what became of a
// call asks [Runtime.Status], with the call as it was.
func (rt *Runtime) QueryStatus(ctx context.Context, p toolresult.Principal, c toolresult.Call, statusRef string, opts *QueryOptions) (*toolresult.Package, error) {
	r, current, answer, err := rt.asked(ctx, p, c)
	if err != nil || answer != nil {
		return answer, err
	}
	if !contract.ValidStatusRef(statusRef) {
		return r.fail(toolresult.NotFound), nil
	}
	rec, err := rt.ledger.ByRef(ctx, statusRef, func(rec *ledger.Operation) bool {
		owner := rec.Owner()
		return owner.TenantID == p.TenantID && owner.SubjectID == p.SubjectID
	})
	if err != nil {
		return nil, err
	}
	if rec == nil {
		return r.fail(toolresult.NotFound), nil
	}
	err = rt.ledger.BindCall(ctx, ledger.Reservation{Bound: r.bound, Purpose: toolresult.PurposeQueryStatus, Now: r.now, StatusRef: statusRef})
	if errors.Is(err, ledger.ErrCallIDConflict) {
		return r.fail(toolresult.CallIDConflict), nil
	}
	if err != nil {
		return nil, err
	}
	expected := r.bound.RequestSHA256()
	if opts != nil && opts.ExpectedRequestSHA256 != "" {
		expected = opts.ExpectedRequestSHA256
	}
	if expected != r.bound.RequestSHA256() || rec.ToolName() != c.Name ||
		rec.IdempotencyKey() != c.IdempotencyKey || rec.Conflicts(r.bound) {
		return r.failAt(toolresult.StatusConflict, statusRef), nil
	}
	if err := rt.trust(ctx, r.tool, rec, r.bound, current); err != nil {
		return nil, err
	}
	if rec, err = rt.reconcile(ctx, &r, rec, current); err != nil {
		return nil, err
	}
	if rec == nil {
		return r.fail(toolresult.NotFound), nil // pruned meanwhile
	}
	return rt.standing(&r, rec, toolresult.ReceiptReconciled)
}

// asked screens the call of a question about an operation: of a write, under a key.
func (rt *Runtime) asked(ctx context.Context, p toolresult.Principal, c toolresult.Call) (request, toolresult.Principal, *toolresult.Package, error) {
	r, err := rt.accept(p, c)
	if err != nil {
		return r, p, nil, err
	}
	if r.tool != nil && r.tool.spec.Risk() == Read {
		return r, p, r.fail(toolresult.UnknownTool), nil
	}
	if err := rt.reversion(ctx, &r); err != nil {
		return r, p, nil, err
	}
	current, answer, err := rt.screen(ctx, &r)
	if err == nil && answer == nil && c.IdempotencyKey == "" {
		answer = r.fail(toolresult.IdempotencyKeyRequired)
	}
	return r, current, answer, err
}

// reconcile accepts a receipt for an unfinished operation, if there is one.
func (rt *Runtime) reconcile(ctx context.Context, r *request, rec *ledger.Operation, p toolresult.Principal) (*ledger.Operation, error) {
	if s := rec.State(); s != ledger.Pending && s != ledger.Processing {
		return rec, nil
	}
	c := ledger.Commitment{Operation: rec, Now: r.now}
	switch {
	case rec.Observed():
		if err := rec.CheckObserved(r.tool.spec, r.bound); err != nil {
			return nil, err
		}
	case r.tool.find != nil && rec.State() == ledger.Processing:
		e, ok := rt.recall(ctx, r, rec, p)
		if !ok {
			return rec, nil
		}
		c.Evidence = &e
	default:
		return rec, nil
	}
	var done *ledger.Operation
	free := context.WithoutCancel(ctx)
	err := rt.insist(func() (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, DefaultLease)
	}, "reconcile", rec.StatusRef(), func(try try) error {
		err := try(func() (err error) {
			done, err = rt.ledger.Commit(free, c)
			return err
		})
		if c.Evidence == nil || !errors.Is(err, ledger.ErrLeaseLost) {
			return err
		}
		// Whoever reviews it should know what the downstream remembers.
		return errors.Join(err, try(func() error {
			return rt.ledger.KeepLate(free, rec, storable(*c.Evidence), "it was found when the operation had ended otherwise", r.now)
		}))
	})
	if errors.Is(err, ledger.ErrLeaseLost) {
		// It has failed or gone into review since it was read: that is the answer.
		done, err = rt.ledger.ByRef(ctx, rec.StatusRef(), ledger.Anybodys)
		if err == nil && done != nil {
			err = rt.trust(ctx, r.tool, done, r.bound, p)
		}
	}
	return done, err
}

// recall asks the downstream whether it remembers the effect. An answer that
// breaks the output contract is for the worker to judge, who holds the claim.
func (rt *Runtime) recall(ctx context.Context, r *request, rec *ledger.Operation, p toolresult.Principal) (toolresult.Evidence, bool) {
	ctx, cancel := context.WithTimeout(ctx, r.tool.timeout)
	defer cancel()
	a := attempt{rt: rt, tool: r.tool, clearance: clearance{bound: r.bound, effect: effectOf(rec, r.bound, p)}}
	answer, found, err := rt.ask(ctx, r.tool, a.effect, r.input)
	if err != nil {
		rt.log.WarnContext(ctx, "find failed", "status_ref", rec.StatusRef(), "tool", a.effect.Tool, "error", err)
	}
	if err != nil || !found {
		return toolresult.Evidence{}, false
	}
	e := rt.evidence(r.tool, answer, rec.StatusRef())
	return e, a.violation(answer, e) == ""
}
