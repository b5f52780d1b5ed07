package pgstore

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// wanted are the facts about the schema that the migrations make. It is a file
// because an audit cannot make the schema anew: on a standby it may not write.
// A test holds it against a migrated ledger, and writes it with -update.
//
//go:embed catalog.txt
var wanted string

// facts lists what the server knows of the ledger's tables, one fact a row: the
// table, what kind of fact it is, and the fact. It leaves out the schema's name, and
// what a host may choose: the owner, the roles that may use the ledger, how it is
// stored and vacuumed. Names of what has no place in a ledger are left out too: they
// can be anything. $1 is the ledger's schema. The operators are the server's own only
// where nothing but pg_catalog is on the search_path.
const facts = `
WITH home AS (
	SELECT n.oid, quote_ident(n.nspname) || '.' AS prefix FROM pg_catalog.pg_namespace n WHERE n.nspname::text = $1::text
), t AS (
	SELECT c.*, home.prefix FROM home JOIN pg_catalog.pg_class c ON c.relnamespace = home.oid
	WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relname IN ('runtime_metadata', 'call_bindings', 'operations', 'outbox',
		'downstream_receipts', 'local_receipts', 'rejected_receipts', 'attempts', 'resolutions', 'paused_tools', 'past_pauses', 'endings',
		'tombstones', 'tombstone_resolutions', 'goose_db_version')
), fact AS (
	SELECT t.relname, 'table' AS kind, 'of kind ' || t.relkind::text AS fact FROM t
	UNION ALL
	SELECT t.relname, 'column', a.attname || ' ' || pg_catalog.format_type(a.atttypid, a.atttypmod)
		|| CASE WHEN a.attcollation <> y.typcollation THEN ' collate ' || (SELECT l.collname FROM pg_catalog.pg_collation l WHERE l.oid = a.attcollation) ELSE '' END
		|| CASE WHEN a.attnotnull THEN ' not null' ELSE '' END || ' ' || a.attidentity::text || a.attgenerated::text
		|| COALESCE(' default ' || replace(pg_catalog.pg_get_expr(d.adbin, d.adrelid), t.prefix, ''), '')
	FROM t JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
		JOIN pg_catalog.pg_type y ON y.oid = a.atttypid
		LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
	WHERE t.relname <> 'goose_db_version'
	UNION ALL
	SELECT t.relname, 'constraint', k.conname || ' ' || replace(pg_catalog.pg_get_constraintdef(k.oid, true), t.prefix, '')
	FROM t JOIN pg_catalog.pg_constraint k ON k.conrelid = t.oid AND k.contype IN ('c', 'f', 'p', 'u', 'x')
	WHERE t.relname <> 'goose_db_version'
	UNION ALL
	SELECT t.relname, 'index', replace(pg_catalog.pg_get_indexdef(i.indexrelid, 0, true), t.prefix, '')
	FROM t JOIN pg_catalog.pg_index i ON i.indrelid = t.oid
	WHERE t.relname <> 'goose_db_version'
	UNION ALL
	SELECT t.relname, 'trigger', '' FROM t JOIN pg_catalog.pg_trigger g ON g.tgrelid = t.oid AND NOT g.tgisinternal
	UNION ALL
	SELECT t.relname, 'rule', '' FROM t JOIN pg_catalog.pg_rewrite r ON r.ev_class = t.oid WHERE r.rulename <> '_RETURN'
	UNION ALL
	SELECT t.relname, 'policy', '' FROM t WHERE t.relrowsecurity OR t.relforcerowsecurity
		OR EXISTS (SELECT 1 FROM pg_catalog.pg_policy p WHERE p.polrelid = t.oid)
	UNION ALL
	SELECT t.relname, 'relative', '' FROM t WHERE EXISTS (SELECT 1 FROM pg_catalog.pg_inherits h WHERE t.oid IN (h.inhrelid, h.inhparent))
	UNION ALL
	SELECT t.relname, 'owner of its own', '' FROM t
	WHERE t.relowner <> (SELECT o.relowner FROM t AS o WHERE o.relname = 'runtime_metadata') AND t.relname <> 'goose_db_version'
	UNION ALL
	SELECT t.relname, 'privilege of everybody', '' FROM t WHERE EXISTS (
		SELECT 1 FROM pg_catalog.aclexplode(t.relacl) p WHERE p.grantee = 0 AND p.privilege_type <> 'SELECT'
	) OR EXISTS (
		SELECT 1 FROM pg_catalog.pg_attribute a, pg_catalog.aclexplode(a.attacl) p
		WHERE a.attrelid = t.oid AND p.grantee = 0 AND p.privilege_type <> 'SELECT'
	)
)
SELECT fact.relname::text, fact.kind, fact.fact FROM fact ORDER BY 1, 2, 3`

// factsOf reads the facts about the ledger's tables, each as a line. conn is in a
// transaction.
func factsOf(ctx context.Context, conn *sql.Conn) (lines []string, err error) {
	const (
		look = "SELECT pg_catalog.current_schema()::pg_catalog.text, pg_catalog.current_setting('search_path')"
		set  = "SELECT pg_catalog.set_config('search_path', $1::pg_catalog.text, true)"
	)
	var schema, path string
	if err := conn.QueryRowContext(ctx, look).Scan(&schema, &path); err != nil {
		return nil, classify(err)
	}
	if _, err := conn.ExecContext(ctx, set, "pg_catalog, pg_temp"); err != nil {
		return nil, classify(err)
	}
	defer func() {
		if err == nil { // otherwise the transaction is over
			_, err = conn.ExecContext(ctx, set, path)
			err = classify(err)
		}
	}()
	rows, err := conn.QueryContext(ctx, facts, schema)
	if err != nil {
		return nil, classify(err)
	}
	defer rows.Close()
	for rows.Next() {
		var table, kind, fact string
		if err := rows.Scan(&table, &kind, &fact); err != nil {
			return nil, classify(err)
		}
		lines = append(lines, fmt.Sprintf("%s|%s|%s", table, kind, fact))
	}
	return lines, classify(rows.Err())
}

// differences says how the ledger's tables differ from those that this version
// makes.
func differences(ctx context.Context, conn *sql.Conn) ([]string, error) {
	got, err := factsOf(ctx, conn)
	if err != nil {
		return nil, err
	}
	want := strings.Split(strings.TrimSpace(wanted), "\n")
	var found []string
	say := func(lines, others []string, words string) {
		known := map[string]bool{}
		for _, line := range others {
			known[line] = true
		}
		for _, line := range lines {
			if !known[line] {
				part := strings.SplitN(line, "|", 3)
				found = append(found, fmt.Sprintf(words, part[0], part[1]))
			}
		}
	}
	say(want, got, "the table %s lacks what this version makes: %s")
	say(got, want, "the table %s has what this version does not make: %s")
	slices.Sort(found)
	return slices.Compact(found), nil
}
