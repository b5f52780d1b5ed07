package pgquery

import (
	"context"

	"github.com/toolruntime/toolruntime-go/internal/dbgen/postgres"
)

// NextOperationKeys takes keys for operations, in a session with the search_path.
func NextOperationKeys(path string, keys []int64) Set {
	q := recorded(func(ctx context.Context, q *postgres.Queries) error {
		return q.NextOperationKeys(ctx, postgres.NextOperationKeysParams{Keys: int64(len(keys)), SearchPath: path})
	})
	return Set{q.query, q.args, func(rows Rows) error {
		for i := range keys {
			if !rows.Next() {
				return noRow(rows)
			}
			if err := rows.Scan(&keys[i]); err != nil {
				return err
			}
		}
		return nil
	}}
}
