package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// processCallers is how many callers each of many processes has.
const processCallers = 32

// processes has so many processes dispatch new calls on one ledger. What a scenario
// calls callers is those of all of them.
func processes(database string, n int) scenario {
	return scenario{"runtime", "processes", database, n * processCallers, func(ctx context.Context, b *bed) (load, error) {
		l, err := newLedger(ctx, b, database)
		if err != nil {
			return load{}, err
		}
		self, err := os.Executable()
		if err != nil {
			return load{}, err
		}
		p := &fleet{}
		for i := range n {
			// No two processes make the same call.
			c, err := startChild(b, self, dispatchChild, database, l.address, strconv.Itoa(i<<32))
			if err != nil {
				return load{}, err
			}
			p.children = append(p.children, c)
		}
		keeps := b.found
		b.found = func(ctx context.Context) (map[string]float64, error) {
			extra, err := keeps(ctx)
			if err == nil {
				extra[leastShare] = p.least
			}
			return extra, err
		}
		return load{fleet: p.run}, nil
	}}
}

// A fleet is processes that do the same at the same time.
type fleet struct {
	children []*child
	least    float64 // share of the process that did the least, in the last run; 1 is a fair one
}

// A child is a process that measures when it is told to.
type child struct {
	tell io.WriteCloser
	hear *bufio.Scanner
}

func startChild(b *bed, self string, args ...string) (*child, error) {
	cmd := exec.Command(self, args...)
	cmd.Stderr = os.Stderr
	tell, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	hear, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	b.later(func() error {
		tell.Close() // it ends by itself
		ended := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		defer ended.Stop()
		return cmd.Wait()
	})
	c := &child{tell, bufio.NewScanner(hear)}
	c.hear.Buffer(nil, 1<<20)
	var ready string
	return c, c.listen(&ready)
}

func (c *child) listen(to any) error {
	if !c.hear.Scan() {
		return errors.Join(errors.New("a process of the benchmark has ended"), c.hear.Err())
	}
	return json.Unmarshal(c.hear.Bytes(), to)
}

// A tally is what a child has measured.
type tally struct {
	Seconds float64        `json:"seconds"`
	Buckets map[int]uint64 `json:"buckets"`
}

// run has all children measure at once.
func (f *fleet) run(_ context.Context, limit time.Duration) (sum histogram, took time.Duration, err error) {
	for _, c := range f.children {
		if _, err := fmt.Fprintln(c.tell, limit); err != nil {
			return sum, 0, err
		}
	}
	least := ^uint64(0)
	for _, c := range f.children {
		var t tally
		if err := c.listen(&t); err != nil {
			return sum, 0, err
		}
		var one histogram
		for i, n := range t.Buckets {
			one.buckets[i] += n
			one.count += n
		}
		sum.merge(&one)
		least = min(least, one.count)
		took = max(took, time.Duration(t.Seconds*float64(time.Second)))
	}
	if sum.count > 0 {
		f.least = float64(least) * float64(len(f.children)) / float64(sum.count)
	}
	return sum, took, nil
}

// dispatchChild is the hidden command under which this program is one of many
// processes.
const dispatchChild = "dispatch-child"

// dispatchAlone opens a ledger that is there and, for each duration that it reads,
// dispatches new calls for so long and writes what it measured. It ends with its
// input, which a parent that dies closes too.
func dispatchAlone(ctx context.Context, database, address, after string, in io.Reader, out io.Writer) (err error) {
	first, err := strconv.ParseInt(after, 10, 64)
	if err != nil {
		return err
	}
	b := &bed{}
	defer func() { err = errors.Join(err, b.close()) }()
	l := &ledger{database: database, address: address}
	if err := l.open(ctx, b); err != nil {
		return err
	}
	say := json.NewEncoder(out)
	if err := say.Encode("ready"); err != nil {
		return err
	}
	calls := l.fresh(first)
	for told := bufio.NewScanner(in); told.Scan(); {
		limit, err := time.ParseDuration(told.Text())
		if err != nil {
			return err
		}
		h, took, err := closedLoop(ctx, processCallers, limit, calls.do)
		if err != nil {
			return err
		}
		t := tally{took.Seconds(), map[int]uint64{}}
		for i, n := range h.buckets {
			if n > 0 {
				t.Buckets[i] = n
			}
		}
		if err := say.Encode(t); err != nil {
			return err
		}
	}
	return nil
}

// processesScenarios are on one server and on one file, which has one writer.
func processesScenarios(database string) []scenario {
	var all []scenario
	for _, n := range []int{1, 2, 4, 8} {
		if n <= 4 || database == "postgres" {
			all = append(all, processes(database, n))
		}
	}
	return all
}

// processes is a table of what many processes do on one ledger.
func (r *report) processes() table {
	t := table{title: "Many processes on one ledger", words: 1,
		note:   fmt.Sprintf("Each has %d callers with new calls. The least share is that of the process that did the least, of what each would have done had all done the same.", processCallers),
		header: []string{"database", "processes", "all together", "lowest–highest", "to one process", "least share", "p50 ms", "p99 ms"}}
	for _, d := range databases {
		for _, n := range r.callersOf("runtime", "processes", d.name) {
			s := r.by[key{"runtime", "processes", d.name, n, 0}]
			one := r.by[key{"runtime", "processes", d.name, processCallers, 0}]
			t.rows = append(t.rows, []string{d.title, fmt.Sprint(n / processCallers), rate(s.Rate), span(s), ratio(s.Rate, one.Rate),
				fmt.Sprintf("%.2f", s.Extra[leastShare]), latency(s.P50), latency(s.P99)})
		}
	}
	return t
}
