package toolruntime_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// inReview is a shop with one operation of which nobody knows whether it
// happened.
func inReview(t *testing.T) (*shop, string) {
	t.Helper()
	s := newShop(t, toolruntime.Once, func(_ context.Context, e toolruntime.Effect, run int) (toolruntime.Receipt[payment], error) {
		if run == 1 {
			return toolruntime.Receipt[payment]{}, errors.New("connection reset")
		}
		return paid(e)
	})
	ref := s.submit("pay", "k")
	if outcome, err := s.Process(context.Background(), ref, "worker-1", nil); err != nil || outcome != toolruntime.OutcomeUnknown {
		t.Fatalf("%v, %v", outcome, err)
	}
	return s, ref
}

func evidence() *toolruntime.Receipt[json.RawMessage] {
	return &toolruntime.Receipt[json.RawMessage]{ID: "receipt-of-the-bank", RequestID: "request-of-the-bank",
		Data: json.RawMessage(`{"amount": 5}`), ObservedAt: time.Unix(1_784_419_000, 0)}
}

// TestResolve: each decision, what the caller is told from then on, and that it
// is final.
func TestResolve(t *testing.T) {
	tests := []struct {
		decision toolruntime.Decision
		code     toolresult.Code
		state    toolruntime.State
	}{
		{toolruntime.ConfirmedDone, toolresult.OK, "succeeded"},
		{toolruntime.ConfirmedNotDone, toolresult.ToolError, "failed"},
		{toolruntime.TryAgain, toolresult.OutcomeUnknown, "pending"},
		{toolruntime.Abandoned, toolresult.OutcomeUnknown, "failed"},
	}
	for _, tt := range tests {
		t.Run(string(tt.decision), func(t *testing.T) {
			s, ref := inReview(t)
			ctx := context.Background()
			s.pass(100)
			v := toolruntime.Resolution{StatusRef: ref, Decision: tt.decision, Actor: "dana", Reason: "asked the bank"}
			if tt.decision == toolruntime.ConfirmedDone {
				v.Receipt = evidence()
			}
			for range 2 { // a repetition changes nothing
				if err := s.Resolve(ctx, v); err != nil {
					t.Fatal(err)
				}
			}
			if pkg := s.answer("pay", "k"); pkg.Code() != tt.code {
				t.Errorf("answer: %s, want %s", pkg.Code(), tt.code)
			}
			for _, other := range []toolruntime.Decision{toolruntime.ConfirmedDone, toolruntime.ConfirmedNotDone, toolruntime.TryAgain, toolruntime.Abandoned} {
				w := toolruntime.Resolution{StatusRef: ref, Decision: other, Actor: "eve", Reason: "changed my mind"}
				if other == toolruntime.ConfirmedDone {
					w.Receipt = evidence()
				}
				if err := s.Resolve(ctx, w); !errors.Is(err, toolruntime.ErrNotInReview) {
					t.Errorf("%s afterwards: %v, want ErrNotInReview", other, err)
				}
			}
			h, err := s.History(ctx, ref)
			if err != nil {
				t.Fatal(err)
			}
			const began = 1_784_419_200
			want := []toolruntime.Moment{
				{At: utc(began), What: "accepted", Who: "reviewer"},
				{At: utc(began), What: "attempt", Attempt: 1, Until: utc(began), Who: "worker-1", How: "unknown", Why: "error"},
				{At: utc(began + 100), What: "resolved", Who: "dana", How: string(tt.decision), Why: "asked the bank"},
			}
			if diff := cmp.Diff(want, h.Moments[:3]); diff != "" {
				t.Errorf("history (-want +got):\n%s", diff)
			}
			if h.State != tt.state {
				t.Errorf("state: %s, want %s", h.State, tt.state)
			}
			s.audit()
			if tt.decision == toolruntime.TryAgain {
				s.work(toolruntime.WorkOptions{})
				s.wait(ref)
				if pkg := s.answer("pay", "k"); pkg.Code() != toolresult.OK || s.ran("k") != 2 {
					t.Errorf("tried again: %s after %d runs", pkg.Code(), s.ran("k"))
				}
				s.audit()
			} else if s.ran("k") != 1 {
				t.Errorf("ran %d times", s.ran("k"))
			}
		})
	}
}

// TestResolveRefuses: a resolution that cannot stand changes nothing.
func TestResolveRefuses(t *testing.T) {
	s, ref := inReview(t)
	bad := evidence()
	bad.Data = json.RawMessage(`{"amount": 5, "password": "x"}`)
	noID := evidence()
	noID.ID = ""
	tests := []struct {
		name string
		v    toolruntime.Resolution
	}{
		{"decision", toolruntime.Resolution{StatusRef: ref, Decision: "maybe", Actor: "dana", Reason: "x"}},
		{"no actor", toolruntime.Resolution{StatusRef: ref, Decision: toolruntime.Abandoned, Reason: "x"}},
		{"no reason", toolruntime.Resolution{StatusRef: ref, Decision: toolruntime.Abandoned, Actor: "dana", Reason: " "}},
		{"no receipt", toolruntime.Resolution{StatusRef: ref, Decision: toolruntime.ConfirmedDone, Actor: "dana", Reason: "x"}},
		{"a receipt too many", toolruntime.Resolution{StatusRef: ref, Decision: toolruntime.Abandoned, Actor: "dana", Reason: "x", Receipt: evidence()}},
		{"output contract", toolruntime.Resolution{StatusRef: ref, Decision: toolruntime.ConfirmedDone, Actor: "dana", Reason: "x", Receipt: bad}},
		{"no receipt id", toolruntime.Resolution{StatusRef: ref, Decision: toolruntime.ConfirmedDone, Actor: "dana", Reason: "x", Receipt: noID}},
		{"status ref", toolruntime.Resolution{StatusRef: "x", Decision: toolruntime.Abandoned, Actor: "dana", Reason: "x"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := s.Resolve(context.Background(), tt.v); !errors.Is(err, toolruntime.ErrInvalidInput) {
				t.Errorf("%v, want ErrInvalidInput", err)
			}
		})
	}
	items, err := s.Review(context.Background(), "", 10)
	want := []toolruntime.Item{{StatusRef: ref, Tool: "pay", Reason: toolresult.OutcomeUnknown, Attempts: 1,
		CreatedAt: utc(1_784_419_200), Since: utc(1_784_419_200)}}
	if diff := cmp.Diff(want, items); diff != "" || err != nil {
		t.Errorf("review: %v (-want +got):\n%s", err, diff)
	}
}

// TestRedrive: what is known not to have happened is attempted again, staggered
// and within the limit; what nobody knows is left alone.
func TestRedrive(t *testing.T) {
	var healthy bool
	s := newShop(t, toolruntime.Once, func(_ context.Context, e toolruntime.Effect, _ int) (toolruntime.Receipt[payment], error) {
		switch {
		case e.IdempotencyKey == "unknown":
			return toolruntime.Receipt[payment]{}, errors.New("connection reset")
		case healthy:
			return paid(e)
		}
		return toolruntime.Receipt[payment]{}, toolruntime.RetryLater(0, errors.New("not now"))
	})
	ctx := context.Background()
	keys := []string{"a", "b", "c", "unknown"}
	var refs []string
	for _, key := range keys {
		refs = append(refs, s.submit("pay", key))
	}
	// However long a busy machine takes, here nothing is too old.
	stop := s.work(toolruntime.WorkOptions{MaxAttempts: 1, Concurrency: 1, MaxAge: 1_000_000 * time.Hour})
	for _, ref := range refs {
		for s.state(ref) != "in_review" {
			s.pass(600)
		}
	}
	stop()
	healthy = true
	got, err := s.Redrive(ctx, &toolruntime.RedriveOptions{Limit: 2, Stagger: time.Minute, Actor: "dana", Reason: "the bank is back"})
	if diff := cmp.Diff(refs[:2], got); diff != "" || err != nil {
		t.Fatalf("redrive: %v (-want +got):\n%s", err, diff)
	}
	for i, ref := range refs[:2] {
		h, err := s.History(ctx, ref)
		if err != nil {
			t.Fatal(err)
		}
		if last := h.Moments[len(h.Moments)-1]; last.What != "waiting" || last.Until != utc(s.time()+int64(60*i)) {
			t.Errorf("%d: %+v at %d", i, last, s.time())
		}
	}
	s.pass(60)
	s.work(toolruntime.WorkOptions{MaxAttempts: 1})
	for i, want := range []toolresult.Code{toolresult.OK, toolresult.OK, toolresult.ToolError, toolresult.OutcomeUnknown} {
		if i < 2 {
			s.wait(refs[i])
		}
		if pkg := s.answer("pay", keys[i]); pkg.Code() != want {
			t.Errorf("%s: %s, want %s", keys[i], pkg.Code(), want)
		}
	}
	s.audit()
}

func (s *shop) state(ref string) string {
	s.t.Helper()
	h, err := s.History(context.Background(), ref)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(h.State)
}

// TestPause: workers leave a paused tool alone and go on with the others.
func TestPause(t *testing.T) {
	s := newShop(t, toolruntime.Once, func(_ context.Context, e toolruntime.Effect, _ int) (toolruntime.Receipt[payment], error) {
		return paid(e)
	}, "other")
	ctx := context.Background()
	if err := s.Pause(ctx, "pay", "dana", "the bank has called"); err != nil {
		t.Fatal(err)
	}
	paused, open := s.submit("pay", "k"), s.submit("other", "o")
	s.work(toolruntime.WorkOptions{})
	s.wait(open)
	if s.ran("k") != 0 {
		t.Error("a paused tool ran")
	}
	st, err := s.Stats(ctx)
	want := []toolruntime.ToolStats{{Tool: "pay", Paused: true, Pending: 1, OldestPending: utc(1_784_419_200)}}
	if diff := cmp.Diff(want, st.Tools); diff != "" || err != nil {
		t.Errorf("stats: %v (-want +got):\n%s", err, diff)
	}
	if err := s.Resume(ctx, "pay", "erin", "the bank is back"); err != nil {
		t.Fatal(err)
	}
	s.wait(paused)
	s.audit()
}
