package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/pgtest"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// A guest is a host's transaction beside a ledger.
type guest struct {
	t    *testing.T
	exec func(query string) error
	show func(query string) string
	tx   toolruntime.HostTx
	end  func(commit bool) error
}

// guests are the ways to have one.
var guests = map[string]func(t *testing.T, address string, begin string) *guest{
	"sql": func(t *testing.T, address, begin string) *guest {
		return sqlGuest(t, address, begin, pgx.QueryExecModeCacheStatement)
	},
	"sql, simple protocol": func(t *testing.T, address, begin string) *guest {
		return sqlGuest(t, address, begin, pgx.QueryExecModeSimpleProtocol)
	},
	"pgx": func(t *testing.T, address, begin string) *guest {
		return pgxGuest(t, address, begin, pgx.QueryExecModeCacheStatement)
	},
	"pgx, described": func(t *testing.T, address, begin string) *guest {
		return pgxGuest(t, address, begin, pgx.QueryExecModeExec)
	},
	"pgx, simple protocol": func(t *testing.T, address, begin string) *guest {
		return pgxGuest(t, address, begin, pgx.QueryExecModeSimpleProtocol)
	},
}

func config(t *testing.T, address string, mode pgx.QueryExecMode) *pgx.ConnConfig {
	t.Helper()
	c, err := pgx.ParseConfig(pgtest.With(address, "search_path", "public"))
	if err != nil {
		t.Fatal(err)
	}
	c.DefaultQueryExecMode = mode
	return c
}

// sqlGuest begins a transaction; begin is the rest of BEGIN.
func sqlGuest(t *testing.T, address, begin string, mode pgx.QueryExecMode) *guest {
	t.Helper()
	ctx := context.Background()
	db := stdlib.OpenDB(*config(t, address, mode))
	t.Cleanup(func() { db.Close() })
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := &guest{t: t, tx: SQLTx(tx)}
	g.exec = func(query string) error {
		_, err := tx.ExecContext(ctx, query)
		return err
	}
	g.show = func(query string) (s string) {
		if err := tx.QueryRowContext(ctx, query).Scan(&s); err != nil {
			t.Error(err)
		}
		return s
	}
	g.end = func(commit bool) error {
		if commit {
			return tx.Commit()
		}
		return tx.Rollback()
	}
	return g.begun(begin)
}

func pgxGuest(t *testing.T, address, begin string, mode pgx.QueryExecMode) *guest {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.ConnectConfig(ctx, config(t, address, mode))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(ctx) })
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	g := &guest{t: t, tx: PgxTx(tx)}
	g.exec = func(query string) error {
		_, err := tx.Exec(ctx, query)
		return err
	}
	g.show = func(query string) (s string) {
		if err := tx.QueryRow(ctx, query).Scan(&s); err != nil {
			t.Error(err)
		}
		return s
	}
	g.end = func(commit bool) error {
		if commit {
			return tx.Commit(ctx)
		}
		return tx.Rollback(ctx)
	}
	return g.begun(begin)
}

func (g *guest) begun(begin string) *guest {
	g.t.Helper()
	if begin != "" {
		if err := g.exec("SET TRANSACTION " + begin); err != nil {
			g.t.Fatal(err)
		}
	}
	return g
}

// settings are those of the session that a submission could change.
func (g *guest) settings() string {
	g.t.Helper()
	return g.show(`SELECT pg_catalog.concat_ws(' | ', pg_catalog.current_setting('search_path'), pg_catalog.current_setting('standard_conforming_strings'),
		pg_catalog.current_setting('bytea_output'), pg_catalog.current_setting('lock_timeout'), pg_catalog.current_setting('statement_timeout'),
		pg_catalog.current_setting('client_encoding'), pg_catalog.current_setting('role'))`)
}

// A landlord is a ledger that guests submit to.
type landlord struct {
	*toolruntime.Runtime
	t       *testing.T
	address string
}

func newLandlord(t *testing.T, opts Options) *landlord {
	t.Helper()
	address := pgtest.Schema(t)
	opts.Migrate = true
	store, err := Open(context.Background(), address, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return &landlord{newRuntime(t, store), t, address}
}

func (l *landlord) prepare(key string) *toolruntime.Submission {
	l.t.Helper()
	p, c := refund(key)
	b, err := l.Bind(p, c)
	if err != nil {
		l.t.Fatal(err)
	}
	sub, err := l.Prepare(context.Background(), p, c, toolresult.NewApproval(b, "approval", refunds.ApproverID, time.Unix(contract.MaxTime, 0)))
	if err != nil || sub.Answer() != nil {
		l.t.Fatal(sub, err)
	}
	return sub
}

func (l *landlord) operations(want int64) {
	l.t.Helper()
	c, err := l.Counts(context.Background())
	if diff := cmp.Diff(toolruntime.Counts{CallBindings: want, Operations: want, Outbox: want}, c); err != nil || diff != "" {
		l.t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// evil is a schema in which everything that a submission names is something else.
const evil = `
CREATE SCHEMA IF NOT EXISTS evil;
CREATE TABLE IF NOT EXISTS evil.operations (); CREATE TABLE IF NOT EXISTS evil.outbox ();
CREATE TABLE IF NOT EXISTS evil.call_bindings (); CREATE TABLE IF NOT EXISTS evil.tombstones ();
CREATE TABLE IF NOT EXISTS evil.pg_database (datname NAME, oid OID);
CREATE OR REPLACE FUNCTION evil.no(text, text) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''evil''; END';
CREATE OR REPLACE FUNCTION evil.no(name, name) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''evil''; END';
CREATE OR REPLACE FUNCTION evil.no(bigint, bigint) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''evil''; END';
DO $$ BEGIN
	CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.no);
	CREATE OPERATOR evil.= (LEFTARG = name, RIGHTARG = name, FUNCTION = evil.no);
	CREATE OPERATOR evil.> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.no);
EXCEPTION WHEN duplicate_function THEN NULL; END $$;
CREATE OR REPLACE FUNCTION evil.current_setting(text) RETURNS text LANGUAGE sql AS 'SELECT ''evil''';
CREATE OR REPLACE FUNCTION evil.set_config(text, text, boolean) RETURNS text LANGUAGE sql AS 'SELECT ''evil''';`

// TestHostSession: whatever the host's session is like, the call is stored in the
// ledger, and the session is as it was.
func TestHostSession(t *testing.T) {
	sessions := map[string]string{
		"as it comes":           "",
		"a hostile search_path": "SET LOCAL search_path = evil, pg_catalog",
		"no search_path":        "SET LOCAL search_path = ''",
		"an odd search_path":    `SET search_path = "it's", "a""b", public`,
		"old texts":             "SET LOCAL standard_conforming_strings = off; SET LOCAL escape_string_warning = off; SET LOCAL search_path = \"it's\", \"a\\nb\"",
		"old bytes":             "SET LOCAL bytea_output = 'escape'",
		"timeouts of its own":   "SET LOCAL lock_timeout = '7s'; SET LOCAL statement_timeout = '8s'",
		"no durability":         "SET LOCAL synchronous_commit = off",
		"temporary tables":      "CREATE TEMP TABLE operations () ON COMMIT DROP; CREATE TEMP TABLE call_bindings () ON COMMIT DROP",
		"a savepoint":           "SAVEPOINT toolruntime",
		"repeatable read":       "SELECT 1 /* REPEATABLE READ */",
		"serializable":          "SELECT 1 /* SERIALIZABLE */",
	}
	l := newLandlord(t, Options{})
	if _, err := pgtest.Open(t, l.address).Exec(evil); err != nil {
		t.Fatal(err)
	}
	n := int64(0)
	for way, open := range guests {
		for name, session := range sessions {
			if strings.Contains(way, "simple") && name == "old texts" {
				continue // the driver refuses: TestHostRefused
			}
			t.Run(way+"/"+name, func(t *testing.T) {
				n++
				sub := l.prepare(fmt.Sprint("key-", n))
				begin := ""
				if strings.HasSuffix(session, "*/") {
					begin = "ISOLATION LEVEL " + strings.Trim(session[len("SELECT 1 /* "):], "*/ ")
				}
				g := open(t, l.address, begin)
				if session != "" {
					if err := g.exec(session); err != nil {
						t.Fatal(err)
					}
				}
				before := g.settings()
				for _, want := range []bool{true, false} { // the second is a repetition
					pkg, stored, err := sub.SubmitTx(context.Background(), g.tx)
					if err != nil || stored != want || pkg.Code() != toolresult.Accepted {
						t.Fatalf("%v, %v, %v", pkg, stored, err)
					}
					if diff := cmp.Diff(before, g.settings()); diff != "" {
						t.Errorf("settings (-before +after):\n%s", diff)
					}
				}
				if got := g.show("SELECT pg_catalog.current_setting('synchronous_commit')"); got != "on" {
					t.Errorf("synchronous_commit is %s at the commit", got)
				}
				if err := g.end(true); err != nil {
					t.Fatal(err)
				}
				p, c := refund(fmt.Sprint("key-", n))
				if pkg, err := l.Status(context.Background(), p, c); err != nil || pkg.Code() != toolresult.Accepted {
					t.Errorf("after the commit: %v, %v", pkg, err)
				}
			})
		}
	}
	if r := audit(t, l.address); len(r.SemanticErrors) > 0 {
		t.Error(r.SemanticErrors)
	}
}

// TestHostRefused: a transaction that cannot hold a call is refused with the reason,
// nothing is stored, and it is as it was.
func TestHostRefused(t *testing.T) {
	ctx := context.Background()
	l := newLandlord(t, Options{})
	other := newDatabase(t, l.address)
	db := pgtest.Open(t, l.address)
	for _, statement := range []string{"DROP ROLE IF EXISTS hosttx_plain", "CREATE ROLE hosttx_plain"} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _, _ = db.Exec("DROP OWNED BY hosttx_plain; DROP ROLE hosttx_plain") })
	tests := []struct {
		name, address, begin, session string
		says                          string
		also                          error
		ended                         bool // it cannot go on
	}{
		{name: "read only", begin: "READ ONLY", says: "READ ONLY", also: toolruntime.ErrReadOnly},
		{name: "another database", address: other, says: "another"},
		{name: "no rights", session: "SET LOCAL ROLE hosttx_plain", says: "role"},
		{name: "no foreign keys", session: "SET LOCAL session_replication_role = replica", says: "session_replication_role"},
		{name: "another encoding", session: "SET LOCAL client_encoding = LATIN1", says: "client_encoding"},
		{name: "old texts", session: "SET LOCAL standard_conforming_strings = off"},
		{name: "failed", session: "SELECT 1/0", says: "must not have failed", ended: true},
		{name: "ended by a statement", session: "COMMIT", says: "must be open", ended: true},
	}
	for way, open := range guests {
		simple := strings.Contains(way, "simple")
		for _, tt := range tests {
			if tt.name == "old texts" && !simple {
				continue // TestHostSession
			}
			if simple && (tt.name == "old texts" || tt.name == "another encoding") {
				tt.says, tt.ended = "by the driver of pgx", true // which does not ask the server then
			}
			t.Run(way+"/"+tt.name, func(t *testing.T) {
				if tt.address == "" {
					tt.address = l.address
				}
				g := open(t, tt.address, tt.begin)
				if tt.session != "" {
					if err := g.exec(tt.session); err != nil && tt.name != "failed" {
						t.Fatal(err)
					}
				}
				var before string
				if !tt.ended {
					before = g.settings()
				}
				_, stored, err := l.prepare("key").SubmitTx(ctx, g.tx)
				if !errors.Is(err, toolruntime.ErrInvalidInput) || stored || !strings.Contains(err.Error(), tt.says) || tt.also != nil && !errors.Is(err, tt.also) {
					t.Errorf("%v, %v", stored, err)
				}
				if !tt.ended {
					if diff := cmp.Diff(before, g.settings()); diff != "" {
						t.Errorf("settings (-before +after):\n%s", diff)
					}
					if err := g.end(true); err != nil {
						t.Error(err)
					}
				}
				l.operations(0)
			})
		}
	}
	// With the rights of a service it may.
	schema := pgx.Identifier{searchPath(t, l.address)}.Sanitize()
	if _, err := db.Exec("GRANT USAGE ON SCHEMA " + schema + " TO hosttx_plain; GRANT USAGE ON ALL SEQUENCES IN SCHEMA " + schema +
		" TO hosttx_plain; GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA " + schema + " TO hosttx_plain"); err != nil {
		t.Fatal(err)
	}
	g := guests["sql"](t, l.address, "")
	if err := g.exec("SET LOCAL ROLE hosttx_plain"); err != nil {
		t.Fatal(err)
	}
	if _, stored, err := l.prepare("key").SubmitTx(ctx, g.tx); err != nil || !stored {
		t.Errorf("%v, %v", stored, err)
	}
	if err := g.end(true); err != nil {
		t.Fatal(err)
	}
	l.operations(1)
}

func searchPath(t *testing.T, address string) string {
	t.Helper()
	c, err := pgx.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	return c.RuntimeParams["search_path"]
}

// newDatabase is the address of another database of the server.
func newDatabase(t *testing.T, address string) string {
	t.Helper()
	db := pgtest.Open(t, address)
	name := "hosttx_other_" + strings.ReplaceAll(searchPath(t, address), "test_", "")
	if _, err := db.Exec("CREATE DATABASE " + name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := db.Exec("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return strings.Replace(address, "/postgres?", "/"+name+"?", 1)
}

// TestHostStandby: a server that cannot be written, and a copy of the ledger's server,
// are not where the ledger is.
func TestHostStandby(t *testing.T) {
	ctx := context.Background()
	primary, err := pgtest.NewCluster()
	if err != nil {
		pgtest.Missing(t, err)
	}
	defer primary.Remove()
	store, err := Open(ctx, primary.URL(), &Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	l := &landlord{newRuntime(t, store), t, primary.URL()}
	copied, err := pgtest.CloneOf(primary, "copy")
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Remove()
	sub := l.prepare("key")
	submit := func(says string) {
		t.Helper()
		g := sqlGuest(t, copied.URL(), "", pgx.QueryExecModeCacheStatement)
		if _, stored, err := sub.SubmitTx(ctx, g.tx); !errors.Is(err, toolruntime.ErrInvalidInput) || stored || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, %v", stored, err)
		}
		if err := g.end(false); err != nil {
			t.Error(err)
		}
	}
	submit("standby")
	if err := copied.Promote(); err != nil {
		t.Fatal(err)
	}
	submit("another")
	l.operations(0)
	// The ledger's own server is another run after a restart, and still the ledger's.
	g := sqlGuest(t, primary.URL(), "", pgx.QueryExecModeCacheStatement)
	if _, stored, err := sub.SubmitTx(ctx, g.tx); err != nil || !stored {
		t.Errorf("%v, %v", stored, err)
	}
	if err := g.end(false); err != nil {
		t.Error(err)
	}
	primary.Kill()
	if err := primary.Start(); err != nil {
		t.Fatal(err)
	}
	g = sqlGuest(t, primary.URL(), "", pgx.QueryExecModeCacheStatement)
	for tries := 0; ; tries++ {
		_, stored, err := sub.SubmitTx(ctx, g.tx)
		if err == nil && stored {
			break
		}
		if tries == 3 { // its connections may be those of the run before
			t.Fatalf("%v, %v", stored, err)
		}
	}
	if err := g.end(true); err != nil {
		t.Error(err)
	}
	l.operations(1)
}

// waiting returns when so many sessions of the server wait for a lock.
func (l *landlord) waiting(n int) {
	l.t.Helper()
	db := pgtest.Open(l.t, l.address)
	for got := -1; got < n; {
		if err := db.QueryRow("SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'").Scan(&got); err != nil {
			l.t.Fatal(err)
		}
	}
}

// TestHostWaits: of two hosts that submit one key, the second waits for the end of the
// first's transaction, and gets the answer that is right then.
func TestHostWaits(t *testing.T) {
	ctx := context.Background()
	for _, isolation := range []string{"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"} {
		for _, commit := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/commit=%v", isolation, commit), func(t *testing.T) {
				l := newLandlord(t, Options{})
				sub := l.prepare("key")
				first, second := guests["sql"](t, l.address, ""), guests["pgx"](t, l.address, "ISOLATION LEVEL "+isolation)
				second.show("SELECT 'a snapshot'")
				if _, stored, err := sub.SubmitTx(ctx, first.tx); err != nil || !stored {
					t.Fatal(stored, err)
				}
				type answer struct {
					Code   toolresult.Code
					Stored bool
					Repeat bool
				}
				ended := make(chan answer)
				go func() {
					pkg, stored, err := sub.SubmitTx(ctx, second.tx)
					a := answer{Stored: stored, Repeat: errors.Is(err, toolruntime.ErrRepeat)}
					if err == nil {
						a.Code = pkg.Code()
					}
					ended <- a
				}()
				l.waiting(1)
				if err := first.end(commit); err != nil {
					t.Fatal(err)
				}
				want := answer{Code: toolresult.Accepted, Stored: !commit}
				if commit && isolation != "READ COMMITTED" {
					want = answer{Repeat: true}
				}
				if diff := cmp.Diff(want, <-ended); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if got := second.show("SELECT 'goes on'"); got != "goes on" {
					t.Error(got)
				}
				if err := second.end(true); err != nil {
					t.Error(err)
				}
				l.operations(1)
			})
		}
	}
}

// TestHostLockTimeout: who does not get the key in time hears that he may repeat, and
// his transaction is as it was.
func TestHostLockTimeout(t *testing.T) {
	ctx := context.Background()
	l := newLandlord(t, Options{LockTimeout: 50 * time.Millisecond})
	sub := l.prepare("key")
	first := guests["sql"](t, l.address, "")
	if _, stored, err := sub.SubmitTx(ctx, first.tx); err != nil || !stored {
		t.Fatal(stored, err)
	}
	for way, open := range guests {
		second := open(t, l.address, "")
		before := second.settings()
		if _, stored, err := sub.SubmitTx(ctx, second.tx); !errors.Is(err, toolruntime.ErrRepeat) || !errors.Is(err, toolruntime.ErrBusy) || stored {
			t.Errorf("%s: %v, %v", way, stored, err)
		}
		if diff := cmp.Diff(before, second.settings()); diff != "" {
			t.Errorf("%s: settings (-before +after):\n%s", way, diff)
		}
		if err := second.end(true); err != nil {
			t.Error(err)
		}
	}
	if err := first.end(true); err != nil {
		t.Fatal(err)
	}
	l.operations(1)
}

// TestHostDeadlock: two hosts that wait for each other, by a row of theirs and by the
// key, are told to repeat, one of them.
func TestHostDeadlock(t *testing.T) {
	ctx := context.Background()
	l := newLandlord(t, Options{})
	db := pgtest.Open(t, l.address)
	if _, err := db.Exec("CREATE TABLE host_rows (n INTEGER); INSERT INTO host_rows VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	row := "UPDATE " + searchPath(t, l.address) + ".host_rows SET n = n + 1"
	sub := l.prepare("key")
	loser, winner := guests["sql"](t, l.address, ""), guests["pgx"](t, l.address, "")
	for g, timeout := range map[*guest]string{loser: "10ms", winner: "60s"} {
		if err := g.exec("SET LOCAL deadlock_timeout = '" + timeout + "'"); err != nil {
			t.Fatal(err)
		}
	}
	if err := loser.exec(row); err != nil {
		t.Fatal(err)
	}
	if _, stored, err := sub.SubmitTx(ctx, winner.tx); err != nil || !stored {
		t.Fatal(stored, err)
	}
	ended := make(chan error)
	go func() { ended <- winner.exec(row) }()
	l.waiting(1)
	_, stored, err := sub.SubmitTx(ctx, loser.tx)
	if !errors.Is(err, toolruntime.ErrRepeat) || stored || code(err) != "40P01" {
		t.Errorf("%v, %v", stored, err)
	}
	if err := errors.Join(loser.end(false), <-ended, winner.end(true)); err != nil {
		t.Error(err)
	}
	l.operations(1)
}

// TestHostSnapshot: a snapshot so old that what was pruned since is not in it is
// refused.
func TestHostSnapshot(t *testing.T) {
	was := tooOld
	defer func() { tooOld = was }()
	tooOld = 0
	ctx := context.Background()
	l := newLandlord(t, Options{})
	sub := l.prepare("key")
	for isolation, refused := range map[string]bool{"READ COMMITTED": false, "REPEATABLE READ": true, "SERIALIZABLE": true} {
		g := guests["sql"](t, l.address, "ISOLATION LEVEL "+isolation)
		if _, stored, err := sub.SubmitTx(ctx, g.tx); errors.Is(err, toolruntime.ErrInvalidInput) != refused || stored == refused {
			t.Errorf("%s: %v, %v", isolation, stored, err)
		}
		if err := g.end(false); err != nil {
			t.Error(err)
		}
	}
}

// TestHostConnectionLost: a transaction whose session has ended is to be repeated.
func TestHostConnectionLost(t *testing.T) {
	ctx := context.Background()
	l := newLandlord(t, Options{})
	sub := l.prepare("key")
	for way, open := range guests {
		g := open(t, l.address, "")
		pid := g.show("SELECT CAST(pg_catalog.pg_backend_pid() AS pg_catalog.text)")
		if _, err := pgtest.Open(t, l.address).Exec("SELECT pg_terminate_backend(" + pid + ", 10000)"); err != nil {
			t.Fatal(err)
		}
		if _, stored, err := sub.SubmitTx(ctx, g.tx); !errors.Is(err, toolruntime.ErrRepeat) || !errors.Is(err, toolruntime.ErrUnavailable) || stored {
			t.Errorf("%s: %v, %v", way, stored, err)
		}
	}
	l.operations(0)
}

// TestHostClosed: a store that was closed takes nothing.
func TestHostClosed(t *testing.T) {
	e, address := newEngine(t, Options{})
	g := guests["sql"](t, address, "")
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.Join(context.Background(), g.tx.HostTx(), nil); !errors.Is(err, engine.ErrClosed) {
		t.Error(err)
	}
	if err := e.Join(context.Background(), engine.HostTx{Tx: &sql.Tx{}}, nil); !errors.Is(err, toolresult.ErrInvalidInput) {
		t.Error(err)
	}
}

// TestHostMeetsPruning: a call identity that is pruned while a host binds it again is
// bound anew, in the same transaction.
func TestHostMeetsPruning(t *testing.T) {
	ctx := context.Background()
	l := newLandlord(t, Options{})
	p, c := refund("key")
	if refused, err := l.Prepare(ctx, p, c); err != nil || refused.Answer().Code() != toolresult.ApprovalRequired {
		t.Fatal(refused, err) // and the identity is bound
	}
	sub := l.prepare("key")
	pruning, err := pgtest.Open(t, l.address).Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pruning.Exec("DELETE FROM call_bindings"); err != nil {
		t.Fatal(err)
	}
	g := guests["pgx"](t, l.address, "")
	ended := make(chan error)
	go func() {
		_, stored, err := sub.SubmitTx(ctx, g.tx)
		if err == nil && !stored {
			err = errors.New("not stored")
		}
		ended <- err
	}()
	l.waiting(1)
	if err := errors.Join(pruning.Commit(), <-ended, g.end(true)); err != nil {
		t.Fatal(err)
	}
	l.operations(1)
}

// TestHostAgain: a unit that has met another runs again, without what it wrote before;
// where the transaction cannot see the other, the host has to repeat.
func TestHostAgain(t *testing.T) {
	ctx := context.Background()
	other := errors.New("another error")
	tests := []struct {
		name, begin string
		err         error
		times       int // that it fails
		runs        int
		want        error
	}{
		{"once", "", sql.ErrNoRows, 1, 2, nil},
		{"always", "", sql.ErrNoRows, 9, 3, toolruntime.ErrRepeat},
		{"unseen", "ISOLATION LEVEL REPEATABLE READ", sql.ErrNoRows, 1, 1, toolruntime.ErrRepeat},
		{"for another reason", "", other, 1, 1, other},
		{"late, with the rows", "", &pgconn.PgError{Code: "XX001"}, 1, 1, toolruntime.ErrCorrupt},
	}
	e, address := newEngine(t, Options{})
	for way, open := range guests {
		for _, tt := range tests {
			t.Run(way+"/"+tt.name, func(t *testing.T) {
				g, runs := open(t, address, tt.begin), 0
				err := e.Join(ctx, g.tx.HostTx(), func(ctx context.Context, q engine.Querier) error {
					if n, err := q.PauseTool(ctx, dbgen.PauseToolParams{ToolName: "tool", Actor: "dana", Reason: "r", PausedAt: 1, RowDigest: make([]byte, 32)}); err != nil || n != 1 {
						return fmt.Errorf("run %d: %d rows, %w", runs, n, err)
					}
					if runs++; runs <= tt.times {
						return tt.err
					}
					return nil
				})
				if !errors.Is(err, tt.want) || runs != tt.runs {
					t.Errorf("%v after %d runs, want %v after %d", err, runs, tt.want, tt.runs)
				}
				if err := g.end(false); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
