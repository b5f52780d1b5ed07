package conformance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A wound takes files of a SQLite ledger from under the processes that work on it,
// and returns how what was taken comes back. Nothing that was acknowledged before is
// missing then, and nothing may be acknowledged in between.
type wound struct {
	name    string
	inflict func(c *crash) (heal func())
	// forGood: what comes back are copies, as from another disk. Whoever had the files
	// open must end, because nobody else will ever see what it writes.
	forGood bool
}

var wounds = []wound{{"moved", (*crash).move, false}, {"replaced", (*crash).replace, false}, {"removed", (*crash).remove, true}}

// suffixes name the files of a ledger.
var suffixes = []string{"", "-wal", "-shm"}

// away is where a file lies while it is not in its place.
func (c *crash) away(suffix string) string { return filepath.Join(c.folder, "away"+suffix) }

// some picks one or more of the ledger's files.
func (c *crash) some() []string {
	n := 1 + c.random.IntN(1<<len(suffixes)-1)
	var some []string
	for i, s := range suffixes {
		if n&(1<<i) != 0 {
			some = append(some, s)
		}
	}
	return some
}

// move renames some of the files, and renames them back.
func (c *crash) move() func() {
	moved := c.some()
	for _, s := range moved {
		c.must(os.Rename(c.address+s, c.away(s)))
	}
	return func() {
		for _, s := range moved {
			c.must(os.Rename(c.away(s), c.address+s))
		}
	}
}

// replace puts the ledger as it was when the round began in the place of the ledger.
func (c *crash) replace() func() {
	for _, s := range suffixes {
		c.must(os.Rename(c.address+s, c.away(s)))
	}
	older, err := os.ReadFile(c.older())
	c.must(err)
	c.must(os.WriteFile(c.address, older, 0o600))
	return func() {
		c.clear()
		for _, s := range suffixes {
			c.must(os.Rename(c.away(s), c.address+s))
		}
	}
}

// remove deletes some of the files, and brings back copies of that moment: nobody
// writes to the ledger while they are made.
func (c *crash) remove() func() {
	db := c.engine.plain(c.test, c.address)
	conn, err := db.Conn(context.Background())
	c.must(err)
	_, err = conn.ExecContext(context.Background(), "PRAGMA busy_timeout = 60000; BEGIN IMMEDIATE") // a busy machine has many who write
	c.must(err)
	copied := suffixes[:2] // the third is made anew
	for _, s := range copied {
		// By another process: this one would lose its lock on the file.
		out, err := exec.Command("cp", c.address+s, c.away(s)).CombinedOutput()
		if err != nil {
			c.test.Fatalf("%v: %s", err, out)
		}
	}
	for _, s := range c.some() {
		c.must(os.Remove(c.address + s))
	}
	_, err = conn.ExecContext(context.Background(), "ROLLBACK")
	c.must(err)
	c.must(errors.Join(conn.Close(), db.Close()))
	return func() {
		c.clear()
		for _, s := range copied {
			c.must(os.Rename(c.away(s), c.address+s))
		}
	}
}

// clear removes what lies at the ledger's names.
func (c *crash) clear() {
	for _, s := range suffixes {
		if err := os.Remove(c.address + s); !errors.Is(err, fs.ErrNotExist) {
			c.must(err)
		}
	}
}

func (c *crash) older() string { return filepath.Join(c.folder, "older") }

// keepOlder keeps the ledger as it is now, when nobody has it open.
func (c *crash) keepOlder() {
	if c.engine.name != "sqlite" {
		return
	}
	now, err := os.ReadFile(c.address)
	c.must(err)
	c.must(os.WriteFile(c.older(), now, 0o600))
}

func (c *crash) must(err error) {
	c.test.Helper()
	if err != nil {
		c.test.Fatal(err)
	}
}

const (
	readsLate   = 20 * time.Millisecond  // how long a read may believe that the files are in their places
	longestAway = 300 * time.Millisecond // about how long they are not
)

// wound inflicts a wound on the ledger's files while the processes work on them, and
// heals it. Nothing is started in between: what it would find, or make, is another
// ledger. Whoever notices ends, and is started again.
func (c *crash) wound(all []*process) {
	all = slices.DeleteFunc(slices.Clone(all), func(p *process) bool { return p.Role == "server" })
	for _, p := range all {
		p.awaitOpen()
		p.torn = true
	}
	w := wounds[c.random.IntN(len(wounds))]
	c.wounds[w.name]++
	heal := w.inflict(c)
	begun := time.Now()
	c.refused()
	if c.random.IntN(2) == 0 { // otherwise who notices does so when all is back
		timer := time.NewTimer(2*readsLate + time.Duration(c.random.Int64N(int64(longestAway))))
		<-timer.C
	}
	if c.random.IntN(2) == 0 {
		c.kill(pick(c.random, all))
	}
	c.wantNothingAcknowledged(w.name, begun.Add(readsLate), time.Now())
	heal()
	for _, p := range all {
		if p.cmd != nil && w.forGood {
			p.awaitEnd()
			c.noticed++
		}
		if p.cmd == nil {
			c.start(p)
		}
	}
	c.revive(all)
}

// refused starts a worker where there is a log without its database: it must not make
// another ledger, which would be the end of the log.
func (c *crash) refused() {
	_, err := os.Stat(c.address)
	log, failed := os.Stat(c.address + "-wal")
	if !errors.Is(err, fs.ErrNotExist) || failed != nil || log.Size() == 0 {
		return
	}
	p := c.process(service{Role: "worker", Name: "early"}, 0)
	c.start(p)
	p.torn = true
	p.awaitEnd()
}

// revive starts those again that have noticed that the files were not in their places.
func (c *crash) revive(all []*process) {
	for _, p := range all {
		if p.cmd != nil && p.hasEnded() {
			c.noticed++
			c.start(p)
		}
	}
}

// wantNothingAcknowledged looks for calls that began and were acknowledged while the
// ledger was not in its place.
func (c *crash) wantNothingAcknowledged(wound string, from, until time.Time) {
	for _, a := range c.acknowledged() {
		if a.begun > from.UnixNano() && a.ended < until.UnixNano() {
			c.test.Errorf("%s was acknowledged while files were %s", a.key, wound)
		}
	}
}

// An acknowledgement is a line of a submitter's file.
type acknowledgement struct {
	key, ref     string
	begun, ended int64 // when, in nanoseconds
}

func (a acknowledgement) String() string {
	return fmt.Sprintf("%s %s %d %d\n", a.key, a.ref, a.begun, a.ended)
}

func (c *crash) acknowledged() (all []acknowledgement) {
	for i := range submitters {
		text, err := os.ReadFile(c.submitted(i))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			c.test.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			words := strings.Fields(line)
			if len(words) != 4 {
				c.test.Errorf("%q was written", line)
				continue
			}
			begun, _ := strconv.ParseInt(words[2], 10, 64)
			ended, _ := strconv.ParseInt(words[3], 10, 64)
			all = append(all, acknowledgement{words[0], words[1], begun, ended})
		}
	}
	return all
}
