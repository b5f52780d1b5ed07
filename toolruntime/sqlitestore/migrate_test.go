package sqlitestore

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/migration"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

const reference = "../../conformance/testdata/reference-v3.sqlite3"

func copyOf(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "copy.sqlite3")
	if err := os.WriteFile(to, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

func plain(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+"?_busy_timeout=5000")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func exec1(t testing.TB, path, statement string) {
	t.Helper()
	db := plain(t, path)
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}

// dump is every row of a table, with the columns of v3.
func dump(t testing.TB, path, table string, columns ...string) []string {
	t.Helper()
	db := plain(t, path)
	defer db.Close()
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = "quote(" + c + ")"
	}
	rows, err := db.Query("SELECT " + strings.Join(quoted, " || ',' || ") + " FROM " + table + " ORDER BY 1")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

func columnsOf(t testing.TB, path, table string) []string {
	t.Helper()
	db := plain(t, path)
	defer db.Close()
	names, err := db.Query("SELECT name FROM pragma_table_info('" + table + "')")
	if err != nil {
		t.Fatal(err)
	}
	defer names.Close()
	var all []string
	for names.Next() {
		var s string
		if err := names.Scan(&s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

func allMigrations(t *testing.T) []migration.Migration {
	t.Helper()
	ms, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	return ms
}

// TestAdopt takes over a database that another implementation has made: every
// value of every row is kept, and the whole passes the audit.
func TestAdopt(t *testing.T) {
	path := copyOf(t, reference)
	m, err := Migrate(context.Background(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Migration{From: legacyVersion, To: engine.SchemaVersion, Adopted: 160}
	for _, m := range allMigrations(t) {
		want.Applied = append(want.Applied, m.Name)
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	for _, table := range legacyTables {
		if table == "runtime_metadata" {
			continue
		}
		columns := columnsOf(t, reference, table)
		if diff := cmp.Diff(dump(t, reference, table, columns...), dump(t, path, table, columns...)); diff != "" {
			t.Errorf("%s (-before +after):\n%s", table, diff)
		}
	}
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
	if err != nil || !r.Passed {
		t.Errorf("audit: %+v, %v", r, err)
	}
}

// TestOpenRefuses: what is not a ledger of this version is refused with its
// bytes untouched, and the error says what to do.
func TestOpenRefuses(t *testing.T) {
	newer := func(t *testing.T, path string) {
		if _, err := Migrate(context.Background(), path, nil); err != nil {
			t.Fatal(err)
		}
		exec1(t, path, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, 1)")
	}
	tests := []struct {
		name string
		make func(t *testing.T, path string)
		kind error
		hint string
	}{
		{"v3", func(t *testing.T, path string) { rename(t, copyOf(t, reference), path) }, toolruntime.ErrSchema, "toolruntime migrate"},
		{"newer", newer, toolruntime.ErrSchema, "newer version"},
		{"another schema version", func(t *testing.T, path string) {
			if _, err := Migrate(context.Background(), path, nil); err != nil {
				t.Fatal(err)
			}
			exec1(t, path, "UPDATE runtime_metadata SET metadata_value = 'future'")
		}, toolruntime.ErrSchema, "version of the library that made it"},
		{"somebody else's", func(t *testing.T, path string) { exec1(t, path, "CREATE TABLE customers (id INTEGER)") }, toolruntime.ErrSchema, "another file"},
		{"no database", func(t *testing.T, path string) {
			if err := os.WriteFile(path, bytes.Repeat([]byte("not a database. "), 100), 0o600); err != nil {
				t.Fatal(err)
			}
		}, toolruntime.ErrCorrupt, "not a database"},
		{"a folder", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, toolruntime.ErrCannotOpen, "cannot be opened"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.sqlite3")
			tt.make(t, path)
			before, _ := os.ReadFile(path)
			_, err := Open(context.Background(), path, nil)
			if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.hint) {
				t.Errorf("open: %v", err)
			}
			if errors.Is(err, toolruntime.ErrSchema) != errors.Is(err, toolruntime.ErrContract) {
				t.Errorf("one of ErrSchema and ErrContract alone: %v", err)
			}
			if err != nil && strings.Contains(err.Error(), path) {
				t.Errorf("the error names the path: %v", err)
			}
			if tt.name != "v3" {
				if _, err := Migrate(context.Background(), path, nil); !errors.Is(err, tt.kind) {
					t.Errorf("migrate: %v", err)
				}
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func TestInvalidOptions(t *testing.T) {
	folder := t.TempDir()
	tests := []struct {
		name, path string
		opts       *Options
	}{
		{"memory", ":memory:", nil},
		{"a URI", "file:x?mode=memory", nil},
		{"no path", "", nil},
		{"no folder", filepath.Join(folder, "missing", "x.sqlite3"), nil},
		{"busy timeout", filepath.Join(folder, "x.sqlite3"), &Options{BusyTimeout: time.Microsecond}},
		{"negative busy timeout", filepath.Join(folder, "x.sqlite3"), &Options{BusyTimeout: -time.Second}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Open(context.Background(), tt.path, tt.opts); !errors.Is(err, toolresult.ErrInvalidInput) {
				t.Errorf("%v, want ErrInvalidInput", err)
			}
		})
	}
	if files, _ := os.ReadDir(folder); len(files) != 0 {
		t.Errorf("files were made: %v", files)
	}
}

// TestOddPaths: characters that mean something in a URI are just a name.
func TestOddPaths(t *testing.T) {
	for _, name := range []string{"a b.db", "a?mode=memory", "a#b%41.db", "é.db", "a&b=c"} {
		path := filepath.Join(t.TempDir(), name)
		store, err := Open(context.Background(), path, nil)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		store.Close()
		if info, err := os.Stat(path); err != nil || info.Size() == 0 || info.Mode().Perm() != 0o600 {
			t.Errorf("%q: %v, %v", name, info, err)
		}
	}
}

// TestBehind: a ledger of an earlier version says how far behind it is, and is brought
// up to date only where the caller allows it.
func TestBehind(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "ledger.sqlite3")
	ms := allMigrations(t)
	newest, before := ms[len(ms)-1], ms[len(ms)-2]
	db := plain(t, path)
	conn, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(apply(ctx, conn, ms[:len(ms)-1], 0, &Migration{}), conn.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	behind := fmt.Sprintf("the database is at migration %d of %d", before.Version, newest.Version)
	for _, opts := range []*Options{nil, {ReadOnly: true}} {
		if _, err := Open(ctx, path, opts); err == nil || !strings.Contains(err.Error(), behind) {
			t.Errorf("%+v: %v", opts, err)
		}
	}
	store, err := Open(ctx, path, &Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	store.Close()
}

// TestMigrateTogether lets many open and adopt one file at the same time.
func TestMigrateTogether(t *testing.T) {
	for name, path := range map[string]string{"new": filepath.Join(t.TempDir(), "new.sqlite3"), "v3": copyOf(t, reference)} {
		t.Run(name, func(t *testing.T) {
			var all sync.WaitGroup
			applied := make([]int, 8)
			for i := range applied {
				all.Go(func() {
					m, err := Migrate(context.Background(), path, nil)
					if err != nil {
						t.Error(err)
					}
					applied[i] = len(m.Applied)
				})
			}
			all.Wait()
			if total := applied[0] + applied[1] + applied[2] + applied[3] + applied[4] + applied[5] + applied[6] + applied[7]; total != len(allMigrations(t)) {
				t.Errorf("%d migrations were applied", total)
			}
		})
	}
}

const migrateChild = "TOOLRUNTIME_MIGRATE"

// TestMigrateChild is no test: it is what the process that gets killed runs.
func TestMigrateChild(t *testing.T) {
	path := os.Getenv(migrateChild)
	if path == "" {
		t.Skip("runs in the child processes of TestMigrateKilled")
	}
	fmt.Println("child: ready")
	if _, err := Migrate(context.Background(), path, nil); err != nil {
		t.Fatal(err)
	}
}

// TestMigrateKilled kills a process that adopts a database at many moments: the
// file is what it was or what it becomes, and adopting it again finishes.
func TestMigrateKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	old, done := 0, 0
	for i := range 40 {
		path := copyOf(t, reference)
		child := exec.Command(self, "-test.run=^TestMigrateChild$")
		child.Env = append(os.Environ(), migrateChild+"="+path)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 16)); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(i)*500*time.Microsecond, func() { child.Process.Kill() })
		_ = child.Wait()
		timer.Stop()
		ms, err := migrations()
		if err != nil {
			t.Fatal(err)
		}
		state, err := peek(context.Background(), path, DefaultBusyTimeout, ms)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case state.legacy:
			old++
		case state.current(ms):
			done++
		default:
			t.Errorf("after %d: %+v", i, state)
		}
		if _, err := Migrate(context.Background(), path, nil); err != nil {
			t.Error(err)
		}
	}
	t.Logf("killed while adopting: %d as before, %d finished", old, done)
}

// TestGooseCommand lets the plain goose command and the library take turns.
func TestGooseCommand(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	tool, err := exec.Command("go", "tool", "-n", "-modfile=../../tools/goose/go.mod", "goose").Output()
	if err != nil {
		t.Skipf("the goose command cannot be built here: %v", err)
	}
	goose := func(path string, args ...string) {
		t.Helper()
		cmd := exec.Command(strings.TrimSpace(string(tool)), append([]string{"-dir", "../../db/migrations/sqlite", "sqlite3", path}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("goose %v: %v\n%s", args, err, out)
		}
	}
	path := filepath.Join(t.TempDir(), "goose.sqlite3")
	goose(path, "up")
	store, err := Open(context.Background(), path, nil)
	if err != nil {
		t.Fatalf("open what goose has made: %v", err)
	}
	store.Close()
	other := filepath.Join(t.TempDir(), "ours.sqlite3")
	if _, err := Migrate(context.Background(), other, nil); err != nil {
		t.Fatal(err)
	}
	goose(other, "up")
	goose(other, "status")
	// There is no way down that would keep the evidence.
	if err := exec.Command(strings.TrimSpace(string(tool)), "-dir", "../../db/migrations/sqlite", "sqlite3", other, "down").Run(); err == nil {
		t.Error("goose down succeeded")
	}
	if m, err := Migrate(context.Background(), other, nil); err != nil || len(m.Applied) != 0 {
		t.Errorf("after goose down: %+v, %v", m, err)
	}
}
