package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/toolruntime/toolruntime-go/examples/payments"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
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
// twice, nothing that was acknowledged was lost, and everything ends.
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
	c.desk = newDesk(t, e, c.options()...)
	if err := c.store.Close(); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *crash) options() []deskOption {
	return []deskOption{withAuthorizer(anybody), withTools(payTools("http://"+c.bank[0], "http://"+c.bank[1])...)}
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
		c.reopen(c.options()...)
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

// A ledgerState is what a ledger and the banks hold.
type ledgerState struct {
	operations map[string]operationState // by status_ref
	attempts   map[string]map[string]int // ended ones, by tool and how
	effects    map[string]int            // by key, at both banks
	accepted   int                       // acknowledgements
}

type operationState struct{ tool, key, state, reason string }

func (c *crash) read() *ledgerState {
	s := &ledgerState{operations: map[string]operationState{}, attempts: map[string]map[string]int{}, effects: map[string]int{}}
	db := c.engine.plain(c.test, c.address)
	defer db.Close()
	rows, err := db.Query("SELECT status_ref, tool_name, idempotency_key, state, reason FROM operations")
	if err != nil {
		c.test.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var ref string
		var o operationState
		if err := rows.Scan(&ref, &o.tool, &o.key, &o.state, &o.reason); err != nil {
			c.test.Fatal(err)
		}
		s.operations[ref] = o
	}
	tally, err := db.Query(`SELECT tool_name, outcome, count(*) FROM attempts
		JOIN operations ON operations.operation_pk = attempts.operation_pk GROUP BY tool_name, outcome`)
	if err != nil {
		c.test.Fatal(err)
	}
	defer tally.Close()
	for tally.Next() {
		var tool, how string
		var n int
		if err := tally.Scan(&tool, &how, &n); err != nil {
			c.test.Fatal(err)
		}
		if s.attempts[tool] == nil {
			s.attempts[tool] = map[string]int{}
		}
		s.attempts[tool][how] = n
	}
	if err := rows.Err(); err != nil {
		c.test.Fatal(err)
	}
	if err := tally.Err(); err != nil {
		c.test.Fatal(err)
	}
	for _, address := range c.bank {
		maps.Copy(s.effects, c.bankEffects(address))
	}
	return s
}

func (c *crash) bankEffects(address string) map[string]int {
	resp, err := http.Get("http://" + address + "/stats")
	if err != nil {
		c.test.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.test.Fatal(err)
	}
	var stats payments.Stats
	if err := json.Unmarshal(body, &stats); err != nil {
		c.test.Fatal(err)
	}
	return stats.Effects
}

// check holds the ledger against the banks and against what was acknowledged.
func (c *crash) check() {
	s := c.read()
	c.found = s
	known := map[string]bool{}
	for ref, o := range s.operations {
		b := c.bind(user("user-1"), payCall(o.tool, o.key))
		n := s.effects[b.EffectIdentity()]
		known[b.EffectIdentity()] = true
		if rule := o.broken(n); rule != "" {
			h, err := c.History(context.Background(), ref)
			if err != nil {
				c.test.Fatal(err)
			}
			c.test.Errorf("%s, %s, is %s %s with %d effects: %s\n%+v", ref, o.tool, o.state, o.reason, n, rule, h.Moments)
		}
	}
	for key := range s.effects {
		if !known[key] {
			c.test.Errorf("the bank has an effect of the key %s, which no operation has", key)
		}
	}
	for i := range 2 {
		text, err := os.ReadFile(filepath.Join(c.folder, fmt.Sprintf("s%d", i)))
		if err != nil && !os.IsNotExist(err) {
			c.test.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			key, ref, ok := strings.Cut(strings.TrimSpace(line), " ")
			if o := s.operations[ref]; !ok || o.key != key {
				c.test.Errorf("%q was acknowledged and is not in the ledger", line)
			}
			s.accepted++
		}
	}
	if r := c.audit(); !r.Passed {
		c.test.Errorf("audit: %q %q %q", r.SemanticErrors, r.IntegrityCheck, r.ForeignKeyViolations)
	}
}

// broken says which rule an operation with n effects breaks, or "".
func (o operationState) broken(n int) string {
	switch {
	case n > 1:
		return "an effect happened twice"
	case o.state == "succeeded":
		if n != 1 {
			return "it has not happened"
		}
	case o.state == "failed", o.state == "in_review" && o.reason == string(toolresult.ToolError):
		if n != 0 {
			return "it has happened"
		}
	case o.state == "in_review" && o.reason == string(toolresult.OutputContractViolation):
		if n != 1 {
			return "what has answered so badly?"
		}
	case o.state == "in_review" && o.reason == string(toolresult.OutcomeUnknown):
		if payKinds[o.tool] != toolruntime.Once {
			return "it can be asked for, or run again"
		}
	default:
		return "it has not ended"
	}
	return ""
}

// print prints what has happened: a line for each tool.
func (c *crash) print() {
	if c.found == nil {
		return
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s, seed %d: %d kills in %d rounds (%d of servers, %d of workers, %d of submitters), %d operations, %d acknowledged\n\n",
		c.engine.name, c.seed, c.kills, c.rounds, c.killed["server"], c.killed["worker"], c.killed["submitter"], len(c.found.operations), c.found.accepted)
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "tool\toperations\tsucceeded\tfailed\tunknown\tbad answer\tgiven up\teffects\ttwice\tattempts\tlost\tunknown\treconciled\tnot done\t")
	for _, tool := range payNames {
		n := map[string]int{}
		effects, twice := 0, 0
		for _, o := range c.found.operations {
			if o.tool != tool {
				continue
			}
			n["all"]++
			n[o.state+o.reason]++
			e := c.found.effects[c.bind(user("user-1"), payCall(o.tool, o.key)).EffectIdentity()]
			effects += e
			if e > 1 {
				twice++
			}
		}
		a := c.found.attempts[tool]
		attempts := 0
		for _, count := range a {
			attempts += count
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", tool, n["all"], n["succeeded"], n["failed"+string(toolresult.ToolError)],
			n["in_review"+string(toolresult.OutcomeUnknown)], n["in_review"+string(toolresult.OutputContractViolation)],
			n["in_review"+string(toolresult.ToolError)], effects, twice, attempts, a["lost"], a["unknown"], a["reconciled"], a["not_done"])
	}
	w.Flush()
	c.test.Log("\n" + text.String())
}
