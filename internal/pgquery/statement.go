package pgquery

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/toolruntime/toolruntime-go/internal/dbgen/postgres"
)

// A Statement is a generated query that is sent with others, past package
// database/sql.
type Statement struct {
	query string
	args  []any
	read  func(pgx.Rows) error // reads the answer
}

// recorder is what a generated query finds in the place of a database: it keeps
// what would have been executed.
type recorder struct {
	postgres.DBTX
	Statement
}

func (r *recorder) ExecContext(_ context.Context, query string, args ...any) (sql.Result, error) {
	r.query, r.args = query, args
	return nil, nil
}

// ErrElsewhere says that a statement met a session with another search_path than
// its own, and did nothing.
var ErrElsewhere = errors.New("pgquery: the session is another's")

// noRow is why a query that has a row in its own session has none.
func noRow(rows Rows) error {
	if err := rows.Err(); err != nil {
		return err
	}
	return ErrElsewhere
}

func recorded(query func(context.Context, *postgres.Queries) error) Statement {
	r := &recorder{}
	if err := query(context.Background(), postgres.New(r)); err != nil {
		panic(err) // a recorder has none
	}
	return r.Statement
}

// SetLocal changes settings of the server, each followed by its value, for the statements
// that are sent after it, in the same transaction.
func SetLocal(settings ...string) Statement {
	s := Statement{read: func(pgx.Rows) error { return nil }}
	for i, text := range settings {
		if i%2 == 0 {
			s.query += fmt.Sprintf(", pg_catalog.set_config($%d, $%d, true)", i+1, i+2)
		}
		s.args = append(s.args, text)
	}
	s.query = "SELECT " + strings.TrimPrefix(s.query, ", ")
	return s
}

var quote = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// Array is the text of an array of texts.
func Array(texts []string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, s := range texts {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('"')
		_, _ = quote.WriteString(&b, s)
		b.WriteByte('"')
	}
	b.WriteByte('}')
	return b.String()
}

// Send sends statements in one round trip. They are one implicit transaction,
// which has committed when the error is nil: no answer means anything before.
func Send(ctx context.Context, conn *pgx.Conn, statements ...Statement) error {
	if len(statements) == 1 {
		s := &statements[0]
		rows, err := conn.Query(ctx, s.query, s.args...)
		if err != nil {
			return err
		}
		err = s.read(rows)
		rows.Close()
		if err == nil {
			err = rows.Err()
		}
		return err
	}
	var batch pgx.Batch
	for _, s := range statements {
		batch.Queue(s.query, s.args...).Query(s.read)
	}
	return conn.SendBatch(ctx, &batch).Close()
}
