package payments_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/examples/payments"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/httpeffect"
)

var args = payments.PayArgs{Account: "ACC-1", AmountCents: 500, Currency: "EUR"}

var effect = toolruntime.Effect{Identity: strings.Repeat("5e7b1d0c", 8), Attempt: 1}

type tool = toolruntime.Tool[payments.PayArgs, payments.Paid]

func desk(t *testing.T, kind toolruntime.EffectKind, sw payments.Switches) (*payments.Server, tool) {
	t.Helper()
	s := open(t, sw)
	h := httptest.NewServer(s)
	t.Cleanup(func() {
		s.Stop() // ends the delays, for which Close waits
		h.Close()
	})
	return s, payments.Tool(h.URL, h.Client(), kind)
}

func TestToolKinds(t *testing.T) {
	for _, kind := range []toolruntime.EffectKind{toolruntime.Once, toolruntime.Queryable, toolruntime.Idempotent} {
		t.Run(kind.String(), func(t *testing.T) {
			_, tool := desk(t, kind, payments.Switches{})
			if _, err := toolruntime.SpecOf(tool); err != nil {
				t.Fatal(err)
			}
			got, err := tool.Run(t.Context(), effect, args)
			want := toolruntime.Receipt[payments.Paid]{ID: "pay_1", RequestID: "req_1",
				Data: payments.Paid{PaymentID: "pay_1", Account: "ACC-1", AmountCents: 500, Currency: "EUR"}}
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Fatalf("run: error %v (-want +got):\n%s", err, diff)
			}
			if kind == toolruntime.Once {
				if tool.Find != nil {
					t.Error("a tool of the kind once has Find")
				}
				return
			}
			got, found, err := tool.Find(t.Context(), effect, args)
			if diff := cmp.Diff(want, got); diff != "" || !found || err != nil {
				t.Errorf("find: %v, error %v (-want +got):\n%s", found, err, diff)
			}
		})
	}
}

// class says what an error of Run or Find is to the runtime, and of which type.
func class(err error) string {
	var (
		notDone   *toolruntime.NotDoneError
		inFlight  *httpeffect.InFlightError
		answer    *httpeffect.AnswerError
		transport *httpeffect.TransportError
	)
	text := "unknown"
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, toolruntime.ErrNeedsReview):
		text = "review"
	case errors.As(err, &notDone) && notDone.Final:
		text = "give up"
	case errors.As(err, &notDone):
		text = strings.TrimSpace("retry later " + strings.TrimSuffix(notDone.After.String(), "0s"))
	}
	switch {
	case errors.As(err, &inFlight):
		return text + ", in flight"
	case errors.As(err, &transport):
		return text + ", no answer"
	case errors.As(err, &answer):
		return text + ", " + answer.Meaning.String()
	}
	return text + ", untyped"
}

// TestToolSwitches holds the tool against every misbehaviour: what Run says of
// it, what Find says then, what the same payment says once more, and how many
// effects there were.
func TestToolSwitches(t *testing.T) {
	const bad = "unknown, unknown"
	type outcome struct {
		Run, Find, Again string
		Effects          int // after the first Run
	}
	tests := map[payments.Fault]struct {
		sw   payments.Switch
		want outcome
	}{
		payments.TooMany:       {payments.Switch{RetryAfter: new(int64(7))}, outcome{"retry later 7s, nothing done", "absent", "done", 0}},
		payments.Unavailable:   {payments.Switch{RetryAfter: new(int64(2))}, outcome{"retry later 2s, nothing done", "absent", "done", 0}},
		payments.InFlight:      {payments.Switch{}, outcome{"unknown, in flight", "absent", "done", 0}},
		payments.FailBefore:    {payments.Switch{}, outcome{bad, "absent", "done", 0}},
		payments.DropBefore:    {payments.Switch{}, outcome{"unknown, no answer", "absent", "done", 0}},
		payments.Latency:       {payments.Switch{DelayMS: 1}, outcome{"done", "found", "done", 1}},
		payments.FailAfter:     {payments.Switch{}, outcome{bad, "found", "done", 1}},
		payments.DropAfter:     {payments.Switch{}, outcome{"unknown, no answer", "found", "done", 1}},
		payments.WrongAmount:   {payments.Switch{}, outcome{"done", "found", "done", 1}}, // for the runtime to see: Tool.Equal
		payments.Garbage:       {payments.Switch{}, outcome{bad, "found", "done", 1}},
		payments.DuplicateKeys: {payments.Switch{}, outcome{bad, "found", "done", 1}},
		payments.Oversize:      {payments.Switch{}, outcome{bad, "found", "done", 1}},
		payments.Truncate:      {payments.Switch{}, outcome{bad, "found", "done", 1}},
		payments.SlowBody:      {payments.Switch{DelayMS: 1}, outcome{"done", "found", "done", 1}},
		payments.LookupFails:   {payments.Switch{}, outcome{"done", bad, "done", 1}},
	}
	if len(tests) != len(payments.Faults()) {
		t.Errorf("%d faults are tested, there are %d", len(tests), len(payments.Faults()))
	}
	for fault, tt := range tests {
		t.Run(string(fault), func(t *testing.T) {
			tt.sw.Count = 1
			s, tool := desk(t, toolruntime.Idempotent, payments.Switches{Faults: map[payments.Fault]payments.Switch{fault: tt.sw}})
			receipt, err := tool.Run(t.Context(), effect, args)
			got := outcome{Run: class(err), Effects: effectsOf(t, s)}
			if err == nil && (receipt.Data.AmountCents != args.AmountCents) != (fault == payments.WrongAmount) {
				t.Errorf("paid %d cents", receipt.Data.AmountCents)
			}
			_, found, err := tool.Find(t.Context(), effect, args)
			switch {
			case err != nil:
				got.Find = class(err)
			case found:
				got.Find = "found"
			default:
				got.Find = "absent"
			}
			_, err = tool.Run(t.Context(), effect, args)
			got.Again = class(err)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
			if n := effectsOf(t, s); n != 1 {
				t.Errorf("%d effects in the end", n)
			}
		})
	}
}

func effectsOf(t *testing.T, s *payments.Server) int {
	t.Helper()
	effects, err := s.Effects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return effects[effect.Identity]
}

func TestToolRefusals(t *testing.T) {
	_, tool := desk(t, toolruntime.Queryable, payments.Switches{})
	if _, err := tool.Run(t.Context(), effect, args); err != nil {
		t.Fatal(err)
	}
	other := args
	other.AmountCents++
	if _, err := tool.Run(t.Context(), effect, other); class(err) != "review, "+httpeffect.Conflict.String() {
		t.Errorf("other amount: %s", class(err))
	}
	other.Currency = "euro"
	if _, err := tool.Run(t.Context(), effect, other); class(err) != "give up, refused" {
		t.Errorf("bad currency: %s", class(err))
	}
}

// TestToolBadDownstream is why such a tool is once: the key means nothing there.
func TestToolBadDownstream(t *testing.T) {
	s, tool := desk(t, toolruntime.Once, payments.Switches{Dedup: "off"})
	for range 2 {
		if _, err := tool.Run(t.Context(), effect, args); err != nil {
			t.Fatal(err)
		}
	}
	if n := effectsOf(t, s); n != 2 {
		t.Errorf("%d effects, want 2", n)
	}
}

// TestToolTimeout leaves while the server waits. Nobody may say then that
// nothing was done: not Run, and not Find.
func TestToolTimeout(t *testing.T) {
	for _, fault := range []payments.Fault{payments.Latency, payments.SlowBody} {
		t.Run(string(fault), func(t *testing.T) {
			_, tool := desk(t, toolruntime.Queryable, payments.Switches{Faults: map[payments.Fault]payments.Switch{fault: {Count: 1, DelayMS: 3_600_000}}})
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			_, err := tool.Run(ctx, effect, args)
			if !strings.HasPrefix(class(err), "unknown") || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("run: %v", err)
			}
			_, found, err := tool.Find(t.Context(), effect, args)
			if fault == payments.Latency && class(err) != "unknown, in flight" || fault == payments.SlowBody && !found {
				t.Errorf("find: %v %v", found, err)
			}
		})
	}
}

// TestToolEdge has something before the server answer for it. Nothing of that is
// proof, though the statuses are the server's.
func TestToolEdge(t *testing.T) {
	for _, status := range []int{400, 401, 403, 404, 408, 413, 425, 429, 500, 502, 503, 504} {
		for _, body := range []string{"", "<html>try again</html>", `{"type":"about:blank","status":503}`} {
			h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(status)
				io.WriteString(w, body)
			}))
			tool := payments.Tool(h.URL, h.Client(), toolruntime.Queryable)
			if _, err := tool.Run(t.Context(), effect, args); class(err) != "unknown, unknown" {
				t.Errorf("%d %q: run: %s", status, body, class(err))
			}
			if _, found, err := tool.Find(t.Context(), effect, args); found || err == nil {
				t.Errorf("%d %q: find: %v %v", status, body, found, err)
			}
			h.Close()
		}
	}
}

// TestToolWrongAddress proves that a 404 of somebody else is not "not paid".
func TestToolWrongAddress(t *testing.T) {
	h := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(h.Close)
	tool := payments.Tool(h.URL+"/v0", h.Client(), toolruntime.Queryable)
	if _, found, err := tool.Find(t.Context(), effect, args); found || err == nil {
		t.Errorf("find: %v %v", found, err)
	}
	if _, err := payments.Tool("http://user:SECRET@host:port", nil, toolruntime.Once).Run(t.Context(), effect, args); err == nil || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("bad address: %v", err)
	}
}
