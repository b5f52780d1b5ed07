package conformance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/examples/payments"
)

const (
	crashRound  = 50  // kills between two checks
	crashKills  = 100 // in all, unless TOOLRUNTIME_CRASH_KILLS says otherwise
	shortKills  = 25
	killEvery   = 100 * time.Millisecond // at most; half of it on average
	backlogTime = 600                    // seconds: longer than any backoff and lease
)

// crashFaults is what the payment servers do wrong while processes are killed.
func crashFaults(seed uint64, dedup string) payments.Switches {
	second, f := int64(1), payments.Switch{Probability: 0.03}
	later, slow := f, payments.Switch{Probability: 0.2, DelayMS: 40}
	later.RetryAfter = &second
	return payments.Switches{Seed: seed, Dedup: dedup, Faults: map[payments.Fault]payments.Switch{
		payments.TooMany: later, payments.Unavailable: later, payments.InFlight: f, payments.FailBefore: f,
		payments.DropBefore: f, payments.Latency: slow, payments.FailAfter: f, payments.DropAfter: f,
		payments.WrongAmount: {Probability: 0.01}, payments.Garbage: f, payments.DuplicateKeys: f,
		payments.Oversize: {Probability: 0.005}, payments.Truncate: f,
		payments.SlowBody: {Probability: 0.05, DelayMS: 40}, payments.LookupFails: {Probability: 0.1},
	}}
}

// TestCrash kills payment servers, workers and those who submit at random
// instants, again and again, and checks between the rounds that nothing was paid
// or booked twice, nothing that was acknowledged was lost, and everything ends.
func TestCrash(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("TOOLRUNTIME_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	kills := crashKills
	if testing.Short() {
		kills = shortKills
	}
	if s := os.Getenv("TOOLRUNTIME_CRASH_KILLS"); s != "" {
		kills, _ = strconv.Atoi(s)
	}
	t.Logf("TOOLRUNTIME_SEED=%d TOOLRUNTIME_CRASH_KILLS=%d", seed, kills)
	forEachEngine(t, func(t *testing.T, e engine) {
		c := newCrash(t, e, seed)
		defer c.print()
		for c.kills < kills && !t.Failed() {
			c.round(min(crashRound, kills-c.kills))
		}
	})
}

// A crash is a ledger with everything that works on it.
type crash struct {
	*desk
	test   *testing.T
	random *rand.Rand
	seed   uint64
	folder string
	bank   [2]string // the addresses of the bank and of the careless one

	offset        int64 // of the clocks, in seconds
	kills, rounds int
	killed        map[string]int // kills by role
	found         *ledgerState   // at the last check
}

func newCrash(t *testing.T, e engine, seed uint64) *crash {
	c := &crash{test: t, random: rand.New(rand.NewPCG(seed, 0)), seed: seed, folder: t.TempDir(), killed: map[string]int{}}
	for i := range c.bank {
		c.bank[i] = freePort(t, c.random)
	}
	c.desk = newDesk(t, e, c.options(e)...)
	c.mustSQL(bookings)
	if err := c.store.Close(); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *crash) options(e engine) []deskOption {
	return []deskOption{withAuthorizer(anybody), withTools(crashTools(e, "http://"+c.bank[0], "http://"+c.bank[1], nil)...)}
}

func (c *crash) process(s service, weight int) *process {
	s.Bank, s.Careless, s.Offset = "http://"+c.bank[0], "http://"+c.bank[1], c.offset
	s.Seed = c.random.Uint64()
	p := c.newProcess(c.test, s)
	p.weight = weight
	return p
}

// servers are the bank, which deduplicates by key, and the careless one, which
// does not. Faulty ones misbehave.
func (c *crash) servers(faulty bool) []*process {
	var all []*process
	for i, dedup := range []string{"on", "off"} {
		sw := payments.Switches{Dedup: dedup}
		if faulty {
			sw = crashFaults(c.random.Uint64(), dedup)
		}
		name := "bank dedup=" + dedup
		all = append(all, c.process(service{Role: "server", Name: name, Switches: sw, Listen: c.bank[i],
			File: filepath.Join(c.folder, dedup+".sqlite3")}, 2))
	}
	return all
}

func (c *crash) workers(n int) []*process {
	var all []*process
	for i := range n {
		all = append(all, c.process(service{Role: "worker", Name: fmt.Sprintf("worker-%d", i)}, 3))
	}
	return all
}

func (c *crash) submitters(n int) []*process {
	var all []*process
	for i := range n {
		name := fmt.Sprintf("s%d", i)
		all = append(all, c.process(service{Role: "submitter", Name: name, File: filepath.Join(c.folder, name)}, 2))
	}
	return all
}

// round kills so many processes, and checks the ledger afterwards. The last
// kills take whatever runs, all at once.
func (c *crash) round(kills int) {
	c.rounds++
	all := slices.Concat(c.servers(true), c.workers(3), c.submitters(2))
	for _, p := range all {
		p.start(false)
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for range max(0, kills-len(all)) {
		timer.Reset(time.Duration(c.random.Int64N(int64(killEvery))))
		<-timer.C
		p := pick(c.random, all)
		c.count(p)
		p.kill()
		p.Seed, p.Switches.Seed = c.random.Uint64(), c.random.Uint64()
		p.start(false)
	}
	timer.Reset(time.Duration(c.random.Int64N(int64(2 * killEvery))))
	<-timer.C
	for _, p := range all {
		p.signal(9)
	}
	for _, p := range all {
		c.count(p)
		p.wait()
		p.cmd = nil
	}
	c.drain()
}

func (c *crash) count(p *process) {
	c.kills++
	c.killed[p.Role]++
}

func pick(random *rand.Rand, all []*process) *process {
	total := 0
	for _, p := range all {
		total += p.weight
	}
	n := random.IntN(total)
	for _, p := range all {
		if n -= p.weight; n < 0 {
			return p
		}
	}
	return nil
}

// drain lets workers without faults end what there is, and checks the result.
// Its clocks jump over leases and backoffs: only while nothing runs.
func (c *crash) drain() {
	for open, tries := int64(1), 0; open > 0; tries++ {
		c.offset += backlogTime
		running := slices.Concat(c.servers(false), c.workers(2))
		for _, p := range running {
			p.start(false)
		}
		c.reopen(c.options(c.engine)...)
		if open = c.untilDone(15 * time.Second); open == 0 {
			c.check()
		}
		if err := c.store.Close(); err != nil {
			c.test.Fatal(err)
		}
		slices.Reverse(running)
		for _, p := range running {
			p.stop()
		}
		if tries == 10 && open > 0 {
			c.test.Fatalf("%d operations do not end", open)
		}
	}
}

// untilDone waits until no operation is pending or processing, and returns how
// many are after the limit.
func (c *crash) untilDone(limit time.Duration) (open int64) {
	late := time.Now().Add(limit)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for time.Now().Before(late) {
		stats, err := c.Stats(context.Background())
		if err != nil {
			c.test.Fatal(err)
		}
		open = 0
		for _, s := range stats.Tools {
			open += s.Pending + s.Processing
		}
		if open == 0 {
			return 0
		}
		<-tick.C
	}
	return open
}
