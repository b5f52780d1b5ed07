package pgquery

import (
	"context"
	"database/sql"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
)

func TestMarks(t *testing.T) {
	tests := []struct{ name, query, want string }{
		{"none", "SELECT 1", "SELECT 1"},
		{"nothing", "", ""},
		{"marks", "SELECT ?1, ?2 WHERE a=?1 OR b=?12", "SELECT $1, $2 WHERE a=$1 OR b=$12"},
		{"already PostgreSQL's", "SELECT $1", "SELECT $1"},
		{"in a text", "SELECT '?1', ?1", "SELECT '?1', $1"},
		{"after a doubled quote", "SELECT 'it''s ?1', ?1, ''", "SELECT 'it''s ?1', $1, ''"},
		{"a text of a quote", "SELECT '''', ?1, '?2'", "SELECT '''', $1, '?2'"},
		{"a comment's begin in a text", "SELECT '--', ?1, '/*', ?2", "SELECT '--', $1, '/*', $2"},
		{"in a quoted name", `SELECT "?1", "a""?2", ?3`, `SELECT "?1", "a""?2", $3`},
		{"in a comment", "-- what is ?1 and it's\nSELECT ?1 -- ?2", "-- what is ?1 and it's\nSELECT $1 -- ?2"},
		{"in a long comment", "SELECT /* ?1 ' */ ?1 /* ?2", "SELECT /* ?1 ' */ $1 /* ?2"},
		{"a minus and a division", "SELECT ?1 - ?2 / ?3", "SELECT $1 - $2 / $3"},
		{"an open text", "SELECT ?1, '?2", "SELECT $1, '?2"},
	}
	for _, tt := range tests {
		for range 2 { // made, and remembered
			if got := marked(tt.query); got != tt.want {
				t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
			}
		}
	}
}

// nobody is a database that fails everything.
type nobody struct {
	dbgen.DBTX
	err   error
	query string
}

func (n *nobody) ExecContext(_ context.Context, query string, _ ...any) (sql.Result, error) {
	n.query = query
	return nil, n.err
}

func (n *nobody) QueryContext(_ context.Context, query string, _ ...any) (*sql.Rows, error) {
	n.query = query
	return nil, n.err
}

func (n *nobody) QueryRowContext(ctx context.Context, query string, _ ...any) *sql.Row {
	n.query = query
	return new(sql.DB).QueryRowContext(failed{ctx, n.err}, "")
}

// TestStatements: whichever way a statement goes, it has PostgreSQL's marks, and its
// error has the kind that it is given.
func TestStatements(t *testing.T) {
	ctx := context.Background()
	failure, kind := errors.New("failure"), errors.New("kind")
	db := &nobody{err: failure}
	s := statements{db, func(err error) error {
		if err == failure {
			return kind
		}
		return err
	}}
	ways := map[string]func() error{
		"exec": func() error {
			_, err := s.ExecContext(ctx, "SELECT ?1", 1)
			return err
		},
		"query": func() error {
			_, err := s.QueryContext(ctx, "SELECT ?1", 1)
			return err
		},
		"row": func() error {
			var n int
			return s.QueryRowContext(ctx, "SELECT ?1", 1).Scan(&n)
		},
	}
	for name, way := range ways {
		db.query = ""
		if err := way(); err != kind || db.query != "SELECT $1" {
			t.Errorf("%s: %q, %v", name, db.query, err)
		}
	}
}

// TestSQLitesOwn: a query that is SQLite's own has another here. Otherwise its text would
// be sent to PostgreSQL, which may understand it, and do less.
func TestSQLitesOwn(t *testing.T) {
	files, err := filepath.Glob("../../db/queries/sqlite/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var want, got []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`(?m)^-- name: (\w+)`).FindAllSubmatch(text, -1) {
			want = append(want, string(name[1]))
		}
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), "pgquery.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
			got = append(got, f.Name.Name)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("methods of Queries (-want +got):\n%s", diff)
	}
}
