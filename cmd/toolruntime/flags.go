package main

import (
	"errors"
	"flag"
	"math"
	"strconv"
	"strings"
	"time"
)

// envDB names the ledger where --db does not.
const envDB = "TOOLRUNTIME_DB"

// options are the values of all flags, and the arguments.
type options struct {
	db, fixture, tools, statusRef, failure, workerID, from, to string
	actor, reason, decision, receipt, tool, state              string
	limit                                                      int
	after, tenant                                              string
	stagger, olderThan, wait, since                            time.Duration
	oldest                                                     bool
	json, dryRun, version, unseen, verify                      bool
	args                                                       []string
}

// front are the flags that may stand before the command.
func (o *options) front() *flag.FlagSet {
	f := flagSet("toolruntime")
	o.withFixture(f)
	f.BoolVar(&o.version, "version", false, "")
	return f
}

func (o *options) common(f *flag.FlagSet) {
	f.StringVar(&o.db, "db", "", "`ledger`: a file, or the address of a PostgreSQL database; or else $"+envDB)
	o.format(f)
}

func (o *options) format(f *flag.FlagSet) {
	f.BoolVar(&o.json, "json", false, "print JSON on a terminal, too")
}

func (o *options) withFixture(f *flag.FlagSet) {
	o.common(f)
	f.StringVar(&o.fixture, "fixture", "", "`file` with a persistent-tool-case-v1")
}

func (o *options) withTools(f *flag.FlagSet) {
	f.StringVar(&o.tools, "tools", "", "`file` with the contracts of your own tools and the profiles of your own providers")
}

func (o *options) withRef(f *flag.FlagSet) {
	o.common(f)
	f.StringVar(&o.statusRef, "status-ref", "", "status_`ref` of the operation")
}

func (o *options) withActor(f *flag.FlagSet) {
	f.StringVar(&o.actor, "actor", "", "`who` decides")
	f.StringVar(&o.reason, "reason", "", "`why`")
}

func (o *options) withTool(f *flag.FlagSet, what string) {
	f.StringVar(&o.tool, "tool", "", what)
}

// A span is a duration that people write with days and weeks, too: 30d, 2w, 1d12h.
type span struct{ d *time.Duration }

func spanVar(f *flag.FlagSet, d *time.Duration, name string, value time.Duration, usage string) {
	*d = value
	f.Var(span{d}, name, usage)
}

func (s span) String() string {
	if s.d == nil || *s.d == 0 {
		return ""
	}
	return s.d.String()
}

var errSpan = errors.New("is no time such as 90s, 12h, 30d or 2w")

func (s span) Set(text string) error {
	var days time.Duration
	rest := text
	for _, unit := range []struct {
		letter string
		length time.Duration
	}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}} {
		number, after, found := strings.Cut(rest, unit.letter)
		if !found {
			continue
		}
		n, err := strconv.ParseUint(number, 10, 32)
		if err != nil || time.Duration(n) > (math.MaxInt64-days)/unit.length {
			return errSpan
		}
		days, rest = days+time.Duration(n)*unit.length, after
	}
	if rest == "" && text != "" {
		*s.d = days
		return nil
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 || d > math.MaxInt64-days {
		return errSpan
	}
	*s.d = days + d
	return nil
}
