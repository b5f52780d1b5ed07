package toolruntime_test

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

// A host is a runtime whose callbacks can be made to misbehave.
type host struct {
	*toolruntime.Runtime
	behave sync.Map // how, as a func(context.Context), by callback
	ran    int
	now    int64
}

var callbacks = []string{"resolver", "authorizer", "approvers", "rule", "resource"}

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{now: 1_784_419_200}
	do := func(ctx context.Context, name string) {
		if f, ok := h.behave.Load(name); ok {
			f.(func(context.Context))(ctx)
		}
	}
	store, err := sqlitestore.Open(context.Background(), filepath.Join(t.TempDir(), "ledger.sqlite3"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	h.Runtime, err = toolruntime.New(store, &toolruntime.Options{
		Resolver: func(ctx context.Context, tenant, subject string) (*toolresult.Principal, error) {
			do(ctx, "resolver")
			return &toolresult.Principal{TenantID: tenant, SubjectID: subject}, nil
		},
		Authorizer: func(ctx context.Context, _ toolresult.Principal, _, _ string) (bool, error) {
			do(ctx, "authorizer")
			return true, nil
		},
		Approvers: func(ctx context.Context, _ toolresult.Principal, _, _ string) (bool, error) {
			do(ctx, "approvers")
			return true, nil
		},
		Now: func() time.Time { return time.Unix(h.now, 0) },
	}, toolruntime.Tool[payArgs, payment]{
		Name: "pay", Timeout: 50 * time.Millisecond,
		Resource: func(payArgs) string {
			do(context.Background(), "resource")
			return "account"
		},
		Rule: func(ctx context.Context, _ toolresult.Principal, _ payArgs) (bool, error) {
			do(ctx, "rule")
			return true, nil
		},
		Run: func(_ context.Context, e toolruntime.Effect, _ payArgs) (toolruntime.Receipt[payment], error) {
			h.ran++
			return paid(e)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *host) approved(t *testing.T, c toolresult.Call) []toolresult.Approval {
	t.Helper()
	b, err := h.Bind(payer, c)
	if err != nil {
		t.Fatal(err)
	}
	return []toolresult.Approval{toolresult.NewApproval(b, "a", "reviewer", time.Unix(h.now+60, 0))}
}

// TestCallbacks: a callback that panics, ends its goroutine or hangs has no effect
// and loses none: it is an error, the attempt is known to have done nothing, and
// the next one goes on. The tool may not be run twice, so a lost attempt would
// wait for a person.
func TestCallbacks(t *testing.T) {
	forever := make(chan struct{})
	t.Cleanup(func() { close(forever) })
	for _, how := range []struct {
		name   string
		do     func(context.Context)
		want   error
		inline bool // for a caller, too
	}{
		{"panics", func(context.Context) { panic("a bug") }, toolruntime.ErrCallback, true},
		{"ends its goroutine", func(context.Context) { runtime.Goexit() }, toolruntime.ErrCallback, false},
		{"hangs", func(context.Context) { <-forever }, context.DeadlineExceeded, false},
		{"waits for its context", func(ctx context.Context) {
			if ctx.Done() != nil {
				<-ctx.Done()
			} else { // Resource has none
				<-forever
			}
		}, context.DeadlineExceeded, false},
	} {
		for _, name := range callbacks {
			t.Run(how.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				h := newHost(t)
				ctx, c := context.Background(), shopCall("pay", "k")
				approvals := h.approved(t, c)
				if how.inline {
					h.behave.Store(name, how.do)
					if pkg, err := h.Dispatch(ctx, payer, c, &toolruntime.DispatchOptions{Approvals: approvals}); !errors.Is(err, how.want) {
						t.Fatalf("dispatch: %v, %v", pkg, err)
					}
					h.behave.Delete(name)
				}
				pkg, err := h.Submit(ctx, payer, c, approvals...)
				if err != nil {
					t.Fatal(err)
				}
				h.behave.Store(name, how.do)
				if outcome, err := h.Process(ctx, pkg.StatusRef(), "worker", nil); !errors.Is(err, how.want) {
					t.Errorf("process: %v, %v", outcome, err)
				}
				if h.ran != 0 {
					t.Fatal("the handler ran")
				}
				h.behave.Clear()
				h.now += 60
				if outcome, err := h.Process(ctx, pkg.StatusRef(), "worker", nil); outcome != toolruntime.Succeeded || err != nil {
					t.Errorf("afterwards: %v, %v", outcome, err)
				}
				if diff := cmp.Diff([]string{"denied", "succeeded"}, endingsOf(t, h.Runtime, pkg.StatusRef())); diff != "" {
					t.Errorf("attempts (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestCallbackEndsCaller: a callback that ends the goroutine of its caller, when the
// operation is claimed and the handler has not run, leaves no doubt about that.
func TestCallbackEndsCaller(t *testing.T) {
	for name, last := range map[string]int{"resolver": 3, "authorizer": 3, "approvers": 2, "rule": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			ctx, c, asked := context.Background(), shopCall("pay", "k"), 0
			options := &toolruntime.DispatchOptions{Approvals: h.approved(t, c)}
			b, err := h.Bind(payer, c)
			if err != nil {
				t.Fatal(err)
			}
			h.behave.Store(name, func(context.Context) {
				if asked++; asked == last {
					runtime.Goexit()
				}
			})
			var caller sync.WaitGroup
			caller.Go(func() {
				pkg, err := h.Dispatch(ctx, payer, c, options)
				t.Errorf("it has returned: %v, %v", pkg, err)
			})
			caller.Wait()
			h.behave.Clear()
			h.now += 60
			if outcome, err := h.Process(ctx, b.StatusRef(), "worker", nil); outcome != toolruntime.Succeeded || err != nil {
				t.Errorf("afterwards: %v, %v", outcome, err)
			}
			if diff := cmp.Diff([]string{"denied", "succeeded"}, endingsOf(t, h.Runtime, b.StatusRef())); diff != "" || h.ran != 1 {
				t.Errorf("%d effects; attempts (-want +got):\n%s", h.ran, diff)
			}
		})
	}
}

// TestCallbackWaits: what a caller waits for ends with the tool's timeout, where a
// callback looks at its context.
func TestCallbackWaits(t *testing.T) {
	for _, name := range []string{"resolver", "authorizer", "approvers", "rule"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			c := shopCall("pay", "k")
			approvals := h.approved(t, c)
			ends := make(chan bool, 1)
			h.behave.Store(name, func(ctx context.Context) {
				_, bounded := ctx.Deadline()
				<-ctx.Done()
				ends <- bounded && ctx.Err() != nil
				panic(ctx.Err())
			})
			if pkg, err := h.Dispatch(context.Background(), payer, c, &toolruntime.DispatchOptions{Approvals: approvals}); err == nil {
				t.Errorf("%v", pkg)
			}
			if !<-ends {
				t.Error("its context has no end")
			}
		})
	}
}

// endingsOf are how the attempts of an operation have ended.
func endingsOf(t *testing.T, rt *toolruntime.Runtime, ref string) (all []string) {
	t.Helper()
	h, err := rt.History(context.Background(), ref)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range h.Moments {
		if m.What == "attempt" {
			all = append(all, m.How)
		}
	}
	return all
}

// TestFindHangs: a downstream that does not answer keeps neither a worker nor a
// caller, and nothing is repeated before it has.
func TestFindHangs(t *testing.T) {
	forever := make(chan struct{})
	t.Cleanup(func() { close(forever) })
	s := &shop{t: t, path: filepath.Join(t.TempDir(), "ledger.sqlite3"), now: 1_784_419_200, runs: map[string]int{}}
	s.Runtime = s.with(toolruntime.Tool[payArgs, payment]{
		Name: "pay", Effect: toolruntime.Queryable, Timeout: 50 * time.Millisecond,
		Resource: func(payArgs) string { return "account" },
		Run: func(context.Context, toolruntime.Effect, payArgs) (toolruntime.Receipt[payment], error) {
			s.count("k")
			return toolruntime.Receipt[payment]{}, errors.New("connection lost")
		},
		Find: func(context.Context, toolruntime.Effect, payArgs) (toolruntime.Receipt[payment], bool, error) {
			<-forever
			return toolruntime.Receipt[payment]{}, false, nil
		},
	})
	ctx, ref, c := context.Background(), s.submit("pay", "k"), shopCall("pay", "k")
	for range 2 {
		if outcome, err := s.Process(ctx, ref, "worker", nil); outcome != toolruntime.OutcomeUnknown || err != nil {
			t.Fatalf("%v, %v", outcome, err)
		}
		s.pass(60)
	}
	if pkg, err := s.QueryStatus(ctx, payer, c.StatusQuery(ref), ref, nil); err != nil || pkg.Code() != toolresult.OutcomeUnknown {
		t.Errorf("%v, %v", pkg, err)
	}
	if n := s.ran("k"); n != 1 {
		t.Errorf("ran %d times", n)
	}
}
