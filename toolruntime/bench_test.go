package toolruntime_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/pgtest"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/pgstore"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

// A benchEngine is a database to measure on.
type benchEngine struct {
	name string
	// open makes a ledger, and a connection past the runtime.
	open func(testing.TB) (*toolruntime.Store, *sql.DB)
	// fill stores a number of operations that have ended, as plain rows: what a
	// worker must find its way past.
	fill string
}

const filled = `'tenant', 'subject', 'pay', 'done-' || i, %[1]s, '{"amount":5}', 'i', 'o', 'e', 'h', 'p', 'r',
	'a', 'reviewer', %[1]s, 1784419260, 1784419200, 'o', 'c', 'r', 'openai', 'responses', 'openai-responses-v1',
	'status_' || substr(%[1]s, 33), 'succeeded', 1784419200, 1784419200, 1784419200`

const filledColumns = `INSERT INTO operations (
	operation_pk, tenant_id, subject_id, tool_name, idempotency_key, request_sha256, arguments_json,
	input_schema_revision, output_schema_revision, effect_revision, handler_revision,
	producer_revision, policy_revision, approval_id, approver_id, approval_digest,
	approval_expires_at, approved_at, first_operation_id, first_call_id, first_response_id,
	first_provider, first_api_family, first_adapter_revision, status_ref, state, created_at, updated_at, completed_at) `

const filledEvents = `
INSERT INTO outbox (operation_pk, event_id, payload_json, state, attempt_count, created_at, updated_at, lane)
SELECT operation_pk, 'outbox_' || operation_pk, '{}', 'delivered', 1, 1784419200, 1784419200, tool_name || %s || tenant_id FROM operations;`

var benchEngines = []benchEngine{{
	name: "sqlite",
	open: func(t testing.TB) (*toolruntime.Store, *sql.DB) {
		path := filepath.Join(t.TempDir(), "ledger.sqlite3")
		store, err := sqlitestore.Open(context.Background(), path, nil)
		return opened(t, store, err), opened(t, must(sql.Open("sqlite3", "file:"+path+"?_busy_timeout=60000")), nil)
	},
	fill: `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) ` + filledColumns +
		"SELECT i, " + fmt.Sprintf(filled, "printf('%%064x', i)") + " FROM n;" + fmt.Sprintf(filledEvents, "char(10)"),
}, {
	name: "postgres",
	open: func(t testing.TB) (*toolruntime.Store, *sql.DB) {
		url := pgtest.Schema(t)
		store, err := pgstore.Open(context.Background(), url, &pgstore.Options{Migrate: true, MaxConns: 24})
		return opened(t, store, err), pgtest.Open(t, url)
	},
	fill: `SET session_replication_role = replica; ` + filledColumns +
		"SELECT nextval(pg_get_serial_sequence('operations', 'operation_pk')), " + fmt.Sprintf(filled, "lpad(to_hex(i), 64, '0')") +
		" FROM generate_series(1, %d) AS i;" + fmt.Sprintf(filledEvents, "chr(10)"),
}}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func opened[T interface{ Close() error }](t testing.TB, v T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

func forEachBenchEngine(b *testing.B, run func(b *testing.B, e benchEngine)) {
	for _, e := range benchEngines {
		b.Run(e.name, func(b *testing.B) { run(b, e) })
	}
}

// runtime is one of the tool pay over a ledger beside so many operations that
// have ended.
func (e benchEngine) runtime(b *testing.B, ended int, run func(context.Context, toolruntime.Effect, payArgs) (toolruntime.Receipt[payment], error)) *toolruntime.Runtime {
	b.Helper()
	store, db := e.open(b)
	if ended > 0 {
		if _, err := db.Exec(fmt.Sprintf(e.fill, ended)); err != nil {
			b.Fatal(err)
		}
	}
	allow := func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil }
	rt, err := toolruntime.New(store, &toolruntime.Options{Authorizer: allow, Approvers: allow}, toolruntime.Tool[payArgs, payment]{
		Name: "pay", Effect: toolruntime.Idempotent, Resource: func(payArgs) string { return "account" }, Run: run})
	if err != nil {
		b.Fatal(err)
	}
	return rt
}

// submitted hands a payment to the workers.
func submitted(b *testing.B, rt *toolruntime.Runtime, key string) string {
	b.Helper()
	c := shopCall("pay", key)
	bound, err := rt.Bind(payer, c)
	if err != nil {
		b.Fatal(err)
	}
	pkg, err := rt.Submit(context.Background(), payer, c, toolresult.NewApproval(bound, "a", "reviewer", time.Unix(contract.MaxTime, 0)))
	if err != nil {
		b.Fatal(err)
	}
	return pkg.StatusRef()
}

// BenchmarkClaimBatch claims 32 of 1,000 pending operations, and gives them back,
// in an otherwise empty ledger and in one with a million operations that have
// ended, in turns. The ratio is how much dearer that is.
func BenchmarkClaimBatch(b *testing.B) {
	forEachBenchEngine(b, func(b *testing.B, e benchEngine) {
		var ledgers []*toolruntime.Runtime
		for _, ended := range []int{0, 1_000_000} {
			rt := e.runtime(b, ended, func(_ context.Context, e toolruntime.Effect, a payArgs) (toolruntime.Receipt[payment], error) {
				return paid(e)
			})
			for i := range 1000 {
				submitted(b, rt, fmt.Sprint(i))
			}
			ledgers = append(ledgers, rt)
		}
		var took [2]time.Duration
		for b.Loop() {
			for i, rt := range ledgers {
				began := time.Now()
				n, giveBack, err := rt.TestingOnlyClaimBatch(context.Background(), 32)
				took[i] += time.Since(began)
				if err != nil || n != 32 {
					b.Fatal(n, err)
				}
				if err := giveBack(); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(took[0].Seconds()*1e3/float64(b.N), "ms/empty")
		b.ReportMetric(took[1].Seconds()*1e3/float64(b.N), "ms/million")
		b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "ratio")
	})
}

// BenchmarkPoison measures how long it takes until 1,000 good operations have
// ended, alone and behind 100 of the same tool that never succeed. The ratio is
// how much longer they take then.
func BenchmarkPoison(b *testing.B) {
	const good, poison, usual = 1000, 100, 10 * time.Millisecond
	forEachBenchEngine(b, func(b *testing.B, e benchEngine) {
		var took [2]time.Duration
		for b.Loop() {
			for i, bad := range []int{0, poison} {
				took[i] += e.timeGood(b, good, bad, usual)
			}
		}
		b.ReportMetric(took[0].Seconds()/float64(b.N), "s/alone")
		b.ReportMetric(took[1].Seconds()/float64(b.N), "s/poisoned")
		b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "ratio")
	})
}

// timeGood is how long a worker takes for the good operations, whose handlers take
// the usual time. A third each of the bad ones is put off, panics, and fails
// after twice that time.
func (e benchEngine) timeGood(b *testing.B, good, bad int, usual time.Duration) time.Duration {
	b.Helper()
	rt := e.runtime(b, 0, func(ctx context.Context, e toolruntime.Effect, a payArgs) (toolruntime.Receipt[payment], error) {
		var n int
		if _, err := fmt.Sscanf(e.IdempotencyKey, "bad-%d", &n); err != nil {
			pass(ctx, usual)
			return paid(e)
		}
		switch n % 3 {
		case 0:
			return toolruntime.Receipt[payment]{}, toolruntime.RetryLater(0, errors.New("not now"))
		case 1:
			panic("poison")
		}
		pass(ctx, 2*usual)
		return toolruntime.Receipt[payment]{}, errors.New("nobody knows")
	})
	for i := range bad {
		submitted(b, rt, fmt.Sprint("bad-", i))
	}
	var refs []string
	for i := range good {
		refs = append(refs, submitted(b, rt, fmt.Sprint("good-", i)))
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	began := time.Now()
	go func() { ended <- rt.Work(ctx, nil) }()
	for _, ref := range refs {
		if err := rt.Wait(ctx, ref); err != nil {
			b.Fatal(err)
		}
	}
	took := time.Since(began)
	stop()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
	return took
}

// pass takes time, as a downstream does.
func pass(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}
