package scenario

import (
	"context"
	"errors"
	"time"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A memory is the dispatcher of one case: the contract without a ledger, for
// one principal, in a world that starts anew. It trusts the roles as they are
// presented, and binds a call's identity as soon as its arguments are good.
//
// The tools and their revisions cannot change within a case, so it never
// compares revisions.
type memory struct {
	orders     *refunds.Orders
	tools      map[string]tool
	calls      map[identity]string // the fingerprint of every call that was bound
	operations map[scope]*operation
	uncertain  map[string]*operation // those that may be asked for, by status_ref
	effects    int64
}

// An identity names a call; a scope the effect that may happen once. Tenant and
// subject are part of both, and the same throughout a case.
type (
	identity struct{ provider, family, response, call string }
	scope    struct{ tool, key string }
)

// An operation is an effect that happened, or may have happened.
type operation struct {
	scope    scope
	request  string
	profile  toolresult.Profile
	receipt  toolresult.Evidence
	found    bool // a query can find the receipt
	accepted bool // a repeat gets the receipt
}

// same reports whether b asks for this very operation.
func (o *operation) same(b *toolresult.Bound) bool {
	return o.scope == scopeOf(b) && o.request == b.RequestSHA256() && o.profile == b.Call().Profile()
}

func scopeOf(b *toolresult.Bound) scope { return scope{b.Call().Name, b.Call().IdempotencyKey} }

func newMemory(specs map[string]*toolresult.Spec) *memory {
	m := &memory{
		orders:     refunds.NewOrders(),
		calls:      map[identity]string{},
		operations: map[scope]*operation{},
		uncertain:  map[string]*operation{},
	}
	m.tools = m.handlers(specs)
	return m
}

// A request is a call that is being answered.
type request struct {
	bound     *toolresult.Bound
	tool      tool // set by screen
	approvals []toolresult.Approval
	failure   string
	now       int64
}

func (r *request) fail(c toolresult.Code) *toolresult.Package {
	return r.bound.Failure(c, "", time.Unix(r.now, 0))
}

// failAt is a failure that names the operation.
func (r *request) failAt(c toolresult.Code, statusRef string) *toolresult.Package {
	return r.bound.Failure(c, statusRef, time.Unix(r.now, 0))
}

func (r *request) succeed(e toolresult.Evidence, d toolresult.Delivery) *toolresult.Package {
	return r.bound.Success(r.tool.spec.Source(), e, d)
}

// screen does what every call needs before anything else, and returns the code
// with which the call ends here, or "".
func (m *memory) screen(ctx context.Context, r *request, purpose toolresult.Purpose) (toolresult.Code, error) {
	call := r.bound.Call()
	var known bool
	if r.tool, known = m.tools[call.Name]; !known {
		return toolresult.UnknownTool, nil
	}
	if len(r.tool.spec.CheckArguments(r.bound)) > 0 {
		return toolresult.InvalidArguments, nil
	}
	id := identity{call.Provider, call.APIFamily, call.ResponseID, call.CallID}
	fingerprint := r.bound.Fingerprint(purpose)
	if bound, ok := m.calls[id]; ok && bound != fingerprint {
		return toolresult.CallIDConflict, nil
	}
	m.calls[id] = fingerprint
	in, err := argumentsOf(r.bound)
	if err != nil {
		return "", err
	}
	allowed, err := m.orders.Authorize(ctx, r.bound.Principal(), call.Name, in.OrderRef)
	if err != nil || allowed {
		return "", err
	}
	return toolresult.NotFound, nil
}

// dispatch carries out a call.
func (m *memory) dispatch(ctx context.Context, r *request) (*toolresult.Package, error) {
	code, err := m.screen(ctx, r, toolresult.PurposeDispatch)
	switch {
	case err != nil:
		return nil, err
	case code != "":
		return r.fail(code), nil
	case r.tool.spec.Risk() == toolresult.Read:
		return m.read(r)
	}
	return m.write(ctx, r)
}

// beforeHandler holds the failures that stop a call when nothing has happened:
// only its identity stays.
var beforeHandler = map[string]toolresult.Code{
	timeoutBeforeExecute: toolresult.TimeoutBeforeExecute,
	rateLimit:            toolresult.RateLimit,
	toolError:            toolresult.ToolError,
}

var errNothingToCommit = errors.New("a read commits nothing after which it could time out")

func (m *memory) read(r *request) (*toolresult.Package, error) {
	if code, ok := beforeHandler[r.failure]; ok {
		return r.fail(code), nil
	}
	if r.failure != noFailure {
		return nil, errNothingToCommit
	}
	e, err := r.tool.run(r.bound, r.now)
	switch {
	case err != nil:
		return r.fail(toolresult.ToolError), nil
	case len(r.tool.spec.CheckOutput(r.bound, e)) > 0:
		return r.fail(toolresult.OutputContractViolation), nil
	}
	return r.succeed(e, toolresult.Fresh), nil
}

func (m *memory) write(ctx context.Context, r *request) (*toolresult.Package, error) {
	if r.bound.Call().IdempotencyKey == "" {
		return r.fail(toolresult.IdempotencyKeyRequired), nil
	}
	if op, taken := m.operations[scopeOf(r.bound)]; taken {
		return m.repeat(r, op), nil
	}
	denied, err := m.decide(ctx, r)
	if err != nil {
		return nil, err
	}
	if denied != "" {
		return r.fail(denied), nil
	}
	if code, ok := beforeHandler[r.failure]; ok {
		return r.fail(code), nil
	}
	return m.execute(r), nil
}

// repeat answers a call whose scope is taken. It never executes anything.
func (m *memory) repeat(r *request, op *operation) *toolresult.Package {
	switch {
	case !op.same(r.bound):
		return r.fail(toolresult.IdempotencyConflict)
	case op.accepted:
		return r.succeed(op.receipt, toolresult.LocalReplay)
	}
	return r.failAt(toolresult.OutcomeUnknown, r.bound.StatusRef())
}

// decide returns the code with which a new intent is denied, or "".
func (m *memory) decide(ctx context.Context, r *request) (toolresult.Code, error) {
	allowed, err := r.tool.rule(r.bound)
	switch {
	case err != nil:
		return "", err
	case !allowed:
		return toolresult.BusinessRuleViolation, nil
	case len(r.approvals) == 0:
		return toolresult.ApprovalRequired, nil
	}
	_, ok := toolresult.SelectApproval(r.bound, r.approvals, time.Unix(r.now, 0), func(approverID string) bool {
		eligible, failure := refunds.Approvers(ctx, r.bound.Principal(), r.bound.Call().Name, approverID)
		err = errors.Join(err, failure)
		return eligible
	})
	if err != nil || ok {
		return "", err
	}
	return toolresult.ApprovalInvalid, nil
}

// execute runs a write. Whatever comes of it, its scope is taken: a write that
// may have happened is never run again.
func (m *memory) execute(r *request) *toolresult.Package {
	ref := r.bound.StatusRef()
	op := &operation{scope: scopeOf(r.bound), request: r.bound.RequestSHA256(), profile: r.bound.Call().Profile()}
	m.operations[op.scope] = op
	e, err := r.tool.run(r.bound, r.now)
	if err != nil {
		m.uncertain[ref] = op
		return r.failAt(toolresult.OutcomeUnknown, ref)
	}
	e.StatusRef = ref
	if len(r.tool.spec.CheckOutput(r.bound, e)) > 0 {
		m.uncertain[ref] = op
		return r.failAt(toolresult.OutputContractViolation, ref)
	}
	op.receipt = e
	if r.failure == noFailure {
		op.accepted = true
		return r.succeed(e, toolresult.Fresh)
	}
	op.found = r.failure == timeoutAfterCommit
	m.uncertain[ref] = op
	return r.failAt(toolresult.OutcomeUnknown, ref)
}

// queryStatus asks for an operation whose outcome was uncertain, and for no
// other: a fresh success left nothing to ask for. One that was reconciled can
// be asked for again. It never causes an effect.
func (m *memory) queryStatus(ctx context.Context, r *request, statusRef string) (*toolresult.Package, error) {
	code, err := m.screen(ctx, r, toolresult.PurposeQueryStatus)
	if err != nil {
		return nil, err
	}
	if code != "" {
		return r.fail(code), nil
	}
	op, known := m.uncertain[statusRef]
	switch {
	case !known:
		return r.fail(toolresult.NotFound), nil
	case !op.same(r.bound):
		return r.failAt(toolresult.StatusConflict, statusRef), nil
	case !op.found:
		return r.failAt(toolresult.OutcomeUnknown, statusRef), nil
	}
	op.accepted = true
	return r.succeed(op.receipt, toolresult.ReceiptReconciled), nil
}
