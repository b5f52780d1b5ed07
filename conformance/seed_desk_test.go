package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mattn/go-sqlite3"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
)

// A seedDesk is a desk with the principal and the call that most of the user's
// tests are about.
type seedDesk struct {
	*desk
	actor  toolresult.Principal
	call   toolresult.Call
	forges bool // computes the row digests anew where it tampers
}

func newSeedDesk(t testing.TB, e engine) *seedDesk {
	t.Helper()
	return &seedDesk{desk: newDesk(t, e), actor: toolresult.Principal{TenantID: "tenant-a", SubjectID: "user-1"},
		call: seedCall("ORDER-7", "duplicate")}
}

// another is a further runtime over the same database and for the same call.
func (d *seedDesk) another(opts ...deskOption) *seedDesk {
	d.t.Helper()
	return &seedDesk{desk: d.desk.another(opts...), actor: d.actor, call: d.call, forges: d.forges}
}

func seedCall(orderRef, reason string) toolresult.Call {
	args, err := json.Marshal(refunds.RefundArgs{OrderRef: orderRef, Reason: reason})
	if err != nil {
		panic(err) // two strings always have a JSON form
	}
	return toolresult.NewCall(toolresult.Proposal{Name: "create_refund_draft", Arguments: args}, toolresult.ExecutionContext{
		Provider: "openai", APIFamily: "responses", ResponseID: "response-persistent",
		CallID: "call-persistent", OperationID: "operation-persistent",
		IdempotencyKey: "persistent-key-1", AdapterRevision: "openai-responses-v1",
	})
}

// named gives a call ids of its own.
func named(c toolresult.Call, name string) toolresult.Call {
	c.CallID, c.OperationID, c.ResponseID = "call-"+name, "operation-"+name, "response-"+name
	return c
}

// identified gives a call the ids that a provider gives; its operation id stays.
func identified(c toolresult.Call, callID, responseID string) toolresult.Call {
	c.CallID, c.ResponseID = callID, responseID
	return c
}

// keyed gives a call another idempotency key; the empty one is none.
func keyed(c toolresult.Call, key string) toolresult.Call {
	c.IdempotencyKey = key
	return c
}

// viaAnthropic is the same call through another registered provider profile.
func viaAnthropic(c toolresult.Call) toolresult.Call {
	p := toolresult.AnthropicMessages
	c.Provider, c.APIFamily, c.AdapterRevision = p.Provider, p.APIFamily, p.AdapterRevision
	return c
}

// approved are valid approvals of a call by the desk's principal.
func (d *seedDesk) approved(c toolresult.Call) []toolresult.Approval {
	d.t.Helper()
	return d.approval(d.actor, c, "valid")
}

// dispatch dispatches the desk's call with a valid approval.
func (d *seedDesk) dispatch(p drill.Point) *toolresult.Package {
	d.t.Helper()
	return d.dispatchCall(d.call, d.approved(d.call), p)
}

// repeat dispatches the desk's call without an approval.
func (d *seedDesk) repeat() *toolresult.Package {
	d.t.Helper()
	return d.dispatchCall(d.call, nil, alive)
}

func (d *seedDesk) dispatchCall(c toolresult.Call, as []toolresult.Approval, p drill.Point) *toolresult.Package {
	d.t.Helper()
	pkg, err := d.Dispatch(dying(p), d.actor, c, &toolruntime.DispatchOptions{Approvals: as})
	if err != nil {
		d.t.Fatalf("dispatch: %v", err)
	}
	return pkg
}

// tryQuery asks what became of a call, under the identity that follows from it.
func (d *seedDesk) tryQuery(c toolresult.Call, ref, expected string) (*toolresult.Package, error) {
	d.t.Helper()
	return d.QueryStatus(context.Background(), d.actor, c.StatusQuery(ref), ref,
		&toolruntime.QueryOptions{ExpectedRequestSHA256: expected})
}

// query is tryQuery with the digest that the call has.
func (d *seedDesk) query(c toolresult.Call, ref string) *toolresult.Package {
	d.t.Helper()
	pkg, err := d.tryQuery(c, ref, d.digest(c))
	if err != nil {
		d.t.Fatalf("query: %v", err)
	}
	return pkg
}

func (d *seedDesk) digest(c toolresult.Call) string {
	d.t.Helper()
	return d.bind(d.actor, c).RequestSHA256()
}

func (d *seedDesk) process(ref, worker string, opts *toolruntime.ProcessOptions) toolruntime.Outcome {
	d.t.Helper()
	return d.processTo(alive, ref, worker, opts)
}

func (d *seedDesk) processTo(p drill.Point, ref, worker string, opts *toolruntime.ProcessOptions) toolruntime.Outcome {
	d.t.Helper()
	outcome, err := d.Process(dying(p), ref, worker, opts)
	if err != nil {
		d.t.Fatalf("process: %v", err)
	}
	return outcome
}

func (d *seedDesk) claim(ref, worker string, lease time.Duration) *held {
	d.t.Helper()
	c, err := hold(context.Background(), d.Runtime, ref, worker, lease)
	if err != nil {
		d.t.Fatalf("claim: %v", err)
	}
	return c
}

// ref is the status_ref of a package that must have one.
func (d *seedDesk) ref(pkg *toolresult.Package) string {
	d.t.Helper()
	if pkg.StatusRef() == "" {
		d.t.Fatal("the package has no status_ref")
	}
	return pkg.StatusRef()
}

// problems are what validation finds in a package for a call.
func (d *seedDesk) problems(c toolresult.Call, pkg *toolresult.Package) []string {
	d.t.Helper()
	spec, ok := d.Spec(c.Name)
	if !ok {
		d.t.Fatalf("tool %q is not registered", c.Name)
	}
	var texts []string
	for _, p := range toolresult.Validate(d.bind(d.actor, c), spec, pkg) {
		texts = append(texts, p.String())
	}
	return texts
}

// refuse makes the database refuse a change, such as "BEFORE INSERT ON outbox",
// of a row for which the condition holds, as a broken constraint would.
func (d *seedDesk) refuse(change, condition string) {
	d.t.Helper()
	trigger := "CREATE TRIGGER injected_failure " + change + " FOR EACH ROW WHEN (" + condition + ") "
	if d.engine.name == "sqlite" {
		d.mustSQL(trigger + "BEGIN SELECT RAISE(ABORT, 'injected failure'); END")
		return
	}
	d.mustSQL(`CREATE FUNCTION injected_failure() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN RAISE EXCEPTION 'injected failure' USING ERRCODE = 'integrity_constraint_violation'; END $$`)
	d.mustSQL(trigger + "EXECUTE FUNCTION injected_failure()")
}

// refuseNoMore ends what refuse has begun.
func (d *seedDesk) refuseNoMore(table string) {
	d.t.Helper()
	if d.engine.name == "sqlite" {
		d.mustSQL("DROP TRIGGER injected_failure")
		return
	}
	d.mustSQL("DROP TRIGGER injected_failure ON " + table)
	d.mustSQL("DROP FUNCTION injected_failure()")
}

// refused reports whether a driver's error says that the database refused a row.
func refused(err error) bool {
	var lite sqlite3.Error
	if errors.As(err, &lite) {
		return lite.Code == sqlite3.ErrConstraint
	}
	var state interface{ SQLState() string } // as PostgreSQL's drivers have
	return errors.As(err, &state) && strings.HasPrefix(state.SQLState(), "23")
}

// allowing is an authorizer by the resource alone.
func allowing(allowed map[string]bool) deskOption {
	return withAuthorizer(func(_ context.Context, _ toolresult.Principal, _, resource string) (bool, error) {
		return allowed[resource], nil
	})
}

// atOnce runs do n times, all let go at the same moment.
func atOnce[T any](t testing.TB, n int, do func(i int) (T, error)) []T {
	t.Helper()
	results, errs := make([]T, n), make([]error, n)
	var ready, done sync.WaitGroup
	ready.Add(n)
	gate := make(chan struct{})
	for i := range n {
		done.Go(func() {
			ready.Done()
			<-gate
			results[i], errs[i] = do(i)
		})
	}
	ready.Wait()
	close(gate)
	done.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return results
}

func wantEqual(t testing.TB, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func wantCode(t testing.TB, want toolresult.Code, pkg *toolresult.Package) {
	t.Helper()
	wantEqual(t, "code", want, pkg.Code())
}

func wantDelivery(t testing.TB, want toolresult.Delivery, pkg *toolresult.Package) {
	t.Helper()
	wantEqual(t, "delivery", want, pkg.Delivery())
}

func wantError(t testing.TB, target, err error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("error: %v, want one that is: %v", err, target)
	}
}

// wantMention wants a text among some that has the given part.
func wantMention(t testing.TB, part string, texts []string) {
	t.Helper()
	if !slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, part) }) {
		t.Errorf("none of these mentions %q: %q", part, texts)
	}
}

// deeplyNestedJSON is nested far deeper than a recursive decoder should follow,
// and small enough to pass every limit of size.
func deeplyNestedJSON(t testing.TB) string {
	t.Helper()
	const levels, maxBytes = 4096, 65536
	text := strings.Repeat("[", levels) + "0" + strings.Repeat("]", levels)
	if len(text) >= maxBytes {
		t.Fatalf("%d bytes are not below the limit of size", len(text))
	}
	return text
}
