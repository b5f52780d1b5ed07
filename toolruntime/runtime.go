package toolruntime

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A Resolver looks up who a principal is now. It returns nil for one that it
// does not know, which denies the call. An error fails the call instead.
type Resolver func(ctx context.Context, tenantID, subjectID string) (*toolresult.Principal, error)

// An Authorizer says whether a principal, with its current roles, may use a
// tool on a resource. An error fails the call instead of denying it.
type Authorizer func(ctx context.Context, p toolresult.Principal, tool, resource string) (bool, error)

// Approvers says whether somebody may approve a principal's use of a tool. It
// is asked for stored approvals too, whenever they are used.
type Approvers func(ctx context.Context, p toolresult.Principal, tool, approverID string) (bool, error)

// Options of [New]. What is left out denies: without an Authorizer nobody may
// use anything, and without Approvers no approval is valid.
type Options struct {
	Authorizer Authorizer
	Approvers  Approvers
	// Resolver gives the roles. Without one every principal has none: the roles
	// that a caller presents are never used.
	Resolver Resolver
	// Profiles are provider profiles beside those of the contract, such as
	// openaichat.Profile and geminicontent.Profile of the provider packages.
	Profiles []toolresult.Profile
	// Now is the clock; nil means time.Now. Fractions of a second are cut off.
	Now func() time.Time
	// Logger gets what no answer can carry, such as a handler's error; nil
	// means none. Arguments, results and keys are never logged.
	Logger *slog.Logger
}

// A Runtime dispatches calls of a fixed set of tools over a store. It is safe
// for concurrent use, and so is more than one runtime over one database.
type Runtime struct {
	store      *Store
	tools      map[string]*tool
	authorizer Authorizer
	approvers  Approvers
	resolver   Resolver
	profiles   []toolresult.Profile
	clock      func() time.Time
	log        *slog.Logger
	wake       chan struct{} // something was submitted in this process
	ended      tally
}

// New makes a runtime of the given tools. A tool that is wrong or doubled is an
// error. Closing the store stays with the caller.
func New(store *Store, opts *Options, tools ...Registration) (*Runtime, error) {
	if opts == nil {
		opts = &Options{}
	}
	rt := &Runtime{
		store: store, tools: make(map[string]*tool, len(tools)),
		authorizer: opts.Authorizer, approvers: opts.Approvers, resolver: opts.Resolver,
		profiles: append(toolresult.DefaultProfiles(), opts.Profiles...),
		clock:    opts.Now, log: opts.Logger, wake: make(chan struct{}, 1),
	}
	if rt.authorizer == nil {
		rt.authorizer = func(context.Context, toolresult.Principal, string, string) (bool, error) { return false, nil }
	}
	if rt.approvers == nil {
		rt.approvers = func(context.Context, toolresult.Principal, string, string) (bool, error) { return false, nil }
	}
	if rt.clock == nil {
		rt.clock = time.Now
	}
	if rt.log == nil {
		rt.log = slog.New(slog.DiscardHandler)
	}
	if store == nil {
		return nil, &toolresult.InputError{Field: "store", Rule: "must not be nil"}
	}
	for _, t := range tools {
		if t == nil {
			return nil, &toolresult.InputError{Field: "tool", Rule: "must not be nil"}
		}
		c, err := t.compile()
		if err != nil {
			return nil, err
		}
		name := c.spec.Contract().Name
		if rt.tools[name] != nil {
			return nil, &toolresult.InputError{Field: fmt.Sprintf("tool %q", name), Rule: "is registered twice"}
		}
		rt.tools[name] = c
	}
	return rt, nil
}

// Spec returns the contract of a registered tool, for validating packages and
// for offering the tool to a model.
func (rt *Runtime) Spec(name string) (*toolresult.Spec, bool) {
	t, ok := rt.tools[name]
	if !ok {
		return nil, false
	}
	return t.spec, true
}

// Description returns a registered tool's text for the model.
func (rt *Runtime) Description(name string) string {
	if t, ok := rt.tools[name]; ok {
		return t.description
	}
	return ""
}

// Bind binds a call to a principal and to the contract of its tool. Like
// [Runtime.Dispatch] it takes whatever a model can send as arguments: see
// [toolresult.BindAnswerable].
func (rt *Runtime) Bind(p toolresult.Principal, c toolresult.Call) (*toolresult.Bound, error) {
	if t, ok := rt.tools[c.Name]; ok {
		return toolresult.BindAnswerable(p, c, t.spec.Contract())
	}
	return toolresult.BindAnswerable(p, c, toolresult.UnregisteredContract(c.Name))
}

// Expect returns what a package that answers a call is held against: the call,
// bound as [Runtime.Bind] does it, and the spec of its tool. The provider packages
// want it for every call of a turn.
func (rt *Runtime) Expect(p toolresult.Principal, c toolresult.Call) (toolresult.Expected, error) {
	b, err := rt.Bind(p, c)
	spec, _ := rt.Spec(c.Name)
	return toolresult.Expected{Bound: b, Spec: spec}, err
}

// Counts returns the number of rows of the ledger's tables.
func (rt *Runtime) Counts(ctx context.Context) (Counts, error) { return rt.store.Counts(ctx) }

func (rt *Runtime) now() int64 { return rt.clock().Unix() }

// a request is a call that has passed the checks of the host's part.
type request struct {
	bound *toolresult.Bound
	tool  *tool // nil when it is not registered
	input input // once they are screened
	now   int64
}

// accept checks what the trusted host says, and binds the call.
func (rt *Runtime) accept(p toolresult.Principal, c toolresult.Call) (request, error) {
	now := rt.now()
	if err := toolresult.CheckTime("now", now); err != nil {
		return request{}, err
	}
	if err := p.Check(); err != nil {
		return request{}, err
	}
	if err := c.Check(); err != nil {
		return request{}, err
	}
	if err := toolresult.CheckProfile(c.ExecutionContext, rt.profiles); err != nil {
		return request{}, err
	}
	b, err := rt.Bind(p, c)
	return request{bound: b, tool: rt.tools[c.Name], now: now}, err
}

// screen answers what can be answered without the ledger, in the contract's
// order: the tool, its arguments, and whether the principal may.
func (rt *Runtime) screen(ctx context.Context, r *request) (toolresult.Principal, *toolresult.Package, error) {
	if r.tool == nil {
		return toolresult.Principal{}, r.fail(toolresult.UnknownTool), nil
	}
	problems := r.tool.spec.CheckArguments(r.bound)
	if len(problems) == 0 {
		var err error
		if r.input, err = r.tool.decode(r.bound.Arguments()); err != nil {
			problems = []toolresult.Problem{{Path: "/", Rule: "does not fit the tool's Go type"}}
		}
	}
	if len(problems) > 0 {
		answer := r.fail(toolresult.InvalidArguments)
		answer.Problems = problems
		return toolresult.Principal{}, answer, nil
	}
	current, allowed, err := rt.admit(ctx, r.tool, r.bound.Principal(), r.input.resource)
	if err != nil {
		return current, nil, err
	}
	if !allowed {
		return current, r.fail(toolresult.NotFound), nil
	}
	return current, nil, nil
}

func (r *request) fail(code toolresult.Code) *toolresult.Package {
	return r.bound.Failure(code, "", r.now)
}

func (r *request) failAt(code toolresult.Code, statusRef string) *toolresult.Package {
	return r.bound.Failure(code, statusRef, r.now)
}

// admit looks up who the principal is now and whether it may use the tool on
// the resource that the arguments name. The presented roles play no part.
func (rt *Runtime) admit(ctx context.Context, t *tool, p toolresult.Principal, resource string) (toolresult.Principal, bool, error) {
	current := toolresult.Principal{TenantID: p.TenantID, SubjectID: p.SubjectID}
	if rt.resolver != nil {
		found, err := rt.resolver(ctx, p.TenantID, p.SubjectID)
		switch {
		case err != nil:
			return current, false, fmt.Errorf("toolruntime: resolve principal: %w", err)
		case found == nil:
			return current, false, nil
		case found.TenantID != p.TenantID || found.SubjectID != p.SubjectID:
			return current, false, &toolresult.InputError{Field: "resolver", Rule: "answered with another tenant or subject"}
		}
		if err := found.Check(); err != nil {
			return current, false, fmt.Errorf("toolruntime: resolved principal: %w", err)
		}
		current.Roles = append([]string(nil), found.Roles...)
	}
	allowed, err := rt.authorizer(ctx, current, t.spec.Contract().Name, resource)
	if err != nil {
		return current, false, fmt.Errorf("toolruntime: authorize: %w", err)
	}
	return current, allowed, nil
}
