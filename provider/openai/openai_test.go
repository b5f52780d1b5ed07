package openai_test

import (
	"errors"
	"fmt"
	"log"
	"testing"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/provider/openai"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

func Example() {
	response := []byte(`{"id":"resp_1","output":[{"type":"function_call","call_id":"call_1",
		"name":"create_refund_draft","arguments":"{\"order_ref\":\"ORDER-7\",\"reason\":\"damaged\"}"}]}`)
	calls, err := openai.Calls(response, func(c toolresult.Call) (operationID, idempotencyKey string, err error) {
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
	out, err := openai.Outputs([]toolresult.Expected{{Bound: b, Spec: spec}}, []*toolresult.Package{pkg})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", out)
	// Output:
	// [{"call_id":"call_1","output":"{\"data\":null,\"error\":{\"category\":\"approval\",\"code\":\"APPROVAL_REQUIRED\",\"recovery\":\"request_approval\",\"retry_after_ms\":null,\"safe_message\":\"This action needs a person's approval. Nothing was done; ask for the approval first.\"},\"execution\":{\"complete\":false,\"delivery\":\"fresh\",\"outcome\":\"not_started\",\"truncated\":false},\"provenance\":{\"observed_at\":\"2026-07-19T00:00:00Z\",\"producer_revision\":\"offline-dispatcher-v2\",\"resource_revision\":null,\"source_label\":\"offline-dispatcher\",\"trust\":\"trusted_control\"},\"schema_version\":\"tool-model-result-v2\",\"status\":\"failed\"}","type":"function_call_output"}]
}

func TestCalls(t *testing.T) {
	for _, tt := range []struct{ item, want string }{ // want "" is a refusal
		{`"arguments":""`, `{}`},
		{`"arguments":" \n"`, `{}`},
		{`"arguments":"{}","status":"completed"`, `{}`},
		{`"arguments":"{\"n\":616581622363398}","status":null`, `{"n":616581622363398}`},
		{`"arguments":"{\"s\":\"\ud83d\ude00\"}"`, `{"s":"😀"}`},
		{`"arguments":"null"`, `null`},
		{`"arguments":"\"\""`, `""`},
		{`"arguments":"{\"s\":\"\ud83d\"}"`, ""},
		{`"arguments":"{\"order_ref\":\"OR"`, ""},
		{`"arguments":"{}","status":"incomplete"`, ""},
		{`"arguments":"{}","status":"in_progress"`, ""},
		{`"arguments":{}`, ""},
		{`"arguments":null`, ""},
		{`"Arguments":"{}"`, ""},
	} {
		body := `{"id":"resp_1","output":[{"type":"reasoning"},{"type":"function_call","call_id":"c","name":"tool",` + tt.item + `}]}`
		check(t, tt.item, body, tt.want)
	}
}

func check(t *testing.T, name, body, want string) {
	t.Helper()
	calls, err := openai.Calls([]byte(body), func(toolresult.Call) (string, string, error) { return "op", "", nil })
	var refused *openai.ResponseError
	switch {
	case want == "" && !errors.As(err, &refused):
		t.Errorf("%s: got %v, %v, want a ResponseError", name, calls, err)
	case want != "" && (err != nil || len(calls) != 1 || calls[0].CallID != "c" || string(calls[0].Arguments) != want):
		t.Errorf("%s: got %v, %v, want %s", name, calls, err, want)
	}
}
