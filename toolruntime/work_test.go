package toolruntime_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

// A shop is a runtime over a fresh ledger whose one tool does what the test
// says, and a worker that carries it out.
type shop struct {
	t    *testing.T
	path string
	*toolruntime.Runtime

	concurrent int                               // the tools' MaxConcurrent
	perSecond  float64                           // the tools' MaxPerSecond
	wrap       func(engine.Engine) engine.Engine // or nil

	mu   sync.Mutex
	now  int64
	runs map[string]int // of the handler, by idempotency key
}

type handler func(ctx context.Context, e toolruntime.Effect, run int) (toolruntime.Receipt[payment], error)

func newShop(t *testing.T, kind toolruntime.EffectKind, handle handler, names ...string) *shop {
	t.Helper()
	s := &shop{t: t, path: filepath.Join(t.TempDir(), "ledger.sqlite3"), now: 1_784_419_200, runs: map[string]int{}}
	s.Runtime = s.open(kind, handle, names...)
	return s
}

func (s *shop) open(kind toolruntime.EffectKind, handle handler, names ...string) *toolruntime.Runtime {
	s.t.Helper()
	store, err := sqlitestore.Open(context.Background(), s.path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { store.Close() })
	if s.wrap != nil {
		toolruntime.TestingOnlyWrapEngine(store, s.wrap)
	}
	allow := func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil }
	var tools []toolruntime.Registration
	for _, name := range append(names, "pay") {
		tool := toolruntime.Tool[payArgs, payment]{
			Name: name, Effect: kind, Resource: func(payArgs) string { return "account" },
			MaxConcurrent: s.concurrent, MaxPerSecond: s.perSecond,
			Run: func(ctx context.Context, e toolruntime.Effect, _ payArgs) (toolruntime.Receipt[payment], error) {
				return handle(ctx, e, s.count(e.IdempotencyKey))
			},
		}
		if kind == toolruntime.Queryable {
			tool.Find = func(context.Context, toolruntime.Effect, payArgs) (toolruntime.Receipt[payment], bool, error) {
				return toolruntime.Receipt[payment]{}, false, nil
			}
		}
		tools = append(tools, tool)
	}
	rt, err := toolruntime.New(store, &toolruntime.Options{Authorizer: allow, Approvers: allow,
		Now: func() time.Time { return time.Unix(s.time(), 0) }}, tools...)
	if err != nil {
		s.t.Fatal(err)
	}
	return rt
}

func (s *shop) count(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[key]++
	return s.runs[key]
}

func (s *shop) ran(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[key]
}

func (s *shop) time() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *shop) pass(seconds int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now += seconds
}

func shopCall(tool, key string) toolresult.Call {
	return toolresult.NewCall(toolresult.Proposal{Name: tool, Arguments: []byte(`{"amount":5}`)},
		toolresult.ExecutionContext{Provider: "openai", APIFamily: "responses", ResponseID: "r-" + key, CallID: "c-" + key,
			OperationID: "o-" + key, IdempotencyKey: key, AdapterRevision: "openai-responses-v1"})
}

// submit hands a call to the workers and returns its status_ref.
func (s *shop) submit(tool, key string) string {
	s.t.Helper()
	c := shopCall(tool, key)
	b, err := s.Bind(payer, c)
	if err != nil {
		s.t.Fatal(err)
	}
	pkg, err := s.Submit(context.Background(), payer, c, toolresult.NewApproval(b, "a", "reviewer", time.Unix(s.time()+60, 0)))
	if err != nil || pkg.Code() != toolresult.Accepted || pkg.StatusRef() != b.StatusRef() {
		s.t.Fatalf("submit: %v, %v", pkg, err)
	}
	return pkg.StatusRef()
}

// answer repeats a call, which runs nothing.
func (s *shop) answer(tool, key string) *toolresult.Package {
	s.t.Helper()
	pkg, err := s.Dispatch(context.Background(), payer, shopCall(tool, key), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return pkg
}

// work runs a worker until the test ends or stop is called.
func (s *shop) work(o toolruntime.WorkOptions) (stop func()) {
	s.t.Helper()
	o.Poll = time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Work(ctx, &o) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				s.t.Errorf("work: %v", err)
			}
		})
	}
	s.t.Cleanup(stop)
	return stop
}

func (s *shop) wait(ref string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := s.Wait(ctx, ref); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) audit() {
	s.t.Helper()
	r, err := s.Audit(context.Background(), nil)
	if err != nil || !r.Passed {
		s.t.Errorf("audit: %+v, %v", r, err)
	}
}

func paid(e toolruntime.Effect) (toolruntime.Receipt[payment], error) {
	return toolruntime.Receipt[payment]{ID: "receipt-" + e.Identity, RequestID: "request-" + e.Identity, Data: payment{5}}, nil
}

func TestWork(t *testing.T) {
	s := newShop(t, toolruntime.Once, func(_ context.Context, e toolruntime.Effect, _ int) (toolruntime.Receipt[payment], error) {
		return paid(e)
	})
	s.work(toolruntime.WorkOptions{})
	var refs []string
	for i := range 50 {
		refs = append(refs, s.submit("pay", fmt.Sprint(i)))
	}
	for i, ref := range refs {
		s.wait(ref)
		if pkg := s.answer("pay", fmt.Sprint(i)); pkg.Code() != toolresult.OK || pkg.Delivery() != toolresult.LocalReplay {
			t.Errorf("%d: %s, %s", i, pkg.Code(), pkg.Delivery())
		}
		if n := s.ran(fmt.Sprint(i)); n != 1 {
			t.Errorf("%d ran %d times", i, n)
		}
	}
	s.audit()
}

// TestWorkNotDone: what a handler is certain of decides whether it runs again,
// when, and with which answer it ends.
func TestWorkNotDone(t *testing.T) {
	limited := errors.New("429")
	tests := []struct {
		name   string
		handle handler
		pass   int64 // seconds, once the first attempt is over
		runs   int
		code   toolresult.Code
		from   toolresult.Delivery
	}{
		{"retry later", func(_ context.Context, e toolruntime.Effect, run int) (toolruntime.Receipt[payment], error) {
			if run == 1 {
				return toolruntime.Receipt[payment]{}, toolruntime.RetryLater(0, limited)
			}
			return paid(e)
		}, 1, 2, toolresult.OK, toolresult.LocalReplay},
		{"retry after", func(_ context.Context, e toolruntime.Effect, run int) (toolruntime.Receipt[payment], error) {
			if run == 1 {
				return toolruntime.Receipt[payment]{}, toolruntime.RetryLater(time.Hour, limited)
			}
			return paid(e)
		}, 3600, 2, toolresult.OK, toolresult.LocalReplay},
		{"give up", func(context.Context, toolruntime.Effect, int) (toolruntime.Receipt[payment], error) {
			return toolruntime.Receipt[payment]{}, toolruntime.GiveUp(limited)
		}, 0, 1, toolresult.ToolError, toolresult.LocalReplay},
		{"unknown", func(context.Context, toolruntime.Effect, int) (toolruntime.Receipt[payment], error) {
			return toolruntime.Receipt[payment]{}, limited
		}, 0, 1, toolresult.OutcomeUnknown, toolresult.Fresh},
		{"panic", func(context.Context, toolruntime.Effect, int) (toolruntime.Receipt[payment], error) {
			panic("at the disco")
		}, 0, 1, toolresult.OutcomeUnknown, toolresult.Fresh},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			first := make(chan struct{}, 10)
			s := newShop(t, toolruntime.Once, func(ctx context.Context, e toolruntime.Effect, run int) (toolruntime.Receipt[payment], error) {
				defer func() { first <- struct{}{} }()
				return tt.handle(ctx, e, run)
			})
			stop := s.work(toolruntime.WorkOptions{MaxAge: 48 * time.Hour})
			ref := s.submit("pay", "k")
			<-first
			stop() // the first attempt is recorded
			if tt.pass > 1 {
				s.pass(tt.pass - 1)
				again := s.work(toolruntime.WorkOptions{})
				s.submit("pay", "other")
				<-first
				again()
				if s.ran("k") != 1 {
					t.Error("it ran before its time")
				}
			}
			s.pass(1)
			s.work(toolruntime.WorkOptions{})
			s.wait(ref)
			pkg := s.answer("pay", "k")
			type result struct {
				Runs     int
				Code     toolresult.Code
				Delivery toolresult.Delivery
			}
			if diff := cmp.Diff(result{tt.runs, tt.code, tt.from}, result{s.ran("k"), pkg.Code(), pkg.Delivery()}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			s.audit()
		})
	}
}

// TestWorkGivesUp: what is tried too often waits for a person.
func TestWorkGivesUp(t *testing.T) {
	s := newShop(t, toolruntime.Idempotent, func(context.Context, toolruntime.Effect, int) (toolruntime.Receipt[payment], error) {
		return toolruntime.Receipt[payment]{}, toolruntime.RetryLater(0, errors.New("not now"))
	})
	s.work(toolruntime.WorkOptions{MaxAttempts: 3, MaxAge: 1000 * time.Hour})
	ref := s.submit("pay", "k")
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Wait(ctx, ref) }()
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for waiting := true; waiting; {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			waiting = false
		case <-tick.C:
			s.pass(300)
		}
	}
	if n := s.ran("k"); n != 3 {
		t.Errorf("ran %d times", n)
	}
	if pkg := s.answer("pay", "k"); pkg.Code() != toolresult.ToolError {
		t.Errorf("%s", pkg.Code())
	}
	s.audit()
}

// TestWorkRenews: a handler that takes longer than its lease keeps it, and runs
// once, although another worker is waiting for it.
func TestWorkRenews(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	hold := make(chan struct{})
	s := newShop(t, toolruntime.Idempotent, func(_ context.Context, e toolruntime.Effect, _ int) (toolruntime.Receipt[payment], error) {
		<-hold
		return paid(e)
	})
	stopClock := s.realTime()
	defer stopClock()
	s.work(toolruntime.WorkOptions{Lease: time.Second, WorkerID: "first"})
	s.work(toolruntime.WorkOptions{Lease: time.Second, WorkerID: "second"})
	ref := s.submit("pay", "k")
	timer := time.AfterFunc(5*time.Second, func() { close(hold) })
	defer timer.Stop()
	s.wait(ref)
	if n := s.ran("k"); n != 1 {
		t.Errorf("ran %d times", n)
	}
	s.audit()
}

// realTime lets the shop's clock follow the real one.
func (s *shop) realTime() func() {
	tick, stop := time.NewTicker(100*time.Millisecond), make(chan struct{})
	began, at := time.Now(), s.time()
	go func() {
		for {
			select {
			case <-tick.C:
				s.mu.Lock()
				s.now = at + int64(time.Since(began).Seconds())
				s.mu.Unlock()
			case <-stop:
				return
			}
		}
	}()
	return func() { tick.Stop(); close(stop) }
}

// TestWorkLosesLease: a worker that was frozen hears that its lease is lost, its
// handler's context ends, and what the handler says then changes nothing.
func TestWorkLosesLease(t *testing.T) {
	entered, causes := make(chan struct{}, 1), make(chan error, 1)
	s := newShop(t, toolruntime.Idempotent, func(ctx context.Context, e toolruntime.Effect, _ int) (toolruntime.Receipt[payment], error) {
		entered <- struct{}{}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return paid(e)
	})
	stop := s.work(toolruntime.WorkOptions{Lease: time.Second})
	ref := s.submit("pay", "k")
	<-entered
	s.pass(2)
	hold(t, s.Runtime, ref, "thief", time.Hour)
	if cause := <-causes; !errors.Is(cause, toolruntime.ErrLeaseLost) {
		t.Errorf("the handler's context ended because of %v", cause)
	}
	stop()
	counts, err := s.Counts(context.Background())
	if err != nil || counts.LocalReceipts != 0 || counts.DownstreamReceipts != 0 {
		t.Errorf("%+v, %v", counts, err)
	}
	s.audit()
}

// TestWorkDrains: handlers may finish; who does not is interrupted, and the
// attempt does not count.
func TestWorkDrains(t *testing.T) {
	entered := make(chan struct{}, 1)
	s := newShop(t, toolruntime.Idempotent, func(ctx context.Context, e toolruntime.Effect, run int) (toolruntime.Receipt[payment], error) {
		if run == 1 {
			entered <- struct{}{}
			<-ctx.Done()
			return toolruntime.Receipt[payment]{}, ctx.Err()
		}
		return paid(e)
	})
	stop := s.work(toolruntime.WorkOptions{Drain: 10 * time.Millisecond})
	ref := s.submit("pay", "k")
	<-entered
	stop()
	s.work(toolruntime.WorkOptions{MaxAttempts: 1})
	s.wait(ref)
	if pkg := s.answer("pay", "k"); pkg.Code() != toolresult.OK {
		t.Errorf("%s", pkg.Code())
	}
	s.audit()
}
