package conformance

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/toolruntime/toolruntime-go/examples/payments"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// A ledgerState is what a ledger and the banks hold.
type ledgerState struct {
	operations map[string]operationState // by status_ref
	attempts   map[string]map[string]int // ended ones, by tool and how
	broken     []string                  // rules that attempts and times break
	effects    map[string]int            // by key, at both banks and in the table of the transactional tool
	accepted   int                       // acknowledgements
}

type operationState struct{ tool, key, state, reason, version string }

func (c *crash) read() *ledgerState {
	s := &ledgerState{operations: map[string]operationState{}, attempts: map[string]map[string]int{}, effects: map[string]int{}}
	db := c.engine.plain(c.test, c.address)
	defer db.Close()
	c.each(db, "SELECT status_ref, tool_name, idempotency_key, state, reason, handler_revision, created_at FROM operations", func(scan func(...any) error) error {
		var ref string
		var o operationState
		var created int64
		err := scan(&ref, &o.tool, &o.key, &o.state, &o.reason, &o.version, &created)
		s.operations[ref] = o
		if !c.isTime(created) {
			s.broken = append(s.broken, fmt.Sprintf("%s was accepted at %d by another clock than the ledger's", ref, created))
		}
		return err
	})
	c.each(db, `SELECT status_ref, attempt, tool_name, handler_revision, worker_id, outcome, started_at, ended_at FROM attempts
		JOIN operations ON operations.operation_pk = attempts.operation_pk`, func(scan func(...any) error) error {
		var ref, tool string
		var n int
		var a attemptState
		err := scan(&ref, &n, &tool, &a.version, &a.worker, &a.how, &a.started, &a.ended)
		if s.attempts[tool] == nil {
			s.attempts[tool] = map[string]int{}
		}
		s.attempts[tool][a.how]++
		if rule := c.brokenBy(a); rule != "" {
			s.broken = append(s.broken, fmt.Sprintf("%s, attempt %d: %s: %+v", ref, n, rule, a))
		}
		return err
	})
	c.each(db, "SELECT identity, count(*) FROM bookings GROUP BY identity", func(scan func(...any) error) error {
		var key string
		var n int
		err := scan(&key, &n)
		s.effects[key] = n
		return err
	})
	for _, address := range c.bank {
		maps.Copy(s.effects, c.bankEffects(address))
	}
	return s
}

// An attemptState is an attempt that has ended.
type attemptState struct {
	version, worker, how string
	started, ended       int64
}

// leastLease is the shortest lease that anybody takes, in seconds.
const leastLease = 2

// brokenBy says which rule an attempt breaks, or "".
func (c *crash) brokenBy(a attemptState) string {
	// The name of a worker has its versions in it; a submitter knows both.
	_, versions, worker := strings.Cut(a.worker, " ")
	switch {
	case worker && !strings.Contains(versions, a.version):
		return "a worker has carried out a version that it does not know"
	case a.how == "lost" && a.ended-a.started < leastLease:
		return "its lease was taken from its holder"
	case !c.isTime(a.started), !c.isTime(a.ended):
		return "its times are by another clock than the ledger's"
	}
	return ""
}

// isTime reports whether it was that time by the clock of the ledger, if it has one of
// its own, in the rounds or in one of the drains.
func (c *crash) isTime(t int64) bool {
	since, now := t-c.begun+1, time.Now().Unix()-c.begun+2
	return !c.ownClock() || since >= 0 && since%backlogTime <= now
}

// each does something with every row of a query.
func (c *crash) each(db *sql.DB, query string, do func(scan func(...any) error) error) {
	rows, err := db.Query(query)
	if err != nil {
		c.test.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := do(rows.Scan); err != nil {
			c.test.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		c.test.Fatal(err)
	}
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

// check holds the ledger against the effects and against what was acknowledged.
func (c *crash) check() {
	s := c.read()
	c.found = s
	known := map[string]bool{}
	for ref, o := range s.operations {
		b := c.bind(user("user-1"), payCall(o.tool, o.key))
		n := s.effects[b.EffectIdentity()]
		known[b.EffectIdentity()] = true
		if strings.HasPrefix(o.key, lateKey) {
			c.test.Errorf("%s was accepted though its approval had expired", o.key)
		}
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
			c.test.Errorf("there is an effect of the key %s, which no operation has", key)
		}
	}
	for _, a := range c.acknowledged() {
		if s.operations[a.ref].key != a.key {
			c.test.Errorf("%s was acknowledged and is not in the ledger", a.key)
		}
		s.accepted++
	}
	for _, rule := range s.broken {
		c.test.Error(rule)
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
	fmt.Fprintf(&text, "%s, seed %d: %d kills in %d rounds (%d of servers, %d of workers, %d of submitters), %d operations, %d acknowledged\n",
		c.engine.name, c.seed, c.kills, c.rounds, c.killed["server"], c.killed["worker"], c.killed["submitter"], len(c.found.operations), c.found.accepted)
	c.printWounds(&text)
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "tool\tof v1\tof v2\tsucceeded\tfailed\tunknown\tbad answer\tgiven up\teffects\ttwice\tmissing\tattempts\tlost\tunknown\treconciled\tnot done\t")
	for _, tool := range crashNames {
		n := map[string]int{}
		effects, twice, missing := 0, 0, 0
		for _, o := range c.found.operations {
			if o.tool != tool {
				continue
			}
			n[o.version]++
			n[o.state+o.reason]++
			e := c.found.effects[c.bind(user("user-1"), payCall(o.tool, o.key)).EffectIdentity()]
			effects += e
			switch {
			case e > 1:
				twice++
			case e == 0 && o.state == "succeeded":
				missing++
			}
		}
		a := c.found.attempts[tool]
		attempts := 0
		for _, count := range a {
			attempts += count
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", tool, n["v1"], n["v2"], n["succeeded"], n["failed"+string(toolresult.ToolError)],
			n["in_review"+string(toolresult.OutcomeUnknown)], n["in_review"+string(toolresult.OutputContractViolation)],
			n["in_review"+string(toolresult.ToolError)], effects, twice, missing, attempts, a["lost"], a["unknown"], a["reconciled"], a["not_done"])
	}
	w.Flush()
	c.test.Log("\n" + text.String())
}

func (c *crash) printWounds(w io.Writer) {
	if c.ownClock() {
		fmt.Fprintf(w, "clocks of hosts wrong by %+d to %+d s; ", c.ahead[0], c.ahead[1])
	} else {
		for _, wound := range wounds {
			fmt.Fprintf(w, "files %s %d times, ", wound.name, c.wounds[wound.name])
		}
		fmt.Fprintf(w, "noticed by %d processes; ", c.noticed)
	}
	fmt.Fprint(w, "workers of")
	for _, v := range workerVersions {
		fmt.Fprintf(w, " %s %d", v, c.deployed[v])
	}
	fmt.Fprint(w, "\n\n")
}
