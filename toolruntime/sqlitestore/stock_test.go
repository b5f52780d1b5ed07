package sqlitestore

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// requireSQLite is set where the tests must not skip for want of the sqlite3 command.
const requireSQLite = "TOOLRUNTIME_REQUIRE_SQLITE3"

// stock runs the system's own sqlite3, which is older than the library's, on a
// database.
func stock(t *testing.T, path string, input string, args ...string) string {
	t.Helper()
	command, err := exec.LookPath("sqlite3")
	switch {
	case err != nil && os.Getenv(requireSQLite) == "1":
		t.Fatal(err)
	case err != nil:
		t.Skip("there is no sqlite3 command")
	}
	cmd := exec.Command(command, append([]string{"-bail", path}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("sqlite3 %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestStockCommand: the system's sqlite3 can check, dump, vacuum and change a ledger,
// and what it has written is one.
func TestStockCommand(t *testing.T) {
	ctx := context.Background()
	path := copyOf(t, reference)
	if _, err := Migrate(ctx, path, nil); err != nil {
		t.Fatal(err)
	}
	t.Log(stock(t, path, "", "SELECT sqlite_version()"))
	for _, check := range []string{"PRAGMA integrity_check", "PRAGMA quick_check"} {
		if got := stock(t, path, "", check); got != "ok" {
			t.Errorf("%s: %s", check, got)
		}
	}
	if got := stock(t, path, "", "PRAGMA foreign_key_check"); got != "" {
		t.Error(got)
	}
	// Every row is changed, and every check held, as often as it has columns.
	for _, table := range []string{"call_bindings", "operations", "outbox", "downstream_receipts", "local_receipts", "attempts", "resolutions", "rejected_receipts", "tombstones", "paused_tools"} {
		var set []string
		for _, column := range columnsOf(t, path, table) {
			set = append(set, column+" = "+column)
		}
		stock(t, path, "", "UPDATE "+table+" SET "+strings.Join(set, ", "))
	}
	stock(t, path, "", "VACUUM")
	again := filepath.Join(t.TempDir(), "again.sqlite3")
	stock(t, again, stock(t, path, "", ".dump"))
	for _, p := range []string{path, again} {
		store, err := Open(ctx, p, nil)
		if err != nil {
			t.Fatal(err)
		}
		rt, err := toolruntime.New(store, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := rt.Audit(ctx, nil)
		if err != nil || !r.Passed || r.Counts.Operations == 0 {
			t.Errorf("audit: %+v, %v", r, err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}
