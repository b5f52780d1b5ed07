package pgstore

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/pgquery"
)

// Everything that a statement names is looked for in the schemas of the search_path,
// and whoever may create in one of them can put something there that fits better:
// a table, a type, a function or an operator of exactly the types that are given. So
// every connection has a search_path of the ledger's schema alone, behind the
// server's own (which is always searched first, when it is not named), and temporary
// tables last; and nobody but those who own the ledger anyway may create there. What
// the statements call besides is qualified, or given exactly the types that the
// server's own has.

// pathTo is the search_path of every connection.
func pathTo(schema string) string { return pgx.Identifier{schema}.Sanitize() + ", pg_temp" }

// literal is a text in a statement, whatever a backslash is in the session.
func literal(s string) string {
	return "E'" + strings.NewReplacer(`\`, `\\`, "'", "''").Replace(s) + "'"
}

// pin sets the search_path for a transaction: where a pooler is made to pool
// transactions while a store is open, the session may be another client's.
func (e *pgEngine) pin() string { return setPath(e.path) }

// setPath sets it as it is written: SET would write it anew, with other quotes, and
// statements hold it against what they were given.
func setPath(path string) string {
	return "SELECT pg_catalog.set_config('search_path', " + literal(path) + ", true)"
}

// A PlaceError says that the schema of a ledger is not certain, or not safe. Nothing in
// the database was changed. It matches toolruntime.ErrContract.
type PlaceError struct {
	Found string // what is wrong
	Hint  string // what to do
}

func (e *PlaceError) Error() string { return e.Found + ": " + e.Hint }

// Is matches ErrContract.
func (e *PlaceError) Is(target error) bool { return target == engine.ErrContract }

// A place is where a ledger stands, or is to be made.
type place struct {
	schema string
	named  bool // by who has opened it, and not by the server's defaults
}

// ledgers are the schemas among those of $1 in which a ledger stands.
const ledgers = `SELECT n.nspname::text FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid
WHERE c.relname = 'runtime_metadata' AND n.nspname::text = ANY ($1::text[])`

// locate finds the schema of the ledger: the one that is wanted, or the one of the
// search_path in which a ledger stands, or the first where there is none. path is
// the search_path of the URL, or "". It leaves the session as it was.
func locate(ctx context.Context, conn *pgx.Conn, wanted, path string) (p place, err error) {
	if _, err := conn.PgConn().Exec(ctx, "BEGIN READ ONLY; SET LOCAL statement_timeout = "+untilSet).ReadAll(); err != nil {
		return p, err
	}
	defer func() { _ = conn.PgConn().Exec(ctx, "ROLLBACK").Close() }()
	const set = "SELECT pg_catalog.set_config('search_path', $1::pg_catalog.text, true)"
	if path != "" {
		if _, err := ask(ctx, conn, set, path); err != nil {
			return p, err
		}
	}
	visible, err := ask(ctx, conn, "SELECT pg_catalog.unnest(pg_catalog.current_schemas(false))::pg_catalog.text")
	if err != nil {
		return p, err
	}
	// From here on operators mean the server's own.
	if _, err := ask(ctx, conn, set, "pg_catalog, pg_temp"); err != nil {
		return p, err
	}
	var schemas []string
	for _, row := range visible {
		schemas = append(schemas, row[0])
	}
	rows, err := ask(ctx, conn, ledgers, pgquery.Array(append(slices.Clone(schemas), wanted)))
	if err != nil {
		return p, err
	}
	var there []string
	for _, row := range rows {
		there = append(there, row[0])
	}
	return choose(wanted, path, schemas, there)
}

func choose(wanted, path string, visible, there []string) (place, error) {
	p := place{wanted, true}
	if wanted == "" {
		switch {
		case len(visible) == 0:
			return p, &PlaceError{Found: "there is no schema on the search_path that this role may use",
				Hint: "name the ledger's schema by Options.Schema, or by search_path in the URL"}
		case len(there) > 1:
			return p, &PlaceError{Found: "there are several ledgers on the search_path, in the schemas " + quoted(there),
				Hint: "name one by Options.Schema, or by search_path in the URL"}
		case len(there) == 1:
			p.schema = there[0]
		default:
			p.schema = visible[0]
		}
		p.named = path != ""
	}
	if len(there) > 0 && !slices.Contains(there, p.schema) {
		return p, &PlaceError{Found: "there is a ledger in the schema " + quoted(there) + ", and none in " + quoted([]string{p.schema}),
			Hint: "name the schema in which it stands; for a second ledger beside it, set search_path in the URL to that one's schema alone"}
	}
	return p, nil
}

func quoted(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = pgx.Identifier{name}.Sanitize()
	}
	slices.Sort(quoted)
	return strings.Join(quoted, " and ")
}

// intruders are who else may put something where the ledger's statements look for
// what they name, each with what to do about it: whoever may create in the schema, and
// is neither its owner, nor that of the ledger's tables, nor a superuser, nor the role
// that is connected; and whoever owns those tables, and is none of the others. $1 is
// the schema, $2 the tables.
const intruders = `
SELECT pg_catalog.concat('lets ', COALESCE(pg_catalog.quote_ident(r.rolname), 'everybody'), ' create in it'),
	pg_catalog.concat('REVOKE CREATE ON SCHEMA ', pg_catalog.quote_ident(n.nspname), ' FROM ', COALESCE(pg_catalog.quote_ident(r.rolname), 'PUBLIC'))
FROM pg_catalog.pg_namespace n
CROSS JOIN LATERAL pg_catalog.aclexplode(COALESCE(n.nspacl, pg_catalog.acldefault('n', n.nspowner))) a
LEFT JOIN pg_catalog.pg_roles r ON r.oid = a.grantee
WHERE n.nspname = CAST($1 AS pg_catalog.name) AND a.privilege_type = 'CREATE' AND a.grantee <> n.nspowner
	AND NOT COALESCE(r.rolsuper OR r.rolname = current_user, false)
	AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_class c WHERE c.relnamespace = n.oid AND c.relname = 'operations' AND c.relowner = a.grantee)
UNION ALL
SELECT DISTINCT pg_catalog.concat('has tables of ', pg_catalog.quote_ident(r.rolname), ' in it'),
	pg_catalog.concat('ALTER SCHEMA ', pg_catalog.quote_ident(n.nspname), ' OWNER TO ', pg_catalog.quote_ident(r.rolname), ', if that is who is to own the ledger')
FROM pg_catalog.pg_namespace n
JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid
JOIN pg_catalog.pg_roles r ON r.oid = c.relowner
WHERE n.nspname = CAST($1 AS pg_catalog.name)
	AND c.relname::pg_catalog.text = ANY (CAST($2 AS pg_catalog.text[]))
	AND NOT r.rolsuper AND NOT pg_catalog.pg_has_role(c.relowner, n.nspowner, 'MEMBER')
	AND NOT pg_catalog.pg_has_role(c.relowner, 'MEMBER')
ORDER BY 1 LIMIT 1`

// squatters: a schema that is named like the role is the first on the search_path of
// every server that was not told otherwise, and whoever may create schemas can make
// it. It is believed only when it belongs to the role, to the owner of the database
// or to a superuser.
const squatters = `SELECT 1 FROM pg_catalog.pg_namespace n
JOIN pg_catalog.pg_roles r ON r.oid = n.nspowner
JOIN pg_catalog.pg_database d ON d.datname = pg_catalog.current_database()
WHERE n.nspname = CAST($1 AS pg_catalog.name) AND n.nspname = current_user AND NOT r.rolsuper
	AND n.nspowner <> d.datdba AND NOT pg_catalog.pg_has_role(n.nspowner, 'MEMBER')`

// ours makes sure that nobody else has a say in the ledger's schema.
func (e *pgEngine) ours(ctx context.Context, conn *sql.Conn) error {
	schema := e.place.schema
	if !e.place.named {
		found, err := list(ctx, conn, squatters, schema)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			return &PlaceError{Found: "the schema " + quoted([]string{schema}) + " is named like this role and belongs to another",
				Hint: "name the ledger's schema by Options.Schema, or by search_path in the URL"}
		}
	}
	var what, todo string
	err := conn.QueryRowContext(ctx, intruders, schema, tables).Scan(&what, &todo)
	if err == sql.ErrNoRows {
		return nil
	}
	if err != nil {
		return err
	}
	return &PlaceError{Found: "the ledger is open to others: its schema " + quoted([]string{schema}) + " " + what,
		Hint: todo + "; or keep the ledger in a schema of its own"}
}
