package toolruntimetest_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/toolruntimetest"
)

// A recorder is a test that may fail.
type recorder struct {
	testing.TB
	failures []string
	cleanups []func()
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...); panic(r) }
func (r *recorder) Cleanup(f func())                  { r.cleanups = append(r.cleanups, f) }

// failed runs what is expected to fail, and returns what it has said.
func failed(t *testing.T, do func(testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	func() {
		defer func() {
			if v := recover(); v != nil && v != r {
				panic(v)
			}
		}()
		do(r)
		for _, f := range r.cleanups {
			f()
		}
	}()
	return strings.Join(r.failures, "\n")
}

var alice = toolresult.Principal{TenantID: "acme", SubjectID: "alice"}

// open is a runtime over a store, with the refund tool in front of a bank.
func open(t *testing.T, store *toolruntime.Store, bank *toolruntimetest.Downstream, o toolruntime.Options) *toolruntime.Runtime {
	t.Helper()
	o.Authorizer = toolruntimetest.Allow
	if o.Approvers == nil {
		o.Approvers = toolruntimetest.Persons("carol", "dana")
	}
	rt, err := toolruntime.New(store, &o, refundTool(bank, toolruntime.Idempotent))
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

func refundCall(key string) toolresult.Call {
	return toolruntimetest.Call("refund", `{"order_ref":"ORDER-7"}`, key)
}

// submit leaves a call that carol has approved to a worker.
func submit(t *testing.T, rt *toolruntime.Runtime, call toolresult.Call) *toolresult.Package {
	t.Helper()
	pkg, err := rt.Submit(t.Context(), alice, call, toolruntimetest.Approve(t, rt, alice, call, "carol"))
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

// TestCheckOnce: what it is for makes a test fail, and nothing else does.
func TestCheckOnce(t *testing.T) {
	t.Run("two effects", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			// It says that it remembers keys, and does not.
			bank, good := &toolruntimetest.Downstream{Forgetful: true}, &toolruntimetest.Downstream{}
			rt := open(t, toolruntimetest.Store(t), bank, toolruntime.Options{})
			toolruntimetest.Work(t, rt, nil)
			bank.Next(toolruntimetest.AnswerLost)
			submit(t, rt, refundCall("k"))
			if pkg, err := rt.Await(t.Context(), alice, refundCall("k")); err != nil || pkg.Code() != toolresult.OK {
				t.Fatal(pkg, err)
			}
			got := failed(t, func(t testing.TB) { toolruntimetest.CheckOnce(t, rt, good, bank) })
			if !strings.HasPrefix(got, "downstream 2: the key ") || !strings.HasSuffix(got, "has had 2 effects") {
				t.Errorf("it says %q", got)
			}
			if got := failed(t, func(t testing.TB) { toolruntimetest.CheckOnce(t, rt, good) }); got != "" {
				t.Errorf("it says %q", got)
			}
		})
	})
	t.Run("audit", func(t *testing.T) {
		bank, store := &toolruntimetest.Downstream{}, toolruntimetest.Store(t)
		submit(t, open(t, store, bank, toolruntime.Options{}), refundCall("k"))
		// Who has approved may not any more.
		rt := open(t, store, bank, toolruntime.Options{Approvers: toolruntimetest.Persons("dana")})
		got := failed(t, func(t testing.TB) { toolruntimetest.CheckOnce(t, rt, bank) })
		if !strings.Contains(got, "the audit does not pass") || !strings.Contains(got, "AUDIT_APPROVAL") {
			t.Errorf("it says %q", got)
		}
	})
	t.Run("in a cleanup", func(t *testing.T) {
		rt := open(t, toolruntimetest.Store(t), &toolruntimetest.Downstream{}, toolruntime.Options{})
		t.Cleanup(func() { toolruntimetest.CheckOnce(t, rt) })
	})
	t.Run("no audit", func(t *testing.T) {
		store := toolruntimetest.Store(t)
		rt := open(t, store, &toolruntimetest.Downstream{}, toolruntime.Options{})
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		if got := failed(t, func(t testing.TB) { toolruntimetest.CheckOnce(t, rt) }); !strings.Contains(got, "closed") {
			t.Errorf("it says %q", got)
		}
	})
}

// TestClock: a worker's wait, a lease and an approval go by it.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bank, clock := &toolruntimetest.Downstream{}, &toolruntimetest.Clock{}
		rt := open(t, toolruntimetest.Store(t), bank, toolruntime.Options{Now: clock.Now})
		toolruntimetest.Work(t, rt, &toolruntime.WorkOptions{Poll: time.Second})
		bank.Next(toolruntimetest.Down)
		ref := submit(t, rt, refundCall("k")).StatusRef()
		look := func(want toolruntime.State) {
			t.Helper()
			time.Sleep(10 * time.Second) // of the bubble: the worker looks often
			h, err := rt.History(t.Context(), ref)
			if err != nil || h.State != want {
				t.Errorf("%+v, %v; want %s", h, err, want)
			}
		}
		look("pending")
		clock.Advance(5 * time.Minute)
		look("succeeded")
		toolruntimetest.CheckOnce(t, rt, bank)
	})
	t.Run("approval", func(t *testing.T) {
		clock := &toolruntimetest.Clock{}
		rt := open(t, toolruntimetest.Store(t), &toolruntimetest.Downstream{}, toolruntime.Options{Now: clock.Now})
		begin := clock.Now()
		clock.Advance(-time.Hour)
		if got := clock.Now().Sub(begin); got != -time.Hour {
			t.Errorf("it was moved by %v", got)
		}
		clock.Advance(100 * 365 * 24 * time.Hour)
		if pkg := submit(t, rt, refundCall("k")); pkg.Code() != toolresult.Accepted {
			t.Errorf("after a hundred years: %s", pkg.Code())
		}
	})
}

// TestPeople: who is named may approve, and nobody else.
func TestPeople(t *testing.T) {
	names := []string{"carol"}
	approvers := toolruntimetest.Persons(names...)
	names[0] = "mallory"
	rt := open(t, toolruntimetest.Store(t), &toolruntimetest.Downstream{}, toolruntime.Options{Approvers: approvers})
	for person, want := range map[string]toolresult.Code{"mallory": toolresult.ApprovalInvalid, "carol": toolresult.OK} {
		call := refundCall("k-" + person)
		pkg, err := rt.Dispatch(t.Context(), alice, call, &toolruntime.DispatchOptions{
			Approvals: []toolresult.Approval{toolruntimetest.Approve(t, rt, alice, call, person)}})
		if err != nil || pkg.Code() != want {
			t.Errorf("%s: %v, %v; want %s", person, pkg, err, want)
		}
	}
	other := refundCall("k")
	approval := toolruntimetest.Approve(t, rt, alice, other, "carol")
	other.Arguments = []byte(`{"order_ref":"ORDER-8"}`)
	pkg, err := rt.Dispatch(t.Context(), alice, other, &toolruntime.DispatchOptions{Approvals: []toolresult.Approval{approval}})
	if err != nil || pkg.Code() != toolresult.ApprovalInvalid {
		t.Errorf("for another call: %v, %v", pkg, err)
	}
	if got := failed(t, func(t testing.TB) {
		toolruntimetest.Approve(t, rt, toolresult.Principal{TenantID: "\xff"}, refundCall("k"), "carol")
	}); !strings.Contains(got, "UTF-8") {
		t.Errorf("for no text: %q", got)
	}
}

// TestWork: a worker that cannot work is told to the test.
func TestWork(t *testing.T) {
	rt := open(t, toolruntimetest.Store(t), &toolruntimetest.Downstream{}, toolruntime.Options{})
	if got := failed(t, func(t testing.TB) { toolruntimetest.Work(t, rt, &toolruntime.WorkOptions{Lease: -1}) }); !strings.Contains(got, "lease must be") {
		t.Errorf("it says %q", got)
	}
}

// TestDownstream: what each fault has done, and what its caller has heard.
func TestDownstream(t *testing.T) {
	var notDone *toolruntime.NotDoneError
	own := errors.New("declined")
	for _, tt := range []struct {
		name      string
		fault     toolruntimetest.Fault
		forgetful bool
		answer    string
		err       error
		certain   bool // a NotDoneError
		effects   int  // of the request, and one more for the next
		after     int
	}{
		{"none", toolruntimetest.None, false, "answer 1", nil, false, 1, 1},
		{"none, forgetful", toolruntimetest.None, true, "answer 1", nil, false, 1, 2},
		{"answer lost", toolruntimetest.AnswerLost, false, "", toolruntimetest.ErrLost, false, 1, 1},
		{"request lost", toolruntimetest.RequestLost, false, "", toolruntimetest.ErrLost, false, 0, 1},
		{"refused", toolruntimetest.Refused, false, "", toolruntimetest.ErrRefused, true, 0, 1},
		{"down", toolruntimetest.Down, false, "", toolruntimetest.ErrDown, true, 0, 1},
		{"hanging", toolruntimetest.Hanging, false, "", context.Canceled, false, 0, 1},
		{"answer hangs", toolruntimetest.AnswerHangs, false, "", context.Canceled, false, 1, 1},
		{"repeated", toolruntimetest.Repeated, false, "answer 1", nil, false, 1, 1},
		{"repeated, forgetful", toolruntimetest.Repeated, true, "answer 2", nil, false, 2, 3},
		{"own", toolruntimetest.Fault{After: own}, false, "", own, false, 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, n := &toolruntimetest.Downstream{Forgetful: tt.forgetful}, 0
			ask := func(ctx context.Context) (string, error) {
				return toolruntimetest.Do(ctx, d, "k", func() string { n++; return fmt.Sprint("answer ", n) })
			}
			d.Next(tt.fault)
			ended, end := context.WithCancel(t.Context())
			end()
			answer, err := ask(ended)
			if answer != tt.answer || !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) || errors.As(err, &notDone) != tt.certain {
				t.Errorf("heard %q, %v", answer, err)
			}
			if d.Effects()["k"] != tt.effects {
				t.Errorf("effects: %v", d.Effects())
			}
			if _, err := ask(t.Context()); err != nil || d.Effects()["k"] != tt.after {
				t.Errorf("then %v, effects: %v", err, d.Effects())
			}
		})
	}
}

// TestDownstreamFind: a question causes nothing, and meets faults as requests do.
func TestDownstreamFind(t *testing.T) {
	type found struct {
		Answer string
		Found  bool
		Err    error
	}
	ctx, d := t.Context(), &toolruntimetest.Downstream{}
	find := func(key string) (f found) {
		f.Answer, f.Found, f.Err = toolruntimetest.Find[string](ctx, d, key)
		return f
	}
	check := func(what string, got, want found) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	check("nothing was done", find("k"), found{})
	d.Next(toolruntimetest.AnswerLost, toolruntimetest.RequestLost, toolruntimetest.AnswerLost)
	_, _ = toolruntimetest.Do(ctx, d, "k", func() string { return "done" })
	check("the question is lost", find("k"), found{Err: toolruntimetest.ErrLost})
	check("the answer is lost", find("k"), found{Err: toolruntimetest.ErrLost})
	check("an answer", find("k"), found{Answer: "done", Found: true})
	check("another key", find("other"), found{})
	d.Always(toolruntimetest.RequestLost)
	check("always", find("k"), found{Err: toolruntimetest.ErrLost})
	check("always", find("k"), found{Err: toolruntimetest.ErrLost})
	d.Always(toolruntimetest.None)
	if _, _, err := toolruntimetest.Find[int](ctx, d, "k"); err == nil {
		t.Error("an answer of another type was found")
	}
	if _, err := toolruntimetest.Do(ctx, d, "k", func() int { return 1 }); err == nil {
		t.Error("the key was used for an answer of another type")
	}
	d.Forget()
	check("forgotten", find("k"), found{})
	if diff := cmp.Diff(map[string]int{"k": 1}, d.Effects()); diff != "" {
		t.Error(diff)
	}
	_, _ = toolruntimetest.Do(ctx, d, "k", func() string { return "again" })
	if diff := cmp.Diff(map[string]int{"k": 2}, d.Effects()); diff != "" {
		t.Error(diff)
	}
}

// TestDownstreamTogether: of requests at the same moment under one key one has the
// effect, and all have its answer.
func TestDownstreamTogether(t *testing.T) {
	d := &toolruntimetest.Downstream{}
	d.Next(toolruntimetest.AnswerLost, toolruntimetest.RequestLost)
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			answer, err := toolruntimetest.Do(t.Context(), d, "k", func() string { return "done" })
			if (err != nil || answer != "done") && !errors.Is(err, toolruntimetest.ErrLost) {
				t.Errorf("%d: %q, %v", i, answer, err)
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff(map[string]int{"k": 1}, d.Effects()); diff != "" {
		t.Error(diff)
	}
}

// TestStoreIsClosed: a store, and a worker over it, are no more when their test has ended.
// TestEdges: values at the end of their type, and an answer that is nothing.
func TestEdges(t *testing.T) {
	var clock toolruntimetest.Clock
	begin := clock.Now()
	for range 2 {
		clock.Advance(math.MaxInt64)
	}
	if got := clock.Now(); got != begin.Add(math.MaxInt64) {
		t.Errorf("as far as it goes: %v", got)
	}
	for range 3 {
		clock.Advance(math.MinInt64)
	}
	if got := clock.Now(); got != begin.Add(math.MinInt64) {
		t.Errorf("as far back as it goes: %v", got)
	}

	for length, field := range map[int]string{0: "", 128: "", 129: "", 255: "", 256: "idempotency_key"} {
		err := toolruntimetest.Call("pay", "{}", strings.Repeat("k", length)).Check()
		var e *toolresult.InputError
		if got := errors.As(err, &e); got != (field != "") || got && e.Field != field {
			t.Errorf("a key of %d: %v", length, err)
		}
	}

	var d toolruntimetest.Downstream
	for range 2 {
		if got, err := toolruntimetest.Do(context.Background(), &d, "nothing", func() error { return nil }); got != nil || err != nil {
			t.Errorf("%v, %v", got, err)
		}
	}
}

func TestStoreIsClosed(t *testing.T) {
	var rt *toolruntime.Runtime
	t.Run("a test", func(t *testing.T) {
		rt = open(t, toolruntimetest.Store(t), &toolruntimetest.Downstream{}, toolruntime.Options{})
		toolruntimetest.Work(t, rt, nil)
	})
	if _, err := rt.Counts(context.Background()); !errors.Is(err, toolruntime.ErrClosed) {
		t.Errorf("afterwards: %v", err)
	}
}
