package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/toolruntime/toolruntime-go/internal/engine"
)

// maxFindings bounds what a damaged database can make the audit report.
const maxFindings = 100

// Names are cast to text: what fits `||` and a function exactly is the server's own.

// ledger names the tables of the schema that the runtime uses.
const ledger = `(SELECT c.oid, c.relname::text, c.relpersistence FROM pg_class c
	WHERE c.relnamespace = (SELECT n.oid FROM pg_namespace n WHERE n.nspname = current_schema()) AND c.relkind = 'r'
		AND c.relname::text = ANY ('` + tables + `'::text[])) AS t`

const tables = "{runtime_metadata,call_bindings,operations,outbox,downstream_receipts,local_receipts," +
	"rejected_receipts,attempts,resolutions,paused_tools,past_pauses,endings,tombstones,tombstone_resolutions}"

// catalogue lists what is wrong with the tables by what the server knows of them.
const catalogue = `
SELECT 'table ' || t.relname || ' is not written to the log, and is lost in a crash'
	FROM ` + ledger + ` WHERE t.relpersistence <> 'p'
UNION ALL
SELECT 'index ' || i.indexrelid::regclass::text || ' is not valid'
	FROM ` + ledger + ` JOIN pg_index i ON i.indrelid = t.oid WHERE NOT (i.indisvalid AND i.indisready AND i.indislive)
UNION ALL
SELECT 'constraint ' || k.conname::text || ' of ' || t.relname || ' was never validated'
	FROM ` + ledger + ` JOIN pg_constraint k ON k.conrelid = t.oid WHERE NOT k.convalidated
UNION ALL
SELECT 'a foreign key of ' || t.relname || ' is not enforced'
	FROM ` + ledger + ` JOIN pg_trigger g ON g.tgrelid = t.oid WHERE g.tgisinternal AND g.tgenabled NOT IN ('O', 'A')`

// orphans makes a query for every foreign key: the rows whose parent is missing.
// The server enforces the keys, but not against a superuser, nor after damage. A key
// that is no key can be anything, and is not shown.
const orphans = `
SELECT pg_catalog.format('SELECT %L || COALESCE(pg_catalog.substring(c.%I::text, %L), ''?'') || %L FROM %s c WHERE c.%I IS NOT NULL
		AND NOT EXISTS (SELECT 1 FROM %s p WHERE p.%I = c.%I) LIMIT 100',
	t.relname || ' row ', a.attname, '^(?:-?[0-9]{1,19}|status_[0-9a-f]{32})$', ' has no ' || k.confrelid::regclass::text, k.conrelid::regclass, a.attname,
	k.confrelid::regclass, b.attname, a.attname)
	FROM ` + ledger + ` JOIN pg_constraint k ON k.conrelid = t.oid AND k.contype = 'f' AND pg_catalog.cardinality(k.conkey) = 1
	JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
	JOIN pg_attribute b ON b.attrelid = k.confrelid AND b.attnum = k.confkey[1]
	ORDER BY t.relname, k.conname`

// trees makes a call of amcheck for every index, where the extension is there
// and may be used: does the index hold exactly the table's rows, in order?
const trees = `
SELECT pg_catalog.format('SELECT %I.bt_index_check(%s::oid::regclass, true)', n.nspname, i.indexrelid::oid::text), i.indexrelid::regclass::text
	FROM ` + ledger + ` JOIN pg_index i ON i.indrelid = t.oid JOIN pg_class x ON x.oid = i.indexrelid
	JOIN pg_am m ON m.oid = x.relam AND m.amname = 'btree',
	pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
	WHERE CASE WHEN e.extname = 'amcheck' THEN pg_catalog.has_schema_privilege(n.oid, 'USAGE')
		AND pg_catalog.has_function_privilege(pg_catalog.format('%I.bt_index_check(regclass, boolean)', n.nspname), 'EXECUTE') END
	ORDER BY 2`

// durable are the settings that an acknowledged commit rests on, and the values
// with which it survives a power failure.
var durable = map[string][]string{
	"fsync":              {"on"},
	"full_page_writes":   {"on"},
	"synchronous_commit": {"on", "local", "remote_write", "remote_apply"},
}

// inspect asks the server about the database, inside the snapshot of conn.
func inspect(ctx context.Context, conn *sql.Conn) (engine.Health, error) {
	h := engine.Health{JournalMode: "postgresql-wal", Synchronous: 2, Durable: true, Settings: map[string]string{}}
	if err := conn.QueryRowContext(ctx, "SHOW server_version").Scan(&h.PostgreSQLVersion); err != nil {
		return h, classify(err)
	}
	for name, good := range durable {
		var value string
		if err := conn.QueryRowContext(ctx, "SELECT pg_catalog.current_setting($1)", name).Scan(&value); err != nil {
			return h, classify(err)
		}
		h.Settings[name] = value
		if !slices.Contains(good, value) {
			h.Synchronous, h.Durable = 0, false
		}
	}
	var err error
	if h.IntegrityCheck, err = list(ctx, conn, catalogue); err != nil {
		return h, err
	}
	broken, err := checkTrees(ctx, conn)
	if err != nil {
		return h, err
	}
	if h.IntegrityCheck = append(h.IntegrityCheck, broken...); len(h.IntegrityCheck) == 0 {
		h.IntegrityCheck = []string{"ok"}
	}
	queries, err := list(ctx, conn, orphans)
	h.ForeignKeyViolations = []string{}
	for _, q := range queries {
		found, err := list(ctx, conn, q)
		if err != nil {
			return h, err
		}
		h.ForeignKeyViolations = append(h.ForeignKeyViolations, found...)
	}
	return h, err
}

// checkTrees runs amcheck. A broken index is an error there, which must not end
// the snapshot.
func checkTrees(ctx context.Context, conn *sql.Conn) (broken []string, err error) {
	rows, err := conn.QueryContext(ctx, trees)
	if err != nil {
		return nil, classify(err)
	}
	defer rows.Close()
	var checks [][2]string
	for rows.Next() {
		var c [2]string
		if err := rows.Scan(&c[0], &c[1]); err != nil {
			return nil, err
		}
		checks = append(checks, c)
	}
	if err := rows.Err(); err != nil {
		return nil, classify(err)
	}
	for _, c := range checks {
		_, err := run(ctx, conn, "SAVEPOINT tree; "+c[0]+"; RELEASE tree")
		if err == nil {
			continue
		}
		if err := classify(err); !errors.Is(err, engine.ErrCorrupt) {
			return nil, err
		}
		broken = append(broken, fmt.Sprintf("index %s is damaged", c[1]))
		if _, err := run(ctx, conn, "ROLLBACK TO tree; RELEASE tree"); err != nil {
			return nil, err
		}
	}
	return broken, nil
}

func list(ctx context.Context, conn *sql.Conn, query string, args ...any) ([]string, error) {
	rows, err := conn.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, classify(err)
	}
	defer rows.Close()
	found := []string{}
	for rows.Next() && len(found) < maxFindings {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		found = append(found, s)
	}
	return found, classify(rows.Err())
}
