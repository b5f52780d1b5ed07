package main

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"time"

	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/pgquery"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/pgstore"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

// The settings of the ledger's own connections to SQLite, for those of the floor.
// They are package sqlitestore's, which keeps them to itself; TestSettings reads
// them there and fails when these are others. The floor's readers have the cache of
// the writer, which the ledger peeks with while nobody writes.
const (
	sqliteBoth   = "_synchronous=FULL&_foreign_keys=on&_busy_timeout=5000&_stmt_cache_size=128"
	sqliteWriter = sqliteBoth + "&_journal_mode=WAL&_cache_size=-65536"
	sqliteReader = sqliteBoth + "&_query_only=on&_mutex=no&_cache_size=-65536"
	sqlitePragma = `
PRAGMA trusted_schema = OFF;
PRAGMA cell_size_check = ON;
PRAGMA wal_autocheckpoint = 8000;
PRAGMA journal_size_limit = 67108864;`
)

// pgConns is the size of every pool on PostgreSQL: the runtime's, the floor's and
// the peers'.
const pgConns = 32

// A ledger is one that was made for a measurement, with the example's runtime on
// it.
type ledger struct {
	database string
	address  string // path or URL
	rt       *toolruntime.Runtime
	watch    *watch // of the bed in which it was opened
	// ran is how often the refund tool's handler has run, and full is called when
	// it has run so often.
	ran  atomic.Int64
	want int64
	full func()
}

var owner = toolresult.Principal{TenantID: "tenant-a", SubjectID: "user-1"}

const refundTool = "create_refund_draft"

// newLedger makes an empty ledger in a bed.
func newLedger(ctx context.Context, b *bed, database string) (*ledger, error) {
	l := &ledger{database: database, address: b.file("ledger.sqlite3")}
	if database == "postgres" {
		var err error
		if l.address, err = b.database(ctx); err != nil {
			return nil, err
		}
	}
	b.keeps(database, l.address, "operations")
	return l, l.open(ctx, b)
}

func (l *ledger) open(ctx context.Context, b *bed) (err error) {
	var store *toolruntime.Store
	if l.database == "postgres" {
		store, err = pgstore.Open(ctx, l.address, &pgstore.Options{Migrate: true, MaxConns: pgConns})
	} else {
		store, err = sqlitestore.Open(ctx, l.address, nil)
	}
	if err != nil {
		return err
	}
	b.later(store.Close)
	l.watch = &b.watch
	orders := refunds.NewOrders()
	tool := orders.CreateRefundDraft()
	run := tool.Run
	tool.Run = func(ctx context.Context, e toolruntime.Effect, a refunds.RefundArgs) (toolruntime.Receipt[refunds.RefundDraft], error) {
		if l.ran.Add(1) == l.want {
			l.full()
		}
		return run(ctx, e, a)
	}
	l.rt, err = toolruntime.New(store, &toolruntime.Options{Authorizer: orders.Authorize, Approvers: refunds.Approvers}, tool)
	return err
}

// scatter turns a number into a name of its own. Names come in no order, as random
// keys do, so that an index is written all over.
func scatter(n int64) string { return fmt.Sprintf("%016x", uint64(n)*0x9e3779b97f4a7c15) }

// call is one of the calls that all scenarios make; no two numbers give the same.
func call(n int64) toolresult.Call {
	id := scatter(n)
	return toolresult.Call{
		Proposal: toolresult.Proposal{Name: refundTool, Arguments: []byte(`{"order_ref":"ORDER-7","reason":"duplicate"}`)},
		ExecutionContext: toolresult.ExecutionContext{Provider: "openai", APIFamily: "responses", ResponseID: "resp_" + id,
			CallID: "call_" + id, OperationID: "op_" + id, IdempotencyKey: "key_" + id, AdapterRevision: "openai-responses-v1"},
	}
}

// bind binds the call of a number.
func (l *ledger) bind(n int64) (*toolresult.Bound, error) { return l.rt.Bind(owner, call(n)) }

// approve is the approval that a call needs.
func approve(b *toolresult.Bound) toolresult.Approval {
	return toolresult.NewApproval(b, "approval", refunds.ApproverID, time.Unix(contract.MaxTime, 0))
}

// A bare connection goes past the runtime, and runs the ledger's statements as
// they are.
type bare struct {
	*sql.Conn
	dbgen.Querier
	begin string
}

// connect opens bare connections.
func (l *ledger) connect(ctx context.Context, b *bed, n int, settings string) (chan bare, error) {
	driver, dsn, begin := "sqlite3", "file:"+l.address+"?"+settings, "BEGIN IMMEDIATE"
	if l.database == "postgres" {
		driver, dsn, begin = "pgx", l.address, "BEGIN ISOLATION LEVEL REPEATABLE READ"
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, err
	}
	b.later(db.Close)
	conns := make(chan bare, n)
	for range n {
		conn, err := db.Conn(ctx)
		if err != nil {
			return nil, err
		}
		b.later(conn.Close)
		c := bare{conn, dbgen.New(conn), begin}
		if l.database == "postgres" {
			c.Querier = pgquery.New(conn, func(err error) error { return err })
		} else if _, err := conn.ExecContext(ctx, sqlitePragma); err != nil {
			return nil, err
		}
		conns <- c
	}
	return conns, nil
}

// transact runs a transaction. One that fails ends the measurement and its
// connection, so nothing is rolled back.
func (c bare) transact(ctx context.Context, unit func() error) error {
	if _, err := c.ExecContext(ctx, c.begin); err != nil {
		return err
	}
	if err := unit(); err != nil {
		return err
	}
	_, err := c.ExecContext(ctx, "COMMIT")
	return err
}
