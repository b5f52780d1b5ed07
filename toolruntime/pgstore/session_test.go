package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/pgquery"
	"github.com/toolruntime/toolruntime-go/internal/pgtest"
	"github.com/toolruntime/toolruntime-go/internal/verbtest"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// TestDefaults: whatever the server, the database and the role say by default, the
// ledger does what it does, and keeps what it acknowledges.
func TestDefaults(t *testing.T) {
	h := newHousehold(t)
	for name, value := range map[string]string{
		"default_transaction_isolation":  "serializable",
		"default_transaction_deferrable": "on",
		"synchronous_commit":             "off",
		"standard_conforming_strings":    "off",
		"bytea_output":                   "escape",
		"client_encoding":                "LATIN1",
		"search_path":                    "nowhere",
		"TimeZone":                       "Asia/Kathmandu",
		"DateStyle":                      "German",
		"quote_all_identifiers":          "on",
		"extra_float_digits":             "-5",
		"statement_timeout":              "100",
	} {
		h.do(h.root, "ALTER ROLE service SET "+name+" = '"+value+"'")
	}
	h.serve(h.tools, "a")
	h.serve(pgtest.With(h.tools, "default_query_exec_mode", "simple_protocol"), "a")
}

// TestDefaultsOfConnections: they are what the documents say, and stay raised where
// the operator has raised them.
func TestDefaultsOfConnections(t *testing.T) {
	h := newHousehold(t)
	h.do(h.root, "ALTER ROLE service SET default_transaction_isolation = 'serializable'", "ALTER ROLE service SET synchronous_commit = 'remote_apply'",
		"ALTER ROLE service SET statement_timeout = '2s'", "ALTER ROLE service SET lock_timeout = 1")
	for _, tt := range []struct{ address, setting, want string }{
		{h.tools, "default_transaction_isolation", "read committed"},
		{h.tools, "synchronous_commit", "remote_apply"},
		{h.tools, "statement_timeout", "15s"},
		{h.tools, "lock_timeout", "5s"},
		{pgtest.With(h.tools, "default_transaction_isolation", "serializable"), "default_transaction_isolation", "read committed"},
		{pgtest.With(h.tools, "synchronous_commit", "off"), "synchronous_commit", "off"},
		{pgtest.With(h.tools, "application_name", "mine"), "application_name", "mine"},
		{pgtest.With(h.tools, "options", "-c work_mem=5MB"), "work_mem", "5MB"},
		{pgtest.With(h.tools, "work_mem", "6MB"), "work_mem", "6MB"},
		{h.tools, "search_path", `"tools", pg_temp`},
	} {
		e, err := open(context.Background(), tt.address, &Options{Migrate: true}, false)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		var got string
		if err := e.db.QueryRow("SELECT current_setting($1)", tt.setting).Scan(&got); err != nil || got != tt.want {
			t.Errorf("%s is %q, %v", tt.setting, got, err)
		}
	}
	if _, err := Open(context.Background(), pgtest.With(h.tools, "no_such_setting", "1"), nil); !errors.Is(err, engine.ErrDatabase) {
		t.Errorf("an unknown setting: %v", err)
	}
}

// TestRequired: what the ledger needs and a role may not set for itself is asked for,
// and the error names it.
func TestRequired(t *testing.T) {
	ctx := context.Background()
	h := newHousehold(t)
	for setting, value := range map[string]string{"session_replication_role": "replica", "zero_damaged_pages": "on"} {
		h.do(h.root, "ALTER ROLE service SET "+setting+" = "+value)
		_, err := Open(ctx, h.tools, &Options{Migrate: true})
		var refused *SessionError
		if !errors.As(err, &refused) || !errors.Is(err, engine.ErrCannotOpen) || !strings.Contains(err.Error(), setting) {
			t.Errorf("%s: %v", setting, err)
		}
		h.do(h.root, "ALTER ROLE service RESET "+setting)
	}
	h.serve(h.tools, "a")
}

// TestFrozen: a database that is read-only by default is read, and writes say why
// they do not happen.
func TestFrozen(t *testing.T) {
	ctx := context.Background()
	h := newHousehold(t)
	h.serve(h.tools, "a")
	h.do(h.root, "ALTER DATABASE house SET default_transaction_read_only = on")
	h.readOnly(h.tools)
	store, err := Open(ctx, h.tools, &Options{RetryTimeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := dispatch(ctx, newRuntime(t, store), "b"); !errors.Is(err, engine.ErrReadOnly) {
		t.Errorf("a new call: %v", err)
	}
}

// readOnly does what needs no writing.
func (h *household) readOnly(address string) {
	h.t.Helper()
	ctx := context.Background()
	store, err := Open(ctx, address, &Options{Migrate: true})
	if err != nil {
		h.t.Fatal(err)
	}
	defer store.Close()
	rt := newRuntime(h.t, store)
	if r, err := rt.Audit(ctx, nil); err != nil || !r.Passed {
		h.t.Errorf("audit: %+v, %v", r, err)
	}
	if _, err := rt.Stats(ctx); err != nil {
		h.t.Error(err)
	}
	if n, err := rt.Counts(ctx); err != nil || n.Operations == 0 {
		h.t.Errorf("%+v, %v", n, err)
	}
	if pkg, err := dispatch(ctx, rt, "a"); err != nil || pkg.Code() != toolresult.OK {
		h.t.Errorf("a repeated call: %v, %v", pkg, err)
	}
}

// TestStandby: a hot standby answers whatever needs no writing; what does is
// refused, and so is a migration.
func TestStandby(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	ctx := context.Background()
	primary, err := pgtest.NewCluster()
	if err != nil {
		pgtest.Missing(t, err)
	}
	defer primary.Remove()
	h := &household{t: t, names: strings.NewReplacer(), root: pgtest.Open(t, primary.URL())}
	h.do(h.root, "CREATE SCHEMA tools")
	h.serve(pgtest.With(primary.URL(), "search_path", "tools"), "a")
	standby, err := pgtest.CloneOf(primary, "standby")
	if err != nil {
		t.Fatal(err)
	}
	defer standby.Remove()
	address := pgtest.With(standby.URL(), "search_path", "tools")
	h.readOnly(address)
	store, err := Open(ctx, address, &Options{RetryTimeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := dispatch(ctx, newRuntime(t, store), "b"); !errors.Is(err, engine.ErrReadOnly) {
		t.Errorf("a new call: %v", err)
	}
	if _, err := Migrate(ctx, address, nil); !errors.Is(err, engine.ErrReadOnly) {
		t.Errorf("a migration: %v", err)
	}
	refused := false
	for _, err := range newRuntime(t, store).Completions(ctx, "", nil) {
		if refused = errors.Is(err, engine.ErrReadOnly); !refused {
			t.Errorf("what has ended: %v", err)
			break
		}
	}
	if !refused {
		t.Error("what has ended is told by a standby")
	}
}

// TestPooler: a PgBouncer as it comes is as good as the server. One that gives a
// session to several clients is refused, and named, whatever else it is set to.
func TestPooler(t *testing.T) {
	ctx := context.Background()
	h := newHousehold(t)
	h.serve(h.tools, "a")
	t.Run("as it comes", func(t *testing.T) {
		b := pgtest.NewBouncer(t, h.tools)
		h.serve(b.URL(), "b")
		var refused *SessionError
		if _, err := Open(ctx, pgtest.With(b.URL(), "options", "-c work_mem=5MB"), nil); !errors.As(err, &refused) || refused.Lost != "the parameter options" {
			t.Errorf("options: %v", err)
		}
	})
	for _, settings := range [][]string{
		{"pool_mode = transaction"},
		{"pool_mode = transaction", "default_pool_size = 1"},
		{"pool_mode = transaction", "server_round_robin = 1", "min_pool_size = 5"},
		{"pool_mode = transaction", "server_reset_query_always = 1", "ignore_startup_parameters = search_path,options"},
		{"pool_mode = statement"},
	} {
		t.Run(strings.Join(settings, ", "), func(t *testing.T) {
			b := pgtest.NewBouncer(t, h.tools, settings...)
			keepBusy(t, b.URL(), settings[len(settings)-1] == "min_pool_size = 5")
			for _, opts := range []*Options{nil, {MaxConns: 1}} {
				var refused *SessionError
				_, err := Open(ctx, b.URL(), opts)
				if !errors.As(err, &refused) || !errors.Is(err, engine.ErrCannotOpen) || !strings.Contains(err.Error(), "a pooler") {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

// keepBusy has other clients use a pooler meanwhile.
func keepBusy(t *testing.T, address string, busy bool) {
	if !busy {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for range 3 {
		db := pgtest.Open(t, pgtest.With(address, "search_path", "")+"&default_query_exec_mode=simple_protocol")
		all.Go(func() {
			for ctx.Err() == nil {
				_, _ = db.ExecContext(ctx, "SELECT 1")
			}
		})
	}
	t.Cleanup(func() {
		stop()
		all.Wait()
	})
}

// TestAnothersSession: a session that is not the connection's any more, because a
// pooler has begun to give away sessions, is not believed: nothing is written into
// another's ledger, and nothing is answered from it.
func TestAnothersSession(t *testing.T) {
	ctx := context.Background()
	h := newHousehold(t)
	h.do(h.root, "CREATE SCHEMA others AUTHORIZATION service")
	h.serve(pgtest.With(h.service, "search_path", "others"), "a")
	e, err := open(ctx, h.tools, &Options{Migrate: true, MaxConns: 1}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	r := mustReserve(t, e, "b", "call-b")
	give := func() {
		h.t.Helper()
		if _, err := e.db.Exec(`SELECT set_config('search_path', '"others", pg_temp', false)`); err != nil {
			t.Fatal(err)
		}
	}
	send := func(name string, writes ...*write) {
		h.t.Helper()
		give()
		err := e.with(ctx, func(conn *sql.Conn) error { return e.sendWrites(ctx, conn, writes) })
		if !errors.Is(err, pgquery.ErrElsewhere) || errors.Is(err, engine.ErrCommitUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, d := verbtest.Reservation("c", "call-c"), verbtest.Reservation("d", "call-d")
	m := verbtest.Commit(r)
	send("a reservation with a key that was kept", &write{reservation: c})
	send("a reservation that asks for a key", &write{reservation: c}) // by another connection
	send("two reservations", &write{reservation: c}, &write{reservation: d})
	send("a move", &write{motion: m})
	send("a move and a reservation", &write{motion: m}, &write{reservation: c})
	if n := [2]int{h.rows("tools"), h.rows("others")}; n != [2]int{1, 1} {
		t.Errorf("%v operations", n)
	}
	// In a transaction, which sets its own, they go on.
	give()
	if err := e.Reserve(ctx, c); err != nil || c.Answer != engine.Stored {
		t.Errorf("a reservation goes on in a transaction: %q, %v", c.Answer, err)
	}
	give()
	if err := e.Move(ctx, m); err != nil || m.Answer != engine.Stored {
		t.Errorf("a move goes on in a transaction: %q, %v", m.Answer, err)
	}
	if err := e.Write(ctx, putMetadata("mine")); err != nil {
		t.Error(err)
	}
	err = e.Snapshot(ctx, func(ctx context.Context, s engine.Snapshot) error {
		if o, err := s.ListOperations(ctx, dbgen.ListOperationsParams{Page: 10}); err != nil || len(o) != 2 || o[0].IdempotencyKey != "b" {
			t.Errorf("a snapshot: %v, %v", o, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for _, n := range []int{1, 2} { // alone, and together
		give()
		batch := make([]*lookup, n)
		for i := range batch {
			batch[i] = &lookup{key: dbgen.LookupParams{TenantID: "t", SubjectID: "s", ToolName: "tool", IdempotencyKey: "a"}}
		}
		err := e.with(ctx, func(conn *sql.Conn) error { return e.sendLookups(ctx, conn, batch) })
		if !errors.Is(err, pgquery.ErrElsewhere) {
			t.Errorf("%d lookups: %v", n, err)
		}
	}
	lookup := func(key string) error {
		return e.Peek(ctx, func(ctx context.Context, q engine.Querier) error {
			_, err := q.Lookup(ctx, dbgen.LookupParams{TenantID: "t", SubjectID: "s", ToolName: "tool", IdempotencyKey: key})
			return err
		})
	}
	give()
	if err := lookup("b"); err != nil {
		t.Errorf("a lookup goes on with another connection: %v", err)
	}
	if n := [2]int{h.rows("tools"), h.rows("others")}; n != [2]int{2, 1} || !hasMetadata(t, e, "mine") {
		t.Errorf("%v operations", n)
	}
}

func (h *household) rows(schema string) (n int) {
	h.t.Helper()
	if err := h.root.QueryRow("SELECT count(*) FROM " + schema + ".operations").Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}
