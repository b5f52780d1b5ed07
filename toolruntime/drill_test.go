package toolruntime_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/failpoint"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
)

// TestDrillPoints: what stops at which point, and that what cannot stop at one says
// so before it has done anything.
func TestDrillPoints(t *testing.T) {
	points := []drill.Point{drill.AfterIntentCommit, drill.AfterClaim, drill.AfterDownstreamCommit, "", "none", "AfterClaim"}
	calls := map[string]func(f *fixture, ctx context.Context) (string, error){
		"dispatch": func(f *fixture, ctx context.Context) (string, error) {
			pkg, err := f.Dispatch(ctx, payer, payCall(), &toolruntime.DispatchOptions{Approvals: f.approved()})
			if err != nil {
				return "", err
			}
			return string(pkg.Code()), nil
		},
		"submit": func(f *fixture, ctx context.Context) (string, error) {
			pkg, err := f.Submit(ctx, payer, payCall(), f.approved()...)
			if err != nil {
				return "", err
			}
			return string(pkg.Code()), nil
		},
		"process": func(f *fixture, ctx context.Context) (string, error) {
			f.must(f.dispatch(drill.AfterIntentCommit))
			outcome, err := f.Process(ctx, f.bound().StatusRef(), "worker", nil)
			return string(outcome), err
		},
		"work": func(f *fixture, ctx context.Context) (string, error) {
			f.must(f.dispatch(drill.AfterIntentCommit))
			ctx, cancel := context.WithCancel(ctx)
			cancel() // it ends at once if it has begun
			return "", f.Work(ctx, nil)
		},
	}
	type end struct {
		Answer  string
		Refused bool
		Moments string // how the operation stands
		Effects int
	}
	none := end{Refused: true}
	reserved := end{Refused: true, Moments: "waiting"}
	lost := func(answer string, effects int) end { return end{answer, false, "running", effects} }
	want := map[string]map[drill.Point]end{
		"dispatch": {
			drill.AfterIntentCommit:     {Answer: "OUTCOME_UNKNOWN", Moments: "waiting"},
			drill.AfterClaim:            lost("OUTCOME_UNKNOWN", 0),
			drill.AfterDownstreamCommit: lost("OUTCOME_UNKNOWN", 1),
		},
		"submit": {drill.AfterIntentCommit: none, drill.AfterClaim: none, drill.AfterDownstreamCommit: none},
		"process": {
			drill.AfterIntentCommit:     reserved,
			drill.AfterClaim:            lost("crashed_after_claim", 0),
			drill.AfterDownstreamCommit: lost("outcome_unknown", 1),
		},
		"work": {drill.AfterIntentCommit: reserved, drill.AfterClaim: reserved, drill.AfterDownstreamCommit: reserved},
	}
	for name, call := range calls {
		for _, p := range points {
			t.Run(fmt.Sprintf("%s %q", name, p), func(t *testing.T) {
				f := newFixture(t, toolruntime.Idempotent)
				answer, err := call(f, drill.StopAt(context.Background(), p))
				var input *toolresult.InputError
				if err != nil && (!errors.As(err, &input) || input.Field != "drill") {
					t.Fatal(err)
				}
				got := end{Answer: answer, Refused: err != nil, Effects: f.bank.calls}
				if h, err := f.History(context.Background(), f.bound().StatusRef()); err == nil {
					got.Moments = string(h.Moments[len(h.Moments)-1].What)
				}
				expected, known := want[name][p]
				if !known { // no point at all
					expected = none
					if name == "process" || name == "work" {
						expected = reserved
					}
				}
				if diff := cmp.Diff(expected, got); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// TestDrillIsOneCalls: the point is for the call that gets it, and for nothing that
// its callbacks call.
func TestDrillIsOneCalls(t *testing.T) {
	f := newFixture(t, toolruntime.Idempotent)
	seen := map[string]bool{}
	look := func(who string, ctx context.Context) {
		_, set, _ := failpoint.Take(ctx)
		seen[who] = set
	}
	tool := toolruntime.Tool[payArgs, payment]{
		Name: "pay", Effect: toolruntime.Idempotent, Resource: func(payArgs) string { return "account" },
		Rule: func(ctx context.Context, _ toolresult.Principal, _ payArgs) (bool, error) {
			look("rule", ctx)
			return true, nil
		},
		Run: func(ctx context.Context, e toolruntime.Effect, a payArgs) (toolruntime.Receipt[payment], error) {
			look("run", ctx)
			return f.bank.pay(e, a)
		},
	}
	rt, err := toolruntime.New(f.TestingOnlyStore(), &toolruntime.Options{
		Authorizer: func(ctx context.Context, _ toolresult.Principal, _, _ string) (bool, error) {
			look("authorizer", ctx)
			return true, nil
		},
		Approvers: func(ctx context.Context, _ toolresult.Principal, _, _ string) (bool, error) {
			look("approvers", ctx)
			return true, nil
		},
		Now: func() time.Time { return time.Unix(f.time(), 0) },
	}, tool)
	if err != nil {
		t.Fatal(err)
	}
	f.Runtime = rt
	f.must(f.dispatch(drill.AfterDownstreamCommit))
	want := map[string]bool{"rule": false, "run": false, "authorizer": false, "approvers": false}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
}
