package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
)

const racers = 8

// rounds is how often each race is run.
func rounds() int {
	if long() {
		return 50
	}
	return 5
}

// A contest is a race that must have one result whoever wins.
type contest struct {
	name string
	// prepare makes what the racers race for and returns a word for them.
	prepare func(d *desk) string
	// run is what one racer does.
	run func(ctx context.Context, d *desk, word string, racer int) string
	// judge holds the answers, counted, and the ledger against the contract.
	judge func(d *desk, answers map[string]int)
}

var contests = []contest{
	{
		name:    "same intent",
		prepare: func(*desk) string { return "" },
		run: func(ctx context.Context, d *desk, _ string, racer int) string {
			return raceDispatch(ctx, d, refundCall("race"), racer)
		},
		judge: func(d *desk, answers map[string]int) {
			expect(d, map[string]int{"OUTCOME_UNKNOWN": racers}, answers)
			expectCounts(d, toolruntime.Counts{CallBindings: 1, Operations: 1, Outbox: 1})
		},
	},
	{
		name:    "different intents",
		prepare: func(*desk) string { return "" },
		run: func(ctx context.Context, d *desk, _ string, racer int) string {
			reason := []string{"duplicate", "damaged"}[racer%2]
			c := callOf("create_refund_draft", "race", `{"order_ref":"ORDER-7","reason":"`+reason+`"}`)
			c.CallID, c.ResponseID = "call-"+reason, "response-"+reason
			return raceDispatch(ctx, d, c, racer)
		},
		judge: func(d *desk, answers map[string]int) {
			expect(d, map[string]int{"OUTCOME_UNKNOWN": racers / 2, "IDEMPOTENCY_CONFLICT": racers / 2}, answers)
			expectCounts(d, toolruntime.Counts{CallBindings: 2, Operations: 1, Outbox: 1})
		},
	},
	{
		name: "workers",
		prepare: func(d *desk) string {
			return d.send(user("user-1"), refundCall("race"), drill.AfterIntentCommit).StatusRef()
		},
		run: func(ctx context.Context, d *desk, ref string, racer int) string {
			d.setTime(start + 1)
			outcome, err := d.Process(ctx, ref, fmt.Sprintf("worker-%d", racer), nil)
			if err != nil {
				return err.Error()
			}
			return string(outcome)
		},
		judge: func(d *desk, answers map[string]int) {
			if answers["succeeded"] < 1 || answers["succeeded"]+answers["not_claimed"] != racers {
				d.t.Errorf("answers: %v", answers)
			}
			expectCounts(d, toolruntime.Counts{CallBindings: 1, Operations: 1, Outbox: 1, DownstreamReceipts: 1, LocalReceipts: 1})
		},
	},
	{
		name: "claims",
		prepare: func(d *desk) string {
			return d.send(user("user-1"), refundCall("race"), drill.AfterIntentCommit).StatusRef()
		},
		run: func(ctx context.Context, d *desk, ref string, racer int) string {
			c, err := hold(ctx, d.Runtime, ref, fmt.Sprintf("worker-%d", racer), toolruntime.DefaultLease)
			switch {
			case err != nil:
				return err.Error()
			case c == nil:
				return "no"
			}
			return fmt.Sprintf("attempt %d", c.Attempt)
		},
		judge: func(d *desk, answers map[string]int) {
			expect(d, map[string]int{"attempt 1": 1, "no": racers - 1}, answers)
		},
	},
}

func raceDispatch(ctx context.Context, d *desk, c toolresult.Call, racer int) string {
	p := user("user-1")
	pkg, err := d.Dispatch(drill.StopAt(ctx, drill.AfterIntentCommit), p, c, &toolruntime.DispatchOptions{
		Approvals: d.approval(p, c, "valid"),
		WorkerID:  fmt.Sprintf("worker-%d", racer)})
	if err != nil {
		return err.Error()
	}
	return string(pkg.Code())
}

func expect(d *desk, want, got map[string]int) {
	d.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		d.t.Errorf("answers (-want +got):\n%s", diff)
	}
}

func expectCounts(d *desk, want toolruntime.Counts) {
	d.t.Helper()
	if diff := cmp.Diff(want, d.counts()); diff != "" {
		d.t.Errorf("counts (-want +got):\n%s", diff)
	}
	if r := d.audit(); !r.Passed {
		d.t.Errorf("audit: %q", r.SemanticErrors)
	}
}

// TestRaceGoroutines runs every contest between stores of one process, and
// between goroutines that share one.
func TestRaceGoroutines(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	forEachEngine(t, func(t *testing.T, e engine) {
		for _, c := range contests {
			for _, shared := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/shared=%v", c.name, shared), func(t *testing.T) {
					for range rounds() {
						raceGoroutines(t, e, c, shared)
					}
				})
			}
		}
	})
}

func raceGoroutines(t *testing.T, e engine, c contest, shared bool) {
	d := newDesk(t, e)
	defer d.store.Close()
	word := c.prepare(d)
	desks := make([]*desk, racers)
	for i := range desks {
		if desks[i] = d; !shared {
			desks[i] = d.another()
			defer desks[i].store.Close()
		}
	}
	var all, ready sync.WaitGroup
	answers := make([]string, racers)
	ready.Add(racers)
	for i, racer := range desks {
		all.Go(func() {
			ready.Done()
			ready.Wait()
			answers[i] = c.run(context.Background(), racer, word, i)
		})
	}
	all.Wait()
	c.judge(d, tally(answers))
}

func tally(answers []string) map[string]int {
	m := map[string]int{}
	for _, a := range answers {
		m[a]++
	}
	return m
}

// TestCancel cancels reservations at random moments: each is answered, kept
// whole or not kept at all, and the store goes on working.
func TestCancel(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("TOOLRUNTIME_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("TOOLRUNTIME_SEED=%d", seed)
	forEachEngine(t, func(t *testing.T, e engine) {
		d := newDesk(t, e)
		const callers, each = 16, 625
		// Two milliseconds, or what makes a cancellation hit all parts of a
		// reservation where the database or the machine is slower: what so many
		// callers at once take, once there are connections.
		within, warm := 2*time.Millisecond, 0
		for range 2 {
			began := time.Now()
			var all sync.WaitGroup
			for range callers {
				call := refundCall(fmt.Sprintf("warm-%d", warm))
				all.Go(func() { d.send(user("user-1"), call, drill.AfterIntentCommit) })
				warm++
			}
			all.Wait()
			within = max(2*time.Millisecond, time.Since(began))
		}
		var all sync.WaitGroup
		for caller := range callers {
			random := rand.New(rand.NewPCG(seed, uint64(caller)))
			all.Go(func() {
				for i := range each {
					cancelSome(d, random, within, fmt.Sprintf("%d-%d", caller, i))
				}
			})
		}
		all.Wait()
		c := d.counts()
		t.Logf("of %d reservations that were cancelled within %v %d were kept", callers*each, within, c.Operations-int64(warm))
		if c.Operations != c.Outbox || c.CallBindings < c.Operations || c.Operations == int64(warm) || c.Operations == int64(warm+callers*each) {
			t.Errorf("counts: %+v", c)
		}
		if r := d.audit(); !r.Passed {
			t.Errorf("audit: %q", r.SemanticErrors)
		}
		if pkg := d.send(user("user-1"), refundCall("afterwards"), alive); pkg.Code() != toolresult.OK {
			t.Errorf("afterwards: %s", pkg.Code())
		}
	})
}

func cancelSome(d *desk, random *rand.Rand, within time.Duration, key string) {
	p, c := user("user-1"), refundCall(key)
	a := d.approval(p, c, "valid")
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(random.Int64N(int64(within))))
	defer cancel()
	pkg, err := d.Dispatch(drill.StopAt(ctx, drill.AfterIntentCommit), p, c, &toolruntime.DispatchOptions{Approvals: a})
	switch {
	case err == nil && pkg.Code() == toolresult.OutcomeUnknown:
	case errors.Is(err, context.DeadlineExceeded):
	default:
		d.t.Errorf("dispatch: %v, %v", pkg, err)
	}
}
