package sqlitestore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"

	"github.com/mattn/go-sqlite3"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
)

// queries are sqlc's on one connection, but for Lookup. That is nearly all that a
// replay asks of the database, and half of what package database/sql takes for 44
// columns is between the driver and the row.
type queries struct {
	*dbgen.Queries
	driver *sqlite3.SQLiteConn
	args   [8]driver.NamedValue
	values [44]driver.Value
}

func newQueries(db dbgen.DBTX, conn *sqlite3.SQLiteConn) *queries {
	q := &queries{Queries: dbgen.New(db), driver: conn}
	for i := range q.args {
		q.args[i].Ordinal = i + 1
	}
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

// Lookup is dbgen's, with the same statement.
func (q *queries) Lookup(ctx context.Context, arg dbgen.LookupParams) (row dbgen.LookupRow, err error) {
	for i, v := range [...]string{arg.TenantID, arg.SubjectID, arg.Provider, arg.APIFamily, arg.ResponseID, arg.CallID,
		arg.ToolName, arg.IdempotencyKey} {
		q.args[i].Value = v
	}
	rows, err := q.driver.QueryContext(ctx, dbgen.Lookup, q.args[:])
	if err != nil {
		return row, classify(err)
	}
	defer func() { err = errors.Join(err, classify(rows.Close())) }()
	switch err := rows.Next(q.values[:]); {
	case errors.Is(err, io.EOF):
		return row, sql.ErrNoRows
	case err != nil:
		return row, classify(err)
	}
	c := columns{rest: q.values[:]}
	row.Operation = dbgen.Operation{
		OperationPK: c.integer(), TenantID: c.text(), SubjectID: c.text(), ToolName: c.text(), IdempotencyKey: c.text(),
		RequestSha256: c.text(), ArgumentsJSON: c.text(), InputSchemaRevision: c.text(), OutputSchemaRevision: c.text(),
		EffectRevision: c.text(), HandlerRevision: c.text(), ProducerRevision: c.text(), PolicyRevision: c.text(),
		ApprovalID: c.text(), ApproverID: c.text(), ApprovalDigest: c.text(), ApprovalExpiresAt: c.integer(),
		ApprovedAt: c.integer(), FirstOperationID: c.text(), FirstCallID: c.text(), FirstResponseID: c.text(),
		FirstProvider: c.text(), FirstAPIFamily: c.text(), FirstAdapterRevision: c.text(), StatusRef: c.text(),
		State: c.text(), CreatedAt: c.integer(), UpdatedAt: c.integer(), CompletedAt: c.nullInteger(), Reason: c.text(),
		RowDigest: c.blob(),
	}
	row.ReceiptOf, row.ReceiptID, row.DownstreamRequestID = c.nullInteger(), c.nullText(), c.nullText()
	row.ReceiptRequest, row.ResultJSON, row.ReceiptProducer = c.nullText(), c.nullText(), c.nullText()
	row.ResourceRevision, row.ObservedAt, row.ReceiptEffect = c.nullText(), c.nullText(), c.nullText()
	row.ReconciledAt, row.ReceiptDigest = c.nullInteger(), c.blob()
	row.Attempts, row.Fingerprint = c.integer(), c.text()
	return row, c.err
}

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
		c.err = errors.New("sqlitestore: a column of the lookup has another type")
	}
	return t
}

func (c *columns) text() string   { return take[string](c, c.next()) }
func (c *columns) integer() int64 { return take[int64](c, c.next()) }

func (c *columns) blob() []byte {
	v := c.next()
	if v == nil {
		return nil
	}
	return take[[]byte](c, v)
}

func (c *columns) nullText() sql.NullString {
	v := c.next()
	if v == nil {
		return sql.NullString{}
	}
	return sql.NullString{String: take[string](c, v), Valid: true}
}

func (c *columns) nullInteger() sql.NullInt64 {
	v := c.next()
	if v == nil {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: take[int64](c, v), Valid: true}
}
