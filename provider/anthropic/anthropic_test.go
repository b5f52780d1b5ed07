package anthropic_test

import (
	"errors"
	"fmt"
	"log"
	"testing"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/provider/anthropic"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

func Example() {
	response := []byte(`{"id":"msg_1","role":"assistant","stop_reason":"tool_use","content":[{"type":"tool_use","id":"toolu_1",
		"name":"create_refund_draft","input":{"order_ref":"ORDER-7","reason":"damaged"}}]}`)
	calls, err := anthropic.Calls(response, func(c toolresult.Call) (operationID, idempotencyKey string, err error) {
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
	out, err := anthropic.Outputs([]toolresult.Expected{{Bound: b, Spec: spec}}, []*toolresult.Package{pkg})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", out)
	// Output:
	// {"content":[{"content":[{"text":"{\"data\":null,\"error\":{\"category\":\"approval\",\"code\":\"APPROVAL_REQUIRED\",\"recovery\":\"request_approval\",\"retry_after_ms\":null,\"safe_message\":\"This action needs a person's approval. Nothing was done; ask for the approval first.\"},\"execution\":{\"complete\":false,\"delivery\":\"fresh\",\"outcome\":\"not_started\",\"truncated\":false},\"provenance\":{\"observed_at\":\"2026-07-19T00:00:00Z\",\"producer_revision\":\"offline-dispatcher-v2\",\"resource_revision\":null,\"source_label\":\"offline-dispatcher\",\"trust\":\"trusted_control\"},\"schema_version\":\"tool-model-result-v2\",\"status\":\"failed\"}","type":"text"}],"is_error":true,"tool_use_id":"toolu_1","type":"tool_result"}],"role":"user"}
}

func TestCalls(t *testing.T) {
	const block = `"content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"tool_use","id":"c","name":"tool"`
	for _, tt := range []struct{ body, want string }{ // want "" is a refusal
		{block + `,"input":{"n":616581622363398}}]`, `{"n":616581622363398}`},
		{block + `,"input":""}]`, `{}`},
		{block + `,"input":null}]`, `{}`},
		{block + `}]`, `{}`},
		{block + `,"input":"{}"}]`, `"{}"`},
		{block + `,"input":{}}],"stop_reason":"end_turn"`, `{}`},
		{block + `,"input":{}}],"stop_reason":null`, `{}`},
		{block + `,"input":{}}],"stop_reason":"max_tokens"`, ""},
		{block + `,"input":{}}],"stop_reason":"model_context_window_exceeded"`, ""},
		{block + `,"input":{}}],"stop_reason":7`, ""},
		{`"content":"text"`, ""},
		{`"Content":[]`, ""},
	} {
		check(t, tt.body, `{"id":"msg_1",`+tt.body+`}`, tt.want)
	}
}

func check(t *testing.T, name, body, want string) {
	t.Helper()
	calls, err := anthropic.Calls([]byte(body), func(toolresult.Call) (string, string, error) { return "op", "", nil })
	var refused *anthropic.ResponseError
	switch {
	case want == "" && !errors.As(err, &refused):
		t.Errorf("%s: got %v, %v, want a ResponseError", name, calls, err)
	case want != "" && (err != nil || len(calls) != 1 || calls[0].CallID != "c" || string(calls[0].Arguments) != want):
		t.Errorf("%s: got %v, %v, want %s", name, calls, err, want)
	}
}
