package toolruntime_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/tables"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

// BenchmarkAudit audits a ledger of refunds that have ended. The environment can
// make it larger, and keep its file for the next time:
//
//	TOOLRUNTIME_BENCH_OPERATIONS=1000000 TOOLRUNTIME_BENCH_LEDGER=/tmp/million.sqlite3
func BenchmarkAudit(b *testing.B) {
	operations := 100_000
	if s := os.Getenv("TOOLRUNTIME_BENCH_OPERATIONS"); s != "" {
		var err error
		if operations, err = strconv.Atoi(s); err != nil {
			b.Fatal(err)
		}
	}
	path := os.Getenv("TOOLRUNTIME_BENCH_LEDGER")
	if path == "" {
		path = filepath.Join(b.TempDir(), "ledger.sqlite3")
	}
	rt := refundLedger(b, path, operations)
	for b.Loop() {
		r, err := rt.Audit(context.Background(), nil)
		if err != nil {
			b.Fatal(err)
		}
		if !r.Passed || r.Counts.Operations != int64(operations) || r.Unregistered.Count != 0 {
			b.Fatalf("%+v", r)
		}
	}
	b.ReportMetric(float64(operations)*float64(b.N)/b.Elapsed().Seconds(), "operations/s")
}

// refundLedger opens the ledger at path, and fills it.
func refundLedger(tb testing.TB, path string, operations int) *toolruntime.Runtime {
	tb.Helper()
	store, err := sqlitestore.Open(context.Background(), path, nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = store.Close() })
	return fillWithRefunds(tb, store, operations)
}

// newRefunds is the runtime of the refunds example.
func newRefunds(tb testing.TB, store *toolruntime.Store) *toolruntime.Runtime {
	tb.Helper()
	orders := refunds.NewOrders()
	rt, err := toolruntime.New(store, &toolruntime.Options{Authorizer: orders.Authorize, Approvers: refunds.Approvers}, orders.Tools()...)
	if err != nil {
		tb.Fatal(err)
	}
	return rt
}

// fillWithRefunds fills a ledger up to so many refunds that have succeeded, row
// by row as the runtime leaves them.
func fillWithRefunds(tb testing.TB, store *toolruntime.Store, operations int) *toolruntime.Runtime {
	tb.Helper()
	ctx := context.Background()
	rt := newRefunds(tb, store)
	counts, err := rt.Counts(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	var e engine.Engine
	toolruntime.TestingOnlyWrapEngine(store, func(inner engine.Engine) engine.Engine { e = inner; return inner })
	const unit = 5000
	for first := int(counts.Operations); first < operations; first += unit {
		err := e.Write(ctx, func(ctx context.Context, q engine.Querier) error {
			for i := first; i < min(first+unit, operations); i++ {
				if err := insertRefund(ctx, rt, q, i); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	return rt
}

// bindRefund binds the call of the i-th refund. Its key has no order, as with
// clients that draw theirs.
func bindRefund(rt *toolruntime.Runtime, i int) (*toolresult.Bound, error) {
	key := refundKey(i)
	return rt.Bind(toolresult.Principal{TenantID: fmt.Sprint("tenant-", i%20), SubjectID: fmt.Sprint("user-", i%1000)}, toolresult.NewCall(
		toolresult.Proposal{Name: "create_refund_draft", Arguments: []byte(`{"order_ref":"ORDER-7","reason":"damaged"}`)},
		toolresult.ExecutionContext{Provider: "openai", APIFamily: "responses", ResponseID: "response-" + key, CallID: "call-" + key,
			OperationID: "operation-" + key, IdempotencyKey: "refund-" + key, AdapterRevision: "openai-responses-v1"}))
}

func refundKey(i int) string { return fmt.Sprintf("%016x", uint64(i+1)*0x9e3779b97f4a7c15) }

// insertRefund stores the i-th refund.
func insertRefund(ctx context.Context, rt *toolruntime.Runtime, q engine.Querier, i int) error {
	const now = 1_784_419_200
	b, err := bindRefund(rt, i)
	if err != nil {
		return err
	}
	key, p := refundKey(i), b.Principal()
	c, t, approval := b.Call(), b.Contract(), toolresult.NewApproval(b, "approval-"+key, refunds.ApproverID, time.Unix(now+60, 0))
	call := dbgen.CallBinding{TenantID: p.TenantID, SubjectID: p.SubjectID, Provider: c.Provider, APIFamily: c.APIFamily,
		ResponseID: c.ResponseID, CallID: c.CallID, FingerprintSha256: b.Fingerprint(toolresult.PurposeDispatch), CreatedAt: now, StatusRef: b.StatusRef()}
	tables.CallBindings.Seal(&call)
	o := dbgen.Operation{TenantID: p.TenantID, SubjectID: p.SubjectID, ToolName: c.Name, IdempotencyKey: c.IdempotencyKey,
		RequestSha256: b.RequestSHA256(), ArgumentsJSON: b.Arguments(),
		InputSchemaRevision: t.InputSchema, OutputSchemaRevision: t.OutputSchema, EffectRevision: t.Effect, HandlerRevision: t.Handler,
		ProducerRevision: t.Producer, PolicyRevision: t.Policy, ApprovalID: approval.ApprovalID, ApproverID: approval.ApproverID,
		ApprovalDigest: approval.ApprovalDigest, ApprovalExpiresAt: approval.ExpiresAt, ApprovedAt: now,
		FirstOperationID: c.OperationID, FirstCallID: c.CallID, FirstResponseID: c.ResponseID, FirstProvider: c.Provider,
		FirstAPIFamily: c.APIFamily, FirstAdapterRevision: c.AdapterRevision, StatusRef: b.StatusRef(), State: "succeeded",
		CreatedAt: now, UpdatedAt: now + 1, CompletedAt: sql.NullInt64{Int64: now + 1, Valid: true}, OperationPK: int64(i + 1)}
	tables.Operations.Seal(&o)
	payload := contract.OutboxPayload(o.OperationPK, o.RequestSha256, o.ToolName)
	event := dbgen.Outbox{OperationPK: o.OperationPK, EventID: contract.OutboxEventID(payload), PayloadJSON: payload, State: "delivered",
		AttemptCount: 1, CreatedAt: now, UpdatedAt: now + 1, Lane: o.ToolName + "\n" + o.TenantID}
	tables.Outbox.Seal(&event)
	attempt := dbgen.Attempt{OperationPK: o.OperationPK, Attempt: 1, WorkerID: "worker", StartedAt: now, EndedAt: now + 1, Outcome: "succeeded"}
	tables.Attempts.Seal(&attempt)
	observed := dbgen.DownstreamReceipt{DownstreamPK: o.OperationPK, TenantID: p.TenantID, SubjectID: p.SubjectID, ToolName: c.Name,
		IdempotencyKey: c.IdempotencyKey, RequestSha256: o.RequestSha256, ReceiptID: "refund-receipt-" + key, DownstreamRequestID: "refund-request-" + key,
		ResultJSON:       fmt.Sprintf(`{"draft_id":"DRAFT-%d","order_ref":"ORDER-7","reason":"damaged"}`, i+1),
		ProducerRevision: t.Producer, ResourceRevision: fmt.Sprintf("draft-%d-r1", i+1), ObservedAt: "2026-07-19T00:00:00Z",
		EffectRevision: t.Effect, CommittedAt: now + 1}
	tables.DownstreamReceipts.Seal(&observed)
	accepted := dbgen.LocalReceipt{OperationPK: o.OperationPK, ReceiptID: observed.ReceiptID, DownstreamRequestID: observed.DownstreamRequestID,
		RequestSha256: o.RequestSha256, ResultJSON: observed.ResultJSON, ProducerRevision: observed.ProducerRevision,
		ResourceRevision: observed.ResourceRevision, ObservedAt: observed.ObservedAt, EffectRevision: observed.EffectRevision, ReconciledAt: now + 1}
	tables.LocalReceipts.Seal(&accepted)
	for _, insert := range []func() error{
		func() error { _, err := q.InsertCallBinding(ctx, dbgen.InsertCallBindingParams(call)); return err },
		func() error { return q.CopyOperation(ctx, dbgen.CopyOperationParams(o)) },
		func() error { return q.InsertEvent(ctx, dbgen.InsertEventParams(event)) },
		func() error { _, err := q.InsertAttempt(ctx, dbgen.InsertAttemptParams(attempt)); return err },
		func() error { return q.CopyDownstreamReceipt(ctx, dbgen.CopyDownstreamReceiptParams(observed)) },
		func() error {
			_, err := q.InsertLocalReceipt(ctx, dbgen.InsertLocalReceiptParams(accepted))
			return err
		},
	} {
		if err := insert(); err != nil {
			return err
		}
	}
	return nil
}
