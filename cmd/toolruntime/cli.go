package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// The exit codes.
const (
	exitPass  = 0
	exitBlock = 1
	exitError = 2
)

// A command is a verb of the command line.
type command struct {
	name    string
	args    string // of the usage line, after the name
	summary string
	detail  string
	example string
	flags   func(*options, *flag.FlagSet)
	run     func(context.Context, *options, *printer) (bool, error) // true is PASS
}

// options are the values of all flags, and the arguments.
type options struct {
	db, fixture, statusRef, failure, workerID, from, to string
	actor, reason, decision, receipt, tool, state       string
	limit                                               int
	stagger, olderThan                                  time.Duration
	json, dryRun                                        bool
	args                                                []string
}

func (o *options) common(f *flag.FlagSet) {
	f.StringVar(&o.db, "db", "", "`file` of the ledger (made if there is none), or a postgres:// URL")
	o.format(f)
}

func (o *options) format(f *flag.FlagSet) {
	f.BoolVar(&o.json, "json", false, "print JSON on a terminal, too")
}

func (o *options) withFixture(f *flag.FlagSet) {
	o.common(f)
	f.StringVar(&o.fixture, "fixture", "", "`file` with a persistent-tool-case-v1")
}

func commands() []command {
	return append([]command{
		{
			name: "dispatch", args: "--db FILE --fixture CASE [--failure POINT] [--worker-id NAME]",
			summary: "carry out the call of a case, once",
			detail: `Dispatches the call of a persistence case against the two example tools. Doing
it again answers from the ledger: no second effect. --failure stops the call as
if the process had died there: none, after_intent_commit, after_claim or
after_downstream_commit.`,
			example: `toolruntime dispatch --db refunds.sqlite3 --fixture examples/refunds/case.json
  toolruntime dispatch --db refunds.sqlite3 --fixture examples/refunds/case.json --failure after_downstream_commit`,
			flags: func(o *options, f *flag.FlagSet) {
				o.withFixture(f)
				f.StringVar(&o.failure, "failure", "none", "failure `point`")
				f.StringVar(&o.workerID, "worker-id", "cli-worker", "`name` of the worker")
			},
			run: dispatch,
		},
		{
			name: "status", args: "--db FILE --fixture CASE --status-ref REF",
			summary: "ask what became of an operation, without causing it",
			detail: `Asks for the status of the operation that the call of a case has made, and
accepts the downstream's receipt if there is one. It never causes an effect. It
runs one second after the case's time.`,
			example: `toolruntime status --db refunds.sqlite3 --fixture examples/refunds/case.json \
    --status-ref status_0123456789abcdef0123456789abcdef`,
			flags: func(o *options, f *flag.FlagSet) {
				o.withFixture(f)
				f.StringVar(&o.statusRef, "status-ref", "", "status_`ref` of the operation")
			},
			run: status,
		},
		{
			name: "audit", args: "--db FILE",
			summary: "recompute everything that is stored and find what does not fit",
			detail: `Checks the database's integrity and durability, recomputes every row, and holds
the rows against each other. It reads no case, and works on a ledger whose tools
this binary does not know; it then says which rows it could not hold against a
registry. Exit code 1 means that something does not fit.`,
			example: `toolruntime audit --db refunds.sqlite3`,
			flags:   (*options).withFixture,
			run:     audit,
		},
		{
			name: "check", args: "CASES",
			summary: "run a set of cases in memory",
			detail: `Runs a tool-cases-v2 file: every case by itself, in memory, each step held
against what the file expects. It touches no ledger.`,
			example: `toolruntime check examples/refunds/cases.json`,
			flags:   (*options).format,
			run:     check,
		},
		{
			name: "migrate", args: "--db FILE",
			summary: "bring a ledger up to date, or adopt one of another implementation",
			detail: `Makes the schema in a new file, brings an older ledger up to date, or adopts a
persistent-tool-runtime-v3 database, in one transaction: all or nothing. A newer
ledger is refused untouched. With a postgres:// URL it does the same to the
schema that the URL's search_path names, or to the server's default one.`,
			example: `toolruntime migrate --db refunds.sqlite3
  toolruntime migrate --db 'postgres://service@db.internal/tools?sslmode=verify-full'`,
			flags: (*options).common,
			run:   migrate,
		},
		{
			name: "copy", args: "--from FILE --to URL",
			summary: "copy a ledger from a file into PostgreSQL",
			detail: `Audits the ledger in a file, copies it row by row into an empty ledger in
PostgreSQL (which it makes where there is none), compares every row, and audits
the copy. Stop what uses the ledger first. A copy that was interrupted cannot be
used and is continued by the same command.`,
			example: `toolruntime copy --from refunds.sqlite3 --to 'postgres://service@db.internal/tools?sslmode=verify-full'`,
			flags: func(o *options, f *flag.FlagSet) {
				o.format(f)
				f.StringVar(&o.from, "from", "", "`file` of the ledger")
				f.StringVar(&o.to, "to", "", "postgres:// `URL` of an empty database or schema")
			},
			run: copyLedger,
		},
		{
			name: "version", summary: "print the versions of the program, the schema and SQLite",
			example: `toolruntime version`,
			flags:   (*options).format,
			run:     version,
		},
	}, append(operating(), keeping()...)...)
}

// run is main without the process: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	// --db, --fixture and --json may also stand before the command.
	front := flagSet("toolruntime", stderr)
	o.withFixture(front)
	front.Usage = func() {}
	if err := front.Parse(args); err != nil {
		return usageExit(err, stdout, stderr, overview())
	}
	rest := front.Args()
	if len(rest) == 0 {
		fmt.Fprint(stderr, overview())
		return exitError
	}
	if rest[0] == "help" {
		return help(rest[1:], stdout, stderr)
	}
	c, rest, ok := find(rest)
	if !ok {
		fmt.Fprintf(stderr, "toolruntime: there is no command %s\n\n%s", shown(front.Arg(0)), overview())
		return exitError
	}
	given := o
	f := flagSet("toolruntime "+c.name, stderr)
	c.flags(&o, f)
	// Defining a flag resets its variable to the default.
	o.db, o.fixture, o.json = given.db, given.fixture, given.json
	f.Usage = func() {}
	if err := f.Parse(rest); err != nil {
		return usageExit(err, stdout, stderr, c.usage())
	}
	o.args = f.Args()
	if err := c.complete(&o); err != nil {
		return usageExit(err, stdout, stderr, c.usage())
	}
	p := &printer{out: stdout, err: stderr, json: o.json || !isTerminal(stdout)}
	pass, err := c.run(ctx, &o, p)
	if err == nil {
		err = p.failed
	}
	switch {
	case err != nil:
		printError(stderr, err)
		return exitError
	case pass:
		return exitPass
	}
	return exitBlock
}

// complete checks that a command has what it cannot do without.
func (c command) complete(o *options) error {
	switch {
	case strings.Contains(c.args, "--db") && o.db == "":
		return errors.New("--db is missing")
	case strings.Contains(c.args, "--fixture") && o.fixture == "":
		return errors.New("--fixture is missing")
	case c.name == "backup" && o.to == "":
		return errors.New("--to is missing")
	case c.name == "prune" && o.olderThan == 0:
		return errors.New("--older-than is missing")
	case c.name == "copy" && (o.from == "" || o.to == ""):
		return errors.New("copy needs --from and --to")
	case strings.Contains(c.args, "--status-ref") && o.statusRef == "":
		return errors.New("--status-ref is missing")
	case c.name == "check" && len(o.args) != 1:
		return errors.New("check takes one file")
	case c.name != "check" && len(o.args) > 0:
		return fmt.Errorf("unexpected argument %s", shown(o.args[0]))
	}
	return nil
}

// shown quotes an argument, if it is a word. Whatever is more than that could be the
// address of a database, with its password.
func shown(arg string) string {
	if len(arg) > 64 || !harmless(arg) {
		return "(not shown)"
	}
	return strconv.Quote(arg)
}

// harmless reports whether a text has no sign that an address needs.
func harmless(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return r > unicode.MaxASCII || strings.ContainsRune("/@=&?%$\\", r) || unicode.IsControl(r)
	})
}

func flagSet(name string, stderr io.Writer) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	return f
}

// usageExit ends a command line that cannot be understood, or that asks for help.
func usageExit(err error, stdout, stderr io.Writer, usage string) int {
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		return exitPass
	}
	message := err.Error()
	if !harmless(message) { // package flag repeats what was given
		message = "a flag or its value cannot be understood"
	}
	fmt.Fprintf(stderr, "toolruntime: %s\n\n%s", message, usage)
	return exitError
}

// find returns the command that args begin with, which may be two words, and
// what follows it.
func find(args []string) (command, []string, bool) {
	for _, c := range commands() {
		words := strings.Fields(c.name)
		if len(args) >= len(words) && slices.Equal(args[:len(words)], words) {
			return c, args[len(words):], true
		}
	}
	return command{}, nil, false
}

func help(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stdout, overview())
		return exitPass
	}
	c, _, ok := find(args)
	if !ok {
		fmt.Fprintf(stderr, "toolruntime: there is no command %s\n\n%s", shown(args[0]), overview())
		return exitError
	}
	fmt.Fprint(stdout, c.usage())
	return exitPass
}

func overview() string {
	var b strings.Builder
	b.WriteString("toolruntime carries out tool calls once, approved, and provably.\n\nUsage: toolruntime COMMAND [flags]\n\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "  %-15s %s\n", c.name, c.summary)
	}
	b.WriteString(`
Exit codes: 0 PASS, 1 BLOCK for a business or audit reason, 2 could not run.
Output is JSON when it is piped and with --json, and readable on a terminal.

Start with:
  toolruntime dispatch --db refunds.sqlite3 --fixture examples/refunds/case.json

"toolruntime help COMMAND" tells more about a command.
`)
	return b.String()
}

func (c command) usage() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s\n\n", strings.TrimSpace("toolruntime "+c.name+" "+c.args))
	if c.detail != "" {
		b.WriteString(c.detail + "\n\n")
	}
	f := flag.NewFlagSet(c.name, flag.ContinueOnError)
	c.flags(&options{}, f)
	f.SetOutput(&b)
	b.WriteString("Flags:\n")
	f.PrintDefaults()
	fmt.Fprintf(&b, "\nExample:\n  %s\n", c.example)
	return b.String()
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
