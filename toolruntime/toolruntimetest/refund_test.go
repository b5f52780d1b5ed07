package toolruntimetest_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/toolruntimetest"
)

type RefundArgs struct {
	OrderRef string `json:"order_ref" schema:"minLength=1,maxLength=64"`
}

type Refund struct {
	OrderRef string `json:"order_ref" schema:"maxLength=64"`
}

// refundTool is the tool under test, with the bank behind it. A tool of yours takes
// its client so, and gets one in a test that asks the downstream.
func refundTool(bank *toolruntimetest.Downstream, kind toolruntime.EffectKind) toolruntime.Registration {
	tool := toolruntime.Tool[RefundArgs, Refund]{
		Name: "refund", Effect: kind,
		Equal:    map[string]string{"order_ref": "order_ref"},
		Resource: func(a RefundArgs) string { return a.OrderRef },
		Run: func(ctx context.Context, e toolruntime.Effect, a RefundArgs) (toolruntime.Receipt[Refund], error) {
			return toolruntimetest.Do(ctx, bank, e.Identity, func() toolruntime.Receipt[Refund] {
				return toolruntime.Receipt[Refund]{ID: "receipt-" + e.Identity, RequestID: "request-1", Data: Refund(a)}
			})
		},
	}
	if kind == toolruntime.Queryable {
		tool.Find = func(ctx context.Context, e toolruntime.Effect, _ RefundArgs) (toolruntime.Receipt[Refund], bool, error) {
			return toolruntimetest.Find[toolruntime.Receipt[Refund]](ctx, bank, e.Identity)
		}
	}
	return tool
}

// TestRefund: whatever becomes of the first request, the call ends as its effect kind
// allows, and the bank has paid no more than once.
func TestRefund(t *testing.T) {
	const (
		once, queryable, idempotent = toolruntime.Once, toolruntime.Queryable, toolruntime.Idempotent
		unknown                     = toolresult.OutcomeUnknown
	)
	tests := []struct {
		name    string
		kind    toolruntime.EffectKind
		fault   toolruntimetest.Fault
		code    toolresult.Code // in the end
		effects int
	}{
		{"answered", once, toolruntimetest.None, toolresult.OK, 1},
		{"answered", queryable, toolruntimetest.None, toolresult.OK, 1},
		{"answered", idempotent, toolruntimetest.None, toolresult.OK, 1},
		{"answer lost", once, toolruntimetest.AnswerLost, unknown, 1},
		{"answer lost", queryable, toolruntimetest.AnswerLost, toolresult.OK, 1},
		{"answer lost", idempotent, toolruntimetest.AnswerLost, toolresult.OK, 1},
		{"request lost", once, toolruntimetest.RequestLost, unknown, 0},
		{"request lost", queryable, toolruntimetest.RequestLost, toolresult.OK, 1},
		{"request lost", idempotent, toolruntimetest.RequestLost, toolresult.OK, 1},
		{"answer hangs", once, toolruntimetest.AnswerHangs, unknown, 1},
		{"answer hangs", queryable, toolruntimetest.AnswerHangs, toolresult.OK, 1},
		{"answer hangs", idempotent, toolruntimetest.AnswerHangs, toolresult.OK, 1},
		{"refused", once, toolruntimetest.Refused, toolresult.ToolError, 0},
		{"down", once, toolruntimetest.Down, toolresult.OK, 1},
		{"arrives twice", idempotent, toolruntimetest.Repeated, toolresult.OK, 1},
	}
	for _, tt := range tests {
		t.Run(tt.kind.String()+" "+tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // where waits take no time
				bank := &toolruntimetest.Downstream{}
				rt, err := toolruntime.New(toolruntimetest.Store(t), &toolruntime.Options{
					Authorizer: toolruntimetest.Allow, Approvers: toolruntimetest.Persons("carol"),
				}, refundTool(bank, tt.kind))
				if err != nil {
					t.Fatal(err)
				}
				toolruntimetest.Work(t, rt, nil)

				alice := toolresult.Principal{TenantID: "acme", SubjectID: "alice"}
				call := toolruntimetest.Call("refund", `{"order_ref":"ORDER-7"}`, "refund-of-order-7")
				bank.Next(tt.fault)
				if _, err := rt.Submit(t.Context(), alice, call, toolruntimetest.Approve(t, rt, alice, call, "carol")); err != nil {
					t.Fatal(err)
				}
				pkg, err := rt.Await(t.Context(), alice, call)
				if err != nil || pkg.Code() != tt.code {
					t.Errorf("it ended with %v, %v; want %s", pkg, err, tt.code)
				}

				toolruntimetest.CheckOnce(t, rt, bank)
				effects := 0
				for _, n := range bank.Effects() {
					effects += n
				}
				if effects != tt.effects {
					t.Errorf("the bank has paid %d times, want %d", effects, tt.effects)
				}
			})
		})
	}
}
