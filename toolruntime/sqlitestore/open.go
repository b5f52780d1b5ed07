package sqlitestore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/limits"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// DefaultBusyTimeout is how long a call waits for another process.
const DefaultBusyTimeout = 5 * time.Second

// writerPoll is how long the writer waits inside SQLite before it looks whether
// its callers still want their transactions.
const writerPoll = 100 * time.Millisecond

// Options of [Open]. The zero value is safe.
type Options struct {
	// BusyTimeout bounds the wait for another process that holds the database;
	// 0 means [DefaultBusyTimeout], and less than a millisecond is an error.
	BusyTimeout time.Duration
	// Migrate lets Open bring an older ledger up to date, and adopt one of
	// another implementation. Without it Open makes the schema of a new file and
	// refuses an old one unchanged. A newer ledger is always refused.
	Migrate bool
	// ReadOnly opens a ledger that there is, to look at it: for an audit, which
	// then sees the file as it is and changes nothing. Every write fails with
	// ErrReadOnly.
	ReadOnly bool
}

// Open opens the ledger in the file at path, and makes it when there is none in
// an existing folder. A ledger in memory is refused: it would not survive what
// it is there to survive.
//
// Many processes may open the same file. The returned store is safe for
// concurrent use; close it to checkpoint the write-ahead log.
func Open(ctx context.Context, path string, opts *Options) (*toolruntime.Store, error) {
	wait, err := check(path, opts)
	if err != nil {
		return nil, fmt.Errorf("sqlitestore: open: %w", err)
	}
	var e *sqliteEngine
	if opts != nil && opts.ReadOnly {
		e, err = openReadOnly(ctx, path, wait)
	} else {
		e, err = open(ctx, path, wait, opts != nil && opts.Migrate)
	}
	if err != nil {
		return nil, fmt.Errorf("sqlitestore: open: %w", readOnly(path, err))
	}
	return toolruntime.NewStore(e), nil
}

func check(path string, opts *Options) (time.Duration, error) {
	wait := DefaultBusyTimeout
	if opts != nil && opts.BusyTimeout != 0 {
		wait = opts.BusyTimeout
	}
	if err := limits.ServerTimeout.Check("busy timeout", wait); err != nil {
		return 0, err
	}
	switch {
	case path == "" || strings.HasPrefix(path, ":memory:") || strings.HasPrefix(path, "file:"):
		return 0, &toolresult.InputError{Field: "database", Rule: "must be the path of a file, not a database in memory or a URI"}
	case strings.ContainsRune(path, 0):
		return 0, &toolresult.InputError{Field: "database", Rule: "must not contain a zero byte"}
	}
	if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, os.ErrNotExist) {
		return 0, &toolresult.InputError{Field: "database", Rule: "must be in a folder that exists"}
	}
	return wait, nil
}

// sqliteEngine runs the store's units on one SQLite file: writes on one
// connection behind the committer, reads on a few others beside it.
type sqliteEngine struct {
	path    string
	wait    time.Duration
	writeDB *sql.DB
	readDB  *sql.DB
	writer  *committer // nil when read-only
	reading *connector
	readers chan reader
	opened  int // readers

	peeking atomic.Int64

	shut    atomic.Bool
	closing sync.Once
	closed  error
}

type reader struct {
	conn    *sql.Conn
	queries *queries
}

func open(ctx context.Context, path string, wait time.Duration, allowed bool) (_ *sqliteEngine, err error) {
	if err := prepare(ctx, path, wait, allowed); err != nil {
		return nil, err
	}
	e := &sqliteEngine{path: path, wait: wait, reading: readerConnector(path, wait)}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	e.writeDB = sql.OpenDB(writerConnector(path, min(wait, writerPoll)))
	conn, err := e.writeDB.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if e.writer, err = newCommitter(conn, wait); err != nil {
		return nil, err
	}
	e.writer.log = newLogGuard(path, logLimit)
	return e, e.openReaders(ctx)
}

// openReadOnly opens a ledger of this version without being able to change it.
func openReadOnly(ctx context.Context, path string, wait time.Duration) (_ *sqliteEngine, err error) {
	ms, err := migrations()
	if err != nil {
		return nil, err
	}
	state, err := peek(ctx, path, wait, ms)
	if err != nil {
		return nil, err
	}
	if err := state.refusal(ms, "run `toolruntime migrate`"); err != nil {
		return nil, err
	}
	e := &sqliteEngine{path: path, wait: wait, reading: readOnlyConnector(path, wait)}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	return e, e.openReaders(ctx)
}

// So many KiB the readers share out for the pages that they keep, as long as each
// has the least. An operation of a large ledger has each of its rows, and each of
// their keys, in a page of its own.
const (
	readCache  = 128 << 10
	leastCache = 8 << 10
)

func (e *sqliteEngine) openReaders(ctx context.Context) error {
	e.readDB = sql.OpenDB(e.reading)
	n := max(4, runtime.GOMAXPROCS(0))
	e.readers = make(chan reader, n)
	for range n {
		conn, err := e.readDB.Conn(ctx)
		if err != nil {
			return err
		}
		d, err := driverOf(conn)
		if err == nil {
			_, err = conn.ExecContext(ctx, fmt.Sprintf("PRAGMA cache_size = -%d", max(readCache/n, leastCache)))
		}
		if err != nil {
			return errors.Join(err, conn.Close())
		}
		e.readers <- reader{conn, newQueries(conn, d)}
		e.opened++
	}
	return nil
}

// Write implements [engine.Engine].
func (e *sqliteEngine) Write(ctx context.Context, unit engine.Unit) error {
	if e.writer == nil {
		return &engine.Error{Kind: engine.ErrReadOnly}
	}
	return e.writer.write(ctx, func(ctx context.Context, q dbgen.Querier, _ dbgen.DBTX) error { return unit(ctx, q) }, false)
}

// WriteWith implements [engine.Engine].
func (e *sqliteEngine) WriteWith(ctx context.Context, unit engine.UnitWith) error {
	if e.writer == nil {
		return &engine.Error{Kind: engine.ErrReadOnly}
	}
	return e.writer.write(ctx, unit, true)
}

// Read implements [engine.Engine]. Waiting for a connection obeys ctx; the
// queries, which are short, run without it, because a context that can be
// cancelled costs every one of them a goroutine.
func (e *sqliteEngine) Read(ctx context.Context, unit engine.Unit) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case r, ok := <-e.readers:
		if !ok {
			return engine.ErrClosed
		}
		defer func() { e.readers <- r }()
		return classify(unit(context.WithoutCancel(ctx), r.queries))
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Peek implements [engine.Engine]. While nobody writes it uses the writer's
// connection: each commit makes the pages that a reader has cached invalid, and
// the writer's are still there.
//
// Where callers crowd, they take turns. Nothing in a peek blocks, so one who peeks
// on and on would keep its processor for a whole time slice, in which others wait
// for milliseconds.
func (e *sqliteEngine) Peek(ctx context.Context, unit engine.Unit) error {
	crowded := e.peeking.Add(1) > 2*int64(e.opened)
	defer func() {
		if crowded {
			runtime.Gosched()
		}
		e.peeking.Add(-1)
	}()
	if e.writer == nil {
		return e.Read(ctx, unit)
	}
	if done, err := e.writer.peek(ctx, unit); done {
		return err
	}
	return e.Read(ctx, unit)
}

// Snapshot implements [engine.Engine], on a connection of its own that is
// closed afterwards.
func (e *sqliteEngine) Snapshot(ctx context.Context, view func(context.Context, engine.Snapshot) error) (err error) {
	if e.shut.Load() {
		return engine.ErrClosed
	}
	db := sql.OpenDB(e.reading)
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return classify(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return classify(err)
	}
	defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") }()
	return classify(view(ctx, engine.Snapshot{
		Querier: dbgen.New(conn),
		Inspect: func(ctx context.Context) (engine.Health, error) { return inspect(ctx, conn) },
		Schema:  func(ctx context.Context) ([]string, error) { return differences(ctx, conn) },
	}))
}

// Close implements [engine.Engine]. It waits for the units that are running.
func (e *sqliteEngine) Close() error {
	e.closing.Do(func() {
		e.shut.Store(true)
		var errs []error
		if e.writer != nil {
			errs = append(errs, e.writer.close())
		}
		for range e.opened {
			r := <-e.readers
			errs = append(errs, r.conn.Close())
		}
		if e.readers != nil {
			close(e.readers)
		}
		for _, db := range []*sql.DB{e.readDB, e.writeDB} {
			if db != nil {
				errs = append(errs, db.Close())
			}
		}
		e.closed = classify(errors.Join(errs...))
	})
	return e.closed
}

// The settings of every connection. Those that the DSN cannot carry are set, and
// the ones that durability rests on are read back, as the connection opens: a
// driver that ignored one would otherwise lose acknowledged commits in silence.
//
// A checkpoint comes every 8,000 pages (32 MB) of the log instead of every 1,000:
// keys are random, so each commit changes pages all over the file, and the more
// commits a checkpoint gathers, the fewer times each page is written.
const settings = `
PRAGMA trusted_schema = OFF;
PRAGMA cell_size_check = ON;
PRAGMA wal_autocheckpoint = 8000;
PRAGMA journal_size_limit = 67108864;`

type connector struct {
	driver sqlite3.SQLiteDriver
	dsn    string
}

func (c *connector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }
func (c *connector) Driver() driver.Driver                        { return &c.driver }

func writerConnector(path string, wait time.Duration) *connector {
	return newConnector(path, wait, url.Values{"_journal_mode": {"WAL"}, "_cache_size": {"-65536"}})
}

// readerConnector is for connections that belong to one goroutine at a time, so they
// need no mutex. The writer's is lent to the statements of a host, which may leave
// something open.
func readerConnector(path string, wait time.Duration) *connector {
	return newConnector(path, wait, url.Values{"_query_only": {"on"}, "_cache_size": {"-16384"}, "_mutex": {"no"}})
}

// readOnlyConnector takes the file as it is.
func readOnlyConnector(path string, wait time.Duration) *connector {
	c := newConnector(path, wait, url.Values{"mode": {"ro"}, "_query_only": {"on"}, "_cache_size": {"-16384"}, "_mutex": {"no"}})
	c.driver.ConnectHook = func(c *sqlite3.SQLiteConn) error {
		_, err := c.Exec(settings, nil)
		return err
	}
	return c
}

func newConnector(path string, wait time.Duration, v url.Values) *connector {
	v.Set("_synchronous", "FULL")
	v.Set("_foreign_keys", "on")
	v.Set("_busy_timeout", fmt.Sprint(wait.Milliseconds()))
	v.Set("_stmt_cache_size", "128")
	return &connector{
		driver: sqlite3.SQLiteDriver{ConnectHook: verify},
		dsn:    dsn(path, v),
	}
}

func dsn(path string, v url.Values) string {
	return "file:" + (&url.URL{Path: filepath.Clean(path)}).EscapedPath() + "?" + v.Encode()
}

func verify(c *sqlite3.SQLiteConn) error {
	if _, err := c.Exec(settings, nil); err != nil {
		return err
	}
	for _, want := range []struct {
		pragma string
		value  any
	}{{"synchronous", int64(2)}, {"foreign_keys", int64(1)}, {"journal_mode", "wal"}} {
		got, err := pragma(c, want.pragma)
		if err != nil {
			return err
		}
		if got != want.value {
			return fmt.Errorf("sqlitestore: PRAGMA %s is %v and must be %v", want.pragma, got, want.value)
		}
	}
	return nil
}

func pragma(c *sqlite3.SQLiteConn, name string) (any, error) {
	rows, err := c.Query("PRAGMA "+name, nil)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	row := make([]driver.Value, 1)
	if err := rows.Next(row); err != nil {
		return nil, err
	}
	return row[0], nil
}
