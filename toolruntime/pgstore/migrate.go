package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"

	"github.com/toolruntime/toolruntime-go/db"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/migration"
)

// A Migration reports what [Migrate] has done.
type Migration struct {
	From    string   `json:"from"`    // what the schema was: "new", "toolruntime-ledger-v1", …
	To      string   `json:"to"`      // what it is now
	Applied []string `json:"applied"` // the migrations that ran, in order
}

// Migrate makes the ledger in the schema (and the schema where Options.Schema
// names one that is missing), or brings an older one up to date: in one
// transaction, one migrator at a time. A newer ledger is refused untouched.
func Migrate(ctx context.Context, url string, opts *Options) (Migration, error) {
	e, err := connect(url, opts)
	if err != nil {
		return Migration{}, fmt.Errorf("pgstore: migrate: %w", err)
	}
	var m Migration
	if err = e.find(ctx); err == nil {
		m, err = e.migrate(ctx)
	}
	if err = errors.Join(err, e.Close()); err != nil {
		return Migration{}, fmt.Errorf("pgstore: migrate: %w", err)
	}
	return m, nil
}

// unfinishedCopy is the entry of runtime_metadata that keeps a ledger closed
// until all rows of another have arrived in it.
const unfinishedCopy = "unfinished_copy"

// A schemaState is what a schema holds, as far as a migration is concerned.
type schemaState struct {
	name    string // for people
	version int64  // the newest migration applied
	copying bool
	refuse  string // why it cannot be used, or ""
}

func migrations() ([]migration.Migration, error) {
	tree, err := fs.Sub(db.Postgres, "migrations/postgres")
	if err != nil {
		return nil, err
	}
	return migration.Load(tree)
}

// prepare leaves the schema current, or explains why not.
func (e *pgEngine) prepare(ctx context.Context, allowed, unfinished bool) error {
	ms, err := migrations()
	if err != nil {
		return err
	}
	var s schemaState
	err = e.persist(ctx, func() error {
		return e.with(ctx, func(conn *sql.Conn) (err error) {
			s, err = e.examine(ctx, conn, ms)
			return ended(ctx, err)
		})
	})
	switch {
	case err != nil:
		return err
	case s.refuse == "" && s.copying && !unfinished:
		return &engine.SchemaError{Found: "an unfinished copy of another ledger", Hint: "repeat `toolruntime copy`"}
	case s.refuse == "" && s.version == ms[len(ms)-1].Version:
		return nil
	case s.refuse == "" && !allowed:
		return &engine.SchemaError{Found: migration.Found(s.name, s.version, ms), Hint: "run `toolruntime migrate`, or open it with Options.Migrate"}
	}
	_, err = e.migrate(ctx)
	return err
}

// examine looks at the schema without changing anything. Other tables may stand
// in it: those of the service, for example.
func (e *pgEngine) examine(ctx context.Context, conn *sql.Conn, ms []migration.Migration) (s schemaState, err error) {
	var encoding string
	var goose, metadata bool
	err = conn.QueryRowContext(ctx, `SELECT pg_catalog.current_setting('server_encoding'),
		pg_catalog.to_regclass($1::text || '.goose_db_version') IS NOT NULL,
		pg_catalog.to_regclass($1::text || '.runtime_metadata') IS NOT NULL`, pgx.Identifier{e.place.schema}.Sanitize()).Scan(&encoding, &goose, &metadata)
	if err == nil {
		err = e.ours(ctx, conn)
	}
	if err == nil && goose {
		err = conn.QueryRowContext(ctx, "SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version WHERE is_applied").Scan(&s.version)
	}
	if err == nil && metadata {
		err = conn.QueryRowContext(ctx, `SELECT
			COALESCE((SELECT metadata_value FROM runtime_metadata WHERE metadata_key = 'schema_version'), ''),
			EXISTS (SELECT 1 FROM runtime_metadata WHERE metadata_key = $1)`, unfinishedCopy).Scan(&s.name, &s.copying)
	}
	switch {
	case err != nil:
	case encoding != "UTF8":
		s.name, s.refuse = "not encoded in UTF8", "make a database with ENCODING 'UTF8'"
	case s.version == 0 && !metadata:
		s.name = "new"
	case s.version > 0 && s.name != engine.SchemaVersion, s.version == 0:
		s.name, s.refuse = "of another schema version, or not a ledger of this library", "choose another schema, or the version of the library that made it"
	case s.version > ms[len(ms)-1].Version:
		s.name, s.refuse = fmt.Sprintf("at migration %d", s.version), "it was made by a newer version; use that one"
	}
	return s, err
}

func (e *pgEngine) migrate(ctx context.Context) (m Migration, err error) {
	ms, err := migrations()
	if err != nil {
		return m, err
	}
	err = e.with(ctx, func(conn *sql.Conn) error {
		defer rollback(ctx, conn) // of nothing, after the COMMIT
		_, err := run(ctx, conn, "BEGIN; "+e.pin()+"; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0")
		if err == nil {
			m, err = e.apply(ctx, conn, ms)
		}
		if err == nil {
			_, err = run(context.WithoutCancel(ctx), conn, "COMMIT")
		}
		return ended(ctx, err)
	})
	return m, err
}

// apply runs the migrations that are missing and records them as goose does, so
// that its command and this library can take turns.
func (e *pgEngine) apply(ctx context.Context, conn *sql.Conn, ms []migration.Migration) (Migration, error) {
	const bookkeeping = `
CREATE TABLE IF NOT EXISTS goose_db_version (
    id integer PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp NOT NULL DEFAULT now()
);
INSERT INTO goose_db_version (version_id, is_applied)
SELECT 0, true WHERE NOT EXISTS (SELECT 1 FROM goose_db_version)`
	m := Migration{To: engine.SchemaVersion, Applied: []string{}}
	lock := "SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('toolruntime.migrate', 0))"
	if e.wanted != "" {
		lock += "; CREATE SCHEMA IF NOT EXISTS " + pgx.Identifier{e.wanted}.Sanitize()
	}
	if _, err := run(ctx, conn, lock); err != nil {
		return m, err
	}
	s, err := e.examine(ctx, conn, ms)
	if err != nil {
		return m, err
	}
	if s.refuse != "" {
		return m, &engine.SchemaError{Found: s.name, Hint: s.refuse}
	}
	m.From = s.name
	if _, err := run(ctx, conn, bookkeeping); err != nil {
		return m, err
	}
	for _, step := range ms {
		if step.Version <= s.version {
			continue
		}
		if _, err := run(ctx, conn, step.Up); err != nil {
			return m, fmt.Errorf("%s: %w", step.Name, err)
		}
		if _, err := conn.ExecContext(ctx, "INSERT INTO goose_db_version (version_id, is_applied) VALUES ($1, true)", step.Version); err != nil {
			return m, err
		}
		m.Applied = append(m.Applied, step.Name)
	}
	return m, nil
}
