package conformance

import (
	"context"
	"strings"
	"testing"

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
