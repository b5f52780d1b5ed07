package toolruntime

import (
	"context"
	"errors"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/ledger"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// Status answers what became of a call that was dispatched or submitted before, with
// the call as it was. It never causes an effect and needs no approval; like
// [Runtime.QueryStatus] it accepts a receipt that is there, one that an attempt has
// observed or one that the downstream remembers (Tool.Find).
//
// The package answers c itself, under c's own ids. It is the one that a repeated
// [Runtime.Dispatch] would give, but for two codes: ACCEPTED while no attempt has
// begun, and NOT_FOUND where nothing was ever accepted under the key.
func (rt *Runtime) Status(ctx context.Context, p toolresult.Principal, c toolresult.Call) (*toolresult.Package, error) {
	r, current, answer, err := rt.asked(ctx, p, c)
	if err != nil || answer != nil {
		return answer, err
	}
	answer, _, err = rt.became(ctx, &r, current, true)
	return answer, err
}

// Await waits until a call that was dispatched or submitted before has ended or is in
// review, or until ctx ends, and returns what [Runtime.Status] says of it then. It asks
// the downstream nothing. What this process ends it sees at once; what another does,
// within two seconds.
func (rt *Runtime) Await(ctx context.Context, p toolresult.Principal, c toolresult.Call) (*toolresult.Package, error) {
	for {
		r, current, answer, err := rt.asked(ctx, p, c) // again, too: a wait can be long
		if err != nil || answer != nil {
			return answer, err
		}
		answer, rec, err := rt.became(ctx, &r, current, false)
		if err != nil || rec == nil || !rec.Open() {
			return answer, err
		}
		err = rt.watch(ctx, rec.StatusRef(), func() (bool, error) {
			now, err := rt.ledger.ByScope(ctx, r.bound)
			return now != nil && now.Open(), err
		})
		if err != nil {
			return nil, err
		}
	}
}

// Wait returns when an operation has ended or is in review, or when ctx ends: for who
// has its status_ref alone, such as an operator. Who has the call uses [Runtime.Await],
// which returns the answer.
func (rt *Runtime) Wait(ctx context.Context, statusRef string) error {
	return rt.watch(ctx, statusRef, func() (bool, error) {
		rec, err := rt.ledger.ByRef(ctx, statusRef, ledger.Anybodys)
		if err == nil && rec == nil {
			err = &toolresult.InputError{Field: "status_ref", Rule: "is not known"}
		}
		return rec != nil && rec.Open(), err
	})
}

// became is the answer to a call that has been made, and the operation that it is
// about; nil where there is none. If it may, it accepts a receipt first.
func (rt *Runtime) became(ctx context.Context, r *request, current toolresult.Principal, reconcile bool) (*toolresult.Package, *ledger.Operation, error) {
	r.tellAccepted = true
	seen, err := rt.ledger.Lookup(ctx, r.bound, toolresult.PurposeDispatch)
	rec := seen.Current
	switch {
	case err != nil:
		return nil, nil, err
	case seen.Bound && !seen.Same:
		return r.fail(toolresult.CallIDConflict), nil, nil
	case rec == nil && seen.Pruned:
		return r.fail(toolresult.IdempotencyKeyExpired), nil, nil
	case rec == nil:
		return r.fail(toolresult.NotFound), nil, nil
	}
	if !seen.Bound { // another call for the same: its identity is taken from now on
		err := rt.ledger.BindCall(ctx, ledger.Reservation{Bound: r.bound, Purpose: toolresult.PurposeDispatch, Now: r.now, StatusRef: rec.StatusRef()})
		if errors.Is(err, ledger.ErrCallIDConflict) {
			return r.fail(toolresult.CallIDConflict), nil, nil
		} else if err != nil {
			return nil, nil, err
		}
	}
	if rec.Conflicts(r.bound) {
		return r.fail(toolresult.IdempotencyConflict), nil, nil
	}
	d := toolresult.LocalReplay
	if reconcile && rec.Open() { // then with its event and what was observed of it
		d = toolresult.ReceiptReconciled
		if rec, err = rt.ledger.ByRef(ctx, rec.StatusRef(), ledger.Anybodys); err != nil {
			return nil, nil, err
		}
		if rec == nil {
			return r.fail(toolresult.IdempotencyKeyExpired), nil, nil // pruned meanwhile
		}
	}
	if err := rt.trust(ctx, r.tool, rec, r.bound, current); err != nil {
		return nil, nil, err
	}
	if d == toolresult.ReceiptReconciled {
		if rec, err = rt.reconcile(ctx, r, rec, current); err != nil {
			return nil, nil, err
		}
		if rec == nil {
			return r.fail(toolresult.IdempotencyKeyExpired), nil, nil
		}
	}
	answer, err := rt.standing(r, rec, d)
	return answer, rec, err
}

// How long a wait rests before it looks at the ledger, where another process may have
// ended the operation: longer each time.
const (
	firstLook = 50 * time.Millisecond
	lastLook  = 2 * time.Second
)

// watch returns when goesOn says that an operation does not, or fails. It looks when
// this process has ended the operation, and from time to time.
func (rt *Runtime) watch(ctx context.Context, statusRef string, goesOn func() (bool, error)) error {
	ended, leave := ledger.Endings.Expect(statusRef)
	defer leave()
	for rest := firstLook; ; rest = min(2*rest, lastLook) {
		if on, err := goesOn(); err != nil || !on {
			return err
		}
		if err := sleep(ctx, rest, ended); err != nil {
			return err
		}
	}
}

// sleep waits for d, or until somebody wakes it. It fails when ctx has ended.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-wake:
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}
