package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"

	"github.com/mattn/go-sqlite3"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A lent connection is the writer's, inside the transaction of one unit. Where SQLite
// has ended that (an interrupted write does), a savepoint would begin one, too.
type lent struct {
	engine.Checked
	guard *guard
}

var _ engine.Guarded = lent{}

// Guard implements [engine.Guarded].
func (l lent) Guard() dbgen.DBTX { return guarded{l} }

// over says that there is no transaction any more, or nothing.
func (c *committer) over() error {
	if c.driver.AutoCommit() {
		return errTransactionLost
	}
	return nil
}

// A guarded connection is for statements of the host's: they may read everything, and
// write what is not the ledger's.
type guarded struct{ lent }

func (g guarded) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	defer g.guard.begin()()
	r, err := g.lent.ExecContext(ctx, query, args...)
	return r, refused(err)
}

func (g guarded) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	defer g.guard.begin()()
	rows, err := g.lent.QueryContext(ctx, query, args...)
	return rows, refused(err)
}

func (g guarded) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	defer g.guard.begin()()
	return g.lent.QueryRowContext(ctx, query, args...)
}

// refused says what SQLite means by "not authorized".
func refused(err error) error {
	var e sqlite3.Error
	if errors.As(err, &e) && e.Code == sqlite3.ErrAuth {
		return &toolresult.InputError{Field: "statement", Rule: "must not write or change the ledger's tables, " +
			"begin or end a transaction, attach a database, or set a PRAGMA"}
	}
	return err
}

// A guard is asked by SQLite, whenever it prepares a statement, what that may do.
type guard struct {
	mu    sync.Mutex
	hosts bool // the statement is the host's
	moved bool // and drops or renames a table
}

// begin says that statements are the host's until the function that it returns is
// called.
func (g *guard) begin() (end func()) {
	g.mu.Lock()
	g.hosts, g.moved = true, false
	return func() {
		g.hosts = false
		g.mu.Unlock()
	}
}

// What SQLite calls some things that the driver has no names for.
const (
	reindex   = 27
	analyze   = 28
	savepoint = 32
)

// harmless are the PRAGMAs that only tell something.
var harmless = map[string]bool{"table_info": true, "table_xinfo": true, "table_list": true, "index_list": true,
	"index_info": true, "index_xinfo": true, "foreign_key_list": true, "foreign_key_check": true,
	"quick_check": true} // by which SQLite itself looks, when a column is added

// allow is the authorizer. What a statement names are a table, and an index or trigger
// of one, in either order.
func (g *guard) allow(op int, first, second, _ string) int {
	if !g.hosts {
		return sqlite3.SQLITE_OK
	}
	switch op {
	case sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, savepoint, reindex, analyze:
		return sqlite3.SQLITE_OK
	case sqlite3.SQLITE_TRANSACTION, sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH:
		return sqlite3.SQLITE_DENY
	case sqlite3.SQLITE_PRAGMA:
		if harmless[strings.ToLower(first)] {
			return sqlite3.SQLITE_OK
		}
		return sqlite3.SQLITE_DENY
	}
	switch {
	case isLedgers(first), isLedgers(second):
		return sqlite3.SQLITE_DENY
	case first == keys: // of the ledger's operations, too: SQLite does that for a table of the host's alone
		if !g.moved {
			return sqlite3.SQLITE_DENY
		}
	case op == sqlite3.SQLITE_DROP_TABLE, op == sqlite3.SQLITE_ALTER_TABLE:
		g.moved = true
	}
	return sqlite3.SQLITE_OK
}

// keys is the table of the keys that were given last.
const keys = "sqlite_sequence"

// isLedgers reports whether a name is that of a table of the ledger. What cannot be
// found out is taken for one.
func isLedgers(name string) bool {
	name = strings.ToLower(name)
	if name == "" || strings.HasPrefix(name, "sqlite_") {
		return false
	}
	want, err := wanted()
	if err != nil {
		return true
	}
	_, ours := want[object{"table", name, name}]
	return ours
}
