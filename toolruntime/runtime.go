package toolruntime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/ledger"
	"github.com/toolruntime/toolruntime-go/internal/limits"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A Resolver looks up who a principal is now. It returns nil for one that it
// does not know, which denies the call. An error fails the call instead.
type Resolver func(ctx context.Context, tenantID, subjectID string) (*toolresult.Principal, error)

// An Authorizer says whether a principal, with its current roles, may use a
// tool on a resource. An error fails the call instead of denying it.
type Authorizer func(ctx context.Context, p toolresult.Principal, tool, resource string) (bool, error)

// Approvers says whether somebody may approve a principal's use of a tool. It
// is asked for stored approvals too, whenever they are used, and always about the
// principal as the Resolver knows it then, with its roles.
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
	// Now is the clock; nil means the ledger's: the server's with PostgreSQL, and the
	// host's with SQLite. Another one is for tests. It is used alone then, and all
	// runtimes of a ledger must have the same: by it leases run out and approvals
	// expire. Fractions of a second are cut off.
	Now func() time.Time
	// Logger gets what no answer can carry, such as a handler's error; nil
	// means none. Arguments, results and keys are never logged.
	Logger *slog.Logger
}

// A Runtime dispatches calls of a fixed set of tools over a store. It is safe
// for concurrent use, and so is more than one runtime over one database.
type Runtime struct {
	store      *Store
	ledger     *ledger.Ledger
	tools      map[string]*tool
	versions   map[string]bool // of lanes whose operations are carried out here
	authorizer Authorizer
	approvers  Approvers
	resolver   Resolver
	profiles   []toolresult.Profile
	clock      func() time.Time
	own        bool // the clock is the ledger's
	log        *slog.Logger
	wake       chan struct{} // something was submitted in this process
	ended      tally
	clocks     clocks

	failedSweeps atomic.Int64
}

// New makes a runtime of the given tools. A tool that is wrong or doubled is an
// error. Closing the store stays with the caller.
func New(store *Store, opts *Options, tools ...Registration) (*Runtime, error) {
	if opts == nil {
		opts = &Options{}
	}
	rt := &Runtime{
		store: store, tools: make(map[string]*tool, len(tools)), versions: map[string]bool{},
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
	if rt.log == nil {
		rt.log = slog.New(slog.DiscardHandler)
	}
	if store == nil {
		return nil, &toolresult.InputError{Field: "store", Rule: "must not be nil"}
	}
	rt.ledger = store.ledger
	if rt.clock == nil {
		rt.clock, rt.own = func() time.Time { return store.ledger.Now() }, true
	}
	for _, t := range tools {
		if t == nil {
			return nil, &toolresult.InputError{Field: "tool", Rule: "must not be nil"}
		}
		c, err := current(t)
		if err != nil {
			return nil, err
		}
		name := c.spec.Contract().Name
		if rt.tools[name] != nil {
			return nil, &toolresult.InputError{Field: fmt.Sprintf("tool %q", name), Rule: "is registered twice"}
		}
		rt.tools[name] = c
		rt.versions[ledger.LanePart(name)] = true
		for _, v := range c.versions {
			rt.versions[v.version] = rt.versions[v.version] || v.runs
		}
	}
	if store.ledger != nil { // a store that was not opened is good for what needs no ledger
		rt.tellSkew(context.Background())
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

// Counts returns the number of rows of the ledger's tables. It reads every table's index: it
// is for tests and audits, not for a metric.
func (rt *Runtime) Counts(ctx context.Context) (Counts, error) {
	c, err := rt.ledger.Counts(ctx)
	return Counts(c), err
}

// a request is a call that has passed the checks of the host's part.
type request struct {
	bound *toolresult.Bound
	tool  *tool // nil when it is not registered
	input input // once they are screened
	now   int64

	stop         string // where the process dies, in a drill
	reserve      bool   // a write is accepted, and left to the workers
	tellAccepted bool   // ACCEPTED is among the answers, which the contract's own methods never give

	later *Submission // where a new write is put instead of being reserved
}

// accept checks what the trusted host says, and binds the call.
func (rt *Runtime) accept(p toolresult.Principal, c toolresult.Call) (request, error) {
	now := rt.now()
	if err := limits.Time("now", now); err != nil {
		return request{}, err
	}
	if err := p.Check(); err != nil {
		return request{}, err
	}
	if err := c.Check(); err != nil {
		return request{}, err
	}
	if err := limits.Profile(c.Profile(), rt.profiles); err != nil {
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
		r.input, err = rt.decode(ctx, r.tool, r.bound.Arguments())
		switch {
		case errors.Is(err, ErrCallback):
			return toolresult.Principal{}, nil, err
		case err != nil:
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
	return r.bound.Failure(code, "", time.Unix(r.now, 0))
}

func (r *request) failAt(code toolresult.Code, statusRef string) *toolresult.Package {
	return r.bound.Failure(code, statusRef, time.Unix(r.now, 0))
}
