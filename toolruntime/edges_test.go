package toolruntime_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

// TestLongLeases: however long a lease is, the handler has its time.
func TestLongLeases(t *testing.T) {
	for _, lease := range []time.Duration{time.Second, 9_223_372_036 * time.Second} {
		s := newShop(t, toolruntime.Once, func(_ context.Context, e toolruntime.Effect, _ int) (toolruntime.Receipt[payment], error) {
			return paid(e)
		})
		call := shopCall("pay", "k")
		b, err := s.Bind(payer, call)
		if err != nil {
			t.Fatal(err)
		}
		pkg, err := s.Dispatch(context.Background(), payer, call, &toolruntime.DispatchOptions{Lease: lease,
			Approvals: []toolresult.Approval{toolresult.NewApproval(b, "a", "reviewer", time.Unix(s.time()+60, 0))}})
		if err != nil || pkg.Code() != toolresult.OK {
			t.Errorf("%v: %v, %v", lease, pkg, err)
		}
	}
}

// TestLongWaits: a wait without an end is stored as one, and a worker's lease as well.
func TestLongWaits(t *testing.T) {
	s := newShop(t, toolruntime.Once, func(_ context.Context, e toolruntime.Effect, _ int) (toolruntime.Receipt[payment], error) {
		if e.IdempotencyKey == "later" {
			return toolruntime.Receipt[payment]{}, toolruntime.RetryLater(math.MaxInt64, errors.New("not in your time"))
		}
		return paid(e)
	})
	later, now := s.submit("pay", "later"), s.submit("pay", "now")
	stop := s.work(toolruntime.WorkOptions{Lease: 9_223_372_036 * time.Second, Drain: math.MaxInt64, MaxAge: math.MaxInt64, MaxAttempts: math.MaxInt64})
	s.wait(now)
	for s.state(later) != "pending" || s.ran("later") == 0 {
		s.pass(0)
	}
	stop()
	h, err := s.History(context.Background(), later)
	if err != nil {
		t.Fatal(err)
	}
	if last := h.Moments[len(h.Moments)-1]; last.What != "waiting" || last.Until != utc(s.time()+9_223_372_037) {
		t.Errorf("%+v", last)
	}
	s.audit()
}

// TestPruneNever: what shall never be pruned is not what has ended a second ago.
func TestPruneNever(t *testing.T) {
	rt := refundLedger(t, filepath.Join(t.TempDir(), "ledger.sqlite3"), 10)
	for _, age := range []time.Duration{math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 - time.Second} {
		r, err := rt.Prune(context.Background(), &toolruntime.PruneOptions{OlderThan: age, Limit: math.MaxInt})
		if diff := cmp.Diff(toolruntime.PruneReport{Damaged: []string{}}, r); err != nil || diff != "" {
			t.Errorf("%v: %v (-want +got):\n%s", age, err, diff)
		}
	}
}

// TestOptionRanges: an option out of range is refused before anything is done.
func TestOptionRanges(t *testing.T) {
	ctx := context.Background()
	s := newShop(t, toolruntime.Once, func(_ context.Context, e toolruntime.Effect, _ int) (toolruntime.Receipt[payment], error) {
		return paid(e)
	})
	rate := func(perSecond float64) error {
		_, err := toolruntime.SpecOf(toolruntime.Tool[payArgs, payment]{Name: "pay", MaxPerSecond: perSecond,
			Resource: func(payArgs) string { return "" },
			Run: func(context.Context, toolruntime.Effect, payArgs) (toolruntime.Receipt[payment], error) {
				return toolruntime.Receipt[payment]{}, nil
			}})
		return err
	}
	work := func(o toolruntime.WorkOptions) error { return s.Work(ctx, &o) }
	for name, err := range map[string]error{
		"no number a second":            rate(math.NaN()),
		"infinitely many a second":      rate(math.Inf(1)),
		"fewer than none a second":      rate(-1),
		"a lease in the past":           work(toolruntime.WorkOptions{Lease: math.MinInt64}),
		"a short lease":                 work(toolruntime.WorkOptions{Lease: time.Second - 1}),
		"a worker's lease of fractions": work(toolruntime.WorkOptions{Lease: 1500 * time.Millisecond}),
		"too many at once":              work(toolruntime.WorkOptions{Concurrency: math.MaxInt}),
		"fewer than none at once":       work(toolruntime.WorkOptions{Concurrency: -1}),
		"attempts":                      work(toolruntime.WorkOptions{MaxAttempts: math.MinInt64}),
		"review": func() error {
			_, err := s.Review(ctx, "", -1)
			return err
		}(),
		"redrive": func() error {
			_, err := s.Redrive(ctx, &toolruntime.RedriveOptions{Actor: "dana", Reason: "why", Stagger: math.MinInt64})
			return err
		}(),
		"prune": func() error {
			_, err := s.Prune(ctx, &toolruntime.PruneOptions{OlderThan: math.MinInt64})
			return err
		}(),
		"no age": second(s.Prune(ctx, nil)),
		"nobody": second(s.Redrive(ctx, nil)),
		"a lease of fractions": second(s.Process(ctx, s.submit("pay", "k"), "worker",
			&toolruntime.ProcessOptions{Lease: time.Second + 1})),
		"a lease of less than a second": second(s.Dispatch(ctx, payer, shopCall("pay", "other"),
			&toolruntime.DispatchOptions{Lease: time.Second - 1})),
	} {
		if !errors.Is(err, toolruntime.ErrInvalidInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := rate(5e-324); err != nil {
		t.Errorf("very seldom: %v", err)
	}
}

// TestFailuresRepeat: a failure answers every repetition with the same digest, as a
// replay, whenever it is asked.
func TestFailuresRepeat(t *testing.T) {
	for name, end := range map[string]func(*shop, string){
		"given up": func(*shop, string) {},
		"abandoned": func(s *shop, ref string) {
			s.pass(100)
			if err := s.Resolve(context.Background(), toolruntime.Resolution{StatusRef: ref, Decision: toolruntime.Abandoned, Actor: "dana", Reason: "nobody knows"}); err != nil {
				s.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, toolruntime.Once, func(context.Context, toolruntime.Effect, int) (toolruntime.Receipt[payment], error) {
				if name == "given up" {
					return toolruntime.Receipt[payment]{}, toolruntime.GiveUp(errors.New("no such account"))
				}
				return toolruntime.Receipt[payment]{}, errors.New("connection reset")
			})
			ref := s.submit("pay", "k")
			if _, err := s.Process(context.Background(), ref, "worker", nil); err != nil {
				t.Fatal(err)
			}
			end(s, ref)
			ended := s.time()
			var digests []string
			for range 3 {
				s.pass(50)
				pkg := s.answer("pay", "k")
				digests = append(digests, pkg.ProtectedAudit.Binding.ResultSHA256)
				if pkg.Delivery() != toolresult.LocalReplay || pkg.ModelResult.Provenance.ObservedAt != contract.FormatTime(ended) || pkg.Ended.At != utc(ended) {
					t.Errorf("%+v", pkg)
				}
			}
			if len(slices.Compact(digests)) != 1 {
				t.Errorf("digests %q", digests)
			}
		})
	}
}

// TestHistoryKeepsSecrets: nothing of an answer that was refused is in the history
// of its operation, nor in the audit.
func TestHistoryKeepsSecrets(t *testing.T) {
	for name, data := range map[string]string{
		"a key":           `{"by_card":{"secret 4111":"x"}}`,
		"a repeated key":  `{"by_card":{"secret 4111":1,"secret 4111":2}}`,
		"an unknown key":  `{"secret 4111":1}`,
		"a value":         `{"by_card":"secret 4111"}`,
		"a key like ours": `{"by_card":{"secret: breaks the schema: secret":"x"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.sqlite3")
			tool := toolruntime.Tool[payArgs, json.RawMessage]{Name: "cards", Effect: toolruntime.Once,
				OutputSchema: json.RawMessage(`{"type":"object","properties":{"by_card":{"type":"object","additionalProperties":{"type":"integer"}}},"additionalProperties":false}`),
				Resource:     func(payArgs) string { return "x" },
				Run: func(context.Context, toolruntime.Effect, payArgs) (toolruntime.Receipt[json.RawMessage], error) {
					return toolruntime.Receipt[json.RawMessage]{ID: "r", RequestID: "q", Data: json.RawMessage(data)}, nil
				}}
			store, err := sqlitestore.Open(context.Background(), path, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			allow := func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil }
			rt, err := toolruntime.New(store, &toolruntime.Options{Authorizer: allow, Approvers: allow}, tool)
			if err != nil {
				t.Fatal(err)
			}
			call := shopCall("cards", "k")
			b, err := rt.Bind(payer, call)
			if err != nil {
				t.Fatal(err)
			}
			pkg, err := rt.Dispatch(context.Background(), payer, call, &toolruntime.DispatchOptions{
				Approvals: []toolresult.Approval{toolresult.NewApproval(b, "a", "reviewer", time.Now().Add(time.Hour))}})
			if err != nil || pkg.Code() != toolresult.OutputContractViolation {
				t.Fatal(pkg, err)
			}
			h, err := rt.History(context.Background(), b.StatusRef())
			if err != nil {
				t.Fatal(err)
			}
			// An earlier version has stored the place.
			plainExec(t, path, `UPDATE rejected_receipts SET violation = 'data.by_card["secret"]: breaks the schema: type'`)
			old, err := rt.History(context.Background(), b.StatusRef())
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal([]any{h, old})
			if err != nil || strings.Contains(string(text), "secret") || !strings.Contains(string(text), "refused") {
				t.Errorf("%v: %s", err, text)
			}
		})
	}
}

// TestAuditDamagedPage: a page that cannot be read is a finding, which quotes nothing
// of it, and what can be read is examined.
func TestAuditDamagedPage(t *testing.T) {
	const page, argument = 4096, `"order_ref"`
	for _, test := range []struct {
		name string
		find func(file string) int // a place in the page
		more bool                  // operations can be read beside it
	}{
		{"the root of the operations", func(file string) int { return strings.Index(file, argument) }, false},
		{"a page of some", func(file string) int { return strings.LastIndex(file[:len(file)/2], argument) }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.sqlite3")
			rt := refundLedger(t, path, 300)
			plainExec(t, path, "UPDATE operations SET approval_id = 'another' WHERE operation_pk = 300; PRAGMA wal_checkpoint(TRUNCATE)")
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			copy(file[test.find(string(file))/page*page:], strings.Repeat("\xff", 16))
			if err := os.WriteFile(path, file, 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := rt.Audit(context.Background(), nil)
			if err != nil {
				t.Fatal(err)
			}
			begins := func(with string) bool {
				return slices.ContainsFunc(r.SemanticErrors, func(s string) bool { return strings.HasPrefix(s, with) })
			}
			text, _ := json.Marshal(r)
			if r.Passed || !begins("AUDIT_DAMAGED") || begins("AUDIT_ROW_DIGEST["+refundRef(t, 299)) != test.more || strings.Contains(string(text), "ORDER-") {
				t.Errorf("%.2000s", text)
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

// TestWorkOnAClosedStore: a worker whose store is closed says so and ends, whether it
// was closed before or meanwhile.
func TestWorkOnAClosedStore(t *testing.T) {
	for name, idle := range map[string]time.Duration{"before": 0, "meanwhile": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, err := sqlitestore.Open(context.Background(), filepath.Join(t.TempDir(), "ledger.sqlite3"), nil)
				if err != nil {
					t.Fatal(err)
				}
				rt, err := toolruntime.New(store, nil)
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				if idle > 0 {
					go func() { ended <- rt.Work(context.Background(), nil) }()
					time.Sleep(idle)
				}
				if err := store.Close(); err != nil {
					t.Fatal(err)
				}
				if idle == 0 {
					go func() { ended <- rt.Work(context.Background(), nil) }()
				}
				select {
				case err := <-ended:
					if !errors.Is(err, toolruntime.ErrClosed) {
						t.Error(err)
					}
				case <-time.After(time.Hour):
					t.Fatal("the worker goes on")
				}
			})
		})
	}
}

// TestDrillSaysWhere: a point that a call does not have is named, with those that it has.
func TestDrillSaysWhere(t *testing.T) {
	s := newShop(t, toolruntime.Once, nil)
	ctx := drill.StopAt(context.Background(), "after_clam")
	for want, err := range map[string]error{
		`drill is at the point "after_clam", at which a dispatch does not stop; it has after_intent_commit, after_claim, after_downstream_commit`: second(s.Dispatch(ctx, payer, shopCall("pay", "k"), nil)),
		`drill is at the point "after_clam", at which a worker does not stop`:                                                                     s.Work(ctx, nil),
	} {
		if !errors.Is(err, toolruntime.ErrInvalidInput) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
