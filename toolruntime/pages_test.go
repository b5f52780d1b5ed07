package toolruntime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/hostclock"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// What the pages say and no other test was about.

// TestRefusalLeavesTheIdentity: of a call that came without an approval nothing is stored
// but its identity, and under that it may come back with one.
func TestRefusalLeavesTheIdentity(t *testing.T) {
	onBothEngines(t, func(t *testing.T, open func(*testing.T) (*toolruntime.Store, error)) {
		f := newFixtureOn(t, open, toolruntime.Once)
		pkg, err := f.Dispatch(t.Context(), payer, payCall(), nil)
		if err != nil || pkg.Code() != toolresult.ApprovalRequired {
			t.Fatal(pkg, err)
		}
		counts, err := f.Counts(t.Context())
		if diff := cmp.Diff(toolruntime.Counts{CallBindings: 1}, counts); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		if pkg, err = f.dispatch(alive); err != nil || pkg.Code() != toolresult.OK {
			t.Errorf("with an approval: %v, %v", pkg, err)
		}
		f.checkInvariants()
	})
}

// TestWhatMakesAVersion: a change of a schema or of the effect kind does by itself, a
// revision by its name, and nothing else.
func TestWhatMakesAVersion(t *testing.T) {
	type tool = toolruntime.Tool[payArgs, payment]
	first := tool{Name: "pay", Effect: toolruntime.Idempotent, Resource: func(payArgs) string { return "account" },
		Run: func(_ context.Context, e toolruntime.Effect, _ payArgs) (toolruntime.Receipt[payment], error) {
			return paid(e)
		}}
	contract := func(r toolruntime.Registration) toolresult.Contract {
		t.Helper()
		s, err := toolruntime.SpecOf(r)
		if err != nil {
			t.Fatal(err)
		}
		return s.Contract()
	}
	was := contract(first)
	for name, tt := range map[string]struct {
		change  func(*tool)
		another bool
	}{
		"a limit":         {func(v *tool) { v.MaxOutputBytes, v.MaxConcurrent, v.MaxPerSecond = 100, 1, 1 }, false},
		"a timeout":       {func(v *tool) { v.Timeout = time.Second }, false},
		"the description": {func(v *tool) { v.Description = "Pays." }, false},
		"the code":        {func(v *tool) { v.Resource = func(payArgs) string { return "another" } }, false},
		"an input schema": {func(v *tool) {
			v.InputSchema = json.RawMessage(`{"type":"object","properties":{"amount":{"type":"integer"}}}`)
		}, true},
		"an output schema": {func(v *tool) {
			v.OutputSchema = json.RawMessage(`{"type":"object","properties":{"amount":{"type":"integer"}}}`)
		}, true},
		"a revision": {func(v *tool) { v.Revisions.Handler = "pay-handler-v2" }, true},
		"a schema that is kept": {func(v *tool) {
			v.Revisions.InputSchema = was.InputSchema
			v.InputSchema = json.RawMessage(`{"type":"object","properties":{"amount":{"type":"integer"}}}`)
		}, false},
	} {
		now := first
		tt.change(&now)
		if got := contract(now) != was; got != tt.another {
			t.Errorf("%s: another contract is %t", name, got)
		}
	}
	// The effect kind is no part of the contract, and of a version all the same.
	once := first
	once.Effect, once.Versions = toolruntime.Once, []toolruntime.Registration{first}
	if contract(once) != was {
		t.Error("the effect kind is in the contract")
	}
}

// TestVersionWithoutRun: what was accepted under it is answered for, resolved and
// audited, and carried out by nobody here.
func TestVersionWithoutRun(t *testing.T) {
	s := newShop(t, toolruntime.Once, func(_ context.Context, e toolruntime.Effect, run int) (toolruntime.Receipt[payment], error) {
		switch e.IdempotencyKey {
		case "lost", "resolved":
			return toolruntime.Receipt[payment]{}, errors.New("connection reset")
		}
		return paid(e)
	})
	refs := map[string]string{}
	for _, key := range []string{"done", "lost", "resolved"} {
		refs[key] = s.submit("pay", key)
		if _, err := s.Process(t.Context(), refs[key], "worker", nil); err != nil {
			t.Fatal(err)
		}
	}
	refs["open"] = s.submit("pay", "open")

	type paymentV2 struct {
		Amount   int64  `json:"amount"`
		Currency string `json:"currency"`
	}
	resource := func(payArgs) string { return "account" }
	now := s.with(toolruntime.Tool[payArgs, paymentV2]{Name: "pay", Resource: resource,
		Versions: []toolruntime.Registration{toolruntime.Tool[payArgs, payment]{Name: "pay", Resource: resource}},
		Run: func(context.Context, toolruntime.Effect, payArgs) (r toolruntime.Receipt[paymentV2], err error) {
			t.Error("the second version has run")
			return r, nil
		}})
	if err := now.Resolve(t.Context(), toolruntime.Resolution{StatusRef: refs["resolved"], Decision: toolruntime.ConfirmedDone, Actor: "dana", Reason: "seen",
		Receipt: &toolruntime.Receipt[json.RawMessage]{ID: "r", RequestID: "q", Data: json.RawMessage(`{"amount":5,"currency":"EUR"}`)}}); !errors.Is(err, toolruntime.ErrInvalidInput) {
		t.Errorf("a result of the second version was taken for one of the first: %v", err)
	}
	if err := now.Resolve(t.Context(), toolruntime.Resolution{StatusRef: refs["resolved"], Decision: toolruntime.ConfirmedDone, Actor: "dana", Reason: "seen",
		Receipt: &toolruntime.Receipt[json.RawMessage]{ID: "r", RequestID: "q", Data: json.RawMessage(`{"amount":5}`)}}); err != nil {
		t.Error(err)
	}
	for key, want := range map[string]toolresult.Code{"done": toolresult.OK, "lost": toolresult.OutcomeUnknown, "resolved": toolresult.OK, "open": toolresult.OutcomeUnknown} {
		pkg, err := now.Dispatch(t.Context(), payer, shopCall("pay", key), nil)
		if err != nil || pkg.Code() != want {
			t.Errorf("%s: %v, %v; want %s", key, pkg, err, want)
		}
	}
	outcome, err := now.Process(t.Context(), refs["open"], "worker", nil)
	if outcome != toolruntime.NotClaimed || !errors.Is(err, toolruntime.ErrContract) {
		t.Errorf("it was carried out: %s, %v", outcome, err)
	}
	if r, err := now.Audit(t.Context(), nil); err != nil || !r.Passed || r.Unregistered.Count != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if outcome, err := s.Process(t.Context(), refs["open"], "worker", nil); outcome != toolruntime.Succeeded || err != nil {
		t.Errorf("by the first version: %s, %v", outcome, err)
	}
}

// TestPauseLetsGoOn: what runs when its tool is paused goes on.
func TestPauseLetsGoOn(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s := newShop(t, toolruntime.Once, func(ctx context.Context, e toolruntime.Effect, _ int) (toolruntime.Receipt[payment], error) {
		close(entered)
		<-leave
		if ctx.Err() != nil {
			return toolruntime.Receipt[payment]{}, ctx.Err()
		}
		return paid(e)
	})
	s.work(toolruntime.WorkOptions{})
	ref := s.submit("pay", "k")
	<-entered
	if err := s.Pause(t.Context(), "pay", "dana", "the bank has called"); err != nil {
		t.Fatal(err)
	}
	close(leave)
	s.wait(ref)
	if pkg := s.answer("pay", "k"); pkg.Code() != toolresult.OK {
		t.Errorf("%s", pkg.Code())
	}
	s.audit()
}

// A writesCounted is an engine that counts its writes.
type writesCounted struct {
	engine.Engine
	n atomic.Int64
}

func (w *writesCounted) Write(ctx context.Context, unit engine.Unit) error {
	w.n.Add(1)
	return w.Engine.Write(ctx, unit)
}

func (w *writesCounted) Move(ctx context.Context, all ...*engine.Motion) error {
	w.n.Add(1)
	return w.Engine.Move(ctx, all...)
}

// TestRenewalsAreThree: a lease is renewed three times as often as it would run out.
func TestRenewalsAreThree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, during := &writesCounted{}, int64(0)
		s := &shop{t: t, path: t.TempDir() + "/ledger.sqlite3", now: 1_784_419_200, runs: map[string]int{},
			wrap: func(e engine.Engine) engine.Engine { w.Engine = e; return w }}
		s.Runtime = s.open(toolruntime.Once, func(_ context.Context, e toolruntime.Effect, _ int) (toolruntime.Receipt[payment], error) {
			before := w.n.Load()
			time.Sleep(9*time.Second + time.Millisecond)
			during = w.n.Load() - before
			return paid(e)
		})
		ref := s.submit("pay", "k")
		ctx, stop := context.WithCancel(t.Context())
		worked := make(chan error, 1)
		go func() { worked <- s.Work(ctx, &toolruntime.WorkOptions{Lease: 3 * time.Second}) }()
		if err := s.Wait(ctx, ref); err != nil {
			t.Fatal(err)
		}
		stop()
		if err := <-worked; err != nil || during != 9 {
			t.Errorf("in three leases it was renewed %d times, %v", during, err)
		}
	})
}

// A skewed engine's host has another clock.
type skewed struct {
	engine.Engine
	by time.Duration
}

func (s skewed) Skew() time.Duration { return s.by }

// TestSkewIsTold: a clock that differs by more than a second is a warning, and a number.
func TestSkewIsTold(t *testing.T) {
	for by, told := range map[time.Duration]bool{0: false, time.Second: false, 1001 * time.Millisecond: true, -2 * time.Second: true} {
		store, err := openSQLite(t)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		toolruntime.TestingOnlyWrapEngine(store, func(e engine.Engine) engine.Engine { return skewed{e, by} })
		var log bytes.Buffer
		rt, err := toolruntime.New(store, &toolruntime.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(log.String(), "level=WARN"); got != told || rt.Metrics().ClockSkew != by {
			t.Errorf("%v: %v, %s", by, rt.Metrics().ClockSkew, log.String())
		}
	}
}

// TestStepIsTold: a worker that sees that the clock was set says so, once.
func TestStepIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := openSQLite(t)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		defer hostclock.Set(0)
		var log bytes.Buffer
		rt, err := toolruntime.New(store, &toolruntime.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		during(t, rt, func() {
			time.Sleep(5 * time.Second)
			hostclock.Set(time.Second)
			time.Sleep(5 * time.Second)
			hostclock.Set(time.Hour)
			time.Sleep(time.Minute)
		})
		if n := strings.Count(log.String(), "the ledger's clock was set"); n != 1 || rt.Metrics().ClockSteps != 1 {
			t.Errorf("told %d times, %d steps:\n%s", n, rt.Metrics().ClockSteps, log.String())
		}
	})
}

// TestWorkTooOld: what could not be done for MaxAge waits for a person, however few
// attempts it had: with TOOL_ERROR where it is certain that nothing was done, and with
// OUTCOME_UNKNOWN where not.
func TestWorkTooOld(t *testing.T) {
	for reason, cause := range map[toolresult.Code]error{
		toolresult.ToolError:      toolruntime.RetryLater(0, errors.New("not now")),
		toolresult.OutcomeUnknown: errors.New("connection reset"),
	} {
		t.Run(string(reason), func(t *testing.T) {
			s := newShop(t, toolruntime.Idempotent, func(context.Context, toolruntime.Effect, int) (toolruntime.Receipt[payment], error) {
				return toolruntime.Receipt[payment]{}, cause
			})
			ref := s.submit("pay", "k")
			if _, err := s.Process(t.Context(), ref, "worker", nil); err != nil {
				t.Fatal(err)
			}
			s.pass(3600 + 1)
			s.work(toolruntime.WorkOptions{MaxAge: time.Hour})
			s.wait(ref)
			if h, err := s.History(t.Context(), ref); err != nil || h.State != "in_review" || h.Reason != reason || s.ran("k") != 1 {
				t.Errorf("%+v, %v, ran %d times", h, err, s.ran("k"))
			}
			s.audit()
		})
	}
}
