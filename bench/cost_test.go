package main

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/pgtest"
)

func TestParseStat(t *testing.T) {
	got, err := parseStat([]byte("7 (a) b (c) S 3 7 7 0 -1 4194560 1 2 3 4 11 22 33 44 20 0 1 0\n"))
	want := stat{parent: 3, used: 330 * time.Millisecond, children: 770 * time.Millisecond}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(stat{})); err != nil || diff != "" {
		t.Error(err, diff)
	}
	for _, bad := range []string{"", "7 (a) S 3", "7 (a) S x 7 7 0 -1 4194560 1 2 3 4 11 22 33 44 20"} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

// TestWatch has a server work, complain and end a process, and this process not work
// at all: the watch must tell whose time it was, and lose none of a process that
// has ended.
func TestWatch(t *testing.T) {
	ctx := context.Background()
	s, _, err := startServer(ctx)
	if err != nil {
		pgtest.Missing(t, err)
	}
	defer s.stop()
	if s.postmaster == nil {
		t.Skip("/proc does not show the server")
	}
	s.admin.SetMaxIdleConns(0) // every statement has a process of its own
	w := watch{server: s.postmaster}
	if extra, err := w.per(1); extra != nil || err != nil {
		t.Error(extra, err)
	}
	const operations = 4
	for range operations {
		w.start()
		var pid, n int
		if err := s.admin.QueryRowContext(ctx, "SELECT pg_backend_pid(), count(md5(i::text)) FROM generate_series(1, 300000) i").Scan(&pid, &n); err != nil {
			t.Fatal(err)
		}
		for alive := true; alive; { // it is told to end, and does so when it can
			if _, err := s.admin.ExecContext(ctx, "CHECKPOINT"); err != nil {
				t.Fatal(err)
			}
			_, err := processStat(pid)
			alive = err == nil
		}
		if _, err := s.admin.ExecContext(ctx, "SELECT nothing"); err == nil {
			t.Fatal("no error")
		}
		w.stop()
		if _, err := s.admin.ExecContext(ctx, "SELECT nothing"); err == nil { // nobody watches
			t.Fatal("no error")
		}
	}
	extra, err := w.per(operations)
	if err != nil {
		t.Fatal(err)
	}
	if extra[logLines] != 2000 { // the error and its statement
		t.Errorf("%v lines in the log for each 1,000", extra[logLines])
	}
	if extra[serverMicros] < 5000 || extra[ownMicros] > extra[serverMicros]/2 {
		t.Errorf("the server took %v µs and this process %v", extra[serverMicros], extra[ownMicros])
	}
}
