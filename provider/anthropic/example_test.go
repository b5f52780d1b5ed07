package anthropic_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/provider/anthropic"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

// A turn of the provider comes in, its tools are run, and the next request goes
// out. One of the two calls has an argument of the wrong type: the model learns
// which, and the other call gets its answer.
func Example() {
	ctx, user := context.Background(), toolresult.Principal{TenantID: "tenant-a", SubjectID: "user-1"}
	rt, done := newRuntime(ctx)
	defer done()
	response := []byte(`{"id":"msg_1","role":"assistant","stop_reason":"tool_use","content":[
		{"type":"tool_use","id":"toolu_1","name":"get_order","input":{"order_ref":"ORDER-7"}},
		{"type":"tool_use","id":"toolu_2","name":"get_order","input":{"order_ref":7}}]}`)

	calls, err := anthropic.Calls(response, func(c toolresult.Call) (operationID, idempotencyKey string, err error) {
		return "operation-" + c.CallID, "", nil // from the service's own records; a read needs no key
	})
	if err != nil {
		log.Fatal(err) // no whole turn: none of its calls may be carried out
	}
	expected := make([]toolresult.Expected, len(calls))
	results := make([]*toolresult.Package, len(calls))
	for i, c := range calls {
		if expected[i], err = rt.Expect(user, c); err != nil {
			log.Fatal(err)
		}
		if results[i], err = rt.Dispatch(ctx, user, c, nil); err != nil {
			log.Fatal(err)
		}
	}
	next, err := anthropic.Next(response, expected, results)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", next)
	// Output:
	// [{"content":[{"type":"tool_use","id":"toolu_1","name":"get_order","input":{"order_ref":"ORDER-7"}},{"type":"tool_use","id":"toolu_2","name":"get_order","input":{"order_ref":7}}],"role":"assistant"},{"content":[{"content":[{"text":"{\"data\":{\"order_ref\":\"ORDER-7\",\"status\":\"paid\"},\"error\":null,\"execution\":{\"complete\":true,\"delivery\":\"fresh\",\"outcome\":\"committed\",\"truncated\":false},\"provenance\":{\"observed_at\":\"2026-07-19T00:00:00Z\",\"producer_revision\":\"orders-mock-v2\",\"resource_revision\":null,\"source_label\":\"orders\",\"trust\":\"untrusted_data\"},\"schema_version\":\"tool-model-result-v2\",\"status\":\"succeeded\"}","type":"text"}],"is_error":false,"tool_use_id":"toolu_1","type":"tool_result"},{"content":[{"text":"{\"data\":null,\"error\":{\"category\":\"contract\",\"code\":\"INVALID_ARGUMENTS\",\"recovery\":\"correct_input\",\"retry_after_ms\":null,\"safe_message\":\"The arguments do not match the tool's input schema. Correct them and propose the call again.\"},\"execution\":{\"complete\":false,\"delivery\":\"fresh\",\"outcome\":\"not_started\",\"truncated\":false},\"provenance\":{\"observed_at\":\"2026-07-19T00:00:00Z\",\"producer_revision\":\"offline-dispatcher-v2\",\"resource_revision\":null,\"source_label\":\"offline-dispatcher\",\"trust\":\"trusted_control\"},\"schema_version\":\"tool-model-result-v2\",\"status\":\"failed\"}","type":"text"},{"text":"What is wrong with the call:\n/order_ref: must be a string, not a number","type":"text"}],"is_error":true,"tool_use_id":"toolu_2","type":"tool_result"}],"role":"user"}]
}

// newRuntime is a runtime with the tools of the refund desk.
func newRuntime(ctx context.Context) (*toolruntime.Runtime, func()) {
	folder, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	store, err := sqlitestore.Open(ctx, filepath.Join(folder, "ledger.sqlite3"), nil)
	if err != nil {
		log.Fatal(err)
	}
	orders := refunds.NewOrders()
	rt, err := toolruntime.New(store, &toolruntime.Options{
		Authorizer: orders.Authorize, Approvers: refunds.Approvers,
		Now: func() time.Time { return time.Unix(1_784_419_200, 0) },
	}, orders.Tools()...)
	if err != nil {
		log.Fatal(err)
	}
	return rt, func() {
		store.Close()
		os.RemoveAll(folder)
	}
}
