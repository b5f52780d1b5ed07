// Package conformance holds the tests that the whole product must pass, on
// every database: the contract's own tests, the vectors of an independent
// implementation, races between goroutines and between processes, and tampering
// with every stored column. They use the public API and the built command.
package conformance

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

// An engine is a database that the suite runs on.
type engine struct {
	name string
	// create makes an empty database and returns how to address it.
	create func(t testing.TB) string
	open   func(ctx context.Context, address string) (*toolruntime.Store, error)
	// plain is a connection past the runtime, as an operator or an attacker has.
	plain func(t testing.TB, address string) *sql.DB
	// noForeignKeys lets a plain connection break foreign keys.
	noForeignKeys string
	// placeholder writes the n-th parameter of a plain statement.
	placeholder func(n int) string
}

// args replaces {1}, {2} … in a plain statement by the engine's parameters.
func (e engine) args(query string) string {
	return numbered.ReplaceAllStringFunc(query, func(s string) string {
		n, _ := strconv.Atoi(s[1 : len(s)-1])
		return e.placeholder(n)
	})
}

var numbered = regexp.MustCompile(`\{[0-9]+\}`)

var engines = []engine{{
	name:   "sqlite",
	create: func(t testing.TB) string { return filepath.Join(t.TempDir(), "runtime.sqlite3") },
	open: func(ctx context.Context, path string) (*toolruntime.Store, error) {
		return sqlitestore.Open(ctx, path, nil)
	},
	plain: func(t testing.TB, path string) *sql.DB {
		t.Helper()
		db, err := sql.Open("sqlite3", "file:"+path+"?_busy_timeout=5000&_foreign_keys=on")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	},
	noForeignKeys: "PRAGMA foreign_keys = OFF",
	placeholder:   func(n int) string { return fmt.Sprintf("?%d", n) },
}, postgres}

func forEachEngine(t *testing.T, test func(t *testing.T, e engine)) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) { test(t, e) })
	}
}

// ran notes which tests have opened a ledger on which engine.
var ran = roll{names: map[string]map[string]bool{}}

type roll struct {
	mu    sync.Mutex
	names map[string]map[string]bool // engine -> test, without the engine's name
}

func (r *roll) note(engine, test string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names[engine] == nil {
		r.names[engine] = map[string]bool{}
	}
	test = strings.Replace(test, "TestSeedEngines/", "TestSeed/", 1)
	r.names[engine][strings.Replace(test, "/"+engine, "", 1)] = true
}

// report prints how many tests ran on every engine, and how many on one only.
func (r *roll) report() {
	shared := 0
	only := map[string]int{}
	for _, e := range engines {
		for test := range r.names[e.name] {
			everywhere := true
			for _, other := range engines {
				everywhere = everywhere && r.names[other.name][test]
			}
			switch {
			case !everywhere:
				only[e.name]++
			case e.name == engines[0].name:
				shared++
			}
		}
	}
	fmt.Printf("conformance: %d tests on every engine", shared)
	for _, e := range engines {
		fmt.Printf(", %d on %s only", only[e.name], e.name)
	}
	fmt.Println()
}

// start is the time at which tests begin.
const start int64 = 1_784_419_200

// A desk is a refund desk over a database, with a clock that stands still until
// it is set.
type desk struct {
	t       testing.TB
	engine  engine
	address string
	orders  *refunds.Orders
	store   *toolruntime.Store
	*toolruntime.Runtime

	mu  sync.Mutex
	now int64
}

type deskOption func(*desk, *toolruntime.Options, *[]toolruntime.Registration)

func newDesk(t testing.TB, e engine, opts ...deskOption) *desk {
	t.Helper()
	ran.note(e.name, t.Name())
	d := &desk{t: t, engine: e, address: e.create(t), orders: refunds.NewOrders(), now: start}
	d.reopen(opts...)
	return d
}

// another opens a second store and runtime over the same database.
func (d *desk) another(opts ...deskOption) *desk {
	d.t.Helper()
	o := &desk{t: d.t, engine: d.engine, address: d.address, orders: d.orders, now: d.time()}
	o.reopen(opts...)
	return o
}

func (d *desk) reopen(opts ...deskOption) {
	d.t.Helper()
	if d.store != nil {
		if err := d.store.Close(); err != nil {
			d.t.Fatal(err)
		}
	}
	store, err := d.engine.open(context.Background(), d.address)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { store.Close() })
	d.store = store
	o := &toolruntime.Options{
		Authorizer: d.orders.Authorize,
		Approvers:  refunds.Approvers,
		Now:        func() time.Time { return time.Unix(d.time(), 0) },
	}
	tools := d.orders.Tools()
	for _, opt := range opts {
		opt(d, o, &tools)
	}
	if d.Runtime, err = toolruntime.New(store, o, tools...); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) time() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

func (d *desk) setTime(now int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = now
}

func withResolver(r toolruntime.Resolver) deskOption {
	return func(_ *desk, o *toolruntime.Options, _ *[]toolruntime.Registration) { o.Resolver = r }
}

func withAuthorizer(a toolruntime.Authorizer) deskOption {
	return func(_ *desk, o *toolruntime.Options, _ *[]toolruntime.Registration) { o.Authorizer = a }
}

func withTools(tools ...toolruntime.Registration) deskOption {
	return func(_ *desk, _ *toolruntime.Options, all *[]toolruntime.Registration) { *all = tools }
}

// sql runs a statement past the runtime.
func (d *desk) sql(query string, args ...any) error {
	db := d.engine.plain(d.t, d.address)
	defer db.Close()
	_, err := db.Exec(query, args...)
	return err
}

func (d *desk) mustSQL(query string, args ...any) {
	d.t.Helper()
	if err := d.sql(query, args...); err != nil {
		d.t.Fatalf("%s: %v", query, err)
	}
}

func (d *desk) scan(query string, to ...any) {
	d.t.Helper()
	db := d.engine.plain(d.t, d.address)
	defer db.Close()
	if err := db.QueryRow(query).Scan(to...); err != nil {
		d.t.Fatalf("%s: %v", query, err)
	}
}

func (d *desk) counts() toolruntime.Counts {
	d.t.Helper()
	c, err := d.Counts(context.Background())
	if err != nil {
		d.t.Fatal(err)
	}
	return c
}

func (d *desk) audit() *toolruntime.AuditReport {
	d.t.Helper()
	r, err := d.Audit(context.Background(), nil)
	if err != nil {
		d.t.Fatal(err)
	}
	return r
}

func (d *desk) bind(p toolresult.Principal, c toolresult.Call) *toolresult.Bound {
	d.t.Helper()
	b, err := d.Bind(p, c)
	if err != nil {
		d.t.Fatal(err)
	}
	return b
}

// approval is what an eligible approver would have signed at the desk's time.
func (d *desk) approval(p toolresult.Principal, c toolresult.Call, mode string) []toolresult.Approval {
	d.t.Helper()
	return approvals(d.t, d.bind(p, c), mode, d.time())
}

func approvals(t testing.TB, b *toolresult.Bound, mode string, now int64) []toolresult.Approval {
	t.Helper()
	a := toolresult.NewApproval(b, "approval-"+b.Call().CallID, refunds.ApproverID, time.Unix(now+60, 0))
	switch mode {
	case "none":
		return nil
	case "valid":
	case "expired":
		a.ExpiresAt = now - 1
	case "mismatched":
		a.ApprovalDigest = zeros
	default:
		t.Fatalf("unknown approval mode %q", mode)
	}
	return []toolresult.Approval{a}
}

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

// vectorFile opens a file of vectors: ours, or that of the folder which
// TOOLRUNTIME_VECTORS names.
func vectorFile(t testing.TB, name string) string {
	t.Helper()
	folder := "testdata"
	if other := os.Getenv("TOOLRUNTIME_VECTORS"); other != "" {
		folder = other
	}
	return filepath.Join(folder, name)
}

// eachLine decodes a file of JSON lines.
func eachLine[T any](t *testing.T, path string, do func(t *testing.T, v T)) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	n := 0
	for lines.Scan() {
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatalf("line %d: %v", n+1, err)
		}
		n++
		do(t, v)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if n == 0 {
		t.Fatal("no vectors")
	}
}
