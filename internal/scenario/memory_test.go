package scenario

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A desk is a memory with calls to make.
type desk struct {
	*memory
	t   testing.TB
	now int64
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	specs, err := exampleSpecs()
	if err != nil {
		t.Fatal(err)
	}
	return &desk{newMemory(specs), t, 1_784_419_200}
}

// call returns a request for ORDER-7; each has an identity of its own and comes
// a second later.
func (d *desk) call(tool, arguments, failure string) *request {
	d.t.Helper()
	d.now++
	b, err := toolresult.Bind(toolresult.Principal{TenantID: "tenant-a", SubjectID: "user-1"},
		toolresult.NewCall(toolresult.Proposal{Name: tool, Arguments: []byte(arguments)},
			toolresult.ExecutionContext{Provider: "openai", APIFamily: "responses", ResponseID: "response-1",
				CallID: fmt.Sprintf("call-%d", d.now), OperationID: "operation-1", IdempotencyKey: "key-1",
				AdapterRevision: "openai-responses-v1"}), d.tools[tool].spec.Contract())
	if err != nil {
		d.t.Fatal(err)
	}
	approvals, err := Approvals(b, validApproval, d.now)
	if err != nil {
		d.t.Fatal(err)
	}
	return &request{bound: b, approvals: approvals, failure: failure, now: d.now}
}

const (
	orderArguments  = `{"order_ref":"ORDER-7"}`
	refundArguments = `{"order_ref":"ORDER-7","reason":"other"}`
)

func (d *desk) dispatch(tool, arguments, failure string) *toolresult.Package {
	d.t.Helper()
	return d.checked(tool, d.call(tool, arguments, failure), func(r *request) (*toolresult.Package, error) {
		return d.memory.dispatch(d.t.Context(), r)
	})
}

func (d *desk) ask(statusRef string) *toolresult.Package {
	d.t.Helper()
	return d.checked(writeTool, d.call(writeTool, refundArguments, noFailure), func(r *request) (*toolresult.Package, error) {
		return d.queryStatus(d.t.Context(), r, statusRef)
	})
}

func (d *desk) checked(tool string, r *request, do func(*request) (*toolresult.Package, error)) *toolresult.Package {
	d.t.Helper()
	pkg, err := do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	if problems := toolresult.Validate(r.bound, d.tools[tool].spec, pkg); len(problems) > 0 {
		d.t.Errorf("%s: %v", pkg.Code(), problems)
	}
	return pkg
}

// broken replaces how a tool runs.
func (d *desk) broken(name string, err error) {
	t := d.tools[name]
	run := t.run
	t.run = func(b *toolresult.Bound, now int64) (toolresult.Evidence, error) {
		e, _ := run(b, now)
		e.ProducerRevision = "another"
		return e, err
	}
	d.tools[name] = t
}

func TestMemoryEvidence(t *testing.T) {
	d := newDesk(t)
	text := func(s string) *string { return &s }
	lost := d.dispatch(writeTool, refundArguments, timeoutAfterCommit)
	ref := lost.StatusRef()
	if !contract.ValidStatusRef(ref) {
		t.Fatalf("no status_ref in %s", lost.Code())
	}
	// The effect happened at the first step, and is reported so at each later.
	provenance := toolresult.Provenance{SourceLabel: "refunds", ProducerRevision: "refunds-mock-v2",
		ResourceRevision: text("draft-1-r1"), ObservedAt: "2026-07-19T00:00:01Z", Trust: "untrusted_data"}
	downstream := toolresult.Downstream{RequestID: text("refund-request-1"), ReceiptID: text("refund-receipt-1"), StatusRef: &ref}
	for _, tt := range []struct {
		want toolresult.Delivery
		pkg  *toolresult.Package
	}{
		{toolresult.ReceiptReconciled, d.ask(ref)},
		{toolresult.LocalReplay, d.dispatch(writeTool, refundArguments, noFailure)},
		{toolresult.ReceiptReconciled, d.ask(ref)},
	} {
		if diff := cmp.Diff(tt.want, tt.pkg.Delivery()); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(provenance, tt.pkg.ModelResult.Provenance); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(downstream, tt.pkg.ProtectedAudit.Downstream); diff != "" {
			t.Error(diff)
		}
	}
	read := d.dispatch("get_order", orderArguments, noFailure)
	provenance = toolresult.Provenance{SourceLabel: "orders", ProducerRevision: "orders-mock-v2",
		ObservedAt: "2026-07-19T00:00:05Z", Trust: "untrusted_data"}
	if diff := cmp.Diff(provenance, read.ModelResult.Provenance); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(toolresult.Downstream{}, read.ProtectedAudit.Downstream); diff != "" {
		t.Error(diff)
	}
}

// TestMemory has the answers that no case set reaches.
func TestMemory(t *testing.T) {
	raises := errors.New("raised")
	t.Run("business rule", func(t *testing.T) {
		d := newDesk(t)
		d.orders.SetStatus("ORDER-7", "refunded")
		wantCode(t, d.dispatch(writeTool, refundArguments, rateLimit), toolresult.BusinessRuleViolation)
		wantCode(t, d.dispatch("get_order", orderArguments, noFailure), toolresult.OK)
	})
	t.Run("a read raises", func(t *testing.T) {
		d := newDesk(t)
		d.broken("get_order", raises)
		wantCode(t, d.dispatch("get_order", orderArguments, noFailure), toolresult.ToolError)
	})
	t.Run("a read breaks its contract", func(t *testing.T) {
		d := newDesk(t)
		d.orders.SetStatus("ORDER-7", "odd")
		pkg := d.dispatch("get_order", orderArguments, noFailure)
		wantCode(t, pkg, toolresult.OutputContractViolation)
		if pkg.StatusRef() != "" {
			t.Error("a read has no status_ref")
		}
	})
	for name, err := range map[string]error{"a write raises": raises, "a write breaks its contract": nil} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.broken(writeTool, err)
			pkg := d.dispatch(writeTool, refundArguments, noFailure)
			want := toolresult.OutcomeUnknown
			if err == nil {
				want = toolresult.OutputContractViolation
			}
			wantCode(t, pkg, want)
			wantCode(t, d.ask(pkg.StatusRef()), toolresult.OutcomeUnknown)
			again := d.dispatch(writeTool, refundArguments, noFailure)
			wantCode(t, again, toolresult.OutcomeUnknown)
			if again.StatusRef() != pkg.StatusRef() || pkg.StatusRef() == "" {
				t.Error("the status_ref was not kept")
			}
			if d.effects != 1 {
				t.Errorf("%d effects, want 1", d.effects)
			}
		})
	}
	t.Run("unknown status_ref", func(t *testing.T) {
		wantCode(t, newDesk(t).ask("status_00000000000000000000000000000000"), toolresult.NotFound)
	})
}

func wantCode(t testing.TB, pkg *toolresult.Package, want toolresult.Code) {
	t.Helper()
	if pkg.Code() != want {
		t.Errorf("got %s, want %s", pkg.Code(), want)
	}
}
