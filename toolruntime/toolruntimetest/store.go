package toolruntimetest

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

// Store opens a new ledger of the test's own: the real one, in a SQLite file in the
// test's temporary folder. It is closed when the test ends.
func Store(t testing.TB) *toolruntime.Store {
	t.Helper()
	store, err := sqlitestore.Open(context.WithoutCancel(t.Context()), filepath.Join(t.TempDir(), "ledger.sqlite3"), nil)
	if err != nil {
		t.Fatalf("toolruntimetest: %v", err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("toolruntimetest: close the ledger: %v", err)
		}
	})
	return store
}

// Work runs a worker until the test ends: before a store is closed that was opened
// before it. The test fails if the worker does. With a [Clock] give it a short Poll,
// which is how soon it sees that the clock was moved.
func Work(t testing.TB, rt *toolruntime.Runtime, opts *toolruntime.WorkOptions) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- rt.Work(ctx, opts) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("toolruntimetest: work: %v", err)
		}
	})
}
