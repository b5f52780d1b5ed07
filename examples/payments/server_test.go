package payments_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/examples/payments"
)

const fiveEuro = `{"account":"ACC-1","amount_cents":500,"currency":"EUR"}`

func open(t *testing.T, sw payments.Switches) *payments.Server {
	t.Helper()
	s, err := payments.Open(filepath.Join(t.TempDir(), "odd name?#%.sqlite3"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Set(sw); err != nil {
		t.Fatal(err)
	}
	return s
}

// reply is what of an answer is compared.
type reply struct {
	Status           int
	Body             string
	Replayed         string
	RetryAfter, Kind string
}

func ask(s http.Handler, method, path, key, body string) reply {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	return do(s, r)
}

func do(s http.Handler, r *http.Request) reply {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	h := w.Result().Header
	return reply{w.Code, w.Body.String(), h.Get("Idempotent-Replayed"), h.Get("Retry-After"), h.Get("Content-Type")}
}

func problem(status int, kind string) reply {
	body, _ := json.Marshal(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
	}{kind, http.StatusText(status), status})
	return reply{Status: status, Body: string(body), Kind: "application/problem+json"}
}

func TestContract(t *testing.T) {
	const first = `{"payment_id":"pay_1","request_id":"req_1","account":"ACC-1","amount_cents":500,"currency":"EUR"}`
	const ok = "application/json"
	busy := func(r reply) reply { r.RetryAfter = "1"; return r }
	bad := problem(400, payments.ProblemBadRequest)
	s := open(t, payments.Switches{})
	for _, step := range []struct {
		name, method, path, key, body string
		want                          reply
	}{
		{"not there", "GET", "/payments/k1", "", "", problem(404, payments.ProblemNoSuchKey)},
		{"pay", "POST", "/payments", "k1", fiveEuro, reply{Status: 201, Body: first, Kind: ok}},
		{"again", "POST", "/payments", "k1", fiveEuro, reply{Status: 200, Body: first, Replayed: "true", Kind: ok}},
		{"again, other order", "POST", "/payments", "k1", `{"currency":"EUR", "amount_cents":500,"account":"ACC-1"}`, reply{Status: 200, Body: first, Replayed: "true", Kind: ok}},
		{"other amount", "POST", "/payments", "k1", strings.Replace(fiveEuro, "500", "501", 1), problem(422, payments.ProblemMismatch)},
		{"there", "GET", "/payments/k1", "", "", reply{Status: 200, Body: first, Kind: ok}},
		{"other key", "POST", "/payments", "k2", fiveEuro, reply{Status: 201, Body: strings.NewReplacer("pay_1", "pay_2", "req_1", "req_2").Replace(first), Kind: ok}},
		{"no key", "POST", "/payments", "", fiveEuro, bad},
		{"key with a space", "POST", "/payments", "k 1", fiveEuro, bad},
		{"key too long", "POST", "/payments", strings.Repeat("k", 256), fiveEuro, bad},
		{"repeated member", "POST", "/payments", "k3", strings.Replace(fiveEuro, "{", `{"amount_cents":1,`, 1), bad},
		{"unknown member", "POST", "/payments", "k3", strings.Replace(fiveEuro, "{", `{"memo":1,`, 1), bad},
		{"other case", "POST", "/payments", "k3", strings.Replace(fiveEuro, "amount", "Amount", 1), bad},
		{"no amount", "POST", "/payments", "k3", `{"account":"ACC-1","currency":"EUR"}`, bad},
		{"nothing", "POST", "/payments", "k3", strings.Replace(fiveEuro, "500", "0", 1), bad},
		{"too much", "POST", "/payments", "k3", strings.Replace(fiveEuro, "500", "100000001", 1), bad},
		{"too long", "POST", "/payments", "k3", fiveEuro + strings.Repeat(" ", 16<<10), bad},
		{"no fault", "POST", "/switches", "", `{"faults":{"sulk":{"count":1}}}`, bad},
		{"no share", "POST", "/switches", "", `{"faults":{"garbage":{"probability":1.5}}}`, bad},
		{"no such dedup", "POST", "/switches", "", `{"dedup":"maybe"}`, bad},
		{"busy once", "POST", "/switches", "", `{"faults":{"in_flight":{"count":1,"retry_after":1}}}`, reply{Status: 200, Body: `{"faults":{"in_flight":{"count":1,"retry_after":1}}}`, Kind: ok}},
		{"in flight", "POST", "/payments", "k1", fiveEuro, busy(problem(409, payments.ProblemInFlight))},
		{"no more", "POST", "/payments", "k1", fiveEuro, reply{Status: 200, Body: first, Replayed: "true", Kind: ok}},
		{"stats", "GET", "/stats", "", "", reply{Status: 200, Body: `{"total":2,"effects":{"k1":1,"k2":1}}`, Kind: ok}},
		{"dedup off", "POST", "/switches", "", `{"dedup":"off"}`, reply{Status: 200, Body: `{"dedup":"off"}`, Kind: ok}},
		{"double", "POST", "/payments", "k1", fiveEuro, reply{Status: 201, Body: strings.NewReplacer("pay_1", "pay_3", "req_1", "req_3").Replace(first), Kind: ok}},
		{"counted", "GET", "/stats", "", "", reply{Status: 200, Body: `{"total":3,"effects":{"k1":2,"k2":1}}`, Kind: ok}},
	} {
		if diff := cmp.Diff(step.want, ask(s, step.method, step.path, step.key, step.body)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	s.Stop()
	if diff := cmp.Diff(busy(problem(503, payments.ProblemUnavailable)), ask(s, "POST", "/payments", "k9", fiveEuro)); diff != "" {
		t.Errorf("stopped (-want +got):\n%s", diff)
	}
}

// TestLateEffect is the payment of a client that has gone: its key is in
// flight, never absent, and then paid.
func TestLateEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, payments.Switches{Faults: map[payments.Fault]payments.Switch{payments.Latency: {Count: 1, DelayMS: 60_000}}})
		ctx, leave := context.WithCancel(t.Context())
		first := make(chan reply, 1)
		go func() {
			r := httptest.NewRequestWithContext(ctx, "POST", "/payments", strings.NewReader(fiveEuro))
			r.Header.Set("Idempotency-Key", "k1")
			first <- do(s, r)
		}()
		synctest.Wait()
		leave()
		for _, method := range []string{"GET", "POST"} {
			path := map[string]string{"GET": "/payments/k1", "POST": "/payments"}[method]
			want := problem(409, payments.ProblemInFlight)
			want.RetryAfter = "1"
			if diff := cmp.Diff(want, ask(s, method, path, "k1", fiveEuro)); diff != "" {
				t.Errorf("%s in flight (-want +got):\n%s", method, diff)
			}
		}
		start := time.Now()
		if r := <-first; r.Status != 201 || time.Since(start) != time.Minute {
			t.Errorf("first: %v after %v", r, time.Since(start))
		}
		if r := ask(s, "GET", "/payments/k1", "", ""); r.Status != 200 {
			t.Errorf("afterwards: %v", r)
		}
	})
}

// TestStopEndsDelays proves that a stopped server turns away what it has not
// begun.
func TestStopEndsDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, payments.Switches{Faults: map[payments.Fault]payments.Switch{payments.Latency: {Count: 1, DelayMS: 3_600_000}}})
		waiting := make(chan reply, 1)
		go func() { waiting <- ask(s, "POST", "/payments", "k1", fiveEuro) }()
		synctest.Wait()
		s.Stop()
		if r := <-waiting; r.Status != 503 {
			t.Errorf("got %v", r)
		}
		if effects, err := s.Effects(t.Context()); err != nil || len(effects) != 0 {
			t.Errorf("effects %v, error %v", effects, err)
		}
	})
}

// TestSameKeyAtOnce has many requests of one key: one effect.
func TestSameKeyAtOnce(t *testing.T) {
	s := open(t, payments.Switches{})
	ids := make(chan string, 32)
	for range cap(ids) {
		go func() {
			for {
				r := ask(s, "POST", "/payments", "k1", fiveEuro)
				if r.Status != http.StatusConflict {
					ids <- r.Body
					return
				}
			}
		}()
	}
	first := <-ids
	for range cap(ids) - 1 {
		if diff := cmp.Diff(first, <-ids); diff != "" {
			t.Errorf("answers differ:\n%s", diff)
		}
	}
	effects, err := s.Effects(t.Context())
	if diff := cmp.Diff(map[string]int{"k1": 1}, effects); diff != "" || err != nil {
		t.Errorf("error %v, effects (-want +got):\n%s", err, diff)
	}
}

// TestSeed proves that a seed decides, and that faults do not disturb each
// other's decisions.
func TestSeed(t *testing.T) {
	statuses := func(seed uint64, more bool) []int {
		sw := payments.Switches{Seed: seed, Faults: map[payments.Fault]payments.Switch{payments.FailAfter: {Probability: 0.5}}}
		if more {
			sw.Faults[payments.WrongAmount] = payments.Switch{Probability: 0.5}
		}
		s := open(t, sw)
		got := make([]int, 40)
		for i := range got {
			got[i] = ask(s, "POST", "/payments", "k1", fiveEuro).Status
		}
		return got
	}
	one := statuses(1, false)
	if diff := cmp.Diff(one, statuses(1, true)); diff != "" {
		t.Errorf("same seed:\n%s", diff)
	}
	if cmp.Equal(one, statuses(2, false)) {
		t.Error("the seed has no effect")
	}
}

func mustRead(t *testing.T, r io.Reader, v any) {
	t.Helper()
	if err := json.NewDecoder(r).Decode(v); err != nil {
		t.Fatal(err)
	}
}
