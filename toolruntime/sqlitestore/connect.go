package sqlitestore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"github.com/mattn/go-sqlite3"
)

// The settings of every connection. Those that the DSN cannot carry are set, and
// the ones that durability rests on are read back, as the connection opens: a
// driver that ignored one would otherwise lose acknowledged commits in silence.
//
// A checkpoint comes every 8,000 pages (32 MB) of the log instead of every 1,000:
// keys are random, so each commit changes pages all over the file, and the more
// commits a checkpoint gathers, the fewer times each page is written.
const settings = `
PRAGMA trusted_schema = OFF;
PRAGMA cell_size_check = ON;
PRAGMA wal_autocheckpoint = 8000;
PRAGMA journal_size_limit = 67108864;`

type connector struct {
	driver sqlite3.SQLiteDriver
	dsn    string
}

func (c *connector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }
func (c *connector) Driver() driver.Driver                        { return &c.driver }

// What is made of a file that is not there is another ledger, and SQLite removes the
// log that the one had. So these connectors make none.
func writerConnector(path string, wait time.Duration) *connector {
	return newConnector(path, wait, url.Values{"mode": {"rw"}, "_journal_mode": {"WAL"}, "_cache_size": {"-65536"}})
}

// readerConnector is for connections that belong to one goroutine at a time, so they
// need no mutex. The writer's is lent to the statements of a host, which may leave
// something open.
func readerConnector(path string, wait time.Duration) *connector {
	return newConnector(path, wait, url.Values{"mode": {"rw"}, "_query_only": {"on"}, "_cache_size": {"-16384"}, "_mutex": {"no"}})
}

// readOnlyConnector takes the file as it is.
func readOnlyConnector(path string, wait time.Duration) *connector {
	c := newConnector(path, wait, url.Values{"mode": {"ro"}, "_query_only": {"on"}, "_cache_size": {"-16384"}, "_mutex": {"no"}})
	c.driver.ConnectHook = func(c *sqlite3.SQLiteConn) error {
		_, err := c.Exec(settings, nil)
		return err
	}
	return c
}

func newConnector(path string, wait time.Duration, v url.Values) *connector {
	v.Set("_synchronous", "FULL")
	v.Set("_foreign_keys", "on")
	v.Set("_busy_timeout", fmt.Sprint(wait.Milliseconds()))
	v.Set("_stmt_cache_size", "128")
	return &connector{
		driver: sqlite3.SQLiteDriver{ConnectHook: verify},
		dsn:    dsn(path, v),
	}
}

func dsn(path string, v url.Values) string {
	return "file:" + (&url.URL{Path: filepath.Clean(path)}).EscapedPath() + "?" + v.Encode()
}

func verify(c *sqlite3.SQLiteConn) error {
	if _, err := c.Exec(settings, nil); err != nil {
		return err
	}
	for _, want := range []struct {
		pragma string
		value  any
	}{{"synchronous", int64(2)}, {"foreign_keys", int64(1)}, {"journal_mode", "wal"}} {
		got, err := pragma(c, want.pragma)
		if err != nil {
			return err
		}
		if got != want.value {
			return fmt.Errorf("sqlitestore: PRAGMA %s is %v and must be %v", want.pragma, got, want.value)
		}
	}
	return nil
}

func pragma(c *sqlite3.SQLiteConn, name string) (any, error) {
	rows, err := c.Query("PRAGMA "+name, nil)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	row := make([]driver.Value, 1)
	if err := rows.Next(row); err != nil {
		return nil, err
	}
	return row[0], nil
}

// connected returns a connection that has the ledger and its log open: SQLite opens
// them when it first reads.
func connected(ctx context.Context, db *sql.DB) (*sql.Conn, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.ExecContext(ctx, "SELECT 1 FROM runtime_metadata"); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}
