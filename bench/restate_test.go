package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os/exec"
	"testing"
	"time"
)

// TestRestate makes calls on a real server, if one is installed.
func TestRestate(t *testing.T) {
	binary, err := exec.LookPath("restate-server")
	if err != nil {
		t.Skip("restate-server is not installed")
	}
	for _, s := range restateScenarios(binary) {
		if s.callers > 1 {
			continue
		}
		b, err := newBed(t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		m, err := measure(context.Background(), s, b, 50*time.Millisecond)
		if _, known := m.Extra[serverMicros]; err != nil || m.Operations == 0 || !known {
			t.Error(m, err)
		}
	}
}

// TestRestateMissing: without the server and without npm there is an error that says
// so, and nothing hangs.
func TestRestateMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if binary, _, err := findRestate(context.Background(), t.TempDir()); err == nil {
		t.Error(binary)
	}
}

// TestRestateAnswers: what is not the result is an error.
func TestRestateAnswers(t *testing.T) {
	b, err := newBed(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	listener, err := net.Listen("unix", b.file("s"))
	if err != nil {
		t.Fatal(err)
	}
	status, answer := http.StatusOK, refundResult
	var key, body string
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		key, body = r.Header.Get("Idempotency-Key"), string(text)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	})}
	go func() { _ = s.Serve(listener) }()
	b.later(s.Close)
	p := &restatePeer{ingress: overSocket(b, b.file("s"))}
	if err := p.draft("k"); err != nil || key != "k" || body != refundArguments {
		t.Error(err, key, body)
	}
	answer = "{}"
	if err := p.draft("k"); err == nil {
		t.Error("another result was accepted")
	}
	status, answer = http.StatusInternalServerError, refundResult
	if err := p.draft("k"); err == nil {
		t.Error("an error was accepted")
	}
}
