package payments_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/examples/payments"
)

// The child of a crash test is this test binary, serving the file of childEnv.
const childEnv = "PAYMENTS_TEST_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		if err := payments.ListenAndServe(ctx, path, "127.0.0.1:0", payments.Switches{}, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type process struct {
	cmd  *exec.Cmd
	base string
	http *http.Client
}

func start(t *testing.T, path string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childEnv+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	line := bufio.NewScanner(out)
	if !line.Scan() {
		t.Fatal("the child has died")
	}
	base, ok := strings.CutPrefix(line.Text(), "listening on ")
	if !ok {
		t.Fatalf("the child says %q", line.Text())
	}
	return &process{cmd, base, &http.Client{Transport: &http.Transport{}}}
}

// post pays, and returns the receipt if there was an answer.
func (p *process) post(key string) (payments.Receipt, bool) {
	// Built by hand, so that the transport does not send it again by itself.
	req, err := http.NewRequest("POST", p.base+"/payments", strings.NewReader(fiveEuro))
	if err != nil {
		return payments.Receipt{}, false
	}
	req.Header["idempotency-key"] = []string{key}
	return p.receipt(p.http.Do(req))
}

func (p *process) get(key string) (payments.Receipt, bool) {
	return p.receipt(p.http.Get(p.base + "/payments/" + key))
}

func (p *process) receipt(resp *http.Response, err error) (payments.Receipt, bool) {
	if err != nil {
		return payments.Receipt{}, false
	}
	defer resp.Body.Close()
	var r payments.Receipt
	if resp.StatusCode > 201 || json.NewDecoder(resp.Body).Decode(&r) != nil {
		return payments.Receipt{}, false
	}
	return r, true
}

func (p *process) stats(t *testing.T) payments.Stats {
	t.Helper()
	resp, err := p.http.Get(p.base + "/stats")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var s payments.Stats
	mustRead(t, resp.Body, &s)
	return s
}

// TestKill kills the server with SIGKILL while four clients pay, again and
// again on one file. What was answered is there, and nothing is there twice.
func TestKill(t *testing.T) {
	const rounds, payers = 12, 4
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	path := filepath.Join(t.TempDir(), "payments.sqlite3")
	answered := map[string]payments.Receipt{}
	open := map[string]bool{} // keys without an answer
	for round := range rounds {
		p := start(t, path)
		checkAfterKill(t, p, answered, open)
		var wg sync.WaitGroup
		var mu sync.Mutex
		var count atomic.Int64
		killAt := 1 + random.Int64N(40)
		for payer := range payers {
			wg.Go(func() {
				for i := 0; ; i++ {
					key := fmt.Sprintf("r%d-p%d-%d", round, payer, i)
					r, ok := p.post(key)
					mu.Lock()
					if !ok {
						open[key] = true
						mu.Unlock()
						return
					}
					answered[key] = r
					mu.Unlock()
					if count.Add(1) == killAt {
						p.cmd.Process.Kill() // the others are in the middle of theirs
					}
				}
			})
		}
		wg.Wait()
		p.cmd.Wait()
	}
	p := start(t, path)
	checkAfterKill(t, p, answered, open)
	t.Logf("%d payments answered", len(answered))
}

// checkAfterKill asks for all that was answered, and pays what was not.
func checkAfterKill(t *testing.T, p *process, answered map[string]payments.Receipt, open map[string]bool) {
	t.Helper()
	before := p.stats(t)
	happened := 0
	for key := range open {
		happened += before.Effects[key]
		known, found := p.get(key)
		r, ok := p.post(key)
		if !ok || found != (before.Effects[key] == 1) || found && known != r {
			t.Errorf("%s: found %v %v, paid %v %v, effects %d", key, known, found, r, ok, before.Effects[key])
		}
		answered[key] = r
	}
	t.Logf("%d of %d interrupted payments had happened", happened, len(open))
	clear(open)
	want := map[string]int{}
	for key, r := range answered {
		want[key] = 1
		if got, _ := p.get(key); got != r {
			t.Errorf("%s: answered %v, kept %v", key, r, got)
		}
	}
	if diff := cmp.Diff(want, p.stats(t).Effects); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
}

// TestTerm ends the process as an operator does, with a payment under way.
func TestTerm(t *testing.T) {
	path := filepath.Join(t.TempDir(), "payments.sqlite3")
	p := start(t, path)
	resp, err := p.http.Post(p.base+"/switches", "application/json", strings.NewReader(`{"faults":{"slow_body":{"count":1,"delay_ms":3600000}}}`))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	req, err := http.NewRequest("POST", p.base+"/payments", strings.NewReader(fiveEuro))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", "k1")
	resp, err = p.http.Do(req) // returns with the headers, before the body
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if r, ok := p.receipt(resp, nil); !ok || r.PaymentID != "pay_1" {
		t.Errorf("the payment under way: %v %v", r, ok)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("exit: %v", err)
	}
	if _, err := os.Stat(path + "-wal"); !os.IsNotExist(err) {
		t.Errorf("the file was not closed: %v", err)
	}
}
