package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// TestBackup copies a ledger while two processes' worth of writers go on. What
// was acknowledged before it began is in the copy, which is whole and one file.
func TestBackup(t *testing.T) {
	k := newKeeper(t, t.TempDir())
	for i := range 50 {
		k.must(fmt.Sprint("before-", i))
	}
	second, err := Open(context.Background(), k.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for w, rt := range []*toolruntime.Runtime{k.rt, k.runtime(second)} {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if pkg, err := k.dispatch(rt, fmt.Sprintf("meanwhile-%d-%d", w, i)); err != nil || pkg.Code() != toolresult.OK {
					t.Error(pkg, err)
					return
				}
			}
		})
	}
	folder := t.TempDir()
	for n := range 5 {
		to := filepath.Join(folder, fmt.Sprintf("copy-%d.sqlite3", n))
		pages := int64(0)
		r, err := Backup(context.Background(), k.path, to, &BackupOptions{Progress: func(done, _ int64) { pages = done }})
		if err != nil || !r.Passed || r.Counts.Operations < 50 || pages == 0 {
			t.Fatalf("%+v, %v, %d pages", r, err, pages)
		}
	}
	close(stop)
	writers.Wait()
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 5 {
		t.Fatalf("the folder: %v, %v", entries, err)
	}
	to := filepath.Join(folder, "copy-0.sqlite3")
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy: %v, %v", info, err)
	}
	store, err := Open(context.Background(), to, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	rt := k.runtime(store)
	k.wantAudit(rt)
	for i := range 50 {
		pkg, err := k.dispatch(rt, fmt.Sprint("before-", i))
		if err != nil || pkg.Delivery() != toolresult.LocalReplay {
			t.Fatalf("before-%d: %v, %v", i, pkg, err)
		}
	}
	k.wantAudit(k.rt)
}

// TestBackupRefuses: nothing is overwritten, and nothing that is not whole gets
// the name.
func TestBackupRefuses(t *testing.T) {
	k := newKeeper(t, t.TempDir())
	k.must("key")
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	tests := []struct {
		name    string
		ctx     context.Context
		from    string
		prepare func(t *testing.T, to string)
		want    error
	}{
		{name: "exists", prepare: func(t *testing.T, to string) { write(t, to, "precious") }, want: toolruntime.ErrInvalidInput},
		{name: "a log is left", prepare: func(t *testing.T, to string) { write(t, to+"-wal", "stale") }, want: toolruntime.ErrInvalidInput},
		{name: "onto itself", prepare: func(t *testing.T, to string) {
			if err := os.Symlink(k.path, to); err != nil {
				t.Fatal(err)
			}
		}, want: toolruntime.ErrInvalidInput},
		{name: "no ledger", from: filepath.Join(t.TempDir(), "missing"), want: toolruntime.ErrInvalidInput},
		{name: "cancelled", ctx: cancelled, want: context.Canceled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			folder := t.TempDir()
			to := filepath.Join(folder, "copy.sqlite3")
			if tt.prepare != nil {
				tt.prepare(t, to)
			}
			wantRefused(t, tt.ctx, tt.from, k.path, to, tt.want)
		})
	}
	t.Run("damaged", func(t *testing.T) {
		if _, err := plain(t, k.path).Exec("UPDATE operations SET approver_id = 'mallory'"); err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(t.TempDir(), "copy.sqlite3")
		wantRefused(t, nil, "", k.path, to, toolruntime.ErrContract)
		if r, _ := Backup(context.Background(), k.path, to, nil); r == nil || r.Passed {
			t.Errorf("the audit of the copy: %+v", r)
		}
	})
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// wantRefused also wants to's folder to be as it was.
func wantRefused(t *testing.T, ctx context.Context, from, ledger, to string, want error) {
	t.Helper()
	if ctx == nil {
		ctx = context.Background()
	}
	if from == "" {
		from = ledger
	}
	before, _ := os.ReadDir(filepath.Dir(to))
	if _, err := Backup(ctx, from, to, nil); !errors.Is(err, want) {
		t.Errorf("%v, want an error that matches %v", err, want)
	}
	after, err := os.ReadDir(filepath.Dir(to))
	if err != nil || len(after) != len(before) {
		t.Errorf("the folder before: %v, after: %v, %v", before, after, err)
	}
}
