package toolresult_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/internal/canonjson"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

const now int64 = 1_784_419_200 // 2026-07-19T00:00:00Z

var owner = toolresult.Principal{TenantID: "tenant-a", SubjectID: "user-1"}

func refundSpec(t testing.TB) *toolresult.Spec {
	return specOf(t, refunds.NewOrders().CreateRefundDraft())
}

func orderSpec(t testing.TB) *toolresult.Spec { return specOf(t, refunds.NewOrders().GetOrder()) }

func specOf(t testing.TB, tool toolruntime.Registration) *toolresult.Spec {
	t.Helper()
	spec, err := toolruntime.SpecOf(tool)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// callOf is a call on tool that keeps every limit.
func callOf(tool, arguments string) toolresult.Call {
	return toolresult.NewCall(
		toolresult.Proposal{Name: tool, Arguments: json.RawMessage(arguments)},
		toolresult.ExecutionContext{
			Provider: "openai", APIFamily: "responses", ResponseID: "resp-1", CallID: "call-1",
			OperationID: "op-1", IdempotencyKey: "key-1", AdapterRevision: "openai-responses-v1",
		})
}

func refundCall() toolresult.Call {
	return callOf("create_refund_draft", `{"order_ref":"ORDER-7","reason":"damaged"}`)
}

func orderCall() toolresult.Call { return callOf("get_order", `{"order_ref":"ORDER-7"}`) }

func bind(t testing.TB, c toolresult.Call, contract toolresult.Contract) *toolresult.Bound {
	t.Helper()
	b, err := toolresult.Bind(owner, c, contract)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func refundEvidence(b *toolresult.Bound) toolresult.Evidence {
	return toolresult.Evidence{
		ReceiptID: "refund-receipt-1", RequestID: "refund-request-1", StatusRef: b.StatusRef(),
		Data:             `{"draft_id":"DRAFT-1","order_ref":"ORDER-7","reason":"damaged"}`,
		ProducerRevision: "refunds-mock-v2", ResourceRevision: "draft-1-r1", ObservedAt: "2026-07-19T00:00:00Z",
	}
}

func orderEvidence() toolresult.Evidence {
	return toolresult.Evidence{
		Data:             `{"order_ref":"ORDER-7","status":"paid"}`,
		ProducerRevision: "orders-mock-v2", ObservedAt: "2026-07-19T00:00:00Z",
	}
}

// statusRefOf is the status_ref that a failure with the code carries.
func statusRefOf(b *toolresult.Bound, code toolresult.Code) string {
	switch code {
	case toolresult.Accepted, toolresult.OutcomeUnknown:
		return b.StatusRef()
	case toolresult.StatusConflict:
		return "status_0123456789abcdef0123456789abcdef"
	}
	return ""
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// tree reads JSON as the library does, so that 1000 stays an integer.
func tree(t testing.TB, raw []byte) map[string]any {
	t.Helper()
	v, err := canonjson.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return v.(map[string]any)
}

func canonical(t testing.TB, v any) string {
	t.Helper()
	text, err := canonjson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// wantField asserts that err is an InputError about the field; "" is no error.
func wantField(t *testing.T, err error, field string) {
	t.Helper()
	var input *toolresult.InputError
	switch {
	case field == "" && err != nil:
		t.Errorf("got %v, want no error", err)
	case field != "" && (!errors.As(err, &input) || input.Field != field || !errors.Is(err, toolresult.ErrInvalidInput)):
		t.Errorf("got %v, want an InputError about %q", err, field)
	}
}

// vectorFile opens a file of the conformance vectors, or the one of that name in
// the folder that TOOLRUNTIME_VECTORS names.
func vectorFile(t *testing.T, name string) *os.File {
	t.Helper()
	folder := filepath.Join("..", "conformance", "testdata")
	if other := os.Getenv("TOOLRUNTIME_VECTORS"); other != "" {
		folder = other
	}
	file, err := os.Open(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}
