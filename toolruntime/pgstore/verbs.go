package pgstore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/pgquery"
)

// A querier is what a unit has: the shared queries, and the verbs as sets. Who comes at
// the same moment has his set with that of others ([pgEngine.Reserve], [pgEngine.Move]);
// here it is in a transaction.
type querier struct {
	*pgquery.Queries
	db   dbgen.DBTX
	path string
	now  func() int64
}

func (e *pgEngine) querier(db dbgen.DBTX) engine.Querier {
	return &querier{pgquery.New(db, fromDriver), db, e.path, func() int64 { return e.Now().Unix() }}
}

// Reserve implements [engine.Verbs].
func (q *querier) Reserve(ctx context.Context, all ...*engine.Reservation) error {
	keys := make([]int64, len(all))
	if err := q.ask(ctx, pgquery.NextOperationKeys(q.path, keys)); err != nil {
		return keysRefused(err)
	}
	for i, r := range all {
		r.Timely(q.now()) // the server judges, when it stores it
		r.Operation, r.Event = r.Make(keys[i])
	}
	for _, some := range pgquery.Apart(all, pgquery.ReservationKeys) {
		if err := q.ask(ctx, pgquery.ReserveMany(q.path, some, func(int64) {})); err != nil {
			return err
		}
	}
	return nil
}

// Move implements [engine.Verbs].
func (q *querier) Move(ctx context.Context, all ...*engine.Motion) error {
	for _, some := range pgquery.Apart(all, pgquery.MotionKeys) {
		if err := q.ask(ctx, pgquery.MoveMany(q.path, some)); err != nil {
			return err
		}
	}
	return nil
}

func (q *querier) ask(ctx context.Context, s pgquery.Set) error {
	rows, err := q.db.QueryContext(ctx, s.Query, s.Args...)
	if err != nil {
		return fromDriver(err)
	}
	defer rows.Close()
	return fromDriver(s.Read(rows))
}

// Claimed implements [engine.Verbs].
func (q *querier) Claimed(ctx context.Context, pks []int64) ([]dbgen.GetClaimedRow, error) {
	rows, err := pgquery.ClaimedMany(ctx, q.db, pks)
	return rows, fromDriver(err)
}

// A write is a reservation or a motion, which goes with those of others.
type write struct {
	reservation *engine.Reservation
	motion      *engine.Motion
}

// Reserve implements [engine.Engine].
func (e *pgEngine) Reserve(ctx context.Context, all ...*engine.Reservation) error {
	writes := make([]*write, len(all))
	for i, r := range all {
		r.Answer, writes[i] = "", &write{reservation: r}
	}
	return e.together(ctx, writes)
}

// Move implements [engine.Engine].
func (e *pgEngine) Move(ctx context.Context, all ...*engine.Motion) error {
	writes := make([]*write, len(all))
	for i, m := range all {
		m.Answer, writes[i] = "", &write{motion: m}
	}
	return e.together(ctx, writes)
}

// together makes writes together with those of others. One with which that fails, and
// leaves nothing behind, is made by itself, in a transaction that is repeated as long as
// what it meets passes.
func (e *pgEngine) together(ctx context.Context, writes []*write) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	var failed error
	for i, err := range e.writes.all(ctx, writes) {
		if err != nil && !errors.Is(err, engine.ErrCommitUnknown) && ctx.Err() == nil {
			unit := func(ctx context.Context, q engine.Querier) error { return q.Move(ctx, writes[i].motion) }
			if r := writes[i].reservation; r != nil {
				unit = engine.Again(r)
			}
			err = e.Write(ctx, unit)
		}
		if !errors.Is(err, engine.ErrCommitUnknown) { // which is said, although ctx has ended meanwhile
			err = ended(ctx, err)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// sendWrites runs statements that commit together. The server holds its commit to
// no statement timeout, so an answer means what that of a COMMIT means. From its
// turn on, nothing but a network that has gone dead cuts it short.
func (e *pgEngine) sendWrites(ctx context.Context, conn *sql.Conn, batch []*write) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.limit)
	defer cancel()
	err := native(conn, func(conn *pgx.Conn) error { return e.writeAll(ctx, conn, batch) })
	var refused *pgconn.PgError
	var unsent *notSent
	var unbuilt pgx.ErrPreprocessingBatch
	switch {
	case errors.Is(err, pgquery.ErrElsewhere): // nothing was done, by none of them
		drop(conn)
		return err
	case err == nil,
		errors.As(err, &refused) && refused.SeverityUnlocalized == "ERROR", // the server has rolled back
		errors.As(err, &unsent), errors.As(err, &unbuilt), errors.Is(err, driver.ErrBadConn), pgconn.SafeToRetry(err):
		return err
	}
	return fmt.Errorf("%w: %w", engine.ErrCommitUnknown, &engine.Error{Kind: engine.ErrUnavailable, Code: "postgres", Cause: err})
}

// notSent is the error of statements that the server has not seen.
type notSent struct{ cause error }

func (n *notSent) Error() string { return n.cause.Error() }

func (n *notSent) Unwrap() error { return n.cause }

func (e *pgEngine) writeAll(ctx context.Context, conn *pgx.Conn, batch []*write) error {
	var reservations []*engine.Reservation
	var motions []*engine.Motion
	for _, w := range batch {
		if w.reservation != nil {
			reservations = append(reservations, w.reservation)
		} else {
			motions = append(motions, w.motion)
		}
	}
	keys, err := e.takeKeys(ctx, conn, len(reservations))
	if err != nil {
		return &notSent{keysRefused(err)}
	}
	for _, r := range reservations {
		r.Timely(e.Now().Unix()) // the server judges, when it stores it
		r.Operation, r.Event = r.Make(keys[0])
		keys = keys[1:]
	}
	// Of two batches that write under the same scopes, or the same operations, the one
	// waits for the other, and not each for the other.
	slices.SortFunc(reservations, func(r, s *engine.Reservation) int { return compareScopes(&r.Operation, &s.Operation) })
	slices.SortFunc(motions, func(m, n *engine.Motion) int {
		return cmp.Compare(m.FromOperation.OperationPK, n.FromOperation.OperationPK)
	})
	var statements []pgquery.Statement
	if len(batch) > 1 {
		statements = append(statements, pgquery.SetLocal(append(slices.Clone(pgquery.ByKey), "lock_timeout", e.lock)...))
	}
	for _, some := range pgquery.Apart(motions, pgquery.MotionKeys) {
		statements = append(statements, pgquery.MoveMany(e.path, some).Statement())
	}
	for _, some := range pgquery.Apart(reservations, pgquery.ReservationKeys) {
		statements = append(statements, pgquery.ReserveMany(e.path, some, func(next int64) { keys = append(keys, next) }).Statement())
	}
	err = pgquery.Send(ctx, conn, statements...)
	conn.PgConn().CustomData()[keptKeys] = keys
	return err
}

func compareScopes(o, p *dbgen.Operation) int {
	return cmp.Or(cmp.Compare(o.IdempotencyKey, p.IdempotencyKey), cmp.Compare(o.ToolName, p.ToolName),
		cmp.Compare(o.SubjectID, p.SubjectID), cmp.Compare(o.TenantID, p.TenantID))
}

// keysRefused says what is wrong where the role may not use the sequence of operations.
func keysRefused(err error) error {
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) && refused.Code == "42501" {
		return fmt.Errorf("the role needs USAGE on the sequences of the ledger's schema (GRANT USAGE ON ALL SEQUENCES IN SCHEMA ...): %w", fromDriver(err))
	}
	return fromDriver(err)
}

// keptKeys is where a connection keeps keys for its next operations. A key must
// not outlive its connection: the server that comes back after a crash, or the
// standby that follows, may give it to somebody else.
const keptKeys = "toolruntime: keys of the next operations"

// takeKeys takes the keys that a connection keeps, and asks for those that n
// reservations need besides.
func (e *pgEngine) takeKeys(ctx context.Context, conn *pgx.Conn, n int) ([]int64, error) {
	data := conn.PgConn().CustomData()
	keys, _ := data[keptKeys].([]int64)
	delete(data, keptKeys)
	if n <= len(keys) {
		return keys, nil
	}
	more := make([]int64, n-len(keys))
	err := pgquery.Send(ctx, conn, pgquery.NextOperationKeys(e.path, more).Statement())
	return append(keys, more...), err
}

// native gives access to the driver's connection.
func native(conn *sql.Conn, do func(*pgx.Conn) error) error {
	return conn.Raw(func(c any) error { return do(c.(*stdlib.Conn).Conn()) })
}
