package conformance

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
)

// TestCause: the history says of each attempt how it has ended and why, without a
// word of what the host's code has said; and the audit knows no objection.
func TestCause(t *testing.T) {
	secret := "the card 4111"
	tests := []struct {
		text     string
		kind     toolruntime.EffectKind
		how, why string
	}{
		{"good", toolruntime.Idempotent, "succeeded", ""},
		{"panics", toolruntime.Idempotent, "unknown", "panicked"},
		{"fails", toolruntime.Idempotent, "unknown", "error"},
		{"fails", toolruntime.Once, "unknown", "error"},
		{"too late", toolruntime.Idempotent, "unknown", "timed_out"},
		{"gave up", toolruntime.Idempotent, "unknown", "cancelled"},
		{"ask somebody", toolruntime.Idempotent, "unknown", "needs_review"},
		{"not now", toolruntime.Idempotent, "not_done", ""},
		{"never", toolruntime.Idempotent, "given_up", ""},
		{"no id", toolruntime.Idempotent, "rejected", ""},
		{"not allowed", toolruntime.Idempotent, "denied", "not_authorized"},
		{"authorizer fails", toolruntime.Idempotent, "denied", "error"},
		{"authorizer panics", toolruntime.Idempotent, "denied", "panicked"},
		{"against the rule", toolruntime.Idempotent, "denied", "business_rule"},
		{"rule fails", toolruntime.Idempotent, "denied", "error"},
	}
	forEachEngine(t, func(t *testing.T, e engine) {
		var accepted atomic.Bool // what the host says changes after a call is accepted
		run := func(_ context.Context, e toolruntime.Effect, a noteArgs) (r toolruntime.Receipt[note], err error) {
			switch a.Text {
			case "panics":
				panic(secret)
			case "fails":
				return r, fmt.Errorf("the bank: %s", secret)
			case "too late":
				return r, fmt.Errorf("the bank: %w", context.DeadlineExceeded)
			case "gave up":
				return r, fmt.Errorf("the bank: %w", context.Canceled)
			case "ask somebody":
				return r, fmt.Errorf("the bank: %w", toolruntime.ErrNeedsReview)
			case "not now":
				return r, toolruntime.RetryLater(0, errLost)
			case "never":
				return r, toolruntime.GiveUp(errLost)
			case "no id":
				return toolruntime.Receipt[note]{}, nil
			}
			return noteReceipt(e, a.Text), nil
		}
		asked := func(a string) (bool, error) {
			if !accepted.Load() {
				return true, nil
			}
			switch a {
			case "authorizer panics":
				panic(secret)
			case "authorizer fails", "rule fails":
				return false, fmt.Errorf("no answer: %s", secret)
			case "not allowed", "against the rule":
				return false, nil
			}
			return true, nil
		}
		var tools []toolruntime.Registration
		for _, kind := range []toolruntime.EffectKind{toolruntime.Idempotent, toolruntime.Once} {
			tool := noteTool(fmt.Sprint("note_", kind), kind, run)
			tool.Resource = func(a noteArgs) string { return a.Text }
			tool.Rule = func(_ context.Context, _ toolresult.Principal, a noteArgs) (bool, error) {
				if a.Text == "against the rule" || a.Text == "rule fails" {
					return asked(a.Text)
				}
				return true, nil
			}
			tools = append(tools, tool)
		}
		authorizer := func(_ context.Context, _ toolresult.Principal, _, resource string) (bool, error) {
			if resource == "against the rule" || resource == "rule fails" {
				return true, nil
			}
			return asked(resource)
		}
		d := newDesk(t, e, withAuthorizer(authorizer), withTools(tools...))
		for i, tt := range tests {
			accepted.Store(false)
			ref := d.submit(callOf(fmt.Sprint("note_", tt.kind), fmt.Sprint("key-", i), fmt.Sprintf(`{"text":%q}`, tt.text)))
			accepted.Store(true)
			_, _ = d.Process(context.Background(), ref, "worker", nil)
			want := []string{tt.how, tt.why}
			if diff := cmp.Diff(want, attempts(d, ref)); diff != "" {
				t.Errorf("%s, %v: (-want +got)\n%s", tt.text, tt.kind, diff)
			}
		}
		if report := d.audit(); !report.Passed {
			t.Errorf("the audit: %q", report.SemanticErrors)
		}
	})
}

// attempts are how the attempts of an operation have ended, and why.
func attempts(d *desk, ref string) (all []string) {
	d.t.Helper()
	h, err := d.History(context.Background(), ref)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, m := range h.Moments {
		if m.What == toolruntime.MomentAttempt {
			all = append(all, m.How, m.Why)
		}
	}
	return all
}

// TestCauseOfNoRepetition: after an attempt of which nobody heard again, what may
// have happened once is not tried again, and that is said.
func TestCauseOfNoRepetition(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		tool := noteTool("note", toolruntime.Once, func(_ context.Context, e toolruntime.Effect, a noteArgs) (toolruntime.Receipt[note], error) {
			return noteReceipt(e, a.Text), nil
		})
		d := newDesk(t, e, withAuthorizer(anybody), withTools(tool))
		ref := d.submit(callOf("note", "key", `{"text":"hello"}`))
		if _, err := d.Process(drill.StopAt(context.Background(), drill.AfterClaim), ref, "gone", nil); err != nil {
			t.Fatal(err)
		}
		d.setTime(d.time() + day)
		if _, err := d.Process(context.Background(), ref, "worker", nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"lost", "", "unknown", "not_repeatable"}, attempts(d, ref)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if report := d.audit(); !report.Passed {
			t.Errorf("the audit: %q", report.SemanticErrors)
		}
	})
}
