package conformance

import (
	"context"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/examples/payments"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// openBank is a payment server in this process.
func openBank(t testing.TB) (*payments.Server, string) {
	t.Helper()
	s, err := payments.Open(filepath.Join(t.TempDir(), "bank.sqlite3"))
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s)
	t.Cleanup(func() {
		s.Stop()
		h.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, h.URL
}

func effectsOf(t testing.TB, s *payments.Server, b *toolresult.Bound) int {
	t.Helper()
	effects, err := s.Effects(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return effects[b.EffectIdentity()]
}

// TestWorkFaults: what a payment ends as, whatever the bank does wrong once, by
// the kind of the effect, and how many effects there are then.
func TestWorkFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	const (
		paid    = "succeeded, 1 effect"
		nobody  = "in_review OUTCOME_UNKNOWN, 0 effects" // nothing has happened, but nobody can say so
		unknown = "in_review OUTCOME_UNKNOWN, 1 effect"
		broken  = "in_review OUTPUT_CONTRACT_VIOLATION, 1 effect"
	)
	one, second := payments.Switch{Count: 1, DelayMS: 1}, payments.Switch{Count: 1, RetryAfter: new(int64(2))}
	tests := []struct {
		name                        string
		faults                      map[payments.Fault]payments.Switch
		once, queryable, idempotent string
	}{
		{"none", nil, paid, paid, paid},
		{"too many", map[payments.Fault]payments.Switch{payments.TooMany: second}, paid, paid, paid},
		{"unavailable", map[payments.Fault]payments.Switch{payments.Unavailable: second}, paid, paid, paid},
		{"unavailable, and does not say until when", map[payments.Fault]payments.Switch{payments.Unavailable: one}, nobody, paid, paid},
		{"in flight", map[payments.Fault]payments.Switch{payments.InFlight: one}, nobody, paid, paid},
		{"fails before", map[payments.Fault]payments.Switch{payments.FailBefore: one}, nobody, paid, paid},
		{"drops before", map[payments.Fault]payments.Switch{payments.DropBefore: one}, nobody, paid, paid},
		{"latency", map[payments.Fault]payments.Switch{payments.Latency: one}, paid, paid, paid},
		{"fails after", map[payments.Fault]payments.Switch{payments.FailAfter: one}, unknown, paid, paid},
		{"drops after", map[payments.Fault]payments.Switch{payments.DropAfter: one}, unknown, paid, paid},
		{"wrong amount", map[payments.Fault]payments.Switch{payments.WrongAmount: one}, broken, broken, broken},
		{"garbage", map[payments.Fault]payments.Switch{payments.Garbage: one}, unknown, paid, paid},
		{"duplicate keys", map[payments.Fault]payments.Switch{payments.DuplicateKeys: one}, unknown, paid, paid},
		{"oversize", map[payments.Fault]payments.Switch{payments.Oversize: one}, unknown, paid, paid},
		{"truncated", map[payments.Fault]payments.Switch{payments.Truncate: one}, unknown, paid, paid},
		{"slow body", map[payments.Fault]payments.Switch{payments.SlowBody: one}, paid, paid, paid},
		{"drops after, and the lookup fails", map[payments.Fault]payments.Switch{payments.DropAfter: one, payments.LookupFails: one}, unknown, paid, paid},
		{"too many, and drops before then", map[payments.Fault]payments.Switch{payments.TooMany: second, payments.DropBefore: one}, nobody, paid, paid},
	}
	forEachEngine(t, func(t *testing.T, e engine) {
		bank, url := openBank(t)
		d := newDesk(t, e, withAuthorizer(anybody), withTools(payTools(url, url)...))
		for i, tt := range tests {
			for tool, want := range map[string]string{"pay_once": tt.once, "pay_queryable": tt.queryable, "pay_idempotent": tt.idempotent} {
				t.Run(tt.name+"/"+tool, func(t *testing.T) {
					sw := payments.Switches{Faults: tt.faults}
					if payKinds[tool] == toolruntime.Once {
						sw.Dedup = "off"
					}
					if err := bank.Set(sw); err != nil {
						t.Fatal(err)
					}
					d.t = t
					call := payCall(tool, fmt.Sprint(tool, "-", i))
					ref := d.submit(call)
					d.finish(ref)
					if got := d.fate(bank, call); got != want {
						t.Errorf("it is %s, want %s", got, want)
					}
				})
			}
		}
		d.t = t
		if r := d.audit(); !r.Passed {
			t.Errorf("audit: %q", r.SemanticErrors)
		}
	})
}

// finish runs a worker whose clock rushes past every backoff, until an operation
// has ended or is in review.
func (d *desk) finish(ref string) {
	d.t.Helper()
	stop := d.work(toolruntime.WorkOptions{MaxAge: 1000 * time.Hour})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- d.Wait(ctx, ref) }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			if err != nil {
				d.t.Error(err)
			}
			stop()
			return
		case <-tick.C:
			d.setTime(d.time() + 60)
		}
	}
}

// fate is how a payment stands, and how many effects it has had.
func (d *desk) fate(bank *payments.Server, c toolresult.Call) string {
	d.t.Helper()
	b := d.bind(user("user-1"), c)
	h, err := d.History(context.Background(), b.StatusRef())
	if err != nil {
		d.t.Fatal(err)
	}
	n := effectsOf(d.t, bank, b)
	text := fmt.Sprintf("%s, %d effects", strings.TrimSpace(string(h.State)+" "+string(h.Reason)), n)
	if n == 1 {
		text = strings.TrimSuffix(text, "s")
	}
	return text
}
