package pgstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"

	"github.com/jackc/pgx/v5"
)

// The ledger's statements are written over package database/sql. A lent transaction is
// pgx's as a driver of that package, with one connection that nobody closes.
type lent struct{ tx pgx.Tx }

var (
	_ driver.Connector      = lent{}
	_ driver.ExecerContext  = lent{}
	_ driver.QueryerContext = lent{}
)

func (l lent) Connect(context.Context) (driver.Conn, error) { return l, nil }
func (l lent) Driver() driver.Driver                        { return l }
func (l lent) Open(string) (driver.Conn, error)             { return l, nil }
func (l lent) Close() error                                 { return nil }

// Prepare and Begin are not for a transaction that is the host's.
func (l lent) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }
func (l lent) Begin() (driver.Tx, error)           { return nil, errors.ErrUnsupported }

func (l lent) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	tag, err := l.tx.Exec(ctx, query, values(args)...)
	return driver.RowsAffected(tag.RowsAffected()), err
}

func (l lent) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := l.tx.Query(ctx, query, values(args)...)
	if err != nil {
		return nil, err
	}
	return lentRows{rows}, nil
}

func values(args []driver.NamedValue) []any {
	all := make([]any, len(args))
	for i, arg := range args {
		all[i] = arg.Value
	}
	return all
}

type lentRows struct{ rows pgx.Rows }

func (r lentRows) Columns() []string {
	fields := r.rows.FieldDescriptions()
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	return names
}

func (r lentRows) Close() error {
	r.rows.Close()
	return r.rows.Err()
}

// Next takes what the ledger's columns have: whole numbers, texts, bytes and truths.
func (r lentRows) Next(row []driver.Value) error {
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return io.EOF
	}
	all, err := r.rows.Values()
	if err != nil {
		return err
	}
	for i, v := range all {
		switch v := v.(type) {
		case int32:
			row[i] = int64(v)
		case int16:
			row[i] = int64(v)
		default:
			row[i] = v
		}
	}
	return nil
}
