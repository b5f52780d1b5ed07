package conformance

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// TestRead: a read is answered at once, needs neither key nor approval, and
// leaves nothing in the ledger, however it ends.
func TestRead(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	failing := func(run func(context.Context) (toolruntime.Receipt[note], error)) toolruntime.Registration {
		tool := noteTool("get_note", toolruntime.Once, func(ctx context.Context, _ toolruntime.Effect, _ noteArgs) (toolruntime.Receipt[note], error) {
			return run(ctx)
		})
		tool.Risk, tool.Timeout = toolruntime.Read, 10*time.Millisecond
		return tool
	}
	getNote := callOf("get_note", "", `{"text":"x"}`)
	getNote.CallID, getNote.ResponseID, getNote.OperationID = "c", "r", "o"
	getOrder := getNote
	getOrder.Proposal = toolresult.Proposal{Name: "get_order", Arguments: []byte(`{"order_ref":"ORDER-7"}`)}
	foreign := getOrder
	foreign.Arguments = []byte(`{"order_ref":"ORDER-8"}`)
	wrong := getOrder
	wrong.Arguments = []byte(`{"order_ref":"   "}`)
	tests := []struct {
		name string
		call toolresult.Call
		run  func(context.Context) (toolruntime.Receipt[note], error)
		code toolresult.Code
		data string
	}{
		{"an order", getOrder, nil, toolresult.OK, `{"order_ref":"ORDER-7","status":"paid"}`},
		{"somebody else's order", foreign, nil, toolresult.NotFound, ""},
		{"no order", wrong, nil, toolresult.InvalidArguments, ""},
		{"it fails", getNote, func(context.Context) (toolruntime.Receipt[note], error) {
			return toolruntime.Receipt[note]{}, errors.New("no")
		}, toolresult.ToolError, ""},
		{"it panics", getNote, func(context.Context) (toolruntime.Receipt[note], error) { panic("no") }, toolresult.ToolError, ""},
		{"it takes too long", getNote, func(ctx context.Context) (toolruntime.Receipt[note], error) {
			<-ctx.Done()
			return toolruntime.Receipt[note]{}, ctx.Err()
		}, toolresult.TimeoutBeforeExecute, ""},
		{"it breaks its contract", getNote, func(context.Context) (toolruntime.Receipt[note], error) {
			return toolruntime.Receipt[note]{Data: note{strings.Repeat("x", 21)}}, nil
		}, toolresult.OutputContractViolation, ""},
	}
	forEachEngine(t, func(t *testing.T, e engine) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				d := newDesk(t, e, func(d *desk, _ *toolruntime.Options, tools *[]toolruntime.Registration) {
					*tools = append(*tools, failing(tt.run))
				})
				p := user("user-1")
				pkg, err := d.Dispatch(context.Background(), p, tt.call, nil)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.data, string(pkg.ModelResult.Data)); pkg.Code() != tt.code || diff != "" {
					t.Errorf("%s, data (-want +got):\n%s", pkg.Code(), diff)
				}
				spec, _ := d.Spec(tt.call.Name)
				if problems := toolresult.Validate(d.bind(p, tt.call), spec, pkg); len(problems) > 0 {
					t.Errorf("package: %v", problems)
				}
				if ds := pkg.ProtectedAudit.Downstream; ds.StatusRef != nil || ds.ReceiptID != nil {
					t.Errorf("downstream: %+v", ds)
				}
				if diff := cmp.Diff(toolruntime.Counts{}, d.counts()); diff != "" {
					t.Errorf("counts (-want +got):\n%s", diff)
				}
				asked, err := d.QueryStatus(context.Background(), p, tt.call, "status_"+zeros[:32], nil)
				if err != nil || asked.Code() != toolresult.UnknownTool {
					t.Errorf("status of a read: %v, %v", asked, err)
				}
			})
		}
	})
}
