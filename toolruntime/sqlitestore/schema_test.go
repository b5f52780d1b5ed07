package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// TestAuditSchema: what was added to the ledger's tables, taken from them or changed
// in them is found; what a host has beside them, and what a dump does to the words
// of a statement, is not.
func TestAuditSchema(t *testing.T) {
	lacks := func(table, kind string) string {
		return "the table " + table + " lacks what this version makes: " + kind
	}
	added := func(table, kind string) string {
		return "the table " + table + " has what this version does not make: " + kind
	}
	writable := func(update string) string {
		return "PRAGMA writable_schema = ON; " + update + "; PRAGMA writable_schema = RESET"
	}
	for _, test := range []struct {
		name, change string
		want         []string
	}{
		{"a host's own", `CREATE TABLE accounts (id INTEGER PRIMARY KEY, operation INTEGER REFERENCES operations (operation_pk));
			CREATE INDEX accounts_operation ON accounts (operation); CREATE VIEW open AS SELECT * FROM operations WHERE completed_at IS NULL;
			CREATE TRIGGER watch AFTER INSERT ON accounts BEGIN SELECT 1; END; ANALYZE`, nil},
		{"white space, quotes and comments", writable(`UPDATE sqlite_master SET sql = replace(replace(sql, 'TEXT NOT NULL', 'text  not
			null -- as before'||char(10)), 'worker_id', '"worker_id"') WHERE name = 'attempts'`), nil},
		{"a trigger", "CREATE TRIGGER secret BEFORE INSERT ON tombstones BEGIN SELECT RAISE(IGNORE); END", []string{added("tombstones", "trigger")}},
		{"a trigger, in other letters", "CREATE TRIGGER secret BEFORE INSERT ON TOMBSTONES BEGIN SELECT RAISE(IGNORE); END", []string{added("tombstones", "trigger")}},
		{"a view", "ALTER TABLE paused_tools RENAME TO secret; CREATE VIEW paused_tools AS SELECT * FROM secret WHERE 0",
			[]string{added("paused_tools", "view"), lacks("paused_tools", "index"), lacks("paused_tools", "table")}},
		{"a column", "ALTER TABLE attempts ADD COLUMN secret TEXT", []string{lacks("attempts", "table")}},
		{"a generated column", "ALTER TABLE attempts ADD COLUMN secret TEXT AS (upper(worker_id))", []string{lacks("attempts", "table")}},
		{"an index", "CREATE INDEX secret ON operations (lower(tenant_id))", []string{added("operations", "index")}},
		{"an index is gone", "DROP INDEX attempts_lost", []string{lacks("attempts", "index")}},
		{"an index of another condition", "DROP INDEX attempts_lost; CREATE INDEX attempts_lost ON attempts (operation_pk)", []string{lacks("attempts", "index")}},
		{"a check is gone", writable(`UPDATE sqlite_master SET sql = replace(sql, 'state IN (''succeeded'', ''failed'')', '1') WHERE name = 'tombstones'`),
			[]string{lacks("tombstones", "table")}},
		{"another text in a check", writable(`UPDATE sqlite_master SET sql = replace(sql, '''failed''', '''FAILED''') WHERE name = 'tombstones'`),
			[]string{lacks("tombstones", "table")}},
		{"a table is gone", "DROP TABLE paused_tools", []string{lacks("paused_tools", "index"), lacks("paused_tools", "table")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.sqlite3")
			if _, err := Migrate(context.Background(), path, nil); err != nil {
				t.Fatal(err)
			}
			change(t, path, test.change)
			r := auditOf(t, path)
			var got []string
			for _, line := range r.SemanticErrors {
				if rule, is := strings.CutPrefix(line, "AUDIT_SCHEMA: "); is {
					got = append(got, rule)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if r.Passed != (test.want == nil) || strings.Contains(strings.Join(r.SemanticErrors, " "), "secret") {
				t.Errorf("%+v", r)
			}
		})
	}
}

func change(t *testing.T, path, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(statements); err != nil {
		t.Fatal(err)
	}
}

func auditOf(t *testing.T, path string) *toolruntime.AuditReport {
	t.Helper()
	store, err := Open(context.Background(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	rt, err := toolruntime.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := rt.Audit(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestHostsTables: tables of the host's, and what is wrong with them, are neither the
// audit's concern nor a migration's, nor a backup's, which has them.
func TestHostsTables(t *testing.T) {
	ctx := context.Background()
	folder := t.TempDir()
	path := filepath.Join(folder, "ledger.db")
	store, err := Open(ctx, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Update(ctx, func(ctx context.Context, tx toolruntime.UpdateTx) error {
		_, err := tx.ExecContext(ctx, "CREATE TABLE app_orders (number INTEGER PRIMARY KEY); CREATE TABLE app_lines (number INTEGER REFERENCES app_orders)")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite3", path) // without foreign keys
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("INSERT INTO app_lines VALUES (7)"); err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := apply(ctx, conn, nil, 0, &Migration{}); err != nil {
		t.Errorf("a migration: %v", err)
	}
	if err := errors.Join(conn.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Compact(ctx, path, nil); err != nil {
		t.Error(err)
	}
	copied := filepath.Join(folder, "backup.db")
	if report, err := Backup(ctx, path, copied, nil); err != nil || !report.Passed {
		t.Fatalf("%+v, %v", report, err)
	}
	if store, err = Open(ctx, copied, nil); err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	n := 0
	if err := store.Update(ctx, func(ctx context.Context, tx toolruntime.UpdateTx) error {
		return tx.QueryRowContext(ctx, "SELECT number FROM app_lines").Scan(&n)
	}); err != nil || n != 7 {
		t.Errorf("in the backup: %d, %v", n, err)
	}
}

// TestTableNames: the ledger has the tables that are listed, and no name of its own begins
// with app_, which is the host's.
func TestTableNames(t *testing.T) {
	want, err := wanted()
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.Count(ledgerTables, "'") / 2
	for o := range want {
		if strings.HasPrefix(o.name, "app_") {
			t.Errorf("%s %s", o.kind, o.name)
		}
		if o.kind != "table" || o.name == bookkeepingTable || strings.HasPrefix(o.name, "sqlite_") {
			continue
		}
		if listed--; !strings.Contains(ledgerTables, "'"+o.name+"'") {
			t.Errorf("%s is not listed", o.name)
		}
	}
	if listed != 0 {
		t.Errorf("%d tables too many are listed", listed)
	}
}
