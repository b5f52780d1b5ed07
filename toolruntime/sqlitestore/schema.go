package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// An object of a schema: a table or view, or what belongs to one.
type object struct{ kind, name, table string }

// schemaOf reads the objects of a database, with what each was made by. An index
// that a constraint has made has no text.
func schemaOf(ctx context.Context, conn *sql.Conn) (map[object]string, error) {
	rows, err := conn.QueryContext(ctx, "SELECT type, name, tbl_name, COALESCE(sql, '') FROM sqlite_master")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[object]string{}
	for rows.Next() {
		var o object
		var text string
		if err := rows.Scan(&o.kind, &o.name, &o.table, &text); err != nil {
			return nil, err
		}
		// Names are the same whatever their case.
		o.name, o.table = strings.ToLower(o.name), strings.ToLower(o.table)
		all[o] = text
	}
	return all, rows.Err()
}

// wanted is the schema that the migrations make in an empty database.
var wanted = sync.OnceValues(func() (map[object]string, error) {
	ctx := context.Background()
	ms, err := migrations()
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(&connector{dsn: ":memory:"})
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := apply(ctx, conn, ms, 0, &Migration{}); err != nil {
		return nil, err
	}
	return schemaOf(ctx, conn)
})

// ledgerTables are the ledger's, as a list in SQL. Others are the host's, and whether
// their rows hold together is nobody's concern here.
const ledgerTables = `('runtime_metadata', 'call_bindings', 'operations', 'outbox', 'downstream_receipts', 'local_receipts',
	'rejected_receipts', 'attempts', 'resolutions', 'paused_tools', 'past_pauses', 'endings', 'tombstones', 'tombstone_resolutions')`

// orphans asks for the rows of the ledger whose parent is missing.
const orphans = `SELECT "table", rowid, parent, fkid FROM pragma_foreign_key_check WHERE lower("table") IN ` + ledgerTables

// bookkeepingTable is goose's table: its command makes it in words of its own.
const bookkeepingTable = "goose_db_version"

// differences says how the ledger's tables in a database differ from those that
// this version makes. Other tables may stand beside them. Nothing is named but what
// this version knows: names that somebody else has given can be anything.
func differences(ctx context.Context, conn *sql.Conn) ([]string, error) {
	want, err := wanted()
	if err != nil {
		return nil, err
	}
	got, err := schemaOf(ctx, conn)
	if err != nil {
		return nil, err
	}
	var found []string
	ours := map[string]bool{}
	for o, text := range want {
		if o.kind == "table" && !strings.HasPrefix(o.name, "sqlite_") {
			ours[o.name] = true
		}
		switch present, ok := got[o]; {
		case strings.HasPrefix(o.table, "sqlite_"):
		case !ok:
			found = append(found, fmt.Sprintf("the table %s lacks what this version makes: %s", o.table, o.kind))
		case o.table != bookkeepingTable && words(present) != words(text):
			found = append(found, fmt.Sprintf("the table %s lacks what this version makes: %s", o.table, o.kind))
		}
	}
	for o := range got {
		if _, known := want[o]; !known && ours[o.table] {
			found = append(found, fmt.Sprintf("the table %s has what this version does not make: %s", o.table, o.kind))
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// words is a statement without what does not matter: white space, comments, the case
// of words, and quotes around names. A dump, and an ALTER TABLE, may change those.
func words(statement string) string {
	var b strings.Builder
	for s := statement; s != ""; {
		n, text := word(s)
		s = s[n:]
		if text != "" {
			b.WriteString(text)
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// word returns how long the word is that s begins with, and what it means.
func word(s string) (n int, text string) {
	until := func(end string) int {
		if i := strings.Index(s[1:], end); i >= 0 {
			return 1 + i + len(end)
		}
		return len(s)
	}
	switch c := s[0]; {
	case strings.ContainsRune(" \t\r\n\f", rune(c)):
		return 1, ""
	case strings.HasPrefix(s, "--"):
		return until("\n"), ""
	case strings.HasPrefix(s, "/*"):
		return until("*/"), ""
	case c == '\'': // a doubled quote makes two texts of one, here as there
		n = until("'")
		return n, s[:n]
	case c == '"' || c == '`':
		n = until(string(c))
		return n, strings.ToLower(strings.Trim(s[:n], string(c)))
	case c == '[':
		n = until("]")
		return n, strings.ToLower(strings.Trim(s[:n], "[]"))
	}
	end := strings.IndexFunc(s, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r < 0x80
	})
	if end < 0 {
		end = len(s)
	}
	return max(end, 1), strings.ToLower(s[:max(end, 1)])
}
