package pgstore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/pgtest"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// refund is one call of the example's write tool.
func refund(key string) (toolresult.Principal, toolresult.Call) {
	return toolresult.Principal{TenantID: "tenant-a", SubjectID: "user-1"}, toolresult.NewCall(
		toolresult.Proposal{Name: "create_refund_draft", Arguments: []byte(`{"order_ref":"ORDER-7","reason":"duplicate"}`)},
		toolresult.ExecutionContext{Provider: "openai", APIFamily: "responses", ResponseID: "response-" + key,
			CallID: "call-" + key, OperationID: "operation-" + key, IdempotencyKey: key, AdapterRevision: "openai-responses-v1"})
}

// newRuntime is the example's runtime over a store.
func newRuntime(t testing.TB, store *toolruntime.Store) *toolruntime.Runtime {
	t.Helper()
	orders := refunds.NewOrders()
	rt, err := toolruntime.New(store, &toolruntime.Options{Authorizer: orders.Authorize, Approvers: refunds.Approvers}, orders.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

func dispatch(ctx context.Context, rt *toolruntime.Runtime, key string) (*toolresult.Package, error) {
	p, c := refund(key)
	b, err := rt.Bind(p, c)
	if err != nil {
		return nil, err
	}
	return rt.Dispatch(ctx, p, c, &toolruntime.DispatchOptions{Approvals: []toolresult.Approval{
		toolresult.NewApproval(b, "approval-"+key, refunds.ApproverID, time.Unix(contract.MaxTime, 0))}})
}

// BenchmarkFresh is a new call, for a number of callers at a time, on a server of
// its own that syncs every commit. Only ratios of interleaved runs mean anything.
func BenchmarkFresh(b *testing.B) {
	for _, callers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			ctx := context.Background()
			address := pgtest.Schema(b)
			store, err := Open(ctx, address, &Options{Migrate: true, MaxConns: min(callers, 32)})
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			rt := newRuntime(b, store)
			var next atomic.Int64
			var all sync.WaitGroup
			b.ResetTimer()
			for range callers {
				all.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						if pkg, err := dispatch(ctx, rt, fmt.Sprint("key-", i)); err != nil || pkg.Code() != toolresult.OK {
							b.Errorf("%v, %v", pkg, err)
						}
					}
				})
			}
			all.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
		})
	}
}
