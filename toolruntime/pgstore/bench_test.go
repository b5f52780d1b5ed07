package pgstore

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
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
		toolresult.NewApproval(b, "approval-"+key, refunds.ApproverID, toolresult.MaxTime)}})
}

func BenchmarkDispatch(b *testing.B) {
	ctx := context.Background()
	address := pgtest.Schema(b)
	store, err := Open(ctx, address, &Options{Migrate: true, MaxConns: 16})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	rt := newRuntime(b, store)
	var n atomic.Int64
	b.SetParallelism(16)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			pkg, err := dispatch(ctx, rt, fmt.Sprint("key-", n.Add(1)))
			if err != nil || pkg.Code() != toolresult.OK {
				b.Errorf("%v, %v", pkg, err)
			}
		}
	})
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "dispatches/s")
	var commits, rollbacks int64
	if err := pgtest.Open(b, address).QueryRow("SELECT xact_commit, xact_rollback FROM pg_stat_database WHERE datname = current_database()").Scan(&commits, &rollbacks); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(rollbacks)/float64(b.N), "rollbacks/op")
}
