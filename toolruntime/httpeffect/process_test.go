package httpeffect_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/httpeffect"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

// The child is this test binary, as a downstream that has its effects in the file
// of childEnv.
const childEnv = "HTTPEFFECT_TEST_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		downstream(path)
	}
	os.Exit(m.Run())
}

// downstream carries out every request, and then says over HTTP/2 that it never
// looked at it. The third it does not survive.
func downstream(path string) {
	effects, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var requests, whole atomic.Int64
	server := startFrames(func(conn net.Conn) {
		frames(conn, &requests, 0, func(w io.Writer, stream uint32, ended bool) bool {
			if !ended {
				return false
			}
			effects.WriteString("paid\n")
			switch whole.Add(1) {
			case 1:
				return goAway(0, func(uint32) uint32 { return 0 }, true)(w, stream, true)
			case 2:
				return reset(7, false)(w, stream, true)
			}
			if self, err := os.FindProcess(os.Getpid()); err == nil {
				self.Kill()
			}
			select {}
		})
	})
	fmt.Println(server.URL)
	select {}
}

// TestOnceBetweenProcesses: a tool of the kind once and a downstream in a process
// of its own, which denies what it has done and dies. Each call has one effect in
// its file, and waits for a person; the one that finds nobody has none, and waits
// for its time.
func TestOnceBetweenProcesses(t *testing.T) {
	books := filepath.Join(t.TempDir(), "effects")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(self)
	child.Env = append(os.Environ(), childEnv+"="+books)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { child.Process.Kill() })
	line := bufio.NewScanner(out)
	if !line.Scan() {
		t.Fatal("the child has died")
	}
	// Trust is not what is tested: the certificate is the child's own.
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(transport.CloseIdleConnections)
	c := clientOf(line.Text())
	c.HTTP = &http.Client{Transport: transport}
	rt := ledger(t, c)
	type fate struct {
		State   string
		Effects int
	}
	for i, want := range []fate{{"in_review", 1}, {"in_review", 2}, {"in_review", 3}, {"pending", 3}} {
		state := dispatch(t, rt, fmt.Sprint("k-", i))
		effects, err := os.ReadFile(books)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, fate{state, bytes.Count(effects, []byte("\n"))}); diff != "" {
			t.Errorf("call %d (-want +got):\n%s", i, diff)
		}
		if i == 2 {
			child.Wait() // it has killed itself
		}
	}
}

var payer = toolresult.Principal{TenantID: "acme", SubjectID: "service"}

func ledger(t *testing.T, c httpeffect.Client[order, payment]) *toolruntime.Runtime {
	t.Helper()
	store, err := sqlitestore.Open(t.Context(), filepath.Join(t.TempDir(), "tools.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	anybody := func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil }
	rt, err := toolruntime.New(store, &toolruntime.Options{Authorizer: anybody, Approvers: anybody},
		toolruntime.Tool[order, payment]{Name: "pay", Effect: toolruntime.Once, Resource: func(order) string { return "account" }, Run: c.Run})
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

// dispatch sends a call, and returns the state of its operation.
func dispatch(t *testing.T, rt *toolruntime.Runtime, key string) string {
	t.Helper()
	call := toolresult.NewCall(toolresult.Proposal{Name: "pay", Arguments: []byte(`{"Cents":500}`)},
		toolresult.ExecutionContext{Provider: "openai", APIFamily: "responses", ResponseID: "r-" + key, CallID: "c-" + key,
			OperationID: "o-" + key, IdempotencyKey: key, AdapterRevision: "openai-responses-v1"})
	b, err := rt.Bind(payer, call)
	if err != nil {
		t.Fatal(err)
	}
	approval := toolresult.NewApproval(b, "a-"+key, "reviewer", time.Now().Add(time.Minute))
	pkg, err := rt.Dispatch(t.Context(), payer, call, &toolruntime.DispatchOptions{Approvals: []toolresult.Approval{approval}})
	if err != nil || pkg.Code() != toolresult.OutcomeUnknown {
		t.Fatalf("%v, %v", pkg, err)
	}
	h, err := rt.History(t.Context(), pkg.StatusRef())
	if err != nil {
		t.Fatal(err)
	}
	return string(h.State)
}
