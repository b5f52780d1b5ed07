package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/db"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/migration"
	"github.com/toolruntime/toolruntime-go/internal/pgtest"
	"github.com/toolruntime/toolruntime-go/internal/verbtest"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

func load(t *testing.T) []migration.Migration {
	t.Helper()
	ms, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	return ms
}

// TestMigrate: nothing is made unasked; a schema of the user's choice, whatever
// its name; once more changes nothing.
func TestMigrate(t *testing.T) {
	ctx := context.Background()
	server := pgtest.URL(t)
	schema := fmt.Sprintf(`Le"dger %d; ü`, len(load(t)))
	opts := &Options{Schema: schema}
	t.Cleanup(func() {
		_, _ = pgtest.Open(t, server).Exec(`DROP SCHEMA "` + strings.ReplaceAll(schema, `"`, `""`) + `" CASCADE`)
	})
	var refused *engine.SchemaError
	if _, err := Open(ctx, server, opts); !errors.As(err, &refused) || refused.Found != "new" {
		t.Fatalf("before: %v", err)
	}
	m, err := Migrate(ctx, server, opts)
	if err != nil || m.From != "new" || len(m.Applied) != len(load(t)) {
		t.Fatalf("%+v, %v", m, err)
	}
	store, err := Open(ctx, server, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	r, err := newRuntime(t, store).Audit(ctx, nil)
	if err != nil || !r.Passed {
		t.Errorf("%+v, %v", r, err)
	}
	if m, err = Migrate(ctx, server, opts); err != nil || m.From != engine.SchemaVersion || len(m.Applied) != 0 {
		t.Errorf("again: %+v, %v", m, err)
	}
}

// TestMigrateRaces: of many migrators, each leaves a complete schema.
func TestMigrateRaces(t *testing.T) {
	address := pgtest.Schema(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := Migrate(context.Background(), address, nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	var n int
	if err := pgtest.Open(t, address).QueryRow("SELECT COUNT(*) FROM goose_db_version").Scan(&n); err != nil || n != 1+len(load(t)) {
		t.Errorf("%d rows, %v", n, err)
	}
}

// TestRefused: another schema, a newer one, an unfinished copy.
func TestRefused(t *testing.T) {
	ctx := context.Background()
	for change, hint := range map[string]string{
		"UPDATE runtime_metadata SET metadata_value = 'future' WHERE metadata_key = 'schema_version'": "choose another schema",
		"DELETE FROM runtime_metadata": "choose another schema",
		"DROP TABLE goose_db_version":  "choose another schema",
		"INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)": "newer version",
		"INSERT INTO runtime_metadata VALUES ('unfinished_copy', '1')":               "repeat `toolruntime copy`",
	} {
		address := pgtest.Schema(t)
		if _, err := Migrate(ctx, address, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := pgtest.Open(t, address).Exec(change); err != nil {
			t.Fatal(err)
		}
		var refused *engine.SchemaError
		if _, err := Open(ctx, address, &Options{Migrate: true}); !errors.As(err, &refused) || !errors.Is(err, engine.ErrSchema) || !strings.Contains(refused.Hint, hint) {
			t.Errorf("%s: %v", change, err)
		}
	}
}

// TestBehind: a ledger of an earlier version says how far behind it is, and is brought
// up to date only where the caller allows it.
func TestBehind(t *testing.T) {
	ctx, ms, address := context.Background(), load(t), pgtest.Schema(t)
	e, err := connect(address, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = e.with(ctx, func(conn *sql.Conn) error {
		_, err := e.apply(ctx, conn, ms[:len(ms)-1])
		return err
	})
	if err := errors.Join(err, e.Close()); err != nil {
		t.Fatal(err)
	}
	behind := fmt.Sprintf("the database is at migration %d of %d", ms[len(ms)-2].Version, ms[len(ms)-1].Version)
	if _, err := Open(ctx, address, nil); err == nil || !strings.Contains(err.Error(), behind) {
		t.Error(err)
	}
	store, err := Open(ctx, address, &Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	store.Close()
}

// TestSettings: every connection has its name and its limits, and a URL may set
// others.
func TestSettings(t *testing.T) {
	e, _ := newEngine(t, Options{})
	for name, want := range map[string]string{"application_name": "toolruntime", "statement_timeout": "15s",
		"lock_timeout": "5s", "idle_in_transaction_session_timeout": "1min"} {
		var got string
		if err := e.db.QueryRow("SELECT current_setting($1)", name).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	e, err := open(context.Background(), pgtest.With(pgtest.Schema(t), "statement_timeout", "77s"), &Options{Migrate: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var got string
	if err := e.db.QueryRow("SHOW statement_timeout").Scan(&got); err != nil || got != "77s" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestTreesAgree: both migration trees have the same files, and in each the same
// tables, columns and named constraints in the same order.
func TestTreesAgree(t *testing.T) {
	trees := map[string]fs.FS{"sqlite": db.SQLite, "postgres": db.Postgres}
	shapes := map[string]string{}
	for name, all := range trees {
		tree, err := fs.Sub(all, "migrations/"+name)
		if err != nil {
			t.Fatal(err)
		}
		ms, err := migration.Load(tree)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range ms {
			shapes[name] += m.Name + "\n" + shape(m.Up)
		}
	}
	if diff := cmp.Diff(shapes["sqlite"], shapes["postgres"]); diff != "" {
		t.Errorf("the trees differ (-sqlite +postgres):\n%s", diff)
	}
	if !strings.Contains(shapes["sqlite"], "operations.status_ref") {
		t.Error("the test does not see columns")
	}
}

// shape lists the tables, columns and constraints of a migration. A line of a
// CREATE TABLE that begins with a lower-case word at four spaces is a column.
// SQLite changes a key by making the table again, under the name with _new,
// which is left out: that its columns are the same, the queries see. A constraint
// that is dropped and added again stays what it is.
func shape(sql string) string {
	var b strings.Builder
	table := ""
	again := map[string]bool{}
	for line := range strings.Lines(sql) {
		line = strings.TrimRight(line, "\n")
		if name, ok := strings.CutPrefix(line, "CREATE TABLE "); ok {
			table, _, _ = strings.Cut(name, " ")
		}
		if _, name, ok := strings.Cut(line, "DROP CONSTRAINT "); ok {
			if name = strings.TrimRight(name, ";,"); !strings.HasSuffix(name, "_pkey") { // a key of SQLite comes with a table
				again[name] = true
			}
			continue
		}
		if strings.HasSuffix(table, "_new") {
			continue
		}
		if word, ok := strings.CutPrefix(line, "    "); ok && word[0] >= 'a' && word[0] <= 'z' {
			column, rest, _ := strings.Cut(strings.Replace(word, "BY DEFAULT", "", 1), " ")
			b.WriteString(table + "." + column)
			for _, property := range []string{"NOT NULL", "PRIMARY KEY", "UNIQUE", "REFERENCES", "DEFAULT"} {
				if strings.Contains(rest, property) {
					b.WriteString(" " + property)
				}
			}
			b.WriteString("\n")
		}
		if i := strings.Index(line, "CONSTRAINT "); i >= 0 {
			name, _, _ := strings.Cut(line[i+len("CONSTRAINT "):], " ")
			if again[name] {
				delete(again, name)
			} else {
				b.WriteString(table + " constraint " + name + "\n")
			}
		}
		if word := strings.TrimSpace(line); strings.HasPrefix(word, "PRIMARY KEY") || strings.HasPrefix(word, "UNIQUE") || strings.HasPrefix(word, "CREATE ") {
			b.WriteString(table + " " + strings.TrimRight(word, ",") + "\n")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(again)) {
		b.WriteString("without " + name + "\n")
	}
	return b.String()
}

// TestDependencies: a service with one engine links nothing of the other's, and
// one with PostgreSQL alone needs no C compiler.
func TestDependencies(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	deps := func(env, pkg string) string {
		cmd := exec.Command("go", "list", "-deps", "github.com/toolruntime/toolruntime-go/toolruntime/"+pkg)
		cmd.Env = append(cmd.Environ(), env)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	if pg := deps("CGO_ENABLED=0", "pgstore"); strings.Contains(pg, "go-sqlite3") || strings.Contains(pg, "runtime/cgo") || !strings.Contains(pg, "jackc/pgx") {
		t.Error("pgstore needs cgo or SQLite")
	}
	if lite := deps("CGO_ENABLED=1", "sqlitestore"); strings.Contains(lite, "jackc") || !strings.Contains(lite, "go-sqlite3") {
		t.Error("sqlitestore links pgx")
	}
	// The build, too: a package of which every file needs cgo lists none.
	cmd := exec.Command("go", "build", "-o", t.TempDir()+"/service", "./testdata/service")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestLeastPrivilege: a service's role needs no more than docs/postgres.md says.
func TestLeastPrivilege(t *testing.T) {
	address := newLedger(t, 1)
	admin := pgtest.Open(t, address)
	role := fmt.Sprintf("service_%d", time.Now().UnixNano())
	schema := strings.SplitN(address[strings.Index(address, "search_path=")+len("search_path="):], "&", 2)[0]
	for _, s := range []string{"CREATE ROLE " + role + " LOGIN", "GRANT USAGE ON SCHEMA " + schema + " TO " + role,
		"GRANT USAGE ON ALL SEQUENCES IN SCHEMA " + schema + " TO " + role,
		"GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA " + schema + " TO " + role} {
		if _, err := admin.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _, _ = admin.Exec("DROP OWNED BY " + role + "; DROP ROLE " + role) })
	asRole := pgtest.With(address, "user", role)
	store, err := Open(context.Background(), asRole, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if pkg, err := dispatch(context.Background(), newRuntime(t, store), "key"); err != nil || pkg.Code() != toolresult.OK {
		t.Fatal(pkg, err)
	}
	if r := audit(t, asRole); !r.Passed {
		t.Errorf("%+v", r)
	}
	var refused *engine.Error
	e, err := open(context.Background(), asRole, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ended := verbtest.Commit(mustReserve(t, e, "b", "call-b"))
	var tx transaction
	err = e.with(context.Background(), func(conn *sql.Conn) (err error) {
		defer rollback(context.Background(), conn)
		tx, err = e.begin(context.Background(), conn, "")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.ask(&lostAnswer{tx: tx}); !errors.Is(err, engine.ErrUnavailable) || errors.Is(err, engine.ErrCommitUnknown) {
		t.Errorf("a transaction that was rolled back: %v", err)
	}
	tx.timeline = "another"
	if err := e.ask(&lostAnswer{tx: tx}); !errors.Is(err, engine.ErrCommitUnknown) {
		t.Errorf("a transaction of another timeline: %v", err)
	}
	// Without the sequence of operations there is no new one, and the error says what to do.
	if _, err := admin.Exec("REVOKE USAGE ON ALL SEQUENCES IN SCHEMA " + schema + " FROM " + role + "; GRANT USAGE ON SEQUENCE downstream_receipts_downstream_pk_seq TO " + role); err != nil {
		t.Fatal(err)
	}
	without, err := open(context.Background(), asRole, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	defer without.Close()
	for range 2 {
		r := verbtest.Reservation("c", "call-c")
		if err := without.Reserve(context.Background(), r); !errors.Is(err, engine.ErrCannotOpen) || !strings.Contains(err.Error(), "GRANT USAGE ON ALL SEQUENCES IN SCHEMA") {
			t.Errorf("a reservation without its sequence: %q, %v", r.Answer, err)
		}
	}
	if err := without.Move(context.Background(), ended); err != nil || ended.Answer != engine.Stored {
		t.Errorf("a move without the sequence: %q, %v", ended.Answer, err)
	}
	if _, err := e.db.Exec("DELETE FROM local_receipts"); !errors.As(classify(err), &refused) || refused.Code != "postgres 42501" {
		t.Errorf("DELETE: %v", err)
	}
}
