package sqlitestore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"strings"

	"github.com/mattn/go-sqlite3"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/hostclock"
)

// queries are sqlc's on one connection, but for Lookup. That is nearly all that a
// replay asks of the database, and more than half of what package database/sql and
// the driver take for its 44 columns is for making objects of them.
type queries struct {
	*dbgen.Queries
	engine.Rows
	driver *sqlite3.SQLiteConn
	args   [8]driver.NamedValue
	values [12]driver.Value
}

func newQueries(db dbgen.DBTX, conn *sqlite3.SQLiteConn) *queries {
	q := &queries{Queries: dbgen.New(db), driver: conn}
	for i := range q.args {
		q.args[i].Ordinal = i + 1
	}
	q.Rows = engine.Rows{Querier: q, Now: func() int64 { return hostclock.Now().Unix() }}
	return q
}

// A direct connection executes statements past package database/sql, whose share
// of a short one is a third, and gives their errors their kinds where they occur,
// so that a transaction sees them, and not only its caller. It belongs to one
// goroutine at a time.
type direct struct {
	*sql.Conn
	driver *sqlite3.SQLiteConn
	args   []driver.NamedValue
}

// ExecContext implements [dbgen.DBTX] for the types of values that the ledger has.
func (d *direct) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	d.args = d.args[:0]
	for i, arg := range args {
		var err error
		if v, ok := arg.(driver.Valuer); ok { // a NULL, perhaps
			arg, err = v.Value()
		}
		if err != nil {
			return nil, err
		}
		d.args = append(d.args, driver.NamedValue{Ordinal: i + 1, Value: arg})
	}
	r, err := d.driver.ExecContext(ctx, query, d.args)
	return r, classify(err)
}

// driverOf is the driver's connection under conn, which its holder may use while
// it uses conn for nothing else.
func driverOf(conn *sql.Conn) (d *sqlite3.SQLiteConn, err error) {
	return d, conn.Raw(func(c any) error {
		d = c.(*sqlite3.SQLiteConn)
		return nil
	})
}

// Lookup is dbgen's, by another statement.
func (q *queries) Lookup(ctx context.Context, arg dbgen.LookupParams) (dbgen.LookupRow, error) {
	c := columns{}
	if err := q.lookup(ctx, arg, &c); err != nil {
		return dbgen.LookupRow{}, err
	}
	o := dbgen.Operation{
		TenantID: arg.TenantID, SubjectID: arg.SubjectID, ToolName: arg.ToolName, IdempotencyKey: arg.IdempotencyKey,
		OperationPK: c.integer(), ApprovalExpiresAt: c.integer(), ApprovedAt: c.integer(),
		CreatedAt: c.integer(), UpdatedAt: c.integer(), CompletedAt: c.nullInteger(), RowDigest: c.blob(),
	}
	row := dbgen.LookupRow{ReceiptOf: c.nullInteger(), ReconciledAt: c.nullInteger(), ReceiptDigest: c.blob(), Attempts: c.integer()}
	t := texts{rest: take[string](&c, c.next()), receipt: row.ReceiptOf.Valid}
	o.RequestSha256, o.ArgumentsJSON = t.next(), t.next()
	o.InputSchemaRevision, o.OutputSchemaRevision, o.EffectRevision = t.next(), t.next(), t.next()
	o.HandlerRevision, o.ProducerRevision, o.PolicyRevision = t.next(), t.next(), t.next()
	o.ApprovalID, o.ApproverID, o.ApprovalDigest = t.next(), t.next(), t.next()
	o.FirstOperationID, o.FirstCallID, o.FirstResponseID = t.next(), t.next(), t.next()
	o.FirstProvider, o.FirstAPIFamily, o.FirstAdapterRevision = t.next(), t.next(), t.next()
	o.StatusRef, o.State, o.Reason, o.EffectKind = t.next(), t.next(), t.next(), t.next()
	row.Operation = o
	row.ReceiptID, row.DownstreamRequestID = t.ofReceipt(), t.ofReceipt()
	row.ReceiptRequest, row.ResultJSON = t.ofReceipt(), t.ofReceipt()
	row.ReceiptProducer, row.ResourceRevision = t.ofReceipt(), t.ofReceipt()
	row.ObservedAt, row.ReceiptEffect = t.ofReceipt(), t.ofReceipt()
	row.Fingerprint = t.next()
	if c.err == nil && t.taken != t.divided+1 {
		return q.Queries.Lookup(ctx, arg) // a text has a zero byte of its own
	}
	return row, c.err
}

// lookup reads the columns of LookupTexts.
func (q *queries) lookup(ctx context.Context, arg dbgen.LookupParams, c *columns) (err error) {
	for i, v := range [...]string{arg.TenantID, arg.SubjectID, arg.Provider, arg.APIFamily, arg.ResponseID, arg.CallID,
		arg.ToolName, arg.IdempotencyKey} {
		q.args[i].Value = v
	}
	rows, err := q.driver.QueryContext(ctx, dbgen.LookupTexts, q.args[:])
	if err != nil {
		return classify(err)
	}
	defer func() { err = errors.Join(err, classify(rows.Close())) }()
	err = rows.Next(q.values[:])
	if errors.Is(err, io.EOF) {
		return sql.ErrNoRows
	}
	c.rest = q.values[:]
	return classify(err)
}

// texts are what one column has in it, taken in their order.
type texts struct {
	rest    string
	taken   int
	divided int  // how many zero bytes were found
	receipt bool // there is one
}

func (t *texts) next() (v string) {
	var more bool
	if v, t.rest, more = strings.Cut(t.rest, "\x00"); more {
		t.divided++
	}
	t.taken++
	return v
}

func (t *texts) ofReceipt() sql.NullString { return sql.NullString{String: t.next(), Valid: t.receipt} }

// columns are the values of a row, taken in their order. The tables are STRICT, so
// a value of another type means that the statement has changed.
type columns struct {
	rest []driver.Value
	err  error
}

func (c *columns) next() driver.Value {
	v := c.rest[0]
	c.rest = c.rest[1:]
	return v
}

func take[T any](c *columns, v driver.Value) T {
	t, ok := v.(T)
	if !ok {
		c.err = engine.ErrMistyped
	}
	return t
}

func (c *columns) integer() int64 { return take[int64](c, c.next()) }

func (c *columns) blob() []byte {
	v := c.next()
	if v == nil {
		return nil
	}
	return take[[]byte](c, v)
}

func (c *columns) nullInteger() sql.NullInt64 {
	v := c.next()
	if v == nil {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: take[int64](c, v), Valid: true}
}
