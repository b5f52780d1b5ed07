package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
)

type trace struct {
	ID            string `json:"id"`
	RolesResolver bool   `json:"roles_resolver"`
	AuditPassed   bool   `json:"audit_passed"`
	Steps         []traceStep
}

type traceStep struct {
	Action       string
	Now          int64
	Call         *traceCall
	Approval     string
	Failure      drill.Point
	LeaseSeconds int64           `json:"lease_seconds"`
	WorkerID     string          `json:"worker_id"`
	StatusRef    string          `json:"status_ref"`
	Expected     string          `json:"expected_request_sha256"`
	OrderRef     string          `json:"order_ref"`
	Status       string          `json:"status"`
	TenantID     string          `json:"tenant_id"`
	SubjectID    string          `json:"subject_id"`
	Roles        []string        `json:"roles"`
	Want         json.RawMessage `json:"want"`
	After        traceState      `json:"after"`
}

func (s *traceStep) lease() time.Duration { return time.Duration(s.LeaseSeconds) * time.Second }

func (s *traceStep) dying() context.Context {
	if s.Failure == "none" {
		return dying(alive)
	}
	return dying(s.Failure)
}

type traceCall struct {
	TenantID  string `json:"tenant_id"`
	SubjectID string `json:"subject_id"`
	OrderRef  string `json:"order_ref"`
	Reason    string `json:"reason"`
	toolresult.ExecutionContext
}

func (c *traceCall) principal() toolresult.Principal {
	return toolresult.Principal{TenantID: c.TenantID, SubjectID: c.SubjectID}
}

func (c *traceCall) call(t testing.TB) toolresult.Call {
	args, err := json.Marshal(refunds.RefundArgs{OrderRef: c.OrderRef, Reason: c.Reason})
	if err != nil {
		t.Fatal(err)
	}
	return toolresult.NewCall(toolresult.Proposal{Name: "create_refund_draft", Arguments: args}, c.ExecutionContext)
}

type traceState struct {
	Counts     toolruntime.Counts `json:"counts"`
	Operations []traceOperation   `json:"operations"`
}

type traceOperation struct {
	StatusRef    string  `json:"status_ref"`
	State        string  `json:"state"`
	OutboxState  string  `json:"outbox_state"`
	LeaseOwner   *string `json:"lease_owner"`
	LeaseUntil   *int64  `json:"lease_until"`
	AttemptCount int64   `json:"attempt_count"`
	CreatedAt    int64   `json:"created_at"`
	UpdatedAt    int64   `json:"updated_at"`
	CompletedAt  *int64  `json:"completed_at"`
}

// TestVectorsTraces replays random walks of an independent implementation step
// by step, each on a fresh database, and compares every answer and every row.
func TestVectorsTraces(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	forEachEngine(t, func(t *testing.T, e engine) {
		eachLine(t, vectorFile(t, "traces.jsonl"), func(t *testing.T, tr trace) {
			t.Run(tr.ID, func(t *testing.T) {
				t.Parallel()
				replay(t, e, tr)
			})
		})
	})
}

// A walk is a trace that is being replayed.
type walk struct {
	*desk
	roles  map[[2]string][]string // by tenant and subject
	denied map[[2]string]bool     // by subject and order
	mu     sync.Mutex
}

func replay(t *testing.T, e engine, tr trace) {
	w := &walk{roles: map[[2]string][]string{}, denied: map[[2]string]bool{}}
	var opts []deskOption
	opts = append(opts, func(d *desk, o *toolruntime.Options, _ *[]toolruntime.Registration) {
		w.desk = d
		o.Authorizer = w.authorize
		if tr.RolesResolver {
			o.Resolver = w.resolve
		}
	})
	newDesk(t, e, opts...)
	for i, s := range tr.Steps {
		w.setTime(s.Now)
		if s.Action == "reopen" {
			w.reopen(opts...)
		}
		got, want := w.step(s), map[string]any{}
		if s.Want != nil {
			if err := json.Unmarshal(s.Want, &want); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("step %d, %s: answer (-want +got):\n%s", i, s.Action, diff)
		}
		if diff := cmp.Diff(s.After, w.state()); diff != "" {
			t.Fatalf("step %d, %s: state (-want +got):\n%s", i, s.Action, diff)
		}
	}
	if r := w.audit(); r.Passed != tr.AuditPassed {
		t.Errorf("audit passed: %v, want %v: %q", r.Passed, tr.AuditPassed, r.SemanticErrors)
	}
}

func (w *walk) authorize(ctx context.Context, p toolresult.Principal, tool, orderRef string) (bool, error) {
	w.mu.Lock()
	denied := w.denied[[2]string{p.SubjectID, orderRef}]
	w.mu.Unlock()
	if denied {
		return false, nil
	}
	return w.orders.Authorize(ctx, p, tool, orderRef)
}

func (w *walk) resolve(_ context.Context, tenantID, subjectID string) (*toolresult.Principal, error) {
	return &toolresult.Principal{TenantID: tenantID, SubjectID: subjectID, Roles: w.roles[[2]string{tenantID, subjectID}]}, nil
}

// step does what a step says and returns the answer as the vectors write it.
func (w *walk) step(s traceStep) map[string]any {
	ctx := context.Background()
	switch s.Action {
	case "reopen":
	case "order":
		w.orders.SetStatus(s.OrderRef, s.Status)
	case "deny", "allow":
		w.denied[[2]string{s.SubjectID, s.OrderRef}] = s.Action == "deny"
	case "role":
		w.roles[[2]string{s.TenantID, s.SubjectID}] = s.Roles
	case "dispatch":
		p, c := s.Call.principal(), s.Call.call(w.t)
		b := w.bind(p, c)
		pkg, err := w.Dispatch(s.dying(), p, c, &toolruntime.DispatchOptions{
			Approvals: approvals(w.t, b, s.Approval, s.Now), WorkerID: s.WorkerID,
			Lease: s.lease()})
		if err != nil {
			return failure(w.t, err)
		}
		w.valid(b, pkg)
		got := answer(w.t, pkg)
		got["request_sha256"] = pkg.ProtectedAudit.Binding.RequestSHA256
		got["status_ref"] = nil
		if ref := pkg.StatusRef(); ref != "" {
			got["status_ref"] = ref
		}
		if pkg.Code() == toolresult.OK {
			got["result_sha256"] = pkg.ProtectedAudit.Binding.ResultSHA256
			got["call_binding_sha256"] = pkg.ProtectedAudit.Binding.CallBindingSHA256
		}
		return got
	case "query":
		p, c := s.Call.principal(), s.Call.call(w.t).StatusQuery(s.StatusRef)
		b := w.bind(p, c)
		expected := s.Expected
		if expected == "matching" {
			expected = b.RequestSHA256()
		}
		pkg, err := w.QueryStatus(ctx, p, c, s.StatusRef, &toolruntime.QueryOptions{ExpectedRequestSHA256: expected})
		if err != nil {
			return failure(w.t, err)
		}
		w.valid(b, pkg)
		return answer(w.t, pkg)
	case "process":
		outcome, err := w.Process(s.dying(), s.StatusRef, s.WorkerID, &toolruntime.ProcessOptions{Lease: s.lease()})
		if err != nil {
			return failure(w.t, err)
		}
		return map[string]any{"outcome": string(outcome)}
	case "claim":
		c, err := hold(ctx, w.Runtime, s.StatusRef, s.WorkerID, s.lease())
		switch {
		case err != nil:
			return failure(w.t, err)
		case c == nil:
			return map[string]any{"claimed": false, "attempt_count": nil}
		}
		return map[string]any{"claimed": true, "attempt_count": float64(c.Attempt)}
	default:
		w.t.Fatalf("unknown action %q", s.Action)
	}
	return map[string]any{}
}

// valid holds every package against the contract.
func (w *walk) valid(b *toolresult.Bound, pkg *toolresult.Package) {
	w.t.Helper()
	spec, _ := w.Spec(b.Call().Name)
	if problems := toolresult.Validate(b, spec, pkg); len(problems) > 0 {
		w.t.Fatalf("package is not valid: %v", problems)
	}
}

func answer(t testing.TB, pkg *toolresult.Package) map[string]any {
	got := map[string]any{"code": string(pkg.Code()), "delivery": string(pkg.Delivery()), "data": nil}
	if pkg.ModelResult.Data != nil {
		var data any
		if err := json.Unmarshal(pkg.ModelResult.Data, &data); err != nil {
			t.Fatal(err)
		}
		got["data"] = data
	}
	return got
}

func failure(t testing.TB, err error) map[string]any {
	switch {
	case errors.Is(err, toolruntime.ErrContract):
		return map[string]any{"error": "contract_error"}
	case errors.Is(err, toolruntime.ErrInvalidInput):
		return map[string]any{"error": "invalid_value"}
	}
	t.Fatalf("unexpected error: %v", err)
	return nil
}

// state reads the counts, and every operation with its event.
func (w *walk) state() traceState {
	w.t.Helper()
	s := traceState{Counts: w.counts(), Operations: []traceOperation{}}
	db := w.engine.plain(w.t, w.address)
	defer db.Close()
	rows, err := db.Query(`SELECT o.status_ref, o.state, e.state, e.lease_owner, e.lease_until, e.attempt_count,
		o.created_at, o.updated_at, o.completed_at
		FROM operations o JOIN outbox e ON e.operation_pk = o.operation_pk ORDER BY o.operation_pk`)
	if err != nil {
		w.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var o traceOperation
		if err := rows.Scan(&o.StatusRef, &o.State, &o.OutboxState, &o.LeaseOwner, &o.LeaseUntil, &o.AttemptCount,
			&o.CreatedAt, &o.UpdatedAt, &o.CompletedAt); err != nil {
			w.t.Fatal(err)
		}
		s.Operations = append(s.Operations, o)
	}
	if err := rows.Err(); err != nil {
		w.t.Fatal(err)
	}
	return s
}
