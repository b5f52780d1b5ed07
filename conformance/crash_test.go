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
	crashRound  = 50                     // kills between two checks
	crashKills  = 100                    // in all, unless TOOLRUNTIME_CRASH_KILLS says otherwise
	killEvery   = 100 * time.Millisecond // at most; half of it on average
	woundEvery  = 8                      // kills, on average, between two wounds of the ledger's files
	backlogTime = 7200                   // seconds: longer than any backoff and lease, and than hosts are wrong
	hostsWrong  = 600                    // seconds: by how much at most a host's clock is wrong, either way
	submitters  = 2
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
// or booked twice, nothing that was acknowledged was lost, and everything ends. The
// workers and the submitters are of two versions, so that each worker knows only some
// of the work. On SQLite the ledger's files are moved, replaced or removed meanwhile,
// and come back; on PostgreSQL each process is on a host whose clock is wrong.
func TestCrash(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("TOOLRUNTIME_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	kills := crashKills
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

	begun         int64 // by the clock of the ledger
	offset        int64 // of the clocks, in seconds
	kills, rounds int
	killed        map[string]int // kills by role
	wounds        map[string]int // of the ledger's files, by name
	noticed       int            // processes that have ended because of a wound
	ahead         [2]int64       // how wrong clocks of hosts were, at most
	deployed      map[string]int // workers that were started, by their versions
	found         *ledgerState   // at the last check
}

func newCrash(t *testing.T, e engine, seed uint64) *crash {
	c := &crash{test: t, random: rand.New(rand.NewPCG(seed, 0)), seed: seed, folder: t.TempDir(), begun: time.Now().Unix(),
		killed: map[string]int{}, wounds: map[string]int{}, deployed: map[string]int{}}
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
	return []deskOption{withAuthorizer(anybody), withTools(crashTools(e, "v2+v1", "http://"+c.bank[0], "http://"+c.bank[1], nil)...)}
}

func (c *crash) process(s service, weight int) *process {
	s.Bank, s.Careless, s.Offset = "http://"+c.bank[0], "http://"+c.bank[1], c.offset
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

func (c *crash) submitters() []*process {
	var all []*process
	for i := range submitters {
		all = append(all, c.process(service{Role: "submitter", Name: fmt.Sprintf("s%d", i), File: c.submitted(i)}, 2))
	}
	return all
}

// submitted is the file of a submitter.
func (c *crash) submitted(i int) string { return filepath.Join(c.folder, fmt.Sprintf("s%d", i)) }

// start starts a process, each time with other versions, and on a host with another
// clock where the ledger has one of its own.
func (c *crash) start(p *process) {
	p.Seed, p.Switches.Seed = c.random.Uint64(), c.random.Uint64()
	switch p.Role {
	case "worker":
		p.Versions = workerVersions[c.random.IntN(len(workerVersions))]
		c.deployed[p.Versions]++
	case "submitter":
		p.Versions = submitterVersions[c.random.IntN(len(submitterVersions))]
	}
	if p.Role != "server" && c.ownClock() {
		p.Own, p.HostAhead = true, c.random.Int64N(2*hostsWrong+1)-hostsWrong
		c.ahead = [2]int64{min(c.ahead[0], p.HostAhead), max(c.ahead[1], p.HostAhead)}
	}
	p.start(false)
}

// ownClock reports whether the ledger has a clock of its own.
func (c *crash) ownClock() bool { return c.engine.name == "postgres" }

// round kills so many processes, and checks the ledger afterwards. The last
// kills take whatever runs, all at once.
func (c *crash) round(kills int) {
	c.rounds++
	c.keepOlder()
	all := slices.Concat(c.servers(true), c.workers(3), c.submitters())
	for _, p := range all {
		c.start(p)
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for end := c.kills + kills - len(all); c.kills < end; {
		timer.Reset(time.Duration(c.random.Int64N(int64(killEvery))))
		<-timer.C
		c.revive(all)
		if !c.ownClock() && c.random.IntN(woundEvery) == 0 {
			c.wound(all)
			continue
		}
		p := pick(c.random, all)
		c.kill(p)
		c.start(p)
	}
	timer.Reset(time.Duration(c.random.Int64N(int64(2 * killEvery))))
	<-timer.C
	for _, p := range all {
		p.cmd.Process.Kill() // all at once; what it has done is seen below
	}
	for _, p := range all {
		c.kill(p)
	}
	c.drain()
}

// kill kills a process, unless it has ended already because of a wound.
func (c *crash) kill(p *process) {
	if p.kill() {
		c.noticed++
		return
	}
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
		for i, p := range running {
			p.Versions = workerVersions[i%2] // one of each alone
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
	if c.ownClock() {
		c.offset = 0 // no process is told the time before the next drain
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
