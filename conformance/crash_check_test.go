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
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/toolruntime/toolruntime-go/examples/payments"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// A ledgerState is what a ledger and the banks hold.
type ledgerState struct {
	operations map[string]operationState // by status_ref
	attempts   map[string]map[string]int // ended ones, by tool and how
	effects    map[string]int            // by key, at both banks and in the table of the transactional tool
	accepted   int                       // acknowledgements
}

type operationState struct{ tool, key, state, reason string }

func (c *crash) read() *ledgerState {
	s := &ledgerState{operations: map[string]operationState{}, attempts: map[string]map[string]int{}, effects: map[string]int{}}
	db := c.engine.plain(c.test, c.address)
	defer db.Close()
	c.each(db, "SELECT status_ref, tool_name, idempotency_key, state, reason FROM operations", func(scan func(...any) error) error {
		var ref string
		var o operationState
		err := scan(&ref, &o.tool, &o.key, &o.state, &o.reason)
		s.operations[ref] = o
		return err
	})
	c.each(db, `SELECT tool_name, outcome, count(*) FROM attempts
		JOIN operations ON operations.operation_pk = attempts.operation_pk GROUP BY tool_name, outcome`, func(scan func(...any) error) error {
		var tool, how string
		var n int
		err := scan(&tool, &how, &n)
		if s.attempts[tool] == nil {
			s.attempts[tool] = map[string]int{}
		}
		s.attempts[tool][how] = n
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
	fmt.Fprintln(w, "tool\toperations\tsucceeded\tfailed\tunknown\tbad answer\tgiven up\teffects\ttwice\tmissing\tattempts\tlost\tunknown\treconciled\tnot done\t")
	for _, tool := range crashNames {
		n := map[string]int{}
		effects, twice, missing := 0, 0, 0
		for _, o := range c.found.operations {
			if o.tool != tool {
				continue
			}
			n["all"]++
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
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", tool, n["all"], n["succeeded"], n["failed"+string(toolresult.ToolError)],
			n["in_review"+string(toolresult.OutcomeUnknown)], n["in_review"+string(toolresult.OutputContractViolation)],
			n["in_review"+string(toolresult.ToolError)], effects, twice, missing, attempts, a["lost"], a["unknown"], a["reconciled"], a["not_done"])
	}
	w.Flush()
	c.test.Log("\n" + text.String())
}
