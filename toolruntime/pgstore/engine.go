package pgstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/pgquery"
)

// isolation gives every unit one state to look at, and fails the later of two
// that write one row (40001): repeated, it sees the winner. READ COMMITTED would
// let a unit act on rows of different moments. What REPEATABLE READ does not see
// is a unit that decides by rows which it does not write; the seam forbids those.
// SERIALIZABLE sees them, but takes for one every insert into the same page of
// an index: 32 callers of different operations were measured with 3 rollbacks a
// dispatch and a third of the throughput.
const isolation = "REPEATABLE READ"

// Write implements [engine.Engine].
func (e *pgEngine) Write(ctx context.Context, unit engine.Unit) error {
	return e.write(ctx, func(ctx context.Context, conn *sql.Conn) error { return unit(ctx, e.querier(conn)) }, plannedByKey)
}

// WriteWith implements [engine.Engine].
func (e *pgEngine) WriteWith(ctx context.Context, unit engine.UnitWith) error {
	return e.write(ctx, func(ctx context.Context, conn *sql.Conn) error {
		tx := engine.Checked{DBTX: conn, Over: func() error { return over(conn) }}
		err := unit(ctx, e.querier(tx), tx)
		return cmp.Or(over(conn), err)
	}, "") // the host's statements are planned as the host has it
}

func (e *pgEngine) write(ctx context.Context, unit func(context.Context, *sql.Conn) error, settings string) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	unknown := false // an earlier try may have committed
	err := e.persist(ctx, func() error {
		err := e.transact(ctx, unit, settings)
		var answer *lostAnswer
		if errors.As(err, &answer) {
			err = e.ask(answer)
			unknown = unknown || errors.Is(err, engine.ErrCommitUnknown)
		}
		return err
	})
	if unknown {
		err = engine.InDoubt(err)
	}
	return err
}

// Read implements [engine.Engine].
func (e *pgEngine) Read(ctx context.Context, unit engine.Unit) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	return e.persist(ctx, func() error {
		return e.with(ctx, func(conn *sql.Conn) error { return ended(ctx, unit(ctx, e.querier(conn))) })
	})
}

// Snapshot implements [engine.Engine].
func (e *pgEngine) Snapshot(ctx context.Context, view func(context.Context, engine.Snapshot) error) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	return e.with(ctx, func(conn *sql.Conn) error {
		// An audit reads for as long as it needs, and runs the host's callbacks.
		begin := `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ` + e.pin() +
			`; SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0`
		defer rollback(ctx, conn)
		if _, err := run(ctx, conn, begin); err != nil {
			return ended(ctx, err)
		}
		return ended(ctx, view(ctx, engine.Snapshot{
			Querier: pgquery.New(conn, fromDriver),
			Inspect: func(ctx context.Context) (engine.Health, error) { return inspect(ctx, conn) },
			Schema:  func(ctx context.Context) ([]string, error) { return differences(ctx, conn) },
			Writers: func(ctx context.Context) ([]string, error) { return writers(ctx, conn) },
		}))
	})
}

// with does something on a connection of the pool. Waiting for one obeys ctx.
func (e *pgEngine) with(ctx context.Context, do func(*sql.Conn) error) error {
	conn, err := e.db.Conn(ctx)
	if err != nil {
		return ended(ctx, err)
	}
	defer conn.Close()
	return do(conn)
}

// ended gives an error its kind: where ctx is over, it is why; any other expired
// context was a limit of this package or of the URL.
func ended(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &engine.Error{Kind: engine.ErrUnavailable, Code: "postgres", Cause: err}
	}
	return classify(err)
}

// A lostAnswer is a COMMIT that was sent and not answered.
type lostAnswer struct {
	tx    transaction
	cause error
}

func (l *lostAnswer) Error() string { return "the answer to a commit was lost" }

// transact runs unit in a transaction of its own. From its turn on, nothing but
// a network that has gone dead cuts it short.
func (e *pgEngine) transact(ctx context.Context, unit func(context.Context, *sql.Conn) error, settings string) error {
	return e.with(ctx, func(conn *sql.Conn) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.limit)
		defer cancel()
		returned := false
		defer func() {
			if !returned { // the host's code has ended the goroutine
				rollback(ctx, conn)
			}
		}()
		tx, err := e.begin(ctx, conn, settings)
		if err == nil {
			err = call(ctx, unit, conn)
		}
		returned = true
		if err == nil {
			return commit(ctx, conn, tx)
		}
		rollback(ctx, conn)
		err = ended(context.Background(), err)
		if useless(err) {
			drop(conn)
		}
		return err
	})
}

// call runs a unit's body; a panic is the unit's own failure.
func call(ctx context.Context, unit func(context.Context, *sql.Conn) error, conn *sql.Conn) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("toolruntime: panic in a transaction: %v", r)
		}
	}()
	return unit(ctx, conn)
}

// A transaction is what the server calls it: an id, the timeline, which changes
// with a failover, and the run of the server, because after a crash it gives the
// ids again whose transactions had not reached the disk.
type transaction struct{ id, timeline, run string }

// serverRun is what differs between two runs of a server: it was started, or
// recovered from the crash of one of its processes, which empties its statistics.
// All of a connection's life is in one of them.
const serverRun = `pg_catalog.concat(EXTRACT(EPOCH FROM pg_catalog.pg_postmaster_start_time()), ' ',
	EXTRACT(EPOCH FROM pg_catalog.pg_stat_get_bgwriter_stat_reset_time()))`

// runKey is where a connection keeps the run of the server that it is with.
const runKey = "toolruntime.run"

func runOf(conn *sql.Conn) (run string) {
	_ = conn.Raw(func(c any) error {
		run, _ = c.(*stdlib.Conn).Conn().PgConn().CustomData()[runKey].(string)
		return nil
	})
	return run
}

const timeline = "pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8)"

// plannedByKey sets [pgquery.ByKey] for a transaction.
var plannedByKey = func() (statements string) {
	for setting := range slices.Chunk(pgquery.ByKey, 2) {
		statements += "SET LOCAL " + setting[0] + " = " + setting[1] + "; "
	}
	return statements
}()

// begin also takes the transaction's id and hears the time, in the same round trip.
func (e *pgEngine) begin(ctx context.Context, conn *sql.Conn, settings string) (tx transaction, err error) {
	sent := time.Now()
	results, err := run(ctx, conn, "BEGIN ISOLATION LEVEL "+isolation+"; "+e.pin()+"; SELECT pg_catalog.pg_current_xact_id(), "+timeline+", "+serverTime+"; "+settings)
	if err != nil {
		return tx, err
	}
	row := results[2].Rows[0]
	e.clock.hear(row[2], sent)
	return transaction{string(row[0]), string(row[1]), runOf(conn)}, nil
}

// commit sends the COMMIT. Without a statement timeout: one that strikes while
// the server waits for a standby makes it acknowledge what the standby does not
// have.
func commit(ctx context.Context, conn *sql.Conn, tx transaction) error {
	results, err := run(ctx, conn, "SET LOCAL statement_timeout = 0; COMMIT")
	var refused *pgconn.PgError
	switch {
	case err == nil && results[1].CommandTag.String() == "COMMIT":
		return nil
	case err == nil:
		return &engine.Error{Kind: engine.ErrDatabase, Code: "postgres: rolled back"}
	case errors.As(err, &refused) && refused.SeverityUnlocalized == "ERROR":
		return classify(err) // the server has rolled back
	}
	return &lostAnswer{tx, err}
}

// ask asks the server what became of a transaction: nil says that it has
// committed, ErrUnavailable that it has not. ErrCommitUnknown says that the
// server is another one now or has crashed, and cannot know, or that nobody
// answers. After a crash "aborted" can still be believed: one that had committed
// keeps its id.
//
// The message makes the asking a commit of its own, later in the log: where a
// standby must have each commit, it is answered only when the standby has the
// transaction, too, which a crash can have made visible without.
func (e *pgEngine) ask(lost *lostAnswer) error {
	ctx, cancel := context.WithTimeout(context.Background(), e.retry)
	defer cancel()
	query := "BEGIN; SET LOCAL statement_timeout = 0; SELECT pg_catalog.pg_xact_status(CAST('" + lost.tx.id + "' AS pg_catalog.xid8)), " + timeline +
		", pg_catalog.pg_logical_emit_message(true, CAST('toolruntime' AS pg_catalog.text), CAST('' AS pg_catalog.text)); COMMIT"
	for p := newPause(); ; p.wait(ctx, true) {
		var status, now, server string
		err := e.with(ctx, func(conn *sql.Conn) error {
			results, err := run(ctx, conn, query)
			if err != nil {
				rollback(ctx, conn)
				return ended(ctx, err)
			}
			row := results[2].Rows[0]
			status, now, server = string(row[0]), string(row[1]), runOf(conn)
			return nil
		})
		switch {
		case err == nil && now == lost.tx.timeline && server == lost.tx.run && status == "committed":
			return nil
		case err == nil && now == lost.tx.timeline && status == "aborted":
			return &engine.Error{Kind: engine.ErrUnavailable, Code: "postgres", Cause: lost.cause}
		case err == nil && now == lost.tx.timeline && server == lost.tx.run && status == "in progress":
		case err == nil, ctx.Err() != nil, code(err) != "" && !errors.Is(err, engine.ErrUnavailable):
			return fmt.Errorf("%w: %w", engine.ErrCommitUnknown, &engine.Error{Kind: engine.ErrUnavailable, Code: "postgres", Cause: lost.cause})
		}
	}
}

// persist repeats try, as long as what it met passes by itself: a lost race at
// once, a server that is away more slowly. Between tries nothing is stored, so
// ctx ends it there.
func (e *pgEngine) persist(ctx context.Context, try func() error) error {
	until := time.Now().Add(e.retry)
	duplicates := 0
	for p := newPause(); ; {
		err := try()
		away := errors.Is(err, engine.ErrUnavailable) || errors.Is(err, engine.ErrReadOnly)
		switch code(err) {
		case "40001", "40P01":
		case "23505", "23502":
			// Two that insert the same row at once can meet on another unique index
			// than the one that ON CONFLICT names. The second look sees the row. And the
			// time of a reservation can pass while it waits, which the second look sees.
			if duplicates++; duplicates > 2 {
				return err
			}
		default:
			if !away {
				return err
			}
		}
		limit, cancel := context.WithDeadline(ctx, until)
		again := p.wait(limit, away)
		cancel()
		if !again {
			if ctx.Err() != nil && !errors.Is(err, engine.ErrCommitUnknown) {
				return ctx.Err()
			}
			return err
		}
	}
}

// A pause grows with each wait, up to a limit, and is never the same for two.
type pause struct{ next time.Duration }

func newPause() *pause { return &pause{time.Millisecond} }

// wait returns false when ctx ends first.
func (p *pause) wait(ctx context.Context, away bool) bool {
	longest := 64 * time.Millisecond
	if away {
		longest = 500 * time.Millisecond
	}
	p.next = min(2*p.next, longest)
	t := time.NewTimer(rand.N(p.next))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// rollback ends the transaction; where it fails, the pool drops the connection.
func rollback(ctx context.Context, conn *sql.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, _ = run(ctx, conn, "ROLLBACK")
}

// run sends statements without parameters in one round trip.
func run(ctx context.Context, conn *sql.Conn, statements string) (results []*pgconn.Result, err error) {
	err = conn.Raw(func(c any) error {
		results, err = c.(*stdlib.Conn).Conn().PgConn().Exec(ctx, statements).ReadAll()
		return err
	})
	return results, err
}
