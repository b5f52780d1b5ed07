package sqlitestore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// smallDisk mounts a file system of its own, where that is allowed.
func smallDisk(t *testing.T, options string) string {
	t.Helper()
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, options); err != nil {
		t.Skipf("mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// TestFullDisk: a disk without space refuses with a typed error, a checkpoint
// that does not fit included, and keeps what was acknowledged.
func TestFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	folder := smallDisk(t, "size=6m")
	ballast := filepath.Join(folder, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	k := newKeeper(t, folder)
	acknowledged, refused := k.spoil(toolruntime.ErrFull)
	t.Logf("%d operations fitted", len(acknowledged))
	if len(acknowledged) < 10 {
		t.Error("hardly any operation fitted")
	}
	if _, err := Backup(context.Background(), k.path, filepath.Join(folder, "copy"), nil); !errors.Is(err, toolruntime.ErrFull) {
		t.Errorf("a backup: %v", err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	k.wantKept(acknowledged, refused)
}

// TestReadOnlyDisk: a ledger on read-only media is refused with a typed error
// and stays as it is.
func TestReadOnlyDisk(t *testing.T) {
	folder := smallDisk(t, "size=32m")
	k := newKeeper(t, folder)
	k.must("key")
	if err := k.engine.Close(); err != nil {
		t.Fatal(err)
	}
	remount := func(flags uintptr) {
		t.Helper()
		if err := syscall.Mount("tmpfs", folder, "tmpfs", syscall.MS_REMOUNT|flags, ""); err != nil {
			t.Fatal(err)
		}
	}
	remount(syscall.MS_RDONLY)
	for name, path := range map[string]string{"a ledger": k.path, "a new one": filepath.Join(folder, "new")} {
		if _, err := Open(context.Background(), path, nil); !errors.Is(err, toolruntime.ErrReadOnly) {
			t.Errorf("open %s: %v", name, err)
		}
	}
	if _, err := Backup(context.Background(), k.path, filepath.Join(folder, "copy"), nil); !errors.Is(err, toolruntime.ErrReadOnly) {
		t.Errorf("a backup: %v", err)
	}
	remount(0)
	store, err := Open(context.Background(), k.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	k.wantAudit(k.runtime(store))
}
