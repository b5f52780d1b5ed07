package sqlitestore

import (
	"errors"
	"path/filepath"
	"testing"
	"time"
)

// TestNumbers: what docs/sqlite.md, docs/contract.md and ARCHITECTURE.md say of the
// write-ahead log and of the wait for other processes.
func TestNumbers(t *testing.T) {
	for _, o := range []*Options{nil, {}} {
		if wait, err := o.wait(); wait != 5*time.Second || err != nil {
			t.Errorf("%v, %v", wait, err)
		}
	}
	e, err := openEngine(t.Context(), filepath.Join(t.TempDir(), "ledger.sqlite3"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	g := e.writer.log
	if g.limit != 64<<20 || g.patient != 96<<20 || g.patience != DefaultBusyTimeout/2 {
		t.Errorf("the log is truncated at %d, waited for at %d, for %v", g.limit, g.patient, g.patience)
	}
	var pages, size int64
	err = errors.Join(e.writer.conn.QueryRowContext(t.Context(), "PRAGMA wal_autocheckpoint").Scan(&pages),
		e.writer.conn.QueryRowContext(t.Context(), "PRAGMA page_size").Scan(&size))
	if err != nil || pages*size/1_000_000 != 32 {
		t.Errorf("a checkpoint every %d bytes, %v", pages*size, err)
	}
}
