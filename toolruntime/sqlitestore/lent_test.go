package sqlitestore

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// TestHostsStatements: in an Update the host does what it likes with its own tables,
// and nothing with the ledger's, or with the transaction.
func TestHostsStatements(t *testing.T) {
	ctx := context.Background()
	store, err := Open(ctx, filepath.Join(t.TempDir(), "ledger.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	tests := []struct {
		statement string
		allowed   bool
	}{
		{"CREATE TABLE app_orders (number INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL) STRICT", true},
		{"CREATE INDEX app_orders_text ON app_orders (text)", true},
		{"INSERT INTO app_orders (text) VALUES ('a'), ('b')", true},
		{"UPDATE app_orders SET text = (SELECT COUNT(*) FROM operations)", true},
		{"SAVEPOINT mine; DELETE FROM app_orders; ROLLBACK TO mine; RELEASE mine", true},
		{"ALTER TABLE app_orders ADD COLUMN more TEXT", true},
		{"CREATE TRIGGER app_t AFTER INSERT ON app_orders BEGIN UPDATE app_orders SET more = 'x'; END", true},
		{"DROP TRIGGER app_t", true},
		{"PRAGMA table_info(app_orders)", true},
		{"PRAGMA foreign_keys", false},
		{"PRAGMA ignore_check_constraints = ON", false},
		{"PRAGMA defer_foreign_keys = ON", false},
		{"COMMIT", false},
		{"ROLLBACK", false},
		{"BEGIN", false},
		{"INSERT INTO app_orders (text) VALUES ('c'); COMMIT; BEGIN", false},
		{"ATTACH ':memory:' AS other", false},
		{"INSERT INTO paused_tools SELECT * FROM paused_tools", false},
		{"UPDATE operations SET state = 'succeeded'", false},
		{"DELETE FROM call_bindings", false},
		{"delete from Main.OUTBOX", false},
		{"DROP TABLE tombstones", false},
		{"ALTER TABLE operations ADD COLUMN mine TEXT", false},
		{"ALTER TABLE operations RENAME TO app_operations", false},
		{"ALTER TABLE operations RENAME COLUMN state TO mine", false},
		{"CREATE INDEX app_i ON operations (state)", false},
		{"CREATE TRIGGER app_t AFTER INSERT ON operations BEGIN SELECT 1; END", false},
		{"CREATE TRIGGER app_t AFTER INSERT ON app_orders BEGIN DELETE FROM operations; END; INSERT INTO app_orders (text) VALUES ('d')", false},
		{"DELETE FROM goose_db_version", false},
		{"DELETE FROM sqlite_sequence", false},
		{"UPDATE sqlite_sequence SET seq = 0 WHERE name = 'operations'", false},
		{"ALTER TABLE app_orders RENAME TO app_old", true},
		{"DROP TABLE app_old", true},
	}
	for _, tt := range tests {
		err := store.Update(ctx, func(ctx context.Context, tx toolruntime.UpdateTx) error {
			_, err := tx.ExecContext(ctx, tt.statement)
			return err
		})
		if tt.allowed && err != nil || !tt.allowed && !errors.Is(err, toolruntime.ErrInvalidInput) {
			t.Errorf("%s: %v", tt.statement, err)
		}
	}
	rt, err := toolruntime.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	report, err := rt.Audit(ctx, nil)
	if err != nil || !report.Passed {
		t.Errorf("the audit: %+v, %v", report, err)
	}
	if diff := cmp.Diff(toolruntime.Counts{}, must(rt.Counts(ctx))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
