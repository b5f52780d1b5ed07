package pgstore

import (
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/limits"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// SQLTx is a transaction that the host has begun with package database/sql and pgx's
// driver (github.com/jackc/pgx/v5/stdlib), for [toolruntime.Submission.SubmitTx].
//
// It must be on the ledger's own database, on the server that can be written, and its
// role needs what the store's has: USAGE on the ledger's schema and its sequences, and
// SELECT, INSERT and UPDATE on its tables. Of the session nothing is asked:
// what the ledger's statements rest on is set for them and put back, and so is what a
// pooler has given. Only synchronous_commit stays on for the transaction, where it was
// off, because the host's commit is what makes the call durable. READ COMMITTED is
// right. In REPEATABLE READ and SERIALIZABLE a key that somebody else has taken since
// the transaction began ends in [toolruntime.ErrRepeat], and a transaction older than
// half an hour is refused: it would not see what was pruned meanwhile.
func SQLTx(tx *sql.Tx) toolruntime.HostTx { return hostTx{sql: tx} }

// PgxTx is [SQLTx] for a transaction of pgx, of a connection or a pool.
func PgxTx(tx pgx.Tx) toolruntime.HostTx { return hostTx{pgx: tx} }

type hostTx struct {
	sql *sql.Tx
	pgx pgx.Tx
}

func (h hostTx) HostTx() engine.HostTx { return engine.HostTx{Tx: h} }

// open is the transaction as the ledger's statements use one.
func (h hostTx) open(ctx context.Context) (db dbgen.DBTX, done func(), err error) {
	if h.sql != nil {
		return h.sql, func() {}, nil
	}
	pool := sql.OpenDB(lent{h.pgx})
	conn, err := pool.Conn(ctx)
	return conn, func() { _ = errors.Join(conn.Close(), pool.Close()) }, err
}

// An unfit transaction cannot hold a call. Kind is that of the server's error, or nil.
func unfit(kind error, rule string) error {
	err := error(&toolresult.InputError{Field: "tx", Rule: rule})
	if kind != nil {
		err = fmt.Errorf("%w: %w", err, &engine.Error{Kind: kind, Code: "postgres"})
	}
	return err
}

// tooOld is the age from which on a snapshot does not show everything that was pruned:
// what is has ended [limits.LeastPruneAge] before.
var tooOld time.Duration = limits.LeastPruneAge / 2

// maxAgain is how often a unit runs again that has met another at a unique index.
const maxAgain = 2

var _ engine.Joiner = (*pgEngine)(nil)

// Join implements [engine.Joiner]. A unit is in a savepoint: a statement that fails
// would end the host's transaction otherwise.
func (e *pgEngine) Join(ctx context.Context, tx engine.HostTx, unit engine.Unit) error {
	h, ok := tx.Tx.(hostTx)
	if !ok || h.sql == nil && h.pgx == nil {
		return unfit(nil, "must be a transaction of the ledger's database")
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	if e.serverIs.Load() == nil {
		// Before anything is held that others wait for.
		if err := e.learnServer(ctx); err != nil {
			return err
		}
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.limit)
	defer cancel()
	db, done, err := h.open(limited)
	if err != nil {
		return blame(err)
	}
	defer done()
	j := joined{e: e, db: db}
	if err := j.exec(limited, "SAVEPOINT toolruntime"); err != nil {
		return blame(err)
	}
	if err = j.settle(ctx, limited); err == nil {
		err = j.run(limited, unit)
	}
	if err == nil {
		err = j.exec(limited, j.putBack()+"RELEASE SAVEPOINT toolruntime")
		if err == nil {
			return nil
		}
	}
	if undone := j.exec(limited, "ROLLBACK TO SAVEPOINT toolruntime; RELEASE SAVEPOINT toolruntime"); undone != nil {
		return errors.Join(blame(err), blame(undone))
	}
	return blame(err)
}

// joined is a transaction of the host's while a unit is in it.
type joined struct {
	e  *pgEngine
	db dbgen.DBTX
	// was are the settings of the host's session that are changed.
	was  [][2]string
	pins string // the statements that change them
	sees bool   // what others commit meanwhile
}

func (j *joined) exec(ctx context.Context, statements string) error {
	_, err := j.db.ExecContext(ctx, statements)
	return fromDriver(err)
}

// server names the run of a server, and a database of it: two that are copies of each
// other have not started at the same microsecond. Nothing here is looked up by the
// host's search_path, or written as a setting of its session says.
const server = `pg_catalog.concat((SELECT c.system_identifier FROM pg_catalog.pg_control_system() AS c), ' ',
	(SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()), ' ',
	pg_catalog.encode(pg_catalog.timestamptz_send(pg_catalog.pg_postmaster_start_time()), 'hex'))`

// asked is what is asked of the host's session before anything is changed in it.
const asked = `SELECT pg_catalog.current_setting('search_path'), pg_catalog.current_setting('standard_conforming_strings'),
	pg_catalog.current_setting('bytea_output'), pg_catalog.current_setting('lock_timeout'),
	pg_catalog.current_setting('synchronous_commit'), pg_catalog.current_setting('transaction_isolation'),
	pg_catalog.current_setting('transaction_read_only'), pg_catalog.current_setting('session_replication_role'),
	pg_catalog.current_setting('client_encoding'), CAST(pg_catalog.pg_is_in_recovery() AS pg_catalog.text), ` + server + `,
	pg_catalog.encode(pg_catalog.timestamptz_send(pg_catalog.clock_timestamp()), 'hex'),
	pg_catalog.encode(pg_catalog.timestamptz_send(pg_catalog.transaction_timestamp()), 'hex')`

// settle makes the session what the ledger's statements rest on, or says why it
// cannot be.
func (j *joined) settle(ctx, limited context.Context) error {
	var path, conforming, bytea, lock, sync, isolation, readOnly, replication, encoding, recovery, server, clock, begun string
	sent := time.Now()
	err := j.db.QueryRowContext(limited, asked).Scan(&path, &conforming, &bytea, &lock, &sync, &isolation, &readOnly,
		&replication, &encoding, &recovery, &server, &clock, &begun)
	if err = fromDriver(err); err != nil && code(err) == "" && !errors.Is(err, sql.ErrTxDone) && !errors.Is(err, engine.ErrUnavailable) && limited.Err() == nil {
		return unfit(nil, "must be on PostgreSQL, by the driver of pgx; its simple protocol needs standard_conforming_strings = on and client_encoding = UTF8")
	}
	if err != nil {
		return err
	}
	now, started := microseconds(clock), microseconds(begun)
	j.sees = isolation == "read committed" || isolation == "read uncommitted"
	switch {
	case recovery == "true":
		return unfit(engine.ErrReadOnly, "must be on the primary: this server is a standby")
	case readOnly == "on":
		return unfit(engine.ErrReadOnly, "must be able to write: it was begun READ ONLY")
	case encoding != "UTF8":
		return unfit(nil, "must be of a session whose client_encoding is UTF8")
	case replication != required["session_replication_role"]:
		return unfit(nil, "must be of a session whose session_replication_role is origin: the server checks no foreign keys in it")
	case !j.sees && time.Duration(now-started)*time.Microsecond > tooOld:
		return unfit(nil, fmt.Sprintf("must have begun less than %v ago under %s: its snapshot does not show what was pruned since", tooOld, isolation))
	}
	if ours := j.e.serverIs.Load(); ours == nil || *ours != server {
		// The store's server may be another one since.
		if err := j.e.learnServer(ctx); err != nil {
			return err
		}
		if *j.e.serverIs.Load() != server {
			return unfit(nil, "must be on the ledger's own database and server: it is on another")
		}
	}
	j.e.clock.hear([]byte(strconv.FormatInt(now, 10)), sent)
	j.was = append(j.was, [2]string{"search_path", path})
	j.pins += setPath(j.e.path) + "; "
	if conforming != "on" {
		j.pin("standard_conforming_strings", conforming, "on")
	}
	if bytea != "hex" {
		j.pin("bytea_output", bytea, "hex")
	}
	if lock == "0" {
		j.pin("lock_timeout", lock, "'"+strings.ReplaceAll(j.e.settings["lock_timeout"], "'", "")+"'")
	}
	if sync == "off" {
		j.pins += "SET LOCAL synchronous_commit = on; " // for the commit, which is the host's
	}
	return j.exec(limited, j.pins)
}

func (j *joined) pin(setting, was, is string) {
	j.was = append(j.was, [2]string{setting, was})
	j.pins += "SET LOCAL " + setting + " = " + is + "; "
}

// putBack is for a session in which a backslash in a text is one.
func (j *joined) putBack() string {
	var b strings.Builder
	for _, s := range j.was {
		fmt.Fprintf(&b, "SELECT pg_catalog.set_config('%s', '%s', true); ", s[0], strings.ReplaceAll(s[1], "'", "''"))
	}
	return b.String()
}

// run runs a unit, and again where it has met another: what that has written is seen
// then.
func (j *joined) run(ctx context.Context, unit engine.Unit) error {
	q := j.e.querier(j.db)
	for again := 0; ; again++ {
		err := classify(unit(ctx, q))
		met := code(err) == "23505" || code(err) == "23502" || code(err) == "40P01" || errors.Is(err, sql.ErrNoRows)
		if err == nil || !met || !j.sees && code(err) != "23502" || again == maxAgain {
			return err
		}
		if err := j.exec(ctx, "ROLLBACK TO SAVEPOINT toolruntime; "+j.pins); err != nil {
			return err
		}
	}
}

// learnServer asks where the store's own connections lead.
func (e *pgEngine) learnServer(ctx context.Context) error {
	var name string
	err := e.with(ctx, func(conn *sql.Conn) error {
		return ended(ctx, conn.QueryRowContext(ctx, "SELECT "+server).Scan(&name))
	})
	if err == nil {
		e.serverIs.Store(&name)
	}
	return err
}

// epoch is where PostgreSQL's time begins.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// microseconds is Unix time of what timestamptz_send says in hexadecimal.
func microseconds(sent string) int64 {
	b, err := hex.DecodeString(sent)
	if err != nil || len(b) != 8 {
		return 0 // the server has sent it; nothing else is sent
	}
	return int64(binary.BigEndian.Uint64(b)) + epoch.UnixMicro()
}

// blame says what an error in a transaction of the host's means for it.
func blame(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrTxDone), errors.Is(err, pgx.ErrTxClosed):
		return unfit(nil, "must not have ended: begin another, and submit in that")
	case errors.Is(err, context.DeadlineExceeded):
		err = &engine.Error{Kind: engine.ErrUnavailable, Code: "postgres", Cause: err}
	}
	switch code(err) {
	case "25P02":
		return unfit(nil, "must not have failed: the server takes nothing after the statement that has; roll it back")
	case "25P01":
		return unfit(nil, "must be open: a statement has ended it")
	case "42501", "42P01", "3F000":
		return fmt.Errorf("%w: %w", unfit(nil, "must be of a role that may use the ledger: USAGE on its schema and sequences, and SELECT, INSERT and UPDATE on its tables"), err)
	case "23505", "40001", "40P01", "55P03", "57014":
		return fmt.Errorf("%w: %w", engine.ErrRepeat, err)
	}
	if errors.Is(err, engine.ErrUnavailable) || errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%w: %w", engine.ErrRepeat, err)
	}
	return err
}
