package toolruntime_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

// TestKeyMemory: the first answer is lost, and it is tried again later. Where the
// key may be forgotten before that is over, nothing is repeated, whatever Process,
// a worker or a person wants; the downstream is asked where it can be.
func TestKeyMemory(t *testing.T) {
	const day = 24 * 3600
	type answer int
	const (
		cannot answer = iota // the tool has no Find
		no
		yes
	)
	for _, tt := range []struct {
		name   string
		kind   toolruntime.EffectKind
		memory time.Duration
		find   answer
		later  int64 // seconds
		runs   int
		state  toolruntime.State
	}{
		{"an hour later", toolruntime.Idempotent, 0, cannot, 3600, 2, "succeeded"},
		{"within a day, and over in it", toolruntime.Idempotent, 0, cannot, day - 61, 2, "succeeded"},
		{"it would be over a second too late", toolruntime.Idempotent, 0, cannot, day - 60, 1, "in_review"},
		{"three days later", toolruntime.Idempotent, 0, cannot, 3 * day, 1, "in_review"},
		{"of ten days", toolruntime.Idempotent, 10 * day * time.Second, cannot, 3 * day, 2, "succeeded"},
		{"never forgotten", toolruntime.Idempotent, toolruntime.Forever, cannot, 7000 * day, 2, "succeeded"},
		{"found", toolruntime.Idempotent, 0, yes, 3 * day, 1, "succeeded"},
		{"not found, which says nothing", toolruntime.Idempotent, 0, no, 3 * day, 1, "in_review"},
		{"queryable, not found", toolruntime.Queryable, 0, no, 3 * day, 2, "succeeded"},
		{"queryable, found", toolruntime.Queryable, time.Hour, yes, 3 * day, 1, "succeeded"},
		{"queryable, not found, which says nothing", toolruntime.Queryable, time.Hour, no, 3 * day, 1, "in_review"},
	} {
		for _, how := range []string{"process", "work"} {
			t.Run(tt.name+"/"+how, func(t *testing.T) {
				t.Parallel()
				s := &shop{t: t, path: filepath.Join(t.TempDir(), "ledger.sqlite3"), now: 1_784_419_200, runs: map[string]int{}}
				tool := toolruntime.Tool[payArgs, payment]{
					Name: "pay", Effect: tt.kind, KeyMemory: tt.memory, Timeout: time.Minute,
					Resource: func(payArgs) string { return "account" },
					Run: func(_ context.Context, e toolruntime.Effect, _ payArgs) (toolruntime.Receipt[payment], error) {
						if s.count("k") == 1 {
							return toolruntime.Receipt[payment]{}, errors.New("connection lost")
						}
						return paid(e)
					},
				}
				if tt.find != cannot {
					tool.Find = func(_ context.Context, e toolruntime.Effect, _ payArgs) (toolruntime.Receipt[payment], bool, error) {
						r, err := paid(e)
						return r, tt.find == yes, err
					}
				}
				s.Runtime = s.with(tool)
				ref := s.submit("pay", "k")
				ctx := context.Background()
				lease := &toolruntime.ProcessOptions{Lease: 60 * time.Second}
				if outcome, err := s.Process(ctx, ref, "worker", lease); outcome != toolruntime.OutcomeUnknown || err != nil {
					t.Fatalf("%v, %v", outcome, err)
				}
				s.pass(tt.later)
				if how == "work" {
					s.work(toolruntime.WorkOptions{MaxAge: 10_000 * day * time.Second, Lease: time.Minute})
					s.wait(ref)
				} else if _, err := s.Process(ctx, ref, "worker", lease); err != nil {
					t.Fatal(err)
				}
				h, err := s.History(ctx, ref)
				if err != nil || h.State != tt.state || s.ran("k") != tt.runs {
					t.Errorf("%+v, %v: ran %d times", h, err, s.ran("k"))
				}
				if tt.state != "in_review" {
					return
				}
				err = s.Resolve(ctx, toolruntime.Resolution{StatusRef: ref, Decision: toolruntime.TryAgain, Actor: "dana", Reason: "looked"})
				if !errors.Is(err, toolruntime.ErrInvalidInput) {
					t.Errorf("try again: %v", err)
				}
				err = s.Resolve(ctx, toolruntime.Resolution{StatusRef: ref, Decision: toolruntime.ConfirmedNotDone, Actor: "dana", Reason: "looked"})
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestKeyMemoryOfCertainty: what certainly did nothing may be tried again at any
// time, and what a person sent back without knowing the tool comes back in review.
func TestKeyMemoryOfCertainty(t *testing.T) {
	lost := errors.New("connection lost")
	for _, tt := range []struct {
		name    string
		answers []error // of the runs, before a receipt
		want    []string
	}{
		{"not done", []error{toolruntime.RetryLater(0, lost)}, []string{"not_done", "succeeded"}},
		{"lost", []error{lost}, []string{"unknown", "unknown", "unknown"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newShop(t, toolruntime.Idempotent, func(_ context.Context, e toolruntime.Effect, run int) (toolruntime.Receipt[payment], error) {
				if run <= len(tt.answers) {
					return toolruntime.Receipt[payment]{}, tt.answers[run-1]
				}
				return paid(e)
			})
			ctx, ref := context.Background(), s.submit("pay", "k")
			for range 2 {
				if _, err := s.Process(ctx, ref, "worker", nil); err != nil {
					t.Fatal(err)
				}
				s.pass(3 * 24 * 3600)
			}
			if tt.name == "lost" {
				stranger := s.with()
				if err := stranger.Resolve(ctx, toolruntime.Resolution{StatusRef: ref, Decision: toolruntime.TryAgain, Actor: "dana", Reason: "looked"}); err != nil {
					t.Fatal(err)
				}
				if outcome, err := s.Process(ctx, ref, "worker", nil); outcome != toolruntime.OutcomeUnknown || err != nil {
					t.Errorf("%v, %v", outcome, err)
				}
			}
			if diff := cmp.Diff(tt.want, endingsOf(t, s.Runtime, ref)); diff != "" {
				t.Errorf("attempts (-want +got):\n%s", diff)
			}
		})
	}
}

// TestToolRefused: what a tool says of its key and its versions must fit.
func TestToolRefused(t *testing.T) {
	run := func(_ context.Context, e toolruntime.Effect, _ payArgs) (toolruntime.Receipt[payment], error) {
		return paid(e)
	}
	tool := func(change func(*toolruntime.Tool[payArgs, payment])) toolruntime.Registration {
		v := toolruntime.Tool[payArgs, payment]{Name: "pay", Effect: toolruntime.Idempotent, Run: run,
			Resource: func(payArgs) string { return "account" }}
		if change != nil {
			change(&v)
		}
		return v
	}
	type change = func(*toolruntime.Tool[payArgs, payment])
	answered := tool(func(v *toolruntime.Tool[payArgs, payment]) { v.Run, v.Revisions.Handler = nil, "pay-handler-v0" })
	for name, tt := range map[string]struct {
		change change
		fine   bool
	}{
		"nothing":                             {func(*toolruntime.Tool[payArgs, payment]) {}, true},
		"no Run":                              {func(v *toolruntime.Tool[payArgs, payment]) { v.Run = nil }, false},
		"once, with keys":                     {func(v *toolruntime.Tool[payArgs, payment]) { v.Effect, v.KeyMemory = toolruntime.Once, time.Hour }, false},
		"short memory":                        {func(v *toolruntime.Tool[payArgs, payment]) { v.KeyMemory = 30 * time.Second }, false},
		"long timeout":                        {func(v *toolruntime.Tool[payArgs, payment]) { v.Timeout = 24 * time.Hour }, false},
		"negative":                            {func(v *toolruntime.Tool[payArgs, payment]) { v.KeyMemory = -1 }, false},
		"a version that is only answered for": {func(v *toolruntime.Tool[payArgs, payment]) { v.Versions = []toolruntime.Registration{answered} }, true},
		"itself again":                        {func(v *toolruntime.Tool[payArgs, payment]) { v.Versions = []toolruntime.Registration{tool(nil)} }, false},
		"no version":                          {func(v *toolruntime.Tool[payArgs, payment]) { v.Versions = []toolruntime.Registration{nil} }, false},
		"another effect kind": {func(v *toolruntime.Tool[payArgs, payment]) {
			v.Versions = []toolruntime.Registration{tool(func(v *toolruntime.Tool[payArgs, payment]) { v.Effect = toolruntime.Once })}
		}, true},
		"another tool's version": {func(v *toolruntime.Tool[payArgs, payment]) {
			v.Versions = []toolruntime.Registration{tool(func(v *toolruntime.Tool[payArgs, payment]) { v.Name = "draw" })}
		}, false},
		"a version that reads": {func(v *toolruntime.Tool[payArgs, payment]) {
			v.Versions = []toolruntime.Registration{tool(func(v *toolruntime.Tool[payArgs, payment]) { v.Risk, v.Revisions.Handler = toolruntime.Read, "r" })}
		}, false},
	} {
		_, err := toolruntime.SpecOf(tool(tt.change))
		if (err == nil) != tt.fine || err != nil && !errors.Is(err, toolresult.ErrInvalidInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// with opens the shop's ledger once more, with other tools.
func (s *shop) with(tools ...toolruntime.Registration) *toolruntime.Runtime {
	s.t.Helper()
	store, err := sqlitestore.Open(context.Background(), s.path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { store.Close() })
	allow := func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil }
	rt, err := toolruntime.New(store, &toolruntime.Options{Authorizer: allow, Approvers: allow,
		Now: func() time.Time { return time.Unix(s.time(), 0) }}, tools...)
	if err != nil {
		s.t.Fatal(err)
	}
	return rt
}
