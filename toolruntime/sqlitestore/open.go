package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/bridge"
	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/hostclock"
	"github.com/toolruntime/toolruntime-go/internal/limits"
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
	// Logger gets what no caller can be told: that the write-ahead log grows beyond
	// its bound, because a reader stays; nil means none.
	Logger *slog.Logger
}

// Open opens the ledger in the file at path, and makes it when there is none in
// an existing folder. A ledger in memory is refused: it would not survive what
// it is there to survive.
//
// Many processes may open the same file, by whatever path: links and ".." mean what
// they mean to the operating system. A file with several names of its own (hard
// links) is refused. The returned store is safe for concurrent use; close it to
// checkpoint the write-ahead log.
//
// The file, its -wal and its -shm stay in their places while the store is open. Where
// one was removed, moved or replaced, the store acknowledges nothing any more: every
// call fails with an error that matches toolruntime.ErrDetached. A write finds that out
// before it is acknowledged, a read within 10 ms. Close the store, see what is at the
// path, and open it again, in a new process if that is refused. Open itself refuses so
// where there is a -wal alone, which has what was acknowledged last.
//
// No other code of the process may open or close these files past SQLite: on POSIX
// systems that takes away the locks that keep other programs from removing the
// write-ahead log.
func Open(ctx context.Context, path string, opts *Options) (*toolruntime.Store, error) {
	e, err := openEngine(ctx, path, opts)
	if err != nil {
		return nil, fmt.Errorf("sqlitestore: open: %w", err)
	}
	return newStore(e), nil
}

func newStore(e engine.Engine) *toolruntime.Store { return bridge.NewStore(e).(*toolruntime.Store) }

func openEngine(ctx context.Context, path string, opts *Options) (*sqliteEngine, error) {
	if opts == nil {
		opts = &Options{}
	}
	wait, err := opts.wait()
	if err != nil {
		return nil, err
	}
	at, err := locate(path)
	if err != nil {
		return nil, err
	}
	var e *sqliteEngine
	if opts.ReadOnly {
		e, err = openReadOnly(ctx, at, wait)
	} else {
		e, err = open(ctx, at, wait, opts)
	}
	return e, readOnly(at.real, err)
}

// wait is how long to wait for another process.
func (o *Options) wait() (time.Duration, error) {
	if o == nil || o.BusyTimeout == 0 {
		return DefaultBusyTimeout, nil
	}
	if err := limits.ServerTimeout.Check("busy timeout", o.BusyTimeout); err != nil {
		return 0, err
	}
	return o.BusyTimeout, nil
}

// sqliteEngine runs the store's units on one SQLite file: writes on one
// connection behind the committer, reads on a few others beside it.
type sqliteEngine struct {
	watch   *watch
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

func open(ctx context.Context, at location, wait time.Duration, opts *Options) (_ *sqliteEngine, err error) {
	if err := prepare(ctx, at.real, wait, opts.Migrate); err != nil {
		return nil, err
	}
	e := &sqliteEngine{reading: readerConnector(at.real, wait)}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	before, err := os.Stat(at.real)
	if err != nil {
		return nil, fileError(err)
	}
	e.writeDB = sql.OpenDB(writerConnector(at.real, min(wait, writerPoll)))
	conn, err := connected(ctx, e.writeDB)
	if err != nil {
		return nil, err
	}
	if e.watch, err = newWatch(at, before, false); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if e.writer, err = newCommitter(conn, wait, e.watch, newLogGuard(at.real, logLimit, wait, opts.Logger)); err != nil {
		return nil, err
	}
	return e, e.openReaders(ctx)
}

// openReadOnly opens a ledger of this version without being able to change it.
func openReadOnly(ctx context.Context, at location, wait time.Duration) (_ *sqliteEngine, err error) {
	ms, err := migrations()
	if err != nil {
		return nil, err
	}
	state, err := peek(ctx, at.real, wait, ms)
	if err != nil {
		return nil, err
	}
	if err := state.refusal(ms, "run `toolruntime migrate`"); err != nil {
		return nil, err
	}
	e := &sqliteEngine{reading: readOnlyConnector(at.real, wait)}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	before, err := os.Stat(at.real)
	if err != nil {
		return nil, fileError(err)
	}
	if err := e.openReaders(ctx); err != nil {
		return nil, err
	}
	e.watch, err = newWatch(at, before, true)
	return e, err
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
		conn, err := connected(ctx, e.readDB)
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
	if e.watch == nil {
		return nil
	}
	_, err := e.watch.look()
	return err
}

// Now implements [engine.Engine]. All who have the file open are on one host, and
// share its clock.
func (e *sqliteEngine) Now() time.Time { return hostclock.Now() }

// Skew implements [engine.Engine].
func (e *sqliteEngine) Skew() time.Duration { return 0 }

// Write implements [engine.Engine].
func (e *sqliteEngine) Write(ctx context.Context, unit engine.Unit) error {
	if e.writer == nil {
		return &engine.Error{Kind: engine.ErrReadOnly}
	}
	return e.writer.write(ctx, func(ctx context.Context, q engine.Querier, _ dbgen.DBTX) error { return unit(ctx, q) }, false)
}

// Reserve implements [engine.Engine].
func (e *sqliteEngine) Reserve(ctx context.Context, all ...*engine.Reservation) error {
	return inChunks(all, func(some []*engine.Reservation) error {
		return e.Write(ctx, func(ctx context.Context, q engine.Querier) error { return q.Reserve(ctx, some...) })
	})
}

// Move implements [engine.Engine].
func (e *sqliteEngine) Move(ctx context.Context, all ...*engine.Motion) error {
	return inChunks(all, func(some []*engine.Motion) error {
		return e.Write(ctx, func(ctx context.Context, q engine.Querier) error { return q.Move(ctx, some...) })
	})
}

// maxChunk bounds for how long others wait.
const maxChunk = 64

// inChunks does things some at a time, each some by one unit. Where that fails and has
// left nothing behind, it does them one by one.
func inChunks[T any](all []*T, do func([]*T) error) (err error) {
	for some := range slices.Chunk(all, maxChunk) {
		e := do(some)
		if e == nil || len(some) == 1 || errors.Is(e, engine.ErrCommitUnknown) {
			err = errors.Join(err, engine.Whole(e))
			continue
		}
		for i := range some {
			err = errors.Join(err, engine.Whole(do(some[i:i+1])))
		}
	}
	return err
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
		if err := e.noticed(e.watch.glance()); err != nil {
			return err
		}
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
	if err := e.noticed(e.watch.glance()); err != nil {
		return err
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
	// A connection to another file than the store's, or to a log of its own, would
	// be made by the names.
	_, err = e.watch.look()
	if err := e.noticed(err); err != nil {
		return err
	}
	db := sql.OpenDB(e.reading)
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return classify(err)
	}
	defer conn.Close()
	if _, err := e.watch.look(); err != nil {
		return err
	}
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
		if e.watch != nil {
			e.watch.end()
		}
		var errs []error
		if e.writer != nil {
			errs = append(errs, e.writer.close())
		}
		for i := range e.opened {
			r := <-e.readers
			if i == e.opened-1 && e.watch != nil && e.watch.detached.Load() {
				errs = append(errs, e.leave(r))
				continue
			}
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

// LogBytes implements [engine.Engine].
func (e *sqliteEngine) LogBytes() int64 {
	if e.writer == nil {
		return 0
	}
	return e.writer.log.size.Load()
}

// Limits implements [engine.Engine]. SQLite holds whatever the contract allows.
func (e *sqliteEngine) Limits() engine.Limits { return engine.Limits{} }
