package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// TestReceiptOfAnother: a downstream that answers two operations with one
// receipt id breaks its contract; the second answer is kept for a person.
func TestReceiptOfAnother(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		same := noteTool("same", toolruntime.Idempotent, func(context.Context, toolruntime.Effect, noteArgs) (toolruntime.Receipt[note], error) {
			return toolruntime.Receipt[note]{ID: "receipt-1", RequestID: "request-1", Data: note{"x"}}, nil
		})
		d := newDesk(t, e, withTools(same))
		p, first, second := user("user-1"), callOf("same", "first", `{"text":"x"}`), callOf("same", "second", `{"text":"x"}`)
		if pkg := d.send(p, first, ""); pkg.Code() != toolresult.OK {
			t.Fatal(pkg.Code())
		}
		if pkg := d.send(p, second, ""); pkg.Code() != toolresult.OutputContractViolation {
			t.Error(pkg.Code())
		}
		if c := d.counts(); c.DownstreamReceipts != 1 || c.LocalReceipts != 1 {
			t.Errorf("counts %+v", c)
		}
	})
}

// TestReceiptThatCannotBeStored: an answer that a database cannot hold, or not
// index, is kept as evidence for a person. The effect has happened: it must not
// be lost in an error, and not be repeated.
func TestReceiptThatCannotBeStored(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		for name, id := range map[string]string{"zero byte": "receipt\x00", "long": strings.Repeat("x", 1025)} {
			runs := 0
			odd := noteTool("odd", toolruntime.Idempotent, func(context.Context, toolruntime.Effect, noteArgs) (toolruntime.Receipt[note], error) {
				runs++
				return toolruntime.Receipt[note]{ID: id, RequestID: "request-1", Data: note{"x"}}, nil
			})
			d := newDesk(t, e, withTools(odd))
			pkg := d.send(user("user-1"), callOf("odd", "key", `{"text":"x"}`), "")
			if pkg.Code() != toolresult.OutputContractViolation || runs != 1 {
				t.Errorf("%s: %s after %d runs", name, pkg.Code(), runs)
			}
			if r := d.audit(); !r.Passed {
				t.Errorf("%s: %q", name, r.SemanticErrors)
			}
		}
	})
}

// TestReceiptRefusedAgain: a second answer that breaks the contract, after a
// person has said to try again, is kept beside the first and puts the operation
// in review again.
func TestReceiptRefusedAgain(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		runs := 0
		odd := noteTool("odd", toolruntime.Idempotent, func(_ context.Context, e toolruntime.Effect, _ noteArgs) (toolruntime.Receipt[note], error) {
			runs++
			return noteReceipt(e, strings.Repeat("too long ", 10)), nil
		})
		d := newDesk(t, e, withTools(odd))
		call := callOf("odd", "key", `{"text":"x"}`)
		ref := d.bind(user("user-1"), call).StatusRef()
		d.send(user("user-1"), call, alive)
		err := d.Resolve(context.Background(), toolruntime.Resolution{StatusRef: ref, Decision: toolruntime.TryAgain, Actor: "dana", Reason: "the bank has corrected it"})
		if err != nil {
			t.Fatal(err)
		}
		d.setTime(start + 600)
		if outcome, err := d.Process(context.Background(), ref, "worker", nil); err != nil || outcome != toolruntime.OutcomeUnknown {
			t.Errorf("%s, %v", outcome, err)
		}
		h, err := d.History(context.Background(), ref)
		if err != nil || h.State != "in_review" || h.Reason != toolresult.OutputContractViolation || runs != 2 {
			t.Errorf("%+v after %d runs, %v", h, runs, err)
		}
		if diff := cmp.Diff([]string{"refused 1", "refused 2"}, refusals(h)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		d.wantAudit()
	})
}

// refusals are the answers to an operation that were not accepted.
func refusals(h *toolruntime.History) (all []string) {
	for _, m := range h.Moments {
		if m.What == "refused" {
			all = append(all, fmt.Sprintf("refused %d", m.Attempt))
		}
	}
	return all
}

// TestReceiptTooLate: the answer of a worker that another has overtaken changes
// nothing, and a person who has to find out what has happened sees it. Where the
// other has the same receipt, there is nothing to find out.
func TestReceiptTooLate(t *testing.T) {
	tests := []struct {
		name   string
		kind   toolruntime.EffectKind
		answer string // of the late worker
		state  toolruntime.State
		refuse []string
	}{
		{"in review", toolruntime.Once, "late", "in_review", []string{"refused 1"}},
		{"in review, and it breaks the contract", toolruntime.Once, strings.Repeat("too long ", 10), "in_review", []string{"refused 1"}},
		{"succeeded otherwise", toolruntime.Idempotent, "late", "succeeded", []string{"refused 1"}},
		{"succeeded with the same", toolruntime.Idempotent, "same", "succeeded", nil},
	}
	forEachEngine(t, func(t *testing.T, e engine) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				var d, other *desk
				var ref string
				runs := 0
				tool := noteTool("note", tt.kind, func(_ context.Context, e toolruntime.Effect, _ noteArgs) (toolruntime.Receipt[note], error) {
					if runs++; runs > 1 {
						return noteReceipt(e, "same"), nil
					}
					other.setTime(start + 600)
					if _, err := other.Process(context.Background(), ref, "other", nil); err != nil {
						t.Errorf("the other worker: %v", err)
					}
					r := noteReceipt(e, tt.answer)
					if tt.answer != "same" {
						r.ID = "receipt-late"
					}
					return r, nil
				})
				d = newDesk(t, e, withAuthorizer(anybody), withTools(tool))
				other = d.another(withAuthorizer(anybody), withTools(tool))
				ref = d.submit(noteCall("k"))
				if _, err := d.Process(context.Background(), ref, "late", nil); !errors.Is(err, toolruntime.ErrLeaseLost) {
					t.Errorf("the late worker: %v", err)
				}
				h, err := d.History(context.Background(), ref)
				if err != nil || h.State != tt.state {
					t.Errorf("%+v, %v", h, err)
				}
				if diff := cmp.Diff(tt.refuse, refusals(h)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				d.wantAudit()
			})
		}
	})
}
