package sqlitestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// A keeper is a ledger with one idempotent tool that counts its effects.
type keeper struct {
	t       *testing.T
	path    string
	engine  *sqliteEngine
	rt      *toolruntime.Runtime
	now     atomic.Int64
	mu      sync.Mutex
	effects map[string]int
}

type keepArgs struct {
	Text string `json:"text" schema:"maxLength=9000"`
}

func newKeeper(t *testing.T, folder string) *keeper {
	t.Helper()
	k := &keeper{t: t, path: filepath.Join(folder, "ledger.sqlite3"), effects: map[string]int{}}
	k.now.Store(1_784_419_200)
	var err error
	if k.engine, err = openEngine(context.Background(), k.path, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.engine.Close() })
	k.rt = k.runtime(newStore(k.engine))
	return k
}

func (k *keeper) runtime(store *toolruntime.Store) *toolruntime.Runtime {
	k.t.Helper()
	rt, err := toolruntime.New(store, &toolruntime.Options{
		Authorizer: func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil },
		Approvers:  func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil },
		Now:        func() time.Time { return time.Unix(k.now.Load(), 0) },
	}, toolruntime.Tool[keepArgs, keepArgs]{
		Name: "keep", Effect: toolruntime.Idempotent, Resource: func(keepArgs) string { return "it" },
		Run: func(_ context.Context, e toolruntime.Effect, a keepArgs) (toolruntime.Receipt[keepArgs], error) {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.effects[e.IdempotencyKey] = 1 // an idempotent downstream
			return toolruntime.Receipt[keepArgs]{ID: "receipt-" + e.IdempotencyKey, RequestID: "request-" + e.IdempotencyKey, Data: a}, nil
		},
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return rt
}

var keepOwner = toolresult.Principal{TenantID: "tenant", SubjectID: "subject"}

func keepCall(key string) toolresult.Call {
	return toolresult.NewCall(toolresult.Proposal{Name: "keep", Arguments: fmt.Appendf(nil, `{"text":"%04000d"}`, 1)},
		toolresult.ExecutionContext{Provider: "openai", APIFamily: "responses", ResponseID: "r-" + key, CallID: "c-" + key,
			OperationID: "o-" + key, IdempotencyKey: key, AdapterRevision: "openai-responses-v1"})
}

func (k *keeper) dispatch(rt *toolruntime.Runtime, key string) (*toolresult.Package, error) {
	b, err := rt.Bind(keepOwner, keepCall(key))
	if err != nil {
		return nil, err
	}
	return rt.Dispatch(context.Background(), keepOwner, keepCall(key), &toolruntime.DispatchOptions{
		Lease:     time.Second, // for so long a receipt is tried to be stored
		Approvals: []toolresult.Approval{toolresult.NewApproval(b, "approval", "reviewer", time.Unix(contract.MaxTime, 0))}})
}

func (k *keeper) must(key string) {
	k.t.Helper()
	if pkg, err := k.dispatch(k.rt, key); err != nil || pkg.Code() != toolresult.OK {
		k.t.Fatal(pkg, err)
	}
}

func (k *keeper) exec(statement string) {
	k.t.Helper()
	if err := k.engine.writer.exec(statement); err != nil {
		k.t.Fatal(err)
	}
}

func (k *keeper) wantAudit(rt *toolruntime.Runtime) {
	k.t.Helper()
	r, err := rt.Audit(context.Background(), nil)
	if err != nil || !r.Passed {
		k.t.Fatalf("audit: %+v, %v", r, err)
	}
}

// spoil dispatches until the ledger refuses, and returns what it has acknowledged
// and the key that it has refused.
func (k *keeper) spoil(want error) (acknowledged []string, refused string) {
	k.t.Helper()
	for i := range 10_000 {
		key := fmt.Sprint("key-", i)
		pkg, err := k.dispatch(k.rt, key)
		switch {
		case err == nil && pkg.Code() == toolresult.OK:
			acknowledged = append(acknowledged, key)
		case errors.Is(err, want) && errors.Is(err, toolruntime.ErrDatabase):
			return acknowledged, key
		default:
			k.t.Fatalf("%s: %v, %v, want an error that matches %v", key, pkg, err, want)
		}
	}
	k.t.Fatal("the ledger refuses nothing")
	return nil, ""
}

// wantKept looks, when the cause is gone, for everything that was acknowledged,
// and ends what was refused.
func (k *keeper) wantKept(acknowledged []string, refused string) {
	k.t.Helper()
	k.wantAudit(k.rt)
	for _, key := range acknowledged {
		pkg, err := k.dispatch(k.rt, key)
		if err != nil || pkg.Code() != toolresult.OK || pkg.Delivery() != toolresult.LocalReplay {
			k.t.Fatalf("%s was acknowledged: %v, %v", key, pkg, err)
		}
	}
	// The refused one was not reserved, or reserved and not finished.
	pkg, err := k.dispatch(k.rt, refused)
	if err != nil {
		k.t.Fatal(err)
	}
	if pkg.Code() == toolresult.OutcomeUnknown {
		k.now.Add(int64(toolruntime.DefaultLease / time.Second))
		if _, err := k.rt.Process(context.Background(), pkg.StatusRef(), "worker", nil); err != nil {
			k.t.Fatal(err)
		}
	}
	k.must(refused)
	k.must("afterwards")
	k.wantAudit(k.rt)
}

// TestFullDatabase: at its size limit the ledger refuses with a typed error and
// keeps what it has acknowledged.
func TestFullDatabase(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	k := newKeeper(t, t.TempDir())
	var pages int64
	if err := k.engine.writer.conn.QueryRowContext(context.Background(), "PRAGMA page_count").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	k.exec(fmt.Sprintf("PRAGMA max_page_count = %d", pages+200))
	acknowledged, refused := k.spoil(toolruntime.ErrFull)
	if len(acknowledged) < 10 {
		t.Errorf("only %d operations fitted", len(acknowledged))
	}
	k.exec("PRAGMA max_page_count = 1000000")
	k.wantKept(acknowledged, refused)
}

// TestReadOnlyDatabase: a ledger that can no longer be written says so.
func TestReadOnlyDatabase(t *testing.T) {
	k := newKeeper(t, t.TempDir())
	k.must("before")
	k.exec("PRAGMA query_only = ON")
	acknowledged, refused := k.spoil(toolruntime.ErrReadOnly)
	if len(acknowledged) != 0 {
		t.Errorf("%q were acknowledged", acknowledged)
	}
	// What is there can be read.
	if pkg, err := k.dispatch(k.rt, "before"); err != nil || pkg.Code() != toolresult.OK {
		t.Errorf("a replay: %v, %v", pkg, err)
	}
	k.exec("PRAGMA query_only = OFF")
	k.wantKept([]string{"before"}, refused)
}

// TestLogBounded: readers that always overlap, each of them short, do not make
// the write-ahead log grow without end; one that stays only delays it.
func TestLogBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	const limit = 6 << 20
	k := newKeeper(t, t.TempDir())
	k.engine.writer.log = newLogGuard(k.path, limit, DefaultBusyTimeout, nil)
	var journal int64
	if err := k.engine.writer.conn.QueryRowContext(context.Background(), "PRAGMA journal_size_limit").Scan(&journal); err != nil || journal != 64<<20 {
		t.Errorf("journal_size_limit: %d, %v", journal, err)
	}
	k.exec(fmt.Sprintf("PRAGMA journal_size_limit = %d; PRAGMA wal_autocheckpoint = 1000", limit))
	size := func() int64 {
		info, err := os.Stat(k.path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	// Some 20 MB a time.
	fill := func(name string) (largest int64) {
		for i := range 250 {
			k.must(fmt.Sprint(name, i))
			largest = max(largest, size())
		}
		return largest
	}
	stop := overlap(t, k.engine)
	short := fill("short-")
	stop()
	if short > 2*limit {
		t.Errorf("the log grew to %d bytes under short readers", short)
	}
	var long int64
	err := k.engine.Snapshot(context.Background(), func(ctx context.Context, s engine.Snapshot) error {
		if _, err := s.CountRows(ctx); err != nil {
			return err
		}
		long = fill("long-")
		return nil
	})
	t.Logf("%d bytes under short readers, %d under a long one", short, long)
	if err != nil || long < 3*limit {
		t.Errorf("under a long reader: %d bytes, %v", long, err)
	}
	if fill("after-"); size() > 2*limit {
		t.Errorf("the log stays at %d bytes after the long reader has left", size())
	}
	k.wantAudit(k.rt)
	if err := k.engine.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(k.path + "-wal"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the log after closing: %v", err)
	}
}

// TestLogPatience: where the log is much too large, readers are waited for who stay
// longer than a writer would wait.
func TestLogPatience(t *testing.T) {
	k := newKeeper(t, t.TempDir())
	k.must("one")
	g := k.engine.writer.log
	err := k.engine.Snapshot(context.Background(), func(ctx context.Context, s engine.Snapshot) error {
		if _, err := s.CountRows(ctx); err != nil {
			return err
		}
		k.must("two") // which the reader does not see
		g.next, g.patient, g.turns = 0, 1<<40, guardTurns
		<-k.engine.writer.lead
		k.engine.writer.bound()
		if g.size.Load() == 0 {
			t.Error("the log was begun anew under a reader")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	reading, leave := make(chan struct{}), make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		err := k.engine.Snapshot(context.Background(), func(ctx context.Context, s engine.Snapshot) error {
			_, err := s.CountRows(ctx)
			close(reading)
			<-leave
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-reading
	k.engine.writer.lead <- struct{}{}
	k.must("three")
	<-k.engine.writer.lead
	time.AfterFunc(4*g.brief, func() { close(leave) })
	g.next, g.patient, g.turns = 0, 0, guardTurns
	k.engine.writer.bound()
	if g.size.Load() != 0 {
		t.Errorf("%d bytes after waiting for %v", g.size.Load(), g.patience)
	}
	k.engine.writer.lead <- struct{}{}
	reader.Wait()
	k.wantAudit(k.rt)
}

// TestLogTold: a log that a reader keeps from being begun anew is the operator's to
// see, in the log and in a number, and so is its end.
func TestLogTold(t *testing.T) {
	const limit = 1 << 20
	var out bytes.Buffer
	k := newKeeper(t, t.TempDir())
	k.engine.writer.log = newLogGuard(k.path, limit, 20*time.Millisecond, slog.New(slog.NewTextHandler(&out, nil)))
	fill := func(name string) {
		for i := range 60 { // some 5 MB
			k.must(fmt.Sprint(name, i))
		}
	}
	fill("before-")
	if out.Len() != 0 {
		t.Errorf("without a reader:\n%s", &out)
	}
	err := k.engine.Snapshot(context.Background(), func(ctx context.Context, s engine.Snapshot) error {
		if _, err := s.CountRows(ctx); err != nil {
			return err
		}
		fill("under-")
		return nil
	})
	if n := strings.Count(out.String(), "level=WARN"); err != nil || n == 0 || n > 3 {
		t.Errorf("%v, told %d times:\n%s", err, n, &out)
	}
	if n := k.rt.Metrics().LogBytes; n < 3*limit {
		t.Errorf("LogBytes: %d", n)
	}
	out.Reset()
	for i := 0; i < 20 && !strings.Contains(out.String(), "level=INFO"); i++ {
		fill(fmt.Sprint("after-", i, "-"))
	}
	if n := k.rt.Metrics().LogBytes; n > 2*limit || !strings.Contains(out.String(), "begun anew") {
		t.Errorf("LogBytes: %d, told:\n%s", n, &out)
	}
	if strings.Contains(out.String(), k.path) {
		t.Errorf("it names the path:\n%s", &out)
	}
}

// overlap reads without a gap until stop is called: a snapshot ends only after
// the next one has begun.
func overlap(t *testing.T, e *sqliteEngine) (stop func()) {
	done := make(chan struct{})
	var all sync.WaitGroup
	read := func(begun chan<- struct{}, leave <-chan struct{}) {
		opened := sync.OnceFunc(func() { close(begun) })
		defer opened()
		err := e.Snapshot(context.Background(), func(ctx context.Context, s engine.Snapshot) error {
			_, err := s.CountRows(ctx)
			opened()
			<-leave
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	all.Go(func() {
		previous := make(chan struct{})
		for {
			begun, leave := make(chan struct{}), make(chan struct{})
			all.Go(func() { read(begun, leave) })
			<-begun
			close(previous)
			previous = leave
			select {
			case <-done:
				close(leave)
				return
			default:
			}
		}
	})
	return func() { close(done); all.Wait() }
}
