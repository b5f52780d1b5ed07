package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// TestCompact: what pruning has left in the file goes back to the disk, beside a store
// that has it open; and a backup never has it.
func TestCompact(t *testing.T) {
	ctx := context.Background()
	k := newKeeper(t, t.TempDir())
	for i := range 200 {
		k.must(fmt.Sprint("key-", i))
	}
	k.now.Add(7200)
	if r, err := k.rt.Prune(ctx, &toolruntime.PruneOptions{OlderThan: time.Hour}); err != nil || r.Pruned != 199 {
		t.Fatalf("%+v, %v", r, err)
	}
	to := filepath.Join(t.TempDir(), "copy")
	if _, err := Backup(ctx, k.path, to, nil); err != nil {
		t.Fatal(err)
	}
	copied, err := fileSize(to)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Compact(ctx, k.path, nil)
	if err != nil || c.After >= c.Before/2 || c.After != copied {
		t.Errorf("%+v, %v; the backup has %d", c, err, copied)
	}
	if now, err := fileSize(k.path); err != nil || now != c.After {
		t.Errorf("%d bytes, %v", now, err)
	}
	k.must("afterwards")
	k.wantAudit(k.rt)
	// A reader keeps the pages that it sees.
	err = k.engine.Snapshot(ctx, func(ctx context.Context, s engine.Snapshot) error {
		if _, err := s.CountRows(ctx); err != nil {
			return err
		}
		k.must("a commit that the reader does not see")
		if _, err := Compact(ctx, k.path, &Options{BusyTimeout: time.Millisecond}); !errors.Is(err, toolruntime.ErrBusy) {
			t.Errorf("beside a reader: %v", err)
		}
		_, err := s.CountRows(ctx)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	k.wantAudit(k.rt)
}
