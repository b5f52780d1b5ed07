package sqlitestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// TestDetached: a store whose files are not in their places acknowledges nothing and
// has no effect any more, whoever looks first; what it acknowledged before is there
// for the next one, unless its file is not.
func TestDetached(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	remove := func(suffixes ...string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			for _, s := range suffixes {
				if err := os.Remove(path + s); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	rename := func(t *testing.T, from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		do   func(t *testing.T, path string)
		kept bool // at the path
	}{
		"log removed":           {remove("-wal"), true},
		"log and index removed": {remove("-wal", "-shm"), true},
		"index removed":         {remove("-shm"), false}, // until the process ends
		"ledger removed":        {remove(""), false},
		"all removed":           {remove("", "-wal", "-shm"), false},
		"ledger renamed":        {func(t *testing.T, path string) { rename(t, path, path+".old") }, false},
		"log renamed":           {func(t *testing.T, path string) { rename(t, path+"-wal", path+".old") }, true},
		"folder renamed": {func(t *testing.T, path string) {
			rename(t, filepath.Dir(path), filepath.Dir(path)+".old")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
		}, false},
		"an older copy in its place": {func(t *testing.T, path string) { rename(t, path+".copy", path) }, false},
		"a copy in place of the log": {func(t *testing.T, path string) { rename(t, path+".copy", path+"-wal") }, false},
	}
	for name, tt := range tests {
		for _, first := range []string{"dispatch", "lookup", "audit", "close"} {
			t.Run(name+"/"+first, func(t *testing.T) {
				folder := filepath.Join(t.TempDir(), "folder")
				if err := os.Mkdir(folder, 0o700); err != nil {
					t.Fatal(err)
				}
				k := newKeeper(t, folder)
				if _, err := Backup(context.Background(), k.path, k.path+".copy", nil); err != nil {
					t.Fatal(err)
				}
				k.must("before")
				tt.do(t, k.path)
				k.wantDetached(first)
				if len(k.effects) != 1 {
					t.Errorf("effects: %v", k.effects)
				}
				if out := stockOf(t, k.path, tt.kept && first != "close"); out != "" && out != "1" {
					t.Errorf("another program sees %s receipts", out)
				}
				if err := k.engine.Close(); err != nil {
					t.Error(err)
				}
				if !tt.kept {
					return
				}
				store, err := Open(context.Background(), k.path, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer store.Close()
				k.rt = k.runtime(store)
				if pkg, err := k.dispatch(k.rt, "before"); err != nil || pkg.Delivery() != toolresult.LocalReplay {
					t.Errorf("%v, %v, want a replay", pkg, err)
				}
				k.wantAudit(k.rt)
			})
		}
	}
}

// stockOf is how many receipts another program finds, if it is to look and there is one.
func stockOf(t *testing.T, path string, look bool) string {
	t.Helper()
	if _, err := exec.LookPath("sqlite3"); err != nil || !look {
		return ""
	}
	return stock(t, path, "", "SELECT COUNT(*) FROM local_receipts")
}

// wantDetached wants every kind of call to fail, the first one first.
func (k *keeper) wantDetached(first string) {
	k.t.Helper()
	calls := map[string]func() error{
		"dispatch": func() error { _, err := k.dispatch(k.rt, "refused"); return err },
		"lookup":   func() error { _, err := k.dispatch(k.rt, "before"); return err },
		"audit":    func() error { _, err := k.rt.Audit(context.Background(), nil); return err },
	}
	if first == "close" {
		return
	}
	k.engine.watch.looked.Store(-int64(glance)) // long ago
	for _, name := range []string{first, "dispatch", "lookup", "audit"} {
		if err := calls[name](); !errors.Is(err, toolruntime.ErrDetached) || !errors.Is(err, toolruntime.ErrDatabase) {
			k.t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAway: a store whose database is gone acknowledges nothing, and goes on when that
// is back, unless somebody has gone on with the log meanwhile.
func TestAway(t *testing.T) {
	for name, tt := range map[string]struct {
		away      func(path string) (back func() error, err error)
		meanwhile func(path string) error
		detached  bool
	}{
		"ledger": {away: func(path string) (func() error, error) {
			return func() error { return os.Rename(path+".old", path) }, os.Rename(path, path+".old")
		}},
		"folder": {away: func(path string) (func() error, error) {
			folder := filepath.Dir(path)
			return func() error { return os.Rename(folder+".old", folder) }, os.Rename(folder, folder+".old")
		}},
		"log used": {away: func(path string) (func() error, error) {
			return func() error { return os.Rename(path+".old", path) }, os.Rename(path, path+".old")
		}, meanwhile: func(path string) error { return os.Chtimes(path+"-wal", time.Time{}, time.Unix(1, 0)) }, detached: true},
		"log gone": {away: func(path string) (func() error, error) {
			return func() error { return os.Rename(path+".old", path) }, os.Rename(path, path+".old")
		}, meanwhile: func(path string) error { return os.Remove(path + "-wal") }, detached: true},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "folder")
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			k := newKeeper(t, folder)
			k.must("before")
			back, err := tt.away(k.path)
			if err != nil {
				t.Fatal(err)
			}
			k.wantDetached("lookup")
			if _, err := k.dispatch(k.rt, "refused"); !errors.Is(err, toolruntime.ErrUnavailable) {
				t.Error(err)
			}
			if tt.meanwhile != nil {
				if err := tt.meanwhile(k.path); err != nil {
					t.Fatal(err)
				}
			}
			if err := back(); err != nil {
				t.Fatal(err)
			}
			if tt.detached {
				k.wantDetached("dispatch")
				if _, err := k.dispatch(k.rt, "refused"); errors.Is(err, toolruntime.ErrUnavailable) {
					t.Error(err)
				}
				return
			}
			k.must("after")
			if pkg, err := k.dispatch(k.rt, "before"); err != nil || pkg.Delivery() != toolresult.LocalReplay {
				t.Errorf("%v, %v, want a replay", pkg, err)
			}
			k.wantAudit(k.rt)
		})
	}
}

// TestLogCut: a log that somebody else has cut short is noticed by the next write, which
// would leave a hole in it; one that a checkpoint has begun anew is not.
func TestLogCut(t *testing.T) {
	k := newKeeper(t, t.TempDir())
	k.must("one")
	if _, err := plain(t, k.path).Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		t.Fatal(err)
	}
	k.must("two")
	if err := os.Truncate(k.path+"-wal", 4096); err != nil {
		t.Fatal(err)
	}
	k.wantDetached("dispatch")
}

// TestDatabaseCut: a database that somebody else has cut short is noticed by the next
// write; one that was compacted is not.
func TestDatabaseCut(t *testing.T) {
	k := newKeeper(t, t.TempDir())
	for i := range 40 {
		k.must(fmt.Sprint("before", i))
	}
	raw := plain(t, k.path)
	for _, s := range []string{"CREATE TABLE room (a BLOB)", "INSERT INTO room VALUES (zeroblob(1000000))", "PRAGMA wal_checkpoint(TRUNCATE)"} {
		if _, err := raw.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	k.must("large")
	large := k.engine.writer.last.database.Size()
	if _, err := raw.Exec("DROP TABLE room"); err != nil {
		t.Fatal(err)
	}
	k.engine.writer.version, _ = pragma(k.engine.writer.driver, "schema_version") // VACUUM alone has to do
	if _, err := Compact(context.Background(), k.path, nil); err != nil {
		t.Fatal(err)
	}
	k.must("small")
	small := k.engine.writer.last.database.Size()
	if small >= large {
		t.Fatalf("%d bytes, and %d before", small, large)
	}
	// What a host makes through the store is no VACUUM.
	if err := k.engine.WriteWith(context.Background(), func(ctx context.Context, _ engine.Querier, tx dbgen.DBTX) error {
		_, err := tx.ExecContext(ctx, "CREATE TABLE app_made (a INTEGER)")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(k.path, small-4096); err != nil {
		t.Fatal(err)
	}
	if _, err := k.dispatch(k.rt, "refused"); !errors.Is(err, toolruntime.ErrDetached) {
		t.Error(err)
	}
	if k.effects["refused"] != 0 {
		t.Error("an effect")
	}
}

// TestDetachedAtCommit: a file that goes while a transaction is open is noticed before
// anybody hears of it.
func TestDetachedAtCommit(t *testing.T) {
	e := newTestEngine(t)
	path := e.watch.files[0].name
	err := e.writer.write(context.Background(), func(ctx context.Context, _ engine.Querier, tx dbgen.DBTX) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO marks VALUES ('mine', NULL)"); err != nil {
			return err
		}
		return os.Rename(path, path+".old")
	}, true)
	if !errors.Is(err, toolruntime.ErrDetached) || !errors.Is(err, toolruntime.ErrCommitUnknown) {
		t.Error(err)
	}
}

// TestNames: one ledger, whatever name leads to it, as the operating system has it.
func TestNames(t *testing.T) {
	ctx := context.Background()
	base := t.TempDir()
	for _, folder := range []string{"real/inner", "other", "links"} {
		if err := os.MkdirAll(filepath.Join(base, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(base, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("../real/inner", "links/inner") // so links/inner/.. is real
	link("inner/../ledger", "links/ledger")
	link("ledger", "links/again")
	link("loop", "links/loop")
	link(filepath.Join(base, "missing", "ledger"), "links/nowhere")
	real := filepath.Join(base, "real/ledger")
	t.Chdir(filepath.Join(base, "links"))
	for _, path := range []string{real, "ledger", "again", "inner/../ledger", "./inner/./../ledger", filepath.Join(base, "links") + "/inner/../ledger"} {
		at, err := locate(path)
		if err != nil || at.real != real {
			t.Errorf("%s: %+v, %v", path, at, err)
			continue
		}
		k := &keeper{t: t, path: path, effects: map[string]int{}}
		if k.engine, err = openEngine(ctx, path, nil); err != nil {
			t.Fatal(err)
		}
		k.rt = k.runtime(newStore(k.engine))
		if pkg, err := k.dispatch(k.rt, "one"); err != nil || pkg.Code() != toolresult.OK {
			t.Errorf("%s: %v, %v", path, pkg, err)
		} else if replay := pkg.Delivery() == toolresult.LocalReplay; replay != (path != real) {
			t.Errorf("%s: %v", path, pkg.Delivery())
		}
		if err := k.engine.Close(); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(filepath.Join(base, "real")); err != nil || len(left) != 2 {
		t.Errorf("beside the ledger: %v, %v", left, err)
	}
	for path, want := range map[string]string{"loop": "cannot be opened", "nowhere": "folder that exists", real + "-wal": "must not end in", "inner/../other/": "folder that exists"} {
		if _, err := Open(ctx, path, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	// Under another name of the file the log would be another.
	hard := filepath.Join(base, "other", "hard")
	if err := os.Link(real, hard); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{real, hard, "ledger"} {
		for what, do := range map[string]func() error{
			"Open":    func() error { _, err := Open(ctx, path, nil); return err },
			"read":    func() error { _, err := Open(ctx, path, &Options{ReadOnly: true}); return err },
			"Migrate": func() error { _, err := Migrate(ctx, path, nil); return err },
			"Compact": func() error { _, err := Compact(ctx, path, nil); return err },
			"Backup":  func() error { _, err := Backup(ctx, path, filepath.Join(base, "copy"), nil); return err },
		} {
			if err := do(); !errors.Is(err, toolruntime.ErrInvalidInput) || !strings.Contains(fmt.Sprint(err), "hard link") {
				t.Errorf("%s %s: %v", what, path, err)
			}
		}
	}
}

// TestLinkMoved: a link by which the ledger was opened that leads elsewhere now is a
// ledger replaced; one that is made anew is not.
func TestLinkMoved(t *testing.T) {
	folder := t.TempDir()
	link := filepath.Join(folder, "link")
	for _, name := range []string{"one", "two"} {
		if _, err := Migrate(context.Background(), filepath.Join(folder, name), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("one", link); err != nil {
		t.Fatal(err)
	}
	k := &keeper{t: t, path: link, effects: map[string]int{}}
	var err error
	if k.engine, err = openEngine(context.Background(), link, nil); err != nil {
		t.Fatal(err)
	}
	defer k.engine.Close()
	k.rt = k.runtime(newStore(k.engine))
	k.must("before")
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	k.wantDetached("dispatch")
	if err := os.Symlink("one", link); err != nil {
		t.Fatal(err)
	}
	k.must("after")
	if err := errors.Join(os.Remove(link), os.Symlink("two", link)); err != nil {
		t.Fatal(err)
	}
	k.wantDetached("dispatch")
}

// TestLogAlone: where a log lies without its database nothing is made, which would
// remove it; when the database is back, all is there. Nor is anything made by a store
// whose database goes while it connects.
func TestLogAlone(t *testing.T) {
	ctx := context.Background()
	k := newKeeper(t, t.TempDir())
	k.must("before")
	if err := os.Rename(k.path, k.path+".old"); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(k.path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	for what, do := range map[string]func() error{
		"Open":    func() error { _, err := Open(ctx, k.path, nil); return err },
		"read":    func() error { _, err := Open(ctx, k.path, &Options{ReadOnly: true}); return err },
		"Migrate": func() error { _, err := Migrate(ctx, k.path, nil); return err },
	} {
		if err := do(); !errors.Is(err, toolruntime.ErrDetached) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, c := range map[string]*connector{"writer": writerConnector(k.path, DefaultBusyTimeout), "reader": readerConnector(k.path, DefaultBusyTimeout)} {
		if conn, err := c.Connect(ctx); err == nil {
			t.Errorf("a %s is connected: %v", what, conn.Close())
		}
	}
	if _, err := os.Lstat(k.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a ledger was made: %v", err)
	}
	if got, err := os.ReadFile(k.path + "-wal"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the log has changed: %d bytes of %d, %v", len(got), len(want), err)
	}
	if err := os.Rename(k.path+".old", k.path); err != nil {
		t.Fatal(err)
	}
	if pkg, err := k.dispatch(k.rt, "before"); err != nil || pkg.Delivery() != toolresult.LocalReplay {
		t.Errorf("%v, %v, want a replay", pkg, err)
	}
	k.wantAudit(k.rt)
}

// TestDetachedWorker: a worker ends when it can never claim again, and says why.
func TestDetachedWorker(t *testing.T) {
	k := newKeeper(t, t.TempDir())
	k.must("before")
	ended := make(chan error, 1)
	go func() { ended <- k.rt.Work(t.Context(), &toolruntime.WorkOptions{Poll: time.Millisecond}) }()
	// Another file in its place: a ledger that is only gone, a worker waits for.
	if err := os.WriteFile(k.path+".new", []byte("another file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(k.path+".new", k.path); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, toolruntime.ErrDetached) {
		t.Error(err)
	}
}
