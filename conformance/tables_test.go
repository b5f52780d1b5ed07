package conformance

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/tables"
)

// TestTables holds what the code knows of the tables' columns against both databases: that
// is generated from SQLite's migrations, and is used for PostgreSQL's tables, too.
func TestTables(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		address := e.create(t)
		store, err := e.open(context.Background(), address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		db := e.plain(t, address)
		defer db.Close()
		for name, columns := range tables.All {
			rows, err := db.Query("SELECT * FROM " + name + " LIMIT 0")
			if err != nil {
				t.Fatal(err)
			}
			got, err := rows.Columns()
			rows.Close()
			if err != nil {
				t.Fatal(err)
			}
			want := make([]string, len(columns))
			for i, c := range columns {
				want[i] = c.Name
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-code +database):\n%s", name, diff)
			}
		}
	})
}
