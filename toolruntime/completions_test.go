package toolruntime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
)

// heard is what there is to hear behind a cursor, and the cursor after it.
func heard(t *testing.T, rt *toolruntime.Runtime, after toolruntime.Cursor) (all []string, last toolruntime.Cursor) {
	t.Helper()
	last = after
	for c, err := range rt.Completions(context.Background(), after, &toolruntime.CompletionOptions{UntilNow: true}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprint(c.StatusRef, " ", c.Tool, " ", c.State, " ", c.Code, " ", c.At.Unix()))
		last = c.Cursor
	}
	return all, last
}

// TestCompletions: each way in which an operation ends is told, with how it stands; and
// once it was told nothing is told again.
func TestCompletions(t *testing.T) {
	const began = 1_784_419_200
	onBothEngines(t, func(t *testing.T, open func(*testing.T) (*toolruntime.Store, error)) {
		rt, refs := listed(t, open)
		line := func(key, tool string, state toolruntime.State, code toolresult.Code, at int64) string {
			return fmt.Sprint(refs[key], " ", tool, " ", state, " ", code, " ", began+at)
		}
		got, last := heard(t, rt, "")
		want := []string{
			line("succeeded", "pay", toolruntime.StateSucceeded, toolresult.OK, 20),
			line("failed", "pay", toolruntime.StateFailed, toolresult.ToolError, 30),
			line("in_review", "pay", toolruntime.StateInReview, toolresult.OutcomeUnknown, 40),
			line("other", "other", toolruntime.StateSucceeded, toolresult.OK, 50),
			line("tenant", "pay", toolruntime.StateSucceeded, toolresult.OK, 60),
		}
		sorted := func(s []string) []string { slices.Sort(s); return s }
		if diff := cmp.Diff(sorted(want), sorted(got)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if got, _ := heard(t, rt, last); got != nil {
			t.Errorf("told again: %v", got)
		}
		ctx := context.Background()
		if err := errors.Join(rt.Cancel(ctx, refs["pending"], "dana", "why"),
			rt.Resolve(ctx, toolruntime.Resolution{StatusRef: refs["in_review"], Decision: toolruntime.ConfirmedDone, Actor: "dana", Reason: "the bank has it", Receipt: evidence()})); err != nil {
			t.Fatal(err)
		}
		got, last = heard(t, rt, last)
		want = []string{
			line("pending", "pay", toolruntime.StateFailed, toolresult.Cancelled, 70),
			line("in_review", "pay", toolruntime.StateSucceeded, toolresult.OK, 70),
		}
		if diff := cmp.Diff(sorted(want), sorted(got)); diff != "" {
			t.Errorf("by people (-want +got):\n%s", diff)
		}
		if got, _ := heard(t, rt, last); got != nil {
			t.Errorf("told again: %v", got)
		}
		if r, err := rt.Audit(ctx, nil); err != nil || !r.Passed {
			t.Errorf("audit: %+v, %v", r, err)
		}
	})
}

// TestCompletionsReconciled: what succeeds by a receipt that was observed before is told
// when it has succeeded, though the receipt was passed by then; what goes on again is not
// told until it ends.
func TestCompletionsReconciled(t *testing.T) {
	ctx := context.Background()
	onBothEngines(t, func(t *testing.T, open func(*testing.T) (*toolruntime.Store, error)) {
		f := newFixtureOn(t, open, toolruntime.Once)
		f.must(f.submit())
		ref := f.bound().StatusRef()
		if _, err := f.Process(drill.StopAt(ctx, drill.AfterDownstreamCommit), ref, "worker", nil); err != nil {
			t.Fatal(err)
		}
		f.dispatchKey("later")
		got, last := heard(t, f.Runtime, "")
		if len(got) != 1 {
			t.Fatalf("%v", got)
		}
		if pkg, err := f.Status(ctx, payer, payCall()); err != nil || pkg.Code() != toolresult.OK {
			t.Fatalf("%v, %v", pkg, err)
		}
		got, last = heard(t, f.Runtime, last)
		if want := []string{ref + " pay succeeded OK 1784419200"}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}

		f.bank.fail = errors.New("cut off")
		f.dispatchKey("lost")
		f.bank.fail = nil
		lost := ""
		for _, v := range f.reviewed() {
			lost = v.StatusRef
		}
		if err := f.Resolve(ctx, toolruntime.Resolution{StatusRef: lost, Decision: toolruntime.TryAgain, Actor: "dana", Reason: "the bank has nothing"}); err != nil {
			t.Fatal(err)
		}
		if got, _ := heard(t, f.Runtime, last); got != nil {
			t.Errorf("it goes on: %v", got)
		}
		if outcome, err := f.Process(ctx, lost, "worker", nil); outcome != toolruntime.Succeeded || err != nil {
			t.Fatalf("%v, %v", outcome, err)
		}
		// Twice: where it is in review no more when it is read, that is told as it stands.
		got, last = heard(t, f.Runtime, last)
		if want := lost + " pay succeeded OK 1784419200"; !slices.Equal(got, []string{want, want}) {
			t.Errorf("%v, want twice %v", got, want)
		}
		if got, _ := heard(t, f.Runtime, last); got != nil {
			t.Errorf("told again: %v", got)
		}
	})
}

func (f *fixture) reviewed() []toolruntime.Item {
	f.t.Helper()
	items, err := f.Review(context.Background(), "", 10)
	if err != nil {
		f.t.Fatal(err)
	}
	return items
}

// TestCompletionsPruned: what was pruned before anybody has heard of it is told, and no
// key is given twice, though all receipts but the newest are gone.
func TestCompletionsPruned(t *testing.T) {
	ctx := context.Background()
	onBothEngines(t, func(t *testing.T, open func(*testing.T) (*toolruntime.Store, error)) {
		f := newFixtureOn(t, open, toolruntime.Once)
		f.must(f.dispatch(alive))
		first, cursor := heard(t, f.Runtime, "")
		f.dispatchKey("a")
		f.dispatchKey("b")
		f.dispatchKey("c")
		later := payCall() // it is the newest operation, and has no receipt
		later.IdempotencyKey, later.CallID = "open", "open"
		b, err := f.Bind(payer, later)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Submit(ctx, payer, later, toolresult.NewApproval(b, "a", "reviewer", time.Unix(f.time()+60, 0))); err != nil {
			t.Fatal(err)
		}
		f.pass(40 * 86400)
		if r, err := f.Prune(ctx, &toolruntime.PruneOptions{OlderThan: 30 * 24 * time.Hour}); err != nil || r.Pruned != 3 {
			t.Fatalf("%+v, %v", r, err)
		}
		got, last := heard(t, f.Runtime, cursor)
		if len(got) != 3 {
			t.Errorf("%v", got)
		}
		if all, _ := heard(t, f.Runtime, ""); !slices.Equal(all, append(first, got...)) {
			t.Errorf("from the beginning: %v", all)
		}
		f.dispatchKey("d")
		if got, _ := heard(t, f.Runtime, last); len(got) != 1 {
			t.Errorf("a new one: %v", got)
		}
		f.wantAudit()
	})
}

// TestCompletionsCursor: a cursor that is none, or of another ledger, is refused.
func TestCompletionsCursor(t *testing.T) {
	onBothEngines(t, func(t *testing.T, open func(*testing.T) (*toolruntime.Store, error)) {
		one, _ := listed(t, open)
		_, cursor := heard(t, one, "")
		another := newFixtureOn(t, open, toolruntime.Once)
		page, err := one.List(context.Background(), &toolruntime.ListOptions{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		for name, after := range map[string]toolruntime.Cursor{"of an empty ledger": cursor, "of a list": page.Next, "nonsense": "nonsense"} {
			for c, err := range another.Completions(context.Background(), after, nil) {
				if !errors.Is(err, toolruntime.ErrInvalidInput) {
					t.Errorf("%s: %+v, %v", name, c, err)
				}
			}
		}
		another.must(another.dispatch(alive))
		another.dispatchKey("a")
		another.dispatchKey("b")
		for c, err := range another.Completions(context.Background(), cursor, nil) {
			if !errors.Is(err, toolruntime.ErrInvalidInput) {
				t.Errorf("of another ledger: %+v, %v", c, err)
			}
		}
		for _, err := range one.Completions(context.Background(), "", &toolruntime.CompletionOptions{Poll: -1}) {
			if !errors.Is(err, toolruntime.ErrInvalidInput) {
				t.Errorf("a negative poll: %v", err)
			}
		}
	})
}

// TestCompletionsWhileCalling: many callers, and listeners that leave after any number of
// completions and go on from the last cursor. Nothing is missed.
func TestCompletionsWhileCalling(t *testing.T) {
	const callers, calls = 8, 12
	onBothEngines(t, func(t *testing.T, open func(*testing.T) (*toolruntime.Store, error)) {
		store, err := open(t)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		allow := func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil }
		rt, err := toolruntime.New(store, &toolruntime.Options{Authorizer: allow, Approvers: allow},
			toolruntime.Tool[payArgs, payment]{Name: "pay", Effect: toolruntime.Once, Resource: func(payArgs) string { return "account" },
				Run: func(_ context.Context, e toolruntime.Effect, _ payArgs) (toolruntime.Receipt[payment], error) {
					if e.IdempotencyKey[0] == '3' {
						return toolruntime.Receipt[payment]{}, toolruntime.GiveUp(errors.New("no such account"))
					}
					return paid(e)
				}})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				for n := range calls {
					c := shopCall("pay", fmt.Sprint(i, "-", n))
					b, err := rt.Bind(payer, c)
					if err == nil {
						_, err = rt.Dispatch(context.Background(), payer, c, &toolruntime.DispatchOptions{
							Approvals: []toolresult.Approval{toolresult.NewApproval(b, "a", "reviewer", time.Now().Add(time.Hour))}})
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
		defer stop()
		seen, cursor := map[string]bool{}, toolruntime.Cursor("")
		for leave := 1; len(seen) < callers*calls; leave++ {
			n := 0
			for c, err := range rt.Completions(ctx, cursor, nil) {
				if err != nil {
					t.Fatalf("%v after %d of %d", err, len(seen), callers*calls)
				}
				seen[c.StatusRef], cursor = true, c.Cursor
				if n++; n == leave%7 || len(seen) == callers*calls {
					break
				}
			}
		}
		all.Wait()
		for c, err := range rt.Completions(ctx, cursor, &toolruntime.CompletionOptions{UntilNow: true}) {
			if err != nil || !seen[c.StatusRef] {
				t.Errorf("%+v, %v", c, err)
			}
		}
	})
}

// TestCompletionsEnd: the list ends with its context, whose error it tells.
func TestCompletionsEnd(t *testing.T) {
	f := newFixtureOn(t, openSQLite, toolruntime.Once)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var ends []error
	f.must(f.dispatch(alive))
	for _, err := range f.Completions(ctx, "", nil) {
		ends = append(ends, err)
		stop()
	}
	if len(ends) != 2 || ends[0] != nil || !errors.Is(ends[1], context.Canceled) {
		t.Errorf("%v", ends)
	}
}

// TestBellForAll: whoever waits for any end is woken by each.
func TestBellForAll(t *testing.T) {
	rung, leave := toolruntime.TestingOnlyRingsForAll()
	toolruntime.TestingOnlyRing("status_of_anything")
	select {
	case <-rung:
	default:
		t.Error("not rung")
	}
	leave()
	toolruntime.TestingOnlyRing("status_of_anything")
	select {
	case <-rung:
		t.Error("rung after leaving")
	default:
	}
}

// TestCompletionsAcrossGaps: keys that are gone for good, few or millions, do not make
// anybody hear twice of what lies behind them, on whichever page they are.
func TestCompletionsAcrossGaps(t *testing.T) {
	defer toolruntime.TestingOnlyFeedPage(toolruntime.TestingOnlyFeedPage(2))
	onBothEngines(t, func(t *testing.T, open func(*testing.T) (*toolruntime.Store, error)) {
		f := newFixtureOn(t, open, toolruntime.Once)
		f.must(f.dispatch(alive))
		for i := range 5 {
			f.dispatchKey(fmt.Sprint(i))
		}
		for _, statement := range []string{
			"UPDATE downstream_receipts SET downstream_pk = 9000000000000 + downstream_pk WHERE downstream_pk > 3",
			"UPDATE downstream_receipts SET downstream_pk = 1 + downstream_pk WHERE downstream_pk = (SELECT MAX(downstream_pk) FROM downstream_receipts)",
		} {
			err := f.fault.WriteWith(context.Background(), func(ctx context.Context, _ engine.Querier, tx dbgen.DBTX) error {
				_, err := tx.ExecContext(ctx, statement)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		all, last := heard(t, f.Runtime, "")
		if len(all) != 6 {
			t.Errorf("%v", all)
		}
		if again, _ := heard(t, f.Runtime, last); again != nil {
			t.Errorf("told again: %v", again)
		}
	})
}
