package pgquery

import (
	"context"
	"database/sql"
	"strings"
	"sync"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
)

// statements is a database that takes statements with SQLite's marks, and gives every
// error its kind.
type statements struct {
	dbgen.DBTX
	classify func(error) error
}

func (s statements) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	result, err := s.DBTX.ExecContext(ctx, marked(query), args...)
	return result, s.classify(err)
}

func (s statements) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	rows, err := s.DBTX.QueryContext(ctx, marked(query), args...)
	return rows, s.classify(err)
}

// QueryRowContext has to return a row that holds the error of the statement with its kind.
// Nobody can make one but package database/sql, whose rows hold the error of a context
// that has ended, as it is.
func (s statements) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	row := s.DBTX.QueryRowContext(ctx, marked(query), args...)
	if err := row.Err(); err != nil {
		return new(sql.DB).QueryRowContext(failed{ctx, s.classify(err)}, "")
	}
	return row
}

// failed is a context that has ended with an error of ours.
type failed struct {
	context.Context
	err error
}

func (f failed) Done() <-chan struct{} {
	over := make(chan struct{})
	close(over)
	return over
}

func (f failed) Err() error { return f.err }

// byMarks are the statements that were rewritten. They are the generated ones, so it
// does not grow.
var byMarks sync.Map

// marked is a statement with PostgreSQL's marks: $1 for ?1. In texts, quoted names and
// comments a question mark stays what it is.
func marked(query string) string {
	if known, ok := byMarks.Load(query); ok {
		return known.(string)
	}
	var b strings.Builder
	for rest := query; rest != ""; {
		n := plain(rest)
		b.WriteString(strings.ReplaceAll(rest[:n], "?", "$"))
		rest = rest[n:]
		n = quoted(rest)
		b.WriteString(rest[:n])
		rest = rest[n:]
	}
	byMarks.Store(query, b.String())
	return b.String()
}

// plain is how much of a statement comes before a text, a quoted name or a comment.
func plain(s string) int {
	n := len(s)
	for _, begin := range []string{"'", `"`, "--", "/*"} {
		if i := strings.Index(s, begin); i >= 0 {
			n = min(n, i)
		}
	}
	return n
}

// quoted is how long the text, the quoted name or the comment is that s begins with. A
// doubled quote ends one and begins the next.
func quoted(s string) int {
	if s == "" {
		return 0
	}
	begin, end := s[:1], s[:1]
	switch {
	case strings.HasPrefix(s, "--"):
		begin, end = "--", "\n"
	case strings.HasPrefix(s, "/*"):
		begin, end = "/*", "*/"
	}
	n := strings.Index(s[len(begin):], end)
	if n < 0 {
		return len(s)
	}
	return len(begin) + n + len(end)
}
