package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// The exit codes.
const (
	exitPass  = 0
	exitBlock = 1
	exitError = 2
)

// A command is a verb of the command line. The table of them is what runs, what
// help says, what docs/commands.md says, and what a shell completes.
type command struct {
	name    string
	args    string   // the usage line's arguments that are no flags
	needs   []string // the flags without which it cannot do anything
	summary string
	detail  string
	example string
	flags   func(*options, *flag.FlagSet)
	run     func(context.Context, *options, *printer) (bool, error) // true is PASS
}

// commands is the table, in the order of the overview.
func commands() []command {
	return slices.Concat(gating(), operating(), keeping(), []command{versionCommand(), completionCommand()})
}

// run is main without the process: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	front := o.front()
	if err := cmp.Or(front.Parse(args), noneEmpty(front)); err != nil {
		return usageExit(err, stdout, stderr, overview())
	}
	rest := front.Args()
	switch {
	case o.version:
		rest = []string{"version"}
	case len(rest) == 0:
		fmt.Fprint(stderr, overview())
		return exitError
	case rest[0] == "help":
		return help(rest[1:], stdout, stderr)
	}
	c, rest, ok := find(rest)
	if !ok {
		return unknown(front.Args(), stdout, stderr)
	}
	if err := c.parse(&o, rest); err != nil {
		return usageExit(err, stdout, stderr, c.usage())
	}
	p := &printer{out: stdout, err: stderr, json: o.json || !isTerminal(stdout)}
	pass, err := c.run(ctx, &o, p)
	if err == nil {
		err = p.failed
	}
	switch {
	case err != nil:
		printError(stderr, err, o.json || !isTerminal(stderr))
		return exitError
	case pass:
		return exitPass
	}
	return exitBlock
}

// parse reads the flags of a command, checks that it has what it cannot do
// without, and touches nothing.
func (c command) parse(o *options, args []string) error {
	given := *o
	f := flagSet("toolruntime " + c.name)
	c.flags(o, f)
	// Defining a flag resets its variable to the default.
	o.db, o.fixture, o.json = given.db, given.fixture, given.json
	if err := f.Parse(args); err != nil {
		return err
	}
	if err := noneEmpty(f); err != nil {
		return err
	}
	if f.Lookup("db") != nil && o.db == "" {
		o.db = os.Getenv(envDB)
	}
	for _, name := range c.needs {
		if f.Lookup(name).Value.String() != "" {
			continue
		}
		if name == "db" {
			return errors.New("--db is missing, and " + envDB + " is not set")
		}
		return fmt.Errorf("--%s is missing", name)
	}
	o.args = f.Args()
	switch {
	case c.args == "" && len(o.args) > 0:
		return fmt.Errorf("unexpected argument %s", shown(o.args[0]))
	case c.args != "" && len(o.args) != 1:
		return fmt.Errorf("%s takes one argument: %s", c.name, c.args)
	}
	return nil
}

// noneEmpty refuses a flag that was given without a value, as a script does whose
// variable is not set: left out it would stand for every tool, or for another ledger.
// Only a cursor may be empty, which is where a list begins.
func noneEmpty(f *flag.FlagSet) (err error) {
	f.Visit(func(g *flag.Flag) {
		if v, ok := g.Value.(flag.Getter); ok && v.Get() == "" && g.Name != "after" {
			err = cmp.Or(err, fmt.Errorf("--%s is empty: give it a value, or leave it out", g.Name))
		}
	})
	return err
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

func flagSet(name string) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Usage = func() {}
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
	// The first command of a group is what its bare word stands for.
	if cs := group(args[0]); len(cs) > 0 && !asksForHelp(args[1:]) && (len(args) == 1 || strings.HasPrefix(args[1], "-")) {
		return cs[0], args[1:], true
	}
	return command{}, nil, false
}

func asksForHelp(args []string) bool {
	return len(args) > 0 && slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0])
}

// group are the commands whose first word is the given one, such as review.
func group(word string) (cs []command) {
	for _, c := range commands() {
		if first, _, more := strings.Cut(c.name, " "); more && first == word {
			cs = append(cs, c)
		}
	}
	return cs
}

// unknown ends a command line that names no command. One that names a group gets
// what there is in it.
func unknown(args []string, stdout, stderr io.Writer) int {
	cs := group(args[0])
	if len(cs) == 0 {
		fmt.Fprintf(stderr, "toolruntime: there is no command %s\n\n%s", shown(args[0]), overview())
		return exitError
	}
	w, exit := stderr, exitError
	if asksForHelp(args[1:]) {
		w, exit = stdout, exitPass
	}
	fmt.Fprintf(w, "Usage: toolruntime %s COMMAND [flags]\n\n", args[0])
	list(w, cs)
	return exit
}

func help(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stdout, overview())
		return exitPass
	}
	c, _, ok := find(args)
	if len(args) == 1 && len(group(args[0])) > 0 || !ok {
		return unknown([]string{args[0], "help"}, stdout, stderr)
	}
	fmt.Fprint(stdout, c.usage())
	return exitPass
}

func list(w io.Writer, cs []command) {
	for _, c := range cs {
		fmt.Fprintf(w, "  %-15s %s\n", c.name, c.summary)
	}
}

func overview() string {
	var b strings.Builder
	b.WriteString("toolruntime carries out tool calls once, approved, and provably.\n\nUsage: toolruntime COMMAND [flags]\n\n")
	list(&b, commands())
	b.WriteString(`
--db names a ledger: a file, or a PostgreSQL database as a postgres:// URL or as
"host=… dbname=…". Without it ` + envDB + ` is used. Only dispatch and migrate
make a ledger where there is none.

Exit codes: 0 PASS, 1 BLOCK for a business or audit reason, 2 could not run. (go
run turns every code but 0 into 1: a gate runs the built command.) Output is JSON
when it is piped and with --json, and readable on a terminal.

Start with:
  toolruntime dispatch --db refunds.sqlite3 --fixture examples/refunds/case.json

"toolruntime help COMMAND" tells more about a command.
`)
	return b.String()
}

// usageLine follows from the flags: those that a command needs come first.
func (c command) usageLine() string {
	words := append([]string{"toolruntime", c.name}, strings.Fields(c.args)...)
	var may []string
	for _, f := range c.flagList() {
		word := "--" + f.name
		if f.value != "" {
			word += " " + strings.ToUpper(f.value)
		}
		switch {
		case slices.Contains(c.needs, f.name):
			words = append(words, word)
		case f.name != "json":
			may = append(may, "["+word+"]")
		}
	}
	return strings.Join(append(words, may...), " ")
}

// A flagHelp is what help says of a flag; value is "" where it takes none.
type flagHelp struct{ name, value, text string }

func (c command) flagList() (list []flagHelp) {
	f := flagSet(c.name)
	c.flags(&options{}, f)
	f.VisitAll(func(g *flag.Flag) {
		value, text := flag.UnquoteUsage(g)
		if g.DefValue != "" && g.DefValue != "false" && g.DefValue != "0" {
			text += " (default " + g.DefValue + ")"
		}
		list = append(list, flagHelp{g.Name, value, text})
	})
	return list
}

func (c command) usage() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s\n\n", c.usageLine())
	if c.detail != "" {
		b.WriteString(c.detail + "\n\n")
	}
	if flags := c.flagList(); len(flags) > 0 {
		b.WriteString("Flags:\n")
		for _, f := range flags {
			fmt.Fprintf(&b, "  %-22s %s\n", strings.TrimSpace("--"+f.name+" "+f.value), f.text)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "Example:\n  %s\n", c.example)
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
