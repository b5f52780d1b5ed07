package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
)

// newTestEngine opens a ledger with two tables beside it, in which units leave
// their marks: one of them with a foreign key that is checked at the commit.
func newTestEngine(t *testing.T) *sqliteEngine {
	t.Helper()
	e, err := openEngine(context.Background(), filepath.Join(t.TempDir(), "ledger.sqlite3"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	if _, err := e.writer.conn.ExecContext(context.Background(), `
		CREATE TABLE parents (id INTEGER PRIMARY KEY);
		CREATE TABLE marks (name TEXT PRIMARY KEY, parent INTEGER REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED);`); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e *sqliteEngine) mark(name string, parent any) error {
	_, err := e.writer.conn.ExecContext(context.Background(), "INSERT INTO marks VALUES (?, ?)", name, parent)
	return err
}

func (e *sqliteEngine) marks(t *testing.T) []string {
	t.Helper()
	rows, err := list(context.Background(), e.writer.conn, "SELECT name FROM marks ORDER BY name", scanText)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// batch runs units so that they share one commit: they queue up behind a unit
// that waits for them.
func (e *sqliteEngine) batch(t *testing.T, units ...engine.Unit) []error {
	t.Helper()
	entered, leave := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		_ = e.Write(context.Background(), func(context.Context, engine.Querier) error {
			close(entered)
			<-leave
			return nil
		})
	})
	<-entered
	errs := make([]error, len(units))
	for i, unit := range units {
		all.Go(func() { errs[i] = e.Write(context.Background(), unit) })
	}
	for e.writer.waiting() < len(units) {
		runtime.Gosched()
	}
	close(leave)
	all.Wait()
	return errs
}

func (c *committer) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue)
}

// TestBatchKeepsNeighbours: a unit that fails or panics is rolled back alone.
func TestBatchKeepsNeighbours(t *testing.T) {
	e := newTestEngine(t)
	boom := errors.New("boom")
	unit := func(name string, then func() error) engine.Unit {
		return func(context.Context, engine.Querier) error {
			if err := e.mark(name, nil); err != nil {
				return err
			}
			return then()
		}
	}
	ok := func() error { return nil }
	errs := e.batch(t,
		unit("a", ok),
		unit("b", func() error { return boom }),
		unit("c", ok),
		unit("d", func() error { panic("at the disco") }),
		unit("e", func() error { return e.mark("e", nil) }), // violates the primary key
		unit("f", ok))
	if diff := cmp.Diff([]string{"a", "c", "f"}, e.marks(t)); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
	for i, want := range []bool{true, false, true, false, false, true} {
		if (errs[i] == nil) != want {
			t.Errorf("unit %d: %v", i, errs[i])
		}
	}
	if !errors.Is(errs[1], boom) || !errors.Is(errs[4], engine.ErrConstraint) {
		t.Errorf("errors: %v", errs)
	}
}

// TestCommitErrorReachesAll: a commit that fails is ambiguous for every unit
// that shared it, and nothing of it is stored.
func TestCommitErrorReachesAll(t *testing.T) {
	e := newTestEngine(t)
	errs := e.batch(t,
		func(context.Context, engine.Querier) error { return e.mark("a", nil) },
		func(context.Context, engine.Querier) error { return e.mark("b", 42) }, // no such parent: the commit fails
		func(context.Context, engine.Querier) error { return e.mark("c", nil) })
	for i, err := range errs {
		if !errors.Is(err, engine.ErrCommitUnknown) {
			t.Errorf("unit %d: %v, want ErrCommitUnknown", i, err)
		}
	}
	if got := e.marks(t); len(got) != 0 {
		t.Errorf("marks: %v", got)
	}
	if err := e.Write(context.Background(), func(context.Context, engine.Querier) error { return e.mark("d", nil) }); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestTransactionLost: when a unit ends the shared transaction under everybody,
// as SQLite does on a full disk, each unit gets a transaction of its own.
func TestTransactionLost(t *testing.T) {
	e := newTestEngine(t)
	errs := e.batch(t,
		func(context.Context, engine.Querier) error { return e.mark("a", nil) },
		func(context.Context, engine.Querier) error { return e.writer.exec("ROLLBACK") },
		func(context.Context, engine.Querier) error { return e.mark("c", nil) })
	if diff := cmp.Diff([]string{"a", "c"}, e.marks(t)); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
	if errs[0] != nil || errs[1] == nil || errs[2] != nil {
		t.Errorf("errors: %v", errs)
	}
}

// TestWithdraw: a caller who gives up before its turn has stored nothing.
func TestWithdraw(t *testing.T) {
	e := newTestEngine(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		_ = e.Write(context.Background(), func(context.Context, engine.Querier) error { close(entered); <-leave; return nil })
	})
	<-entered
	ctx, cancel := context.WithCancel(context.Background())
	var err error
	all.Go(func() {
		defer close(leave)
		err = e.Write(ctx, func(context.Context, engine.Querier) error { return e.mark("late", nil) })
	})
	for e.writer.waiting() < 1 {
		runtime.Gosched()
	}
	cancel()
	all.Wait()
	if !errors.Is(err, context.Canceled) || len(e.marks(t)) != 0 {
		t.Errorf("%v, %v", err, e.marks(t))
	}
}

// TestBusy: another process that holds the database is waited for, as long as
// the caller wants and the limit allows, and then named.
func TestBusy(t *testing.T) {
	e := newTestEngine(t)
	e.writer.wait = 150 * time.Millisecond
	other, err := sql.Open("sqlite3", dsn(e.watch.files[0].name, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.SetMaxOpenConns(1)
	if _, err := other.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	unit := func(context.Context, engine.Querier) error { return e.mark("x", nil) }
	if err := e.Write(context.Background(), unit); !errors.Is(err, engine.ErrBusy) {
		t.Errorf("%v, want ErrBusy", err)
	}
	e.writer.wait = time.Hour
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := e.Write(ctx, unit); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want the context's error", err)
	}
	if _, err := other.Exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := e.Write(context.Background(), unit); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestClosed(t *testing.T) {
	e := newTestEngine(t)
	for range 2 {
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	nothing := func(context.Context, engine.Querier) error { return nil }
	for name, err := range map[string]error{
		"write": e.Write(context.Background(), nothing), "read": e.Read(context.Background(), nothing)} {
		if !errors.Is(err, engine.ErrClosed) {
			t.Errorf("%s: %v, want ErrClosed", name, err)
		}
	}
}

// TestSettings reads back, on every connection of both pools, what durability
// rests on.
func TestSettings(t *testing.T) {
	e := newTestEngine(t)
	conns := []*sql.Conn{e.writer.conn}
	for range cap(e.readers) {
		r := <-e.readers
		conns = append(conns, r.conn)
		defer func() { e.readers <- r }()
	}
	for i, conn := range conns {
		got := map[string]string{}
		for _, name := range []string{"journal_mode", "synchronous", "foreign_keys", "trusted_schema", "cell_size_check", "query_only"} {
			var v any
			if err := conn.QueryRowContext(context.Background(), "PRAGMA "+name).Scan(&v); err != nil {
				t.Fatal(err)
			}
			got[name] = fmt.Sprint(v)
		}
		want := map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1",
			"trusted_schema": "0", "cell_size_check": "1", "query_only": "1"}
		if i == 0 {
			want["query_only"] = "0"
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("connection %d (-want +got):\n%s", i, diff)
		}
	}
}

// TestGoexit: a unit that ends its goroutine, as testing.T.FailNow does, is rolled
// back and fails alone; it takes nobody's turn with it, and not the leader's goroutine
// where the code is the host's.
func TestGoexit(t *testing.T) {
	e := newTestEngine(t)
	exit := func(ctx context.Context, _ engine.Querier, tx dbgen.DBTX) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO marks VALUES ('left', NULL)"); err != nil {
			return err
		}
		runtime.Goexit()
		return nil
	}
	if err := e.WriteWith(context.Background(), exit); !errors.Is(err, errGoexit) {
		t.Errorf("the host's: %v", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := e.writer.write(context.Background(), exit, false)
		t.Errorf("the goroutine went on: %v", err)
	}()
	<-ended
	// Among others, who may not have been asked yet.
	<-e.writer.lead
	p := &pending{ctx: context.Background(), unit: exit, done: make(chan struct{})}
	other := &pending{ctx: context.Background(), done: make(chan struct{}), unit: func(context.Context, engine.Querier, dbgen.DBTX) error { return nil }}
	e.writer.queue = []*pending{p, other}
	go e.writer.turn()
	<-p.done
	<-other.done
	if p.err == nil || other.err == nil {
		t.Errorf("%v, %v", p.err, other.err)
	}
	err := e.WriteWith(context.Background(), func(ctx context.Context, _ engine.Querier, tx dbgen.DBTX) error {
		var n int
		if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM marks").Scan(&n); err != nil || n != 0 {
			t.Errorf("%d marks, %v", n, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
