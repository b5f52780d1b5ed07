package gemini_test

import (
	"errors"
	"fmt"
	"log"
	"testing"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/provider/gemini"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

func Example() {
	response := []byte(`{"id":"v1_1","status":"requires_action","outputs":[{"type":"function_call","id":"fc_1",
		"name":"create_refund_draft","arguments":{"order_ref":"ORDER-7","reason":"damaged"}}]}`)
	calls, err := gemini.Calls(response, func(c toolresult.Call) (operationID, idempotencyKey string, err error) {
		return "operation-" + c.CallID, "ticket-4711", nil // from the service's own records
	})
	if err != nil {
		log.Fatal(err)
	}
	spec, err := toolruntime.SpecOf(refunds.NewOrders().CreateRefundDraft())
	if err != nil {
		log.Fatal(err)
	}
	principal := toolresult.Principal{TenantID: "tenant-a", SubjectID: "user-1"}
	b, err := toolresult.Bind(principal, calls[0], spec.Contract())
	if err != nil {
		log.Fatal(err)
	}
	pkg := b.Failure(toolresult.ApprovalRequired, "", 1_784_419_200) // as a Runtime answers
	out, err := gemini.Outputs([]toolresult.Expected{{Bound: b, Spec: spec}}, []*toolresult.Package{pkg})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", out)
	// Output:
	// {"input":[{"call_id":"fc_1","name":"create_refund_draft","result":[{"text":"{\"data\":null,\"error\":{\"category\":\"approval\",\"code\":\"APPROVAL_REQUIRED\",\"recovery\":\"request_approval\",\"retry_after_ms\":null,\"safe_message\":\"This action needs a person's approval. Nothing was done; ask for the approval first.\"},\"execution\":{\"complete\":false,\"delivery\":\"fresh\",\"outcome\":\"not_started\",\"truncated\":false},\"provenance\":{\"observed_at\":\"2026-07-19T00:00:00Z\",\"producer_revision\":\"offline-dispatcher-v2\",\"resource_revision\":null,\"source_label\":\"offline-dispatcher\",\"trust\":\"trusted_control\"},\"schema_version\":\"tool-model-result-v2\",\"status\":\"failed\"}","type":"text"}],"type":"function_result"}],"previous_interaction_id":"v1_1"}
}

func TestCalls(t *testing.T) {
	for _, tt := range []struct{ output, want string }{ // want "" is a refusal
		{`"id":"c","arguments":{"n":616581622363398}`, `{"n":616581622363398}`},
		{`"call_id":"c","arguments":{}`, `{}`},
		{`"id":"c","call_id":"c","arguments":{}`, `{}`},
		{`"id":null,"call_id":"c","arguments":""`, `{}`},
		{`"id":"c"`, `{}`},
		{`"id":"c","arguments":null`, `{}`},
		{`"id":"c","arguments":"{}"`, `"{}"`},
		{`"id":"c","call_id":"d","arguments":{}`, ""},
		{`"id":7,"call_id":"c","arguments":{}`, ""},
		{`"id":"c","call_id":7,"arguments":{}`, ""},
		{`"arguments":{}`, ""},
	} {
		check(t, tt.output, `{"id":"v1_1","outputs":[{"type":"thought"},{"type":"function_call","name":"tool",`+tt.output+`}]}`, tt.want)
	}
}

func check(t *testing.T, name, body, want string) {
	t.Helper()
	calls, err := gemini.Calls([]byte(body), func(toolresult.Call) (string, string, error) { return "op", "", nil })
	var refused *gemini.ResponseError
	switch {
	case want == "" && !errors.As(err, &refused):
		t.Errorf("%s: got %v, %v, want a ResponseError", name, calls, err)
	case want != "" && (err != nil || len(calls) != 1 || calls[0].CallID != "c" || string(calls[0].Arguments) != want):
		t.Errorf("%s: got %v, %v, want %s", name, calls, err, want)
	}
}
