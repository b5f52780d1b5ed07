package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

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
	// the first of the search_path that the URL or the server sets.
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
	// fails over, and repeats what lost a race; 0 means [DefaultRetryTimeout].
	RetryTimeout time.Duration
	// Migrate lets Open make the schema, or bring an older ledger up to date.
	// Without it Open changes nothing. A newer ledger is always refused.
	Migrate bool
}

// Open opens the ledger in the database that url names. It takes what libpq's
// URLs take, with several hosts (of which it uses the one that can be written)
// and TLS by sslmode: use sslmode=verify-full where the network is not yours.
//
// Many processes on many hosts may open the same ledger. The returned store is
// safe for concurrent use.
func Open(ctx context.Context, url string, opts *Options) (*toolruntime.Store, error) {
	e, err := open(ctx, url, opts, false)
	if err != nil {
		return nil, fmt.Errorf("pgstore: open: %w", err)
	}
	return toolruntime.NewStore(e), nil
}

func open(ctx context.Context, url string, opts *Options, unfinished bool) (*pgEngine, error) {
	e, err := connect(url, opts)
	if err != nil {
		return nil, err
	}
	if err := e.prepare(ctx, opts != nil && opts.Migrate, unfinished); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// pgEngine runs the store's units on one PostgreSQL database.
type pgEngine struct {
	db     *sql.DB
	schema string        // to be made by a migration, or ""
	limit  time.Duration // of a transaction, on this side of the network
	retry  time.Duration
	lock   string      // the lock timeout of a batch
	noKeys atomic.Bool // the role may not use the sequence of operations

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
	config, err := configure(url, o)
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(identify))
	db.SetMaxOpenConns(o.MaxConns)
	db.SetMaxIdleConns(o.MaxConns)
	db.SetConnMaxIdleTime(5 * time.Minute)
	e := &pgEngine{db: db, schema: o.Schema, limit: 4 * o.StatementTimeout, retry: o.RetryTimeout,
		lock: milliseconds(min(patience, o.LockTimeout))}
	e.lookups = gatherer[*lookup]{db: db, send: e.sendLookups, leave: true}
	e.writes = gatherer[*write]{db: db, send: e.sendWrites}
	return e, nil
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
func configure(url string, o Options) (*pgx.ConnConfig, error) {
	if !strings.HasPrefix(url, "postgres://") && !strings.HasPrefix(url, "postgresql://") {
		return nil, &toolresult.InputError{Field: "database", Rule: "must be a postgres:// URL"}
	}
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, &toolresult.InputError{Field: "database", Rule: "is a postgres:// URL that cannot be understood"}
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	p := config.RuntimeParams
	for name, value := range map[string]string{
		"application_name":                    "toolruntime",
		"statement_timeout":                   milliseconds(o.StatementTimeout),
		"lock_timeout":                        milliseconds(o.LockTimeout),
		"idle_in_transaction_session_timeout": milliseconds(idleTimeout),
	} {
		if _, given := p[name]; !given {
			p[name] = value
		}
	}
	if o.Schema != "" {
		p["search_path"] = pgx.Identifier{o.Schema}.Sanitize()
	}
	if config.ValidateConnect == nil && manyHosts(config) {
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return config, nil
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

// Close implements [engine.Engine]. It waits for the units that are running.
func (e *pgEngine) Close() error {
	e.mu.Lock()
	e.shut = true
	e.mu.Unlock()
	e.running.Wait()
	return classify(e.db.Close())
}
