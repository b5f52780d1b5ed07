package main

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/examples/payments"
)

// TestRun submits payments twice to a worker, which then ends by SIGTERM.
func TestRun(t *testing.T) {
	bank, err := payments.Open(filepath.Join(t.TempDir(), "bank.sqlite3"))
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(bank)
	t.Cleanup(func() {
		h.Close()
		if err := bank.Close(); err != nil {
			t.Error(err)
		}
	})
	o := options{db: filepath.Join(t.TempDir(), "ledger.sqlite3"), bank: h.URL, lease: 10 * time.Second, listen: "127.0.0.1:0"}
	worked := make(chan error, 1)
	go func(o options) { worked <- run(o, os.Stdout) }(o)
	o.submit, o.key = 6, "test"
	for range 2 {
		var out bytes.Buffer
		if err := run(o, &out); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "OK  pay_"); n != o.submit {
			t.Errorf("%d payments, want %d:\n%s", n, o.submit, out.String())
		}
	}
	effects, err := bank.Effects(t.Context())
	if err != nil || len(effects) != o.submit {
		t.Errorf("effects: %v, %v", effects, err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-worked; err != nil {
		t.Errorf("work: %v", err)
	}
}
