package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/pgtest"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/pgstore"
)

// A counter is a downstream with a memory of its own: it has an effect once per
// key, as an idempotent downstream does, and counts effects and calls.
type counter struct {
	net.Listener
	mu      sync.Mutex
	effects map[string]int // the receipt's number by key
	calls   int
}

func newCounter(t *testing.T) *counter {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	c := &counter{Listener: l, effects: map[string]int{}}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go c.serve(conn)
		}
	}()
	return c
}

func (c *counter) serve(conn net.Conn) {
	defer conn.Close()
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		c.mu.Lock()
		c.calls++
		n, ok := c.effects[lines.Text()]
		if !ok {
			n = len(c.effects) + 1
			c.effects[lines.Text()] = n
		}
		c.mu.Unlock()
		time.Sleep(rand.N(20 * time.Millisecond)) // the way back, on which a caller can die
		fmt.Fprintln(conn, n)
	}
}

// callCounter is the tool's side of a counter.
func callCounter(ctx context.Context, address, key string) (int, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	fmt.Fprintln(conn, key)
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(line))
}

// A crew is what a child process of the crash test is told.
type crew struct {
	URL, Counter, Progress string
	Number, Of, Operations int
}

const crewVariable = "TOOLRUNTIME_CRASH_CREW"

// TestPostgresCrashChild is the child: it carries out its share of the operations, each
// until it has succeeded, and does not care how often it is killed.
func TestPostgresCrashChild(t *testing.T) {
	text := os.Getenv(crewVariable)
	if text == "" {
		t.Skip("runs in the child processes of TestPostgresCrashes")
	}
	var c crew
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	rt := counterRuntime(t, c.URL, c.Counter)
	from := c.Number
	if done, err := os.ReadFile(c.Progress); err == nil {
		if from, err = strconv.Atoi(string(done)); err != nil {
			t.Fatal(err)
		}
	}
	for i := from; i < c.Operations; i += c.Of {
		finish(t, rt, fmt.Sprintf("key-%d", i), fmt.Sprintf("worker-%d", os.Getpid()))
		// By a rename: a child that was killed inside the write would leave an empty
		// file, and its share undone.
		err := os.WriteFile(c.Progress+".new", []byte(strconv.Itoa(i+c.Of)), 0o600)
		if err == nil {
			err = os.Rename(c.Progress+".new", c.Progress)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func counterRuntime(t *testing.T, url, address string) *toolruntime.Runtime {
	t.Helper()
	store, err := pgstore.Open(context.Background(), url, &pgstore.Options{MaxConns: 4, RetryTimeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	rt, err := toolruntime.New(store, &toolruntime.Options{
		Authorizer: func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil },
		Approvers:  func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil },
	}, noteTool("count", toolruntime.Idempotent, func(ctx context.Context, e toolruntime.Effect, a noteArgs) (toolruntime.Receipt[note], error) {
		n, err := callCounter(ctx, address, e.Identity)
		r := noteReceipt(e, strconv.Itoa(n))
		return r, err
	}))
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

// finish drives one operation to its end as a service does: again after every
// error, and by its status_ref once it has one.
func finish(t *testing.T, rt *toolruntime.Runtime, key, worker string) {
	t.Helper()
	ctx := context.Background()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		p, c := user("user-1"), callOf("count", key, `{"text":"x"}`)
		b, err := rt.Bind(p, c)
		if err != nil {
			t.Fatal(err)
		}
		pkg, err := rt.Dispatch(ctx, p, c, &toolruntime.DispatchOptions{WorkerID: worker, Lease: time.Second,
			Approvals: []toolresult.Approval{toolresult.NewApproval(b, "approval-"+key, "somebody", time.Now().Add(time.Minute))}})
		switch {
		case err != nil:
			t.Logf("%s: dispatch: %v", key, err)
		case pkg.Code() == toolresult.OK:
			return
		case pkg.Code() == toolresult.OutcomeUnknown:
			if _, err := rt.Process(ctx, pkg.StatusRef(), worker, &toolruntime.ProcessOptions{Lease: 1 * time.Second}); err != nil {
				t.Logf("%s: process: %v", key, err)
			}
		default:
			t.Fatalf("%s: %s", key, pkg.Code())
		}
	}
	t.Fatalf("%s does not end", key)
}

// long reports whether the crash tests run at full length.
func long() bool { return os.Getenv("TOOLRUNTIME_TORTURE") != "" }

// TestPostgresCrashes: many processes on one server; they are killed at random,
// and the server is restarted without a shutdown, twice. Every operation ends, no
// effect happens twice, and the audit is clean.
func TestPostgresCrashes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	processes, operations := 4, 400
	if long() {
		processes, operations = 8, 2000
	}
	cluster, err := pgtest.NewCluster()
	if err != nil {
		pgtest.Missing(t, err)
	}
	defer cluster.Remove()
	if _, err := pgstore.Migrate(context.Background(), cluster.URL(), nil); err != nil {
		t.Fatal(err)
	}
	downstream := newCounter(t)
	var all sync.WaitGroup
	victims := make(chan *exec.Cmd, processes)
	for i := range processes {
		text, err := json.Marshal(crew{cluster.URL(), downstream.Addr().String(), fmt.Sprintf("%s/%d", t.TempDir(), i), i, processes, operations})
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() { keepAlive(t, string(text), victims) })
	}
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	restarts, kills, seen := 0, 0, 0
	began := time.Now()
	for running := true; running; {
		select {
		case <-ended:
			running = false
		case <-time.After(time.Duration(20+rand.IntN(100)) * time.Millisecond):
			downstream.mu.Lock()
			done := len(downstream.effects)
			downstream.mu.Unlock()
			// Only after some progress: children that are killed faster than they
			// start would never end.
			if done > seen {
				seen = done
				kills += kill(victims)
			}
			if restarts < 2 && done > (restarts+1)*operations/3 {
				restarts++
				cluster.Kill()
				if err := cluster.Start(); err != nil {
					t.Error(err)
				}
			}
		}
	}
	t.Logf("%d operations, %d processes: %d killed, %d restarts of the server, %d effects by %d calls, %v",
		operations, processes, kills, restarts, len(downstream.effects), downstream.calls, time.Since(began).Round(time.Millisecond))
	if restarts != 2 || len(downstream.effects) != operations {
		t.Errorf("%d restarts, %d effects", restarts, len(downstream.effects))
	}
	expectFinished(t, cluster.URL(), downstream, operations)
}

// kill kills one of the children, and returns how many it has killed.
func kill(victims <-chan *exec.Cmd) int {
	select {
	case victim := <-victims:
		if victim.Process.Kill() == nil {
			return 1
		}
	default:
	}
	return 0
}

// keepAlive starts a child again until it has done its share.
func keepAlive(t *testing.T, text string, victims chan<- *exec.Cmd) {
	for range 3000 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestPostgresCrashChild$", "-test.v")
		cmd.Env = append(os.Environ(), crewVariable+"="+text)
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Error(err)
			return
		}
		victims <- cmd
		err := cmd.Wait()
		if err == nil {
			return
		}
		if code := cmd.ProcessState.ExitCode(); code != -1 { // -1: killed
			t.Errorf("a child failed: %v\n%s", err, out.String())
			return
		}
	}
	t.Error("a child was killed 3000 times")
}

func expectFinished(t *testing.T, url string, downstream *counter, operations int) {
	t.Helper()
	rt := counterRuntime(t, url, downstream.Addr().String())
	r, err := rt.Audit(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := toolruntime.Counts{CallBindings: int64(operations), Operations: int64(operations), Outbox: int64(operations),
		DownstreamReceipts: int64(operations), LocalReceipts: int64(operations)}
	if !r.Passed || r.Counts != want {
		t.Errorf("audit %+v", r)
	}
	var distinct int
	if err := pgtest.Open(t, url).QueryRow("SELECT COUNT(DISTINCT result_json) FROM local_receipts").Scan(&distinct); err != nil || distinct != operations {
		t.Errorf("%d effects are in the receipts, %v", distinct, err)
	}
}
