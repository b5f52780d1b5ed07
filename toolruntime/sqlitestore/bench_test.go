package sqlitestore_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

// The benchmarks come in pairs: what the runtime does, and the floor under it,
// which is the bare SQL of the same transactions over the same schema through
// the same driver, with no digest, no check and no look at what is there. Only
// the ratio of a pair, from one run, means anything.

const benchNow = 1_784_419_200

type bench struct {
	path string
	rt   *toolruntime.Runtime
}

func newBench(b *testing.B) *bench {
	b.Helper()
	x := &bench{path: filepath.Join(b.TempDir(), "bench.sqlite3")}
	store, err := sqlitestore.Open(context.Background(), x.path, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	orders := refunds.NewOrders()
	x.rt, err = toolruntime.New(store, &toolruntime.Options{
		Authorizer: orders.Authorize, Approvers: refunds.Approvers,
		Now: func() time.Time { return time.Unix(benchNow, 0) },
	}, orders.Tools()...)
	if err != nil {
		b.Fatal(err)
	}
	return x
}

var benchPrincipal = toolresult.Principal{TenantID: "tenant-a", SubjectID: "user-1"}

func benchCall(n int64) toolresult.Call {
	id := fmt.Sprintf("%016x", uint64(n)*0x9e3779b97f4a7c15)
	return toolresult.Call{
		Proposal: toolresult.Proposal{Name: "create_refund_draft", Arguments: []byte(`{"order_ref":"ORDER-7","reason":"duplicate"}`)},
		ExecutionContext: toolresult.ExecutionContext{Provider: "openai", APIFamily: "responses", ResponseID: "resp_" + id,
			CallID: "call_" + id, OperationID: "op_" + id, IdempotencyKey: "key_" + id, AdapterRevision: "openai-responses-v1"},
	}
}

func (x *bench) dispatch(b *testing.B, n int64) {
	c := benchCall(n)
	bound, err := x.rt.Bind(benchPrincipal, c)
	if err != nil {
		b.Error(err)
		return
	}
	pkg, err := x.rt.Dispatch(context.Background(), benchPrincipal, c, &toolruntime.DispatchOptions{
		Approvals: []toolresult.Approval{toolresult.NewApproval(bound, "approval", refunds.ApproverID, benchNow+60)}})
	if err != nil || pkg.Code() != toolresult.OK {
		b.Error(pkg, err)
	}
}

// callers runs do b.N times, shared by a number of callers.
func callers(b *testing.B, n int, do func(i int64)) {
	var next atomic.Int64
	var all sync.WaitGroup
	b.ResetTimer()
	for range n {
		all.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				do(i)
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

func BenchmarkFresh(b *testing.B) {
	for _, n := range []int{1, 64} {
		b.Run(fmt.Sprintf("floor/callers=%d", n), func(b *testing.B) { floorFresh(b, n) })
		b.Run(fmt.Sprintf("runtime/callers=%d", n), func(b *testing.B) {
			x := newBench(b)
			callers(b, n, func(i int64) { x.dispatch(b, i) })
		})
	}
}

func BenchmarkReplay(b *testing.B) {
	const stored = 2000
	for _, n := range []int{1, 64} {
		b.Run(fmt.Sprintf("floor/callers=%d", n), func(b *testing.B) {
			x := newBench(b)
			for i := range int64(stored) {
				x.dispatch(b, i)
			}
			floorReplay(b, x.path, n, stored)
		})
		b.Run(fmt.Sprintf("runtime/callers=%d", n), func(b *testing.B) {
			x := newBench(b)
			for i := range int64(stored) {
				x.dispatch(b, i)
			}
			callers(b, n, func(i int64) {
				pkg, err := x.rt.Dispatch(context.Background(), benchPrincipal, benchCall(i%stored), nil)
				if err != nil || pkg.Delivery() != toolresult.LocalReplay {
					b.Error(pkg, err)
				}
			})
		})
	}
}

// A floor holds one connection with the settings of the ledger's own, and runs
// statements on it.
type floor struct {
	conn *sql.Conn
}

func newFloor(b *testing.B, path string) floor {
	b.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+"?_journal_mode=WAL&_synchronous=FULL&_foreign_keys=on&_busy_timeout=5000&_stmt_cache_size=128&_cache_size=-65536")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	conn, err := db.Conn(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	if _, err := conn.ExecContext(context.Background(), "PRAGMA wal_autocheckpoint = 8000"); err != nil {
		b.Fatal(err)
	}
	return floor{conn}
}

func (f floor) exec(b *testing.B, query string, args ...any) {
	if _, err := f.conn.ExecContext(context.Background(), query, args...); err != nil {
		b.Fatal(err)
	}
}

const (
	sqlBind  = `INSERT INTO call_bindings VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING`
	sqlOp    = `INSERT INTO operations VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING`
	sqlEvent = `INSERT INTO outbox VALUES (?,?,?,?,?,?,?,?,?,?,?,?)`
	sqlTried = `INSERT INTO attempts VALUES (?,?,?,?,?,?,?) ON CONFLICT DO NOTHING`
	sqlSeen  = `INSERT INTO downstream_receipts VALUES (NULL,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING`
	sqlTaken = `INSERT INTO local_receipts VALUES (?,?,?,?,?,?,?,?,?,?,?)`
	sqlMoveE = `UPDATE outbox SET state='delivered',lease_owner=NULL,lease_until=NULL,next_attempt_at=0,updated_at=?,row_digest=? WHERE operation_pk=? AND state='processing' AND attempt_count=1`
	sqlMoveO = `UPDATE operations SET state='succeeded',updated_at=?,completed_at=?,row_digest=? WHERE operation_pk=? AND state='processing'`
	sqlReads = `SELECT o.*, l.* FROM operations o JOIN local_receipts l ON l.operation_pk = o.operation_pk
		WHERE o.tenant_id = +? AND o.subject_id = +? AND o.tool_name = +? AND o.idempotency_key = +?`
)

// a floorCall is what a call stores, made up front.
type floorCall struct {
	pk               int64
	id, sha, payload string
	digest           []byte
}

func newFloorCall(n int64) floorCall {
	id := fmt.Sprintf("%016x", uint64(n)*0x9e3779b97f4a7c15)
	sha := id + id + id + id
	return floorCall{n, id, sha, toolresult.OutboxPayload(n, sha, "create_refund_draft"), []byte(sha[:32])}
}

func (f floor) first(b *testing.B, c floorCall) {
	f.exec(b, sqlBind, "tenant-a", "user-1", "openai", "responses", "resp_"+c.id, "call_"+c.id, c.sha, benchNow, "status_"+c.sha[:32], c.digest)
	f.exec(b, sqlOp, c.pk, "tenant-a", "user-1", "create_refund_draft", "key_"+c.id, c.sha, `{"order_ref":"ORDER-7","reason":"duplicate"}`,
		"refund-draft-input-v1", "refund-draft-output-v2", "create-refund-draft-v1", "refund-draft-handler-v2", "refunds-mock-v2",
		"refund-draft-policy-v1", "approval", "human-reviewer-1", c.sha, benchNow+60, benchNow, "op_"+c.id, "call_"+c.id, "resp_"+c.id,
		"openai", "responses", "openai-responses-v1", "status_"+c.sha[:32], "processing", benchNow, benchNow, nil, "", c.digest)
	f.exec(b, sqlEvent, c.pk, "outbox_"+c.sha[:32], c.payload, "processing", "inline-worker", benchNow+30, 1, benchNow, benchNow, c.digest,
		benchNow+30, "create_refund_draft\ntenant-a")
}

func (f floor) second(b *testing.B, c floorCall) {
	result := `{"draft_id":"DRAFT-211342250217029","order_ref":"ORDER-7","reason":"duplicate"}`
	f.exec(b, sqlSeen, "tenant-a", "user-1", "create_refund_draft", "key_"+c.id, c.sha, "refund-receipt-"+c.sha[:24], "refund-request-"+c.sha[:24],
		result, "refunds-mock-v2", "draft-211342250217029-r1", "2026-07-19T00:00:00Z", "create-refund-draft-v1", benchNow, c.digest)
	f.exec(b, sqlTaken, c.pk, "refund-receipt-"+c.sha[:24], "refund-request-"+c.sha[:24], c.sha, result, "refunds-mock-v2",
		"draft-211342250217029-r1", "2026-07-19T00:00:00Z", "create-refund-draft-v1", benchNow, c.digest)
	f.exec(b, sqlTried, c.pk, 1, "inline-worker", benchNow, benchNow, "succeeded", c.digest)
	f.exec(b, sqlMoveE, benchNow, c.digest, c.pk)
	f.exec(b, sqlMoveO, benchNow, benchNow, c.digest, c.pk)
}

// floorFresh stores a call in two transactions, or as many calls as there are
// callers in two.
func floorFresh(b *testing.B, group int) {
	f := newFloor(b, newBench(b).path)
	b.ResetTimer()
	for done := 0; done < b.N; done += group {
		n := min(group, b.N-done)
		for _, step := range []func(*testing.B, floorCall){f.first, f.second} {
			f.exec(b, "BEGIN IMMEDIATE")
			for i := range n {
				step(b, newFloorCall(int64(done+i+1)))
			}
			f.exec(b, "COMMIT")
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// floorReplay reads an operation with its receipt, on as many connections as the
// ledger has readers.
func floorReplay(b *testing.B, path string, n int, stored int64) {
	floors := make(chan floor, 4)
	for range cap(floors) {
		floors <- newFloor(b, path)
	}
	callers(b, n, func(i int64) {
		f := <-floors
		defer func() { floors <- f }()
		rows, err := f.conn.QueryContext(context.Background(), sqlReads, "tenant-a", "user-1", "create_refund_draft", benchCall(i%stored).IdempotencyKey)
		if err != nil {
			b.Error(err)
			return
		}
		defer rows.Close()
		var row [42]any
		to := make([]any, len(row))
		for i := range row {
			to[i] = &row[i]
		}
		if !rows.Next() {
			b.Error("no row")
			return
		}
		if err := rows.Scan(to...); err != nil {
			b.Error(err)
		}
	})
}
