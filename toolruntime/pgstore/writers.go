package pgstore

import (
	"context"
	"database/sql"

	"github.com/toolruntime/toolruntime-go/internal/engine"
)

// A statement locks the table that it inserts into before it takes a key of its sequence,
// and the lock is held until the transaction has ended: the server shows its rows to new
// snapshots first, and lets go of its locks then. A standby shows the locks of the
// primary's transactions to nobody.
const writing = `
SELECT DISTINCT l.virtualtransaction, pg_catalog.pg_is_in_recovery()
FROM (SELECT 1 AS one) AS always LEFT JOIN (
	pg_catalog.pg_locks l JOIN ` + ledger + ` ON t.oid = l.relation AND t.relname = ANY ('{downstream_receipts,endings}'::text[])
	JOIN pg_catalog.pg_database d ON d.oid = l.database AND d.datname = pg_catalog.current_database()
) ON l.locktype = 'relation' AND l.mode = 'RowExclusiveLock' AND l.granted`

// writers names the transactions that are inserting receipts or endings.
func writers(ctx context.Context, conn *sql.Conn) (names []string, err error) {
	rows, err := conn.QueryContext(ctx, writing)
	if err != nil {
		return nil, classify(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name sql.NullString
		var standby bool
		if err := rows.Scan(&name, &standby); err != nil {
			return nil, classify(err)
		}
		if standby {
			return nil, &engine.Error{Kind: engine.ErrReadOnly, Code: "postgres standby"}
		}
		if name.Valid {
			names = append(names, name.String)
		}
	}
	return names, classify(rows.Err())
}
