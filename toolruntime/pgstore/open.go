package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/toolruntime/toolruntime-go/internal/bridge"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/limits"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// Defaults of [Options].
const (
	DefaultMaxConns         = 10
	DefaultStatementTimeout = 15 * time.Second
	DefaultLockTimeout      = 5 * time.Second
	DefaultRetryTimeout     = 15 * time.Second
)

// idleTimeout is after how long the server ends a transaction of a process that
// has stopped in the middle of it, and with it the locks that it holds.
const idleTimeout = 60 * time.Second

// connectTimeout bounds how long a connection is made, where the URL does not: a
// server may accept one and say nothing.
const connectTimeout = 10 * time.Second

// Options of [Open] and [Migrate]. The zero value is safe. A timeout that the
// URL sets as a parameter wins over the one here.
type Options struct {
	// Schema is the schema that holds the ledger and goose's bookkeeping; "" means
	// the one of the search_path, as the URL or the server sets it, in which a ledger
	// stands, or the first where there is none. Nobody but its owner, superusers and
	// the role that opens it may be able to create objects in it.
	//
	// It is the whole search_path of every connection, so that the SQL of a
	// transactional tool names its own tables with their schema where that is another.
	Schema string
	// MaxConns bounds the connections of this store; 0 means [DefaultMaxConns].
	MaxConns int
	// StatementTimeout bounds every statement on the server, except a COMMIT and
	// the audit; 0 means [DefaultStatementTimeout].
	StatementTimeout time.Duration
	// LockTimeout bounds the wait for a row or table that another session holds;
	// 0 means [DefaultLockTimeout].
	LockTimeout time.Duration
	// RetryTimeout is for how long a call waits out a server that restarts or
	// fails over, and repeats what lost a race; 0 means [DefaultRetryTimeout]. What
	// an attempt has come to is tried again after that, see
	// [toolruntime.ErrNotRecorded].
	RetryTimeout time.Duration
	// Migrate lets Open make the schema, or bring an older ledger up to date.
	// Without it Open changes nothing. A newer ledger is always refused.
	Migrate bool
}

// Open opens the ledger in the database that url names. It takes what libpq's
// URLs take, or the same in words ("host=db.internal dbname=tools"), with several
// hosts (of which it uses the one that can be written) and TLS by sslmode: use
// sslmode=verify-full where the network is not yours.
//
// What the ledger rests on (the schema, the timeouts, the isolation) is set on every
// connection and read back; where a pooler or the server takes it away, there is a
// [*SessionError]. A ledger of which other roles may take hold is refused.
//
// Many processes on many hosts may open the same ledger. The returned store is
// safe for concurrent use.
func Open(ctx context.Context, url string, opts *Options) (*toolruntime.Store, error) {
	e, err := open(ctx, url, opts, false)
	if err != nil {
		return nil, fmt.Errorf("pgstore: open: %w", err)
	}
	return newStore(e), nil
}

func newStore(e engine.Engine) *toolruntime.Store { return bridge.NewStore(e).(*toolruntime.Store) }

func open(ctx context.Context, url string, opts *Options, unfinished bool) (*pgEngine, error) {
	e, err := connect(url, opts)
	if err != nil {
		return nil, err
	}
	if err := e.find(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	if err := e.prepare(ctx, opts != nil && opts.Migrate, unfinished); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// pgEngine runs the store's units on one PostgreSQL database.
type pgEngine struct {
	db       *sql.DB
	config   *pgx.ConnConfig
	settings map[string]string // of every session
	wanted   string            // Options.Schema
	given    string            // the search_path of the URL, or ""
	place    place             // once it is found
	path     string            // the search_path that leads there
	limit    time.Duration     // of a transaction, on this side of the network
	retry    time.Duration
	lock     string // the lock timeout of a batch

	clock clock
	// serverIs is where the store's connections lead, once somebody has asked.
	serverIs atomic.Pointer[string]

	lookups gatherer[*lookup]
	writes  gatherer[*write]

	mu      sync.Mutex
	shut    bool
	running sync.WaitGroup
}

// connect makes the pool; it dials nothing.
func connect(url string, opts *Options) (*pgEngine, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &pgEngine{wanted: o.Schema, limit: 4 * o.StatementTimeout, retry: o.RetryTimeout,
		lock: milliseconds(min(patience, o.LockTimeout))}
	if err := e.configure(url, o); err != nil {
		return nil, err
	}
	e.db = stdlib.OpenDB(*e.config, stdlib.OptionAfterConnect(e.settle))
	e.db.SetMaxOpenConns(o.MaxConns)
	e.db.SetMaxIdleConns(o.MaxConns)
	e.db.SetConnMaxIdleTime(5 * time.Minute)
	e.lookups = gatherer[*lookup]{db: e.db, send: e.sendLookups, leave: true}
	e.writes = gatherer[*write]{db: e.db, send: e.sendWrites}
	return e, nil
}

// find finds the ledger's schema, by a connection of its own: those of the pool are
// made for one schema.
func (e *pgEngine) find(ctx context.Context) error {
	return e.persist(ctx, func() error {
		conn, err := pgx.ConnectConfig(ctx, e.config)
		if err != nil {
			return ended(ctx, refusedAtOnce(err, e.config))
		}
		defer conn.Close(context.WithoutCancel(ctx))
		if err := unpooled(ctx, e.config, conn); err != nil {
			return ended(ctx, err)
		}
		e.place, err = locate(ctx, conn, e.wanted, e.given)
		e.path = pathTo(e.place.schema)
		e.settings["search_path"] = e.path
		return ended(ctx, err)
	})
}

func (o *Options) withDefaults() (Options, error) {
	var v Options
	if o != nil {
		v = *o
	}
	if v.MaxConns == 0 {
		v.MaxConns = DefaultMaxConns
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		zero  time.Duration
	}{
		{"statement timeout", &v.StatementTimeout, DefaultStatementTimeout},
		{"lock timeout", &v.LockTimeout, DefaultLockTimeout},
		{"retry timeout", &v.RetryTimeout, DefaultRetryTimeout},
	} {
		if *d.value == 0 {
			*d.value = d.zero
		}
		if err := limits.ServerTimeout.Check(d.name, *d.value); err != nil {
			return v, err
		}
	}
	if err := limits.Connections.Check("max conns", v.MaxConns); err != nil {
		return v, err
	}
	switch {
	case len(v.Schema) > 63 || strings.ContainsRune(v.Schema, 0):
		// The server would cut a longer name short, in silence.
		return v, &toolresult.InputError{Field: "schema", Rule: "must be at most 63 bytes, without a zero byte"}
	}
	return v, nil
}

// configure reads the URL. Its error does not repeat the driver's, which quotes
// the URL.
func (e *pgEngine) configure(url string, o Options) error {
	if !strings.HasPrefix(url, "postgres://") && !strings.HasPrefix(url, "postgresql://") && !strings.Contains(url, "=") {
		// Without any word the server would be whatever the environment names.
		return &toolresult.InputError{Field: "database", Rule: `must be a postgres:// URL, or words such as "host=db.internal dbname=tools"`}
	}
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return &toolresult.InputError{Field: "database", Rule: "is an address that cannot be understood"}
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	e.settings = defaults(o)
	e.given = config.RuntimeParams["search_path"]
	for name, value := range config.RuntimeParams {
		e.settings[name] = value
		if !startup[name] {
			delete(config.RuntimeParams, name)
		}
	}
	maps.Copy(e.settings, fixed)
	delete(e.settings, "options")
	delete(e.settings, "replication")
	config.RuntimeParams["application_name"] = e.settings["application_name"]
	config.RuntimeParams["client_encoding"] = e.settings["client_encoding"]
	if config.ValidateConnect == nil && manyHosts(config) {
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	e.config = config
	return nil
}

// manyHosts reports whether the URL names more than one server; a fallback may
// also be the same one without TLS.
func manyHosts(c *pgx.ConnConfig) bool {
	for _, f := range c.Fallbacks {
		if f.Host != c.Host || f.Port != c.Port {
			return true
		}
	}
	return false
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// enter counts a unit that runs; leave ends it.
func (e *pgEngine) enter() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.shut {
		return engine.ErrClosed
	}
	e.running.Add(1)
	return nil
}

func (e *pgEngine) leave() { e.running.Done() }

// LogBytes implements [engine.Engine]: the log is the server's.
func (e *pgEngine) LogBytes() int64 { return 0 }

// Limits implements [engine.Engine]. PostgreSQL has no zero byte in a text, and a page
// of an index holds three entries: 2704 bytes each, with up to 57 for the heads of six
// columns.
func (e *pgEngine) Limits() engine.Limits { return engine.Limits{NoZero: true, KeyBytes: 2640} }

// Close implements [engine.Engine]. It waits for the units that are running.
func (e *pgEngine) Close() error {
	e.mu.Lock()
	e.shut = true
	e.mu.Unlock()
	e.running.Wait()
	return classify(e.db.Close())
}
