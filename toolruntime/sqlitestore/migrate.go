package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/toolruntime/toolruntime-go/db"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/migration"
)

// legacyVersion is the schema that other implementations of the contract write.
const legacyVersion = "persistent-tool-runtime-v3"

// A Migration reports what [Migrate] has done.
type Migration struct {
	From    string   `json:"from"`    // what the database was: "new", "toolruntime-ledger-v1", …
	To      string   `json:"to"`      // what it is now
	Applied []string `json:"applied"` // the migrations that ran, in order
	Adopted int64    `json:"adopted"` // rows taken over from another implementation
}

// Migrate makes the ledger's schema in the file at path, brings an older one up
// to date, or adopts a persistent-tool-runtime-v3 database: all in one
// transaction, so that a crash at any moment leaves the file as it was or
// finished, and two that migrate at once wait for each other. A newer ledger,
// or a database that is none, is refused with its bytes untouched.
func Migrate(ctx context.Context, path string, opts *Options) (Migration, error) {
	wait, err := opts.wait()
	var at location
	if err == nil {
		at, err = locate(path)
	}
	if err != nil {
		return Migration{}, fmt.Errorf("sqlitestore: migrate: %w", err)
	}
	m, err := migrate(ctx, at.real, wait)
	if err != nil {
		return Migration{}, fmt.Errorf("sqlitestore: migrate: %w", readOnly(at.real, err))
	}
	return m, nil
}

// A schemaState is what a file holds, as far as a migration is concerned.
type schemaState struct {
	name    string // for people
	version int64  // the newest migration applied
	legacy  bool   // persistent-tool-runtime-v3
	refuse  string // why it cannot be migrated, or ""
}

func (s schemaState) current(ms []migration.Migration) bool {
	return s.refuse == "" && !s.legacy && s.version == ms[len(ms)-1].Version
}

// refusal is why a file cannot be used as it is, or nil; the hint is what to do
// about a schema that is not the current one.
func (s schemaState) refusal(ms []migration.Migration, hint string) error {
	switch {
	case s.refuse != "":
		return &engine.SchemaError{Found: s.name, Hint: s.refuse}
	case !s.current(ms):
		return &engine.SchemaError{Found: migration.Found(s.name, s.version, ms), Hint: hint}
	}
	return nil
}

func migrations() ([]migration.Migration, error) {
	tree, err := fs.Sub(db.SQLite, "migrations/sqlite")
	if err != nil {
		return nil, err
	}
	return migration.Load(tree)
}

// prepare leaves the file at path with the current schema, or explains why not.
// It first looks through a connection that cannot write.
func prepare(ctx context.Context, path string, wait time.Duration, allowed bool) error {
	ms, err := migrations()
	if err != nil {
		return err
	}
	state, err := peek(ctx, path, wait, ms)
	if err != nil {
		return err
	}
	made := state.legacy || state.version > 0
	err = state.refusal(ms, "run `toolruntime migrate`, or open it with Options.Migrate")
	if err == nil || state.refuse != "" || made && !allowed {
		return err
	}
	_, err = migrate(ctx, path, wait)
	return err
}

// peek reads the state of a file without being able to change a byte of it.
func peek(ctx context.Context, path string, wait time.Duration, ms []migration.Migration) (schemaState, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && logAlone(path):
		return schemaState{}, errDetached()
	case errors.Is(err, fs.ErrNotExist), err == nil && info.Mode().IsRegular() && info.Size() == 0:
		return schemaState{name: "new"}, nil
	case err == nil && !info.Mode().IsRegular():
		return schemaState{}, &engine.Error{Kind: engine.ErrCannotOpen}
	}
	v := url.Values{"mode": {"ro"}, "_query_only": {"on"}, "_busy_timeout": {fmt.Sprint(wait.Milliseconds())}}
	readOnly := sql.OpenDB(&connector{dsn: dsn(path, v)})
	defer readOnly.Close()
	conn, err := readOnly.Conn(ctx)
	if err != nil {
		return schemaState{}, err
	}
	defer conn.Close()
	// In one snapshot: the file may be migrated between two queries.
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return schemaState{}, err
	}
	defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") }()
	return examine(ctx, conn, ms)
}

// logAlone reports whether there is a log without its database, which somebody has
// taken away: to SQLite it belongs to nothing, and making a ledger in that place would
// remove what was acknowledged. Who makes a ledger makes the database first.
func logAlone(path string) bool {
	log, err := os.Lstat(path + "-wal")
	if err != nil || log.Size() == 0 {
		return false
	}
	_, err = os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func examine(ctx context.Context, conn *sql.Conn, ms []migration.Migration) (schemaState, error) {
	tables, err := list(ctx, conn, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'", scanText)
	if err != nil {
		return schemaState{}, err
	}
	var s schemaState
	if slices.Contains(tables, "goose_db_version") {
		err := conn.QueryRowContext(ctx, "SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version WHERE is_applied").Scan(&s.version)
		if err != nil {
			return s, err
		}
	}
	if slices.Contains(tables, "runtime_metadata") {
		err := conn.QueryRowContext(ctx, "SELECT metadata_value FROM runtime_metadata WHERE metadata_key = 'schema_version'").Scan(&s.name)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return s, err
		}
	}
	newest := ms[len(ms)-1].Version
	switch {
	case s.version > newest:
		s.name, s.refuse = fmt.Sprintf("at migration %d", s.version), "it was made by a newer version; use that one"
	case s.version == 0 && s.name == legacyVersion:
		s.legacy = true
	case s.version > 0 && s.name == engine.SchemaVersion:
	case s.version == 0 && len(tables) == 0, s.version == 0 && slices.Equal(tables, []string{"goose_db_version"}):
		s.name = "new"
	case s.name != "":
		s.name, s.refuse = "of another schema version", "use the version of the library that made it"
	default:
		s.name, s.refuse = "not a ledger of this library", "choose another file"
	}
	return s, nil
}

func scanText(rows *sql.Rows) (string, error) {
	var s string
	err := rows.Scan(&s)
	return s, err
}

// migrate does the work of [Migrate].
func migrate(ctx context.Context, path string, wait time.Duration) (m Migration, err error) {
	ms, err := migrations()
	if err != nil {
		return m, err
	}
	state, err := peek(ctx, path, wait, ms)
	if err != nil {
		return m, err
	}
	if state.refuse != "" {
		return m, &engine.SchemaError{Found: state.name, Hint: state.refuse}
	}
	conn, done, err := exclusive(ctx, path, wait)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, done()) }()
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return m, err
	}
	defer func() {
		if err != nil {
			_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		}
	}()
	// Another process may have migrated while this one waited for the lock.
	state, err = examine(ctx, conn, ms)
	if err != nil {
		return m, err
	}
	if state.refuse != "" {
		return m, &engine.SchemaError{Found: state.name, Hint: state.refuse}
	}
	m = Migration{From: state.name, To: engine.SchemaVersion, Applied: []string{}}
	if state.legacy {
		// The rows come in under the first schema, which is theirs but for the
		// evidence, and take part in all that follows.
		m.Adopted, err = adopt(ctx, conn,
			func() error { return apply(ctx, conn, ms[:1], 0, &m) },
			func() error { return apply(ctx, conn, ms, ms[0].Version, &m) })
	} else {
		err = apply(ctx, conn, ms, state.version, &m)
	}
	if err != nil {
		return m, err
	}
	_, err = conn.ExecContext(context.WithoutCancel(ctx), "COMMIT")
	return m, err
}

// apply runs the migrations after version and records them as goose does, so
// that its command and this library can take turns.
func apply(ctx context.Context, conn *sql.Conn, ms []migration.Migration, version int64, report *Migration) error {
	const bookkeeping = `
CREATE TABLE IF NOT EXISTS goose_db_version (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    version_id INTEGER NOT NULL,
    is_applied INTEGER NOT NULL,
    tstamp TIMESTAMP DEFAULT (datetime('now'))
);
INSERT INTO goose_db_version (version_id, is_applied)
SELECT 0, 1 WHERE NOT EXISTS (SELECT 1 FROM goose_db_version);`
	if _, err := conn.ExecContext(ctx, bookkeeping); err != nil {
		return err
	}
	for _, m := range ms {
		if m.Version <= version {
			continue
		}
		if _, err := conn.ExecContext(ctx, m.Up); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		if _, err := conn.ExecContext(ctx, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (?, 1)", m.Version); err != nil {
			return err
		}
		report.Applied = append(report.Applied, m.Name)
	}
	violations, err := list(ctx, conn, orphans, func(*sql.Rows) (string, error) { return "", nil })
	if err == nil && len(violations) > 0 {
		err = fmt.Errorf("%w: %d foreign keys are broken", engine.ErrContract, len(violations))
	}
	return err
}

// exclusive opens the file for a migration, and makes it if there is none: SQLite
// does, readable by its owner alone as the model is, because a ledger holds the
// arguments and results of every call. Turning on the write-ahead log does not wait
// for other processes by itself, so that is repeated up to the limit.
func exclusive(ctx context.Context, path string, wait time.Duration) (*sql.Conn, func() error, error) {
	model, err := os.CreateTemp(filepath.Dir(path), ".new.*.tmp")
	if err != nil {
		return nil, nil, fileError(err)
	}
	defer os.Remove(model.Name())
	if err := model.Close(); err != nil {
		return nil, nil, fileError(err)
	}
	limit, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	pool := sql.OpenDB(newConnector(path, wait, url.Values{"_journal_mode": {"WAL"}, "_cache_size": {"-65536"}, "modeof": {model.Name()}}))
	for {
		conn, err := pool.Conn(ctx)
		if err == nil {
			return conn, func() error { return errors.Join(conn.Close(), pool.Close()) }, nil
		}
		var e sqlite3.Error
		if !errors.As(err, &e) || e.Code != sqlite3.ErrBusy || limit.Err() != nil {
			return nil, nil, errors.Join(err, pool.Close())
		}
	}
}
