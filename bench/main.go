// Bench measures the runtime against the floor under it and against its peers:
// in one run, on one machine, interleaved. See docs/benchmarks.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const usage = `Bench measures toolruntime, the bare SQL under it, and its peers, all of them durable:
every commit is synced. It prints tables, and writes a JSON line for each measurement.

A scenario is SYSTEM/NAME/DATABASE/CALLERS, for example runtime/fresh/sqlite/64:
  system    floor (the same SQL alone), runtime, river, goqite, dbos, restate
  name      fresh   a call that is new, carried out and answered
            storm   the same, while 5 % of all calls want a scope that is taken
            first   the same, the first 2,000 on a fresh database
            submit  a call that is new, accepted for a worker
            accept  2,000 of them in bulk
            work    a worker carries out what was submitted
            bulk    both: submitted and carried out
            replay  a call that has ended, repeated
            status  what became of a call that has ended
            processes  new calls of several processes, each with 32 callers
            audit   every stored row recomputed
            commit  (floor) one small row; disk/sync is the disk alone
  database  sqlite, postgres, or own: a peer's own
Every round runs every scenario for -time, on fresh databases; the order rotates.

Examples:
  go run . -list                              the names of the scenarios
  go run . -run 'fresh/sqlite' -rounds 1      a part, quickly
  go run . -run '^(floor|runtime)/replay'     only what a regular expression matches
  go run . -from results.jsonl                the tables of an earlier run
  go run . -from new.jsonl -compare old.jsonl two runs, row by row
  go run . -scale 2k,100k,1M                  as the ledger grows, on SQLite

Put -dir on the disk that matters: in a folder in memory a sync costs nothing. The
private PostgreSQL is always in /tmp.

Flags:
`

type config struct {
	time       time.Duration
	rounds     int
	match      *regexp.Regexp
	dir        string
	out        string
	docs       string
	from       string
	compare    string
	scale      []int64
	list       bool
	everything bool // nothing was left out by -run
}

func parse(args []string, out io.Writer) (c config, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Usage = func() {
		fmt.Fprint(out, usage)
		flags.PrintDefaults()
	}
	flags.DurationVar(&c.time, "time", 1500*time.Millisecond, "how long each scenario runs in each round")
	flags.IntVar(&c.rounds, "rounds", 3, "how many `rounds` there are; what is reported is their median")
	match := flags.String("run", "", "measure only scenarios that match this regular `expression`")
	flags.StringVar(&c.dir, "dir", "", "an existing `folder` for the SQLite files, removed afterwards (default: the system's temporary one)")
	flags.StringVar(&c.out, "out", "", "write the results to this `file`, a JSON line each")
	flags.StringVar(&c.docs, "docs", "", "write the tables and the chart into benchmarks.md in this `folder`; not with -run")
	flags.StringVar(&c.from, "from", "", "measure nothing: report the results in this `file`")
	flags.StringVar(&c.compare, "compare", "", "print also each row's change since the results in this `file`")
	scale := flags.String("scale", "", "measure instead how a ledger of so many `operations` behaves, a list such as 2k,100k,1M,5M")
	flags.BoolVar(&c.list, "list", false, "list the scenarios and measure nothing")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	if flags.NArg() > 0 || c.rounds < 1 || c.time <= 0 {
		return c, errors.New("bench takes flags only, and rounds and time are more than 0; see -help")
	}
	c.everything = *match == ""
	if c.match, err = regexp.Compile(*match); err != nil {
		return c, fmt.Errorf("-run: %w", err)
	}
	if *scale != "" {
		c.scale, err = sizes(*scale)
	}
	return c, err
}

// sizes reads a growing list such as 2k,100k,1M.
func sizes(list string) ([]int64, error) {
	var all []int64
	for s := range strings.SplitSeq(list, ",") {
		digits, unit := s, int64(1)
		if d, ok := strings.CutSuffix(s, "k"); ok {
			digits, unit = d, 1_000
		} else if d, ok := strings.CutSuffix(s, "M"); ok {
			digits, unit = d, 1_000_000
		}
		n, err := strconv.ParseInt(digits, 10, 32)
		if err != nil || n < 0 || len(all) > 0 && n*unit <= all[len(all)-1] {
			return nil, fmt.Errorf("-scale: %q is not a growing list such as 2k,100k,1M", list)
		}
		all = append(all, n*unit)
	}
	return all, nil
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == auditChild {
		os.Exit(exit(auditAlone(context.Background(), os.Args[2], os.Stdout)))
	}
	if len(os.Args) == 5 && os.Args[1] == dispatchChild {
		os.Exit(exit(dispatchAlone(context.Background(), os.Args[2], os.Args[3], os.Args[4], os.Stdin, os.Stdout)))
	}
	// The first signal ends the run and removes what it has made; the next one
	// ends it at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	c, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	if err == nil {
		err = run(ctx, c, os.Stdout)
	}
	os.Exit(exit(err))
}

func exit(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "bench:", err)
	return 1
}

func run(ctx context.Context, c config, out io.Writer) error {
	switch {
	case c.list:
		for _, s := range scenarios(true, "restate-server") {
			if c.match.MatchString(s.String()) {
				fmt.Fprintln(out, s)
			}
		}
		return nil
	case c.from != "":
		r, err := readReport(c.from)
		if err != nil {
			return err
		}
		return c.report(r, out)
	}
	if c.compare != "" { // before all the work, not after it
		if _, err := readReport(c.compare); err != nil {
			return err
		}
	}
	m, all, err := c.measure(ctx)
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted: nothing is reported")
	case err == nil && len(all) == 0:
		err = errors.New("no scenario matches -run; see -list")
	}
	if len(all) == 0 {
		return err
	}
	return errors.Join(err, c.report(newReport(m, all), out))
}

// report prints the tables. Documents are for complete runs.
func (c config) report(r *report, out io.Writer) error {
	scale := r.sums[len(r.sums)-1].Name == "size" || c.scale != nil
	text := r.String()
	if scale {
		text = r.about() + "\n" + r.scale().String()
	}
	if _, err := fmt.Fprintln(out, text); err != nil {
		return err
	}
	if c.compare != "" {
		before, err := readReport(c.compare)
		if err != nil {
			return err
		}
		t := r.compare(before)
		if len(t.rows) == 0 {
			return errors.New("-compare: the two runs have no row in common")
		}
		if _, err := fmt.Fprintln(out, t); err != nil {
			return err
		}
	}
	if c.docs == "" || !c.everything {
		return nil
	}
	return document(c.docs, r, scale)
}
