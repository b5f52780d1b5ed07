package toolruntime

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/toolruntime/toolruntime-go/toolresult"
)

// ErrCallback says that a callback of the host has panicked or ended its
// goroutine. Nothing was done by it, unless it was a tool's Run.
var ErrCallback = errors.New("a callback of the host has panicked or ended its goroutine")

// contain is deferred around a callback: its panic is an error there.
func (rt *Runtime) contain(ctx context.Context, what string, err *error) {
	if r := recover(); r != nil {
		rt.log.ErrorContext(ctx, "callback panicked", "callback", what, "stack", string(debug.Stack()))
		*err = fmt.Errorf("toolruntime: %s: %w", what, ErrCallback)
	}
}

// ask asks a callback of the host. Its context ends after limit, and a panic of it
// is an error.
func ask[T any](ctx context.Context, rt *Runtime, what string, limit time.Duration, callback func(context.Context) (T, error)) (v T, err error) {
	p := &patience{Context: ctx, limit: limit}
	defer p.end()
	defer rt.contain(ctx, what, &err)
	v, err = callback(p)
	if err != nil {
		err = fmt.Errorf("toolruntime: %s: %w", what, err)
	}
	return v, err
}

// A patience is a context with a timeout that begins when somebody looks at it:
// most callbacks answer from memory, and do not.
type patience struct {
	context.Context
	limit  time.Duration
	once   sync.Once
	timed  context.Context
	cancel context.CancelFunc
}

func (p *patience) begin() context.Context {
	p.once.Do(func() { p.timed, p.cancel = context.WithTimeout(p.Context, p.limit) })
	return p.timed
}

// end frees what there is. Whoever looks afterwards sees that it has ended.
func (p *patience) end() {
	p.once.Do(func() { p.timed, p.cancel = ended, func() {} })
	p.cancel()
}

var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Deadline implements [context.Context].
func (p *patience) Deadline() (time.Time, bool) { return p.begin().Deadline() }

// Done implements [context.Context].
func (p *patience) Done() <-chan struct{} { return p.begin().Done() }

// Err implements [context.Context].
func (p *patience) Err() error { return p.begin().Err() }

// aside runs f in a goroutine of its own and waits for it until limit: a callback
// in it that hangs, or ends its goroutine, holds up nobody. f must not write what
// others read.
func aside[T any](ctx context.Context, limit time.Duration, f func(context.Context) (T, error)) (T, error) {
	type answer struct {
		v   T
		err error
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done := make(chan answer, 1)
	go func() {
		a := answer{err: fmt.Errorf("toolruntime: %w", ErrCallback)}
		defer func() { done <- a }()
		a.v, a.err = f(ctx)
	}()
	select {
	case a := <-done:
		return a.v, a.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("toolruntime: a callback of the host has not answered: %w", ctx.Err())
	}
}

// resolve looks up who a principal is now; false means that nobody knows it. The
// roles that it presents play no part.
func (rt *Runtime) resolve(ctx context.Context, limit time.Duration, p toolresult.Principal) (toolresult.Principal, bool, error) {
	current := toolresult.Principal{TenantID: p.TenantID, SubjectID: p.SubjectID}
	if rt.resolver == nil {
		return current, true, nil
	}
	found, err := ask(ctx, rt, "resolve principal", limit, func(ctx context.Context) (*toolresult.Principal, error) {
		return rt.resolver(ctx, p.TenantID, p.SubjectID)
	})
	switch {
	case err != nil || found == nil:
		return current, false, err
	case found.TenantID != p.TenantID || found.SubjectID != p.SubjectID:
		return current, false, &toolresult.InputError{Field: "resolver", Rule: "answered with another tenant or subject"}
	}
	if err := found.Check(); err != nil {
		return current, false, fmt.Errorf("toolruntime: resolved principal: %w", err)
	}
	current.Roles = append([]string(nil), found.Roles...)
	return current, true, nil
}

// admit looks up who the principal is now and whether it may use the tool on
// the resource that the arguments name.
func (rt *Runtime) admit(ctx context.Context, t *tool, p toolresult.Principal, resource string) (toolresult.Principal, bool, error) {
	current, known, err := rt.resolve(ctx, t.timeout, p)
	if err != nil || !known {
		return current, false, err
	}
	allowed, err := ask(ctx, rt, "authorize", t.timeout, func(ctx context.Context) (bool, error) {
		return rt.authorizer(ctx, current, t.spec.Contract().Name, resource)
	})
	return current, allowed && err == nil, err
}

// mayApprove asks whether somebody may approve a principal's use of a tool. The
// principal is the one of now, with its roles, at every step.
func (rt *Runtime) mayApprove(ctx context.Context, t *tool, p toolresult.Principal, approverID string) (bool, error) {
	return ask(ctx, rt, "approvers", t.timeout, func(ctx context.Context) (bool, error) {
		return rt.approvers(ctx, p, t.spec.Contract().Name, approverID)
	})
}

// obeys asks the tool's business rule.
func (rt *Runtime) obeys(ctx context.Context, t *tool, p toolresult.Principal, in input) (bool, error) {
	return ask(ctx, rt, "business rule", t.timeout, func(ctx context.Context) (bool, error) { return t.rule(ctx, p, in) })
}

// decode reads arguments for the callbacks of a tool.
func (rt *Runtime) decode(ctx context.Context, t *tool, args string) (in input, err error) {
	defer rt.contain(ctx, "resource", &err)
	return t.decode(args)
}
