package sqlitestore

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// wantLocks wants the process to hold locks on the ledger, as SQLite took them.
func wantLocks(t *testing.T, path, after string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	inode := fmt.Sprintf(":%d ", info.Sys().(*syscall.Stat_t).Ino)
	// The kernel lists the locks page by page while others come and go, and may leave
	// one out. One that is lost stays lost.
	for range 5 {
		locks, err := os.ReadFile("/proc/locks")
		if err != nil {
			t.Skip(err)
		}
		for line := range strings.Lines(string(locks)) {
			if strings.Contains(line, "POSIX") && strings.Contains(line, inode) {
				return
			}
		}
	}
	t.Errorf("after %s the process holds no lock on its ledger", after)
}

// TestLocksStay: no function of the package takes away the locks that SQLite holds on
// a ledger which is open, whether it succeeds or fails. POSIX drops all of them when
// the process closes any descriptor of the file.
func TestLocksStay(t *testing.T) {
	ctx := context.Background()
	k := newKeeper(t, t.TempDir())
	k.must("before")
	wantLocks(t, k.path, "Open")
	folder := t.TempDir()
	link := filepath.Join(folder, "link")
	if err := os.Symlink(k.path, link); err != nil {
		t.Fatal(err)
	}
	again := func(opts *Options) func(string) error {
		return func(path string) error {
			store, err := Open(ctx, path, opts)
			if err != nil {
				return err
			}
			return store.Close()
		}
	}
	backup := func(to string) func(string) error {
		return func(path string) error {
			_, err := Backup(ctx, path, to, nil)
			return err
		}
	}
	for name, do := range map[string]func(path string) error{
		"opening it again": again(nil), "opening it to read": again(&Options{ReadOnly: true}),
		"migrating at opening":    again(&Options{Migrate: true}),
		"a wait that is none":     again(&Options{BusyTimeout: 1}),
		"Migrate":                 func(path string) error { _, err := Migrate(ctx, path, nil); return err },
		"Compact":                 func(path string) error { _, err := Compact(ctx, path, nil); return err },
		"Backup":                  backup(filepath.Join(folder, "copy")),
		"a backup onto it":        backup(k.path),
		"a backup onto a link":    backup(link),
		"a backup onto its log":   backup(k.path + "-wal"),
		"a backup into no folder": backup(filepath.Join(folder, "missing", "copy")),
		"a name that is too long": backup(filepath.Join(folder, strings.Repeat("n", 300))),
	} {
		for _, path := range []string{k.path, link} {
			err := do(path)
			wantLocks(t, k.path, fmt.Sprintf("%s (%v)", name, err))
			os.Remove(filepath.Join(folder, "copy"))
		}
		withoutDescriptors(t, func(free int) {
			err := do(k.path)
			wantLocks(t, k.path, fmt.Sprintf("%s with %d descriptors (%v)", name, free, err))
			os.Remove(filepath.Join(folder, "copy"))
		})
	}
	k.must("after")
	k.wantAudit(k.rt)
}

// withoutDescriptors runs do when the process has as good as no descriptors left.
func withoutDescriptors(t *testing.T, do func(free int)) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for free := range 12 {
		low := limit
		low.Cur = uint64(len(open) + free)
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
			t.Fatal(err)
		}
		err := func() error {
			defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
			do(free)
			return nil
		}()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestFirstOpens: many who open a new ledger at once make one, and none takes away
// the locks of another.
func TestFirstOpens(t *testing.T) {
	for range 5 {
		path := filepath.Join(t.TempDir(), "ledger.sqlite3")
		var all sync.WaitGroup
		stores := make([]*toolruntime.Store, 8)
		for i := range stores {
			all.Go(func() {
				var err error
				if stores[i], err = Open(context.Background(), path, nil); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		wantLocks(t, path, "eight first Opens")
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
		for _, s := range stores {
			if s != nil {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
			t.Errorf("the folder: %v, %v", left, err)
		}
	}
}

// TestOtherProgram: another program that reads a ledger which is in use leaves its
// write-ahead log alone, whatever this process has done with the ledger before.
func TestOtherProgram(t *testing.T) {
	k := newKeeper(t, t.TempDir())
	for _, do := range []func(key string) error{
		func(string) error { return nil },
		func(string) error { _, err := Migrate(context.Background(), k.path, nil); return err },
		func(key string) error {
			_, err := Backup(context.Background(), k.path, filepath.Join(t.TempDir(), key), nil)
			return err
		},
	} {
		key := fmt.Sprint("key-", len(k.effects))
		k.must(key + "-before")
		if err := do(key); err != nil {
			t.Fatal(err)
		}
		stock(t, k.path, "", "SELECT COUNT(*) FROM operations")
		if _, err := os.Stat(k.path + "-wal"); err != nil {
			t.Fatal(err)
		}
		k.must(key + "-after")
	}
	// What nobody has closed is in the file that a process finds which comes now.
	if n := stock(t, k.path, "", "SELECT COUNT(*) FROM local_receipts"); n != fmt.Sprint(len(k.effects)) {
		t.Errorf("%s receipts of %d", n, len(k.effects))
	}
}

// TestFullLog: a log that cannot grow any more, though the database could, is brought
// into the database and begun anew.
func TestFullLog(t *testing.T) {
	if os.Getenv("TOOLRUNTIME_FULL_LOG") == "" {
		child := exec.Command(os.Args[0], "-test.run=^TestFullLog$")
		child.Env = append(os.Environ(), "TOOLRUNTIME_FULL_LOG=1")
		if out, err := child.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	k := newKeeper(t, t.TempDir())
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 2 << 20, Max: 1 << 40}); err != nil {
		t.Fatal(err)
	}
	largest, begunAnew := int64(0), false
	for i := range 120 { // twice as much as the log may hold
		k.must(fmt.Sprint("key-", i))
		info, err := os.Stat(k.path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		begunAnew = begunAnew || info.Size() < largest
		largest = max(largest, info.Size())
	}
	if !begunAnew || largest < 2<<20-128<<10 {
		t.Errorf("the log was begun anew: %t; it had at most %d bytes", begunAnew, largest)
	}
	k.wantAudit(k.rt)
}
