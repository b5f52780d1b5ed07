package pgstore

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/pgtest"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

func sqliteLedger(t *testing.T, operations int) *toolruntime.Store {
	t.Helper()
	store, err := sqlitestore.Open(context.Background(), filepath.Join(t.TempDir(), "ledger.sqlite3"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	fill(t, store, operations)
	return store
}

// TestCopy: a copy that is interrupted keeps its ledger closed and is continued;
// the copy audits clean, answers as the original, and goes on with new keys.
func TestCopy(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	ctx := context.Background()
	const operations = 450 // three pages
	from, address := sqliteLedger(t, operations), pgtest.Schema(t)
	opts := &Options{Migrate: true}
	interrupted, cancel := context.WithCancel(ctx)
	_, err := Copy(interrupted, from, address, opts, func(int64, int64) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted: %v", err)
	}
	var refused *engine.SchemaError
	if _, err := Open(ctx, address, opts); !errors.As(err, &refused) {
		t.Fatalf("a half copy was opened: %v", err)
	}
	last := int64(0)
	counts, err := Copy(ctx, from, address, nil, func(done, total int64) {
		if last = done; done > total {
			t.Errorf("%d of %d", done, total)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	want, err := newRuntime(t, from).Counts(ctx)
	if diff := cmp.Diff(want, counts); diff != "" || err != nil || want.Operations != operations || last == 0 {
		t.Errorf("%v, %s", err, diff)
	}
	if r := audit(t, address); !r.Passed {
		t.Errorf("%+v", r)
	}
	store, err := Open(ctx, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	rt := newRuntime(t, store)
	for key, delivery := range map[string]toolresult.Delivery{"key-0": toolresult.LocalReplay, "key-new": toolresult.Fresh} {
		if pkg, err := dispatch(ctx, rt, key); err != nil || pkg.Code() != toolresult.OK || pkg.Delivery() != delivery {
			t.Errorf("%s: %+v, %v", key, pkg, err)
		}
	}
	var input *toolresult.InputError
	if _, err := Copy(ctx, from, address, nil, nil); !errors.As(err, &input) {
		t.Errorf("a ledger in use was copied over: %v", err)
	}
}

// TestCopyOfAChangingLedger: an original that is written to meanwhile is found
// out, and the copy stays closed.
func TestCopyOfAChangingLedger(t *testing.T) {
	ctx := context.Background()
	from, address := sqliteLedger(t, 3), pgtest.Schema(t)
	rt, once := newRuntime(t, from), true
	_, err := Copy(ctx, from, address, &Options{Migrate: true}, func(int64, int64) {
		if once {
			once = false
			if _, err := dispatch(ctx, rt, "meanwhile"); err != nil {
				t.Error(err)
			}
		}
	})
	if !errors.Is(err, toolruntime.ErrContract) {
		t.Errorf("got %v", err)
	}
	if _, err := Open(ctx, address, nil); !errors.Is(err, toolruntime.ErrContract) {
		t.Errorf("opened: %v", err)
	}
}
