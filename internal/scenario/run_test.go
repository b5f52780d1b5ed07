package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/toolresult"
)

var goodSets = []string{"contract.cases.json", "refunds.cases.json"}

func loadSet(t testing.TB, data []byte) *Set {
	t.Helper()
	s, err := ReadSet(data)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func run(t testing.TB, s *Set) *Report {
	t.Helper()
	report, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// failing lists the steps of a report that did not pass.
func failing(r *Report) []string {
	var list []string
	for _, c := range r.Results {
		for _, s := range c.Steps {
			if !s.Passed {
				list = append(list, fmt.Sprintf("%s/%s: %v %v", c.ID, s.StepID, s.Mismatches, s.Problems))
			}
		}
	}
	return list
}

func TestGoodSetsPass(t *testing.T) {
	for _, name := range goodSets {
		t.Run(name, func(t *testing.T) {
			s := loadSet(t, readFile(t, name))
			report := run(t, s)
			if report.Gate != Pass || report.CasesPassed != len(s.cases) || report.StepsPassed != report.Steps {
				t.Errorf("%s, %d of %d steps: %s", report.Gate, report.StepsPassed, report.Steps, strings.Join(failing(report), "\n"))
			}
			if diff := cmp.Diff(report, run(t, s)); diff != "" {
				t.Errorf("a second run differs: %s", diff)
			}
		})
	}
}

// beyondSets are the codes that no case set can reach: its orders stay paid,
// and its two tools keep their contract. TestMemory has them, but for those that are
// not the contract's.
var beyondSets = []toolresult.Code{toolresult.BusinessRuleViolation, toolresult.OutputContractViolation,
	toolresult.IdempotencyKeyExpired, toolresult.Accepted, toolresult.Cancelled, toolresult.ToolPaused}

func TestContractSetCoversTheCatalogue(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range loadSet(t, readFile(t, "contract.cases.json")).cases {
		for _, s := range c.steps {
			seen[s.action+" "+s.expected.code] = true
			seen[s.expected.code], seen[s.failure], seen[s.approval], seen[s.expected.delivery] = true, true, true, true
		}
	}
	want := []string{"OK", "fresh", "local_replay", "receipt_reconciled",
		noFailure, timeoutBeforeExecute, rateLimit, toolError, timeoutAfterCommit, receiptUnavailable,
		"query_status OK", "query_status UNKNOWN_TOOL", "query_status INVALID_ARGUMENTS", "query_status NOT_FOUND",
		"query_status CALL_ID_CONFLICT", "query_status STATUS_CONFLICT", "query_status OUTCOME_UNKNOWN"}
	want = append(want, approvalModes...)
	for _, e := range toolresult.Catalogue() {
		if !slices.Contains(beyondSets, e.Code) {
			want = append(want, string(e.Code))
		}
	}
	for _, w := range want {
		if !seen[w] {
			t.Errorf("%s is not covered", w)
		}
	}
}

// TestEveryExpectedValueDecides changes one expected value at a time, and wants
// exactly its step to fail and exactly its field to be named.
func TestEveryExpectedValueDecides(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	changes := []struct {
		field  string
		change func(*answer)
	}{
		{"code", func(a *answer) { a.code += "?" }},
		{"status", func(a *answer) { a.status += "?" }},
		{"outcome", func(a *answer) { a.outcome += "?" }},
		{"recovery", func(a *answer) { a.recovery += "?" }},
		{"delivery", func(a *answer) { a.delivery += "?" }},
		{"side_effect_count", func(a *answer) { a.sideEffectCount++ }},
		{"data", func(a *answer) {
			if a.data == "null" {
				a.data = "{}"
			} else {
				a.data = "null"
			}
		}},
	}
	for _, name := range goodSets {
		for _, c := range loadSet(t, readFile(t, name)).cases {
			for i, original := range c.steps {
				for _, ch := range changes {
					c.steps[i] = original
					ch.change(&c.steps[i].expected)
					report := run(t, &Set{cases: []setCase{c}})
					for j, s := range report.Results[0].Steps {
						wrong := len(s.Mismatches) == 1 && s.Mismatches[0].Field == ch.field
						if s.Passed != (i != j) || len(s.Problems) > 0 || i == j && !wrong {
							t.Errorf("%s/%s with another %s: step %s: %+v", c.id, original.id, ch.field, s.StepID, s)
						}
					}
					if report.Gate != Block || report.StepsPassed != len(c.steps)-1 || report.CasesPassed != 0 {
						t.Errorf("%s/%s with another %s: %+v", c.id, original.id, ch.field, report)
					}
				}
				c.steps[i] = original
			}
		}
	}
}

func TestReportJSON(t *testing.T) {
	data := edited(t, smallSet(t), "cases.0.steps.1.expected.code", "OK")
	data = edited(t, data, "cases.0.steps.1.expected.data", map[string]any{"secret": "x"})
	data = edited(t, data, "cases.0.steps.1.expected.side_effect_count", int64(0))
	got, err := json.Marshal(run(t, loadSet(t, data)))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"gate":"BLOCK","cases":1,"cases_passed":0,"steps":2,"steps_passed":1,"results":[{"id":"lost-receipt","passed":false,"steps":[` +
		`{"step_id":"times-out","passed":true},{"step_id":"ask","passed":false,"mismatches":[` +
		`{"field":"code","want":"OK","got":"OUTCOME_UNKNOWN"},{"field":"side_effect_count","want":0,"got":1},` +
		`{"field":"data","note":"differs"}]}]}]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestDataIsComparedAsCanonicalJSON(t *testing.T) {
	text := string(readFile(t, "refunds.cases.json"))
	const plain = `{"draft_id": "DRAFT-1", "order_ref": "ORDER-7", "reason": "duplicate"}`
	other := strings.ReplaceAll(text, plain, `{"reason":"duplic\u0061te", "order_ref":"ORDER-7",  "draft_id":"DRAFT\u002d1"}`)
	if other == text {
		t.Fatal("nothing to replace")
	}
	if report := run(t, loadSet(t, []byte(other))); report.Gate != Pass {
		t.Error(failing(report))
	}
}

func TestCannotRun(t *testing.T) {
	// Floats that take four times their length in canonical form, so that there
	// is no digest of the arguments.
	list := strings.Repeat("1e15,", 1023) + "1e15"
	wide := `{"x":[` + strings.Repeat("["+list+"],", 3) + "[" + list + `]]}`
	const first = "cases.0.steps.0"
	for _, tt := range []struct {
		name  string
		edits map[string]any
		raw   [2]string // replaced in the file's text
		step  string
		want  string
	}{
		{name: "the source has no status_ref", step: "ask", want: errNoStatusRef.Error(),
			edits: map[string]any{first + ".execution_context.idempotency_key": nil}},
		{name: "an approval for an unknown tool", step: "times-out", want: errUnknownForApproval.Error(),
			edits: map[string]any{first + ".proposal.name": "delete_order"}},
		{name: "a read that times out after its commit", step: "times-out", want: errNothingToCommit.Error(),
			edits: map[string]any{first + ".proposal": map[string]any{"name": "get_order", "arguments": map[string]any{"order_ref": "ORDER-7"}}}},
		{name: "arguments without a digest", step: "times-out", want: "arguments: document too large",
			raw: [2]string{`"arguments":{"order_ref":"ORDER-7","reason":"duplicate"}`, `"arguments":` + wide}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := smallSet(t)
			for path, value := range tt.edits {
				data = edited(t, data, path, value)
			}
			if tt.raw[0] != "" {
				data = []byte(strings.Replace(string(data), tt.raw[0], tt.raw[1], 1))
			}
			report, err := loadSet(t, data).Run(t.Context())
			var broken *CannotRunError
			if report != nil || !errors.As(err, &broken) {
				t.Fatalf("got %v, %v, want a CannotRunError", report, err)
			}
			got := [3]string{broken.Case, broken.Step, broken.Rule}
			if diff := cmp.Diff([3]string{"lost-receipt", tt.step, tt.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRunHonoursContext(t *testing.T) {
	s := loadSet(t, smallSet(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if report, err := s.Run(ctx); report != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", report, err)
	}
}
