package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// What the scenarios are called in a report, in its order.
var titles = []struct{ name, title string }{
	{"sync", "append 4 KiB and sync"},
	{"commit", "commit one small row"},
	{"fresh", "new call, answered"},
	{"storm", "new call, among 5 % duplicates"},
	{"first", "first 2,000 calls, fresh database"},
	{"submit", "new call, accepted"},
	{"accept", "accepted in bulk"},
	{"work", "worker: backlog carried out"},
	{"bulk", "backlog accepted and carried out"},
	{"replay", "repeated call"},
	{"recent", "repeated call, of the newest 1,000"},
	{"status", "status query"},
	{"due", "worker: 32 due operations found"},
	{"audit", "audit"},
	{"size", "bytes in the file per operation"},
}

var databases = []struct{ name, title string }{{"sqlite", "SQLite"}, {"postgres", "PostgreSQL"}}

func titleOf(name string) string {
	for _, t := range titles {
		if t.name == name {
			return t.title
		}
	}
	return name
}

// A report finds summaries by what they are of.
type report struct {
	machine machine
	sums    []summary
	by      map[key]summary
}

func newReport(m machine, all []measurement) *report {
	r := &report{machine: m, sums: summarize(all), by: map[key]summary{}}
	for _, s := range r.sums {
		r.by[s.key] = s
	}
	return r
}

// String is the generated part of the documentation, and what a run prints.
func (r *report) String() string {
	parts := []string{r.about()}
	for _, d := range databases {
		for _, t := range []table{r.floors(d.name, d.title), r.peers(d.name, d.title), r.best(d.name, d.title), r.sets(d.name, d.title), r.costs(d.name, d.title)} {
			if len(t.rows) > 0 {
				parts = append(parts, t.String())
			}
		}
	}
	if t := r.processes(); len(t.rows) > 0 {
		parts = append(parts, t.String())
	}
	return strings.Join(parts, "\n")
}

func (r *report) about() string {
	m := r.machine
	t := table{header: []string{"machine", ""}, words: 2, rows: [][]string{
		{"CPU", fmt.Sprintf("%s, %d cores", m.CPU, m.Cores)}, {"memory", m.Memory}, {"system", m.System},
		{"Go", m.Go}, {"SQLite", m.SQLite}, {"PostgreSQL", m.PostgreSQL}}}
	for _, name := range slices.Sorted(maps.Keys(m.Peers)) {
		t.rows = append(t.rows, []string{name, m.Peers[name]})
	}
	for _, k := range []key{{System: "disk", Name: "sync", Callers: 1}, {System: "floor", Name: "commit", Database: "sqlite", Callers: 1}} {
		if s, ok := r.by[k]; ok {
			t.rows = append(t.rows, []string{"disk: " + titleOf(k.Name), fmt.Sprintf("%s/s (%s), p50 %s ms, p99 %s ms", rate(s.Rate), span(s), latency(s.P50), latency(s.P99))})
		}
	}
	t.rows = append(t.rows, []string{"measured", fmt.Sprintf("rounds: %d, of %s each; the medians", m.Rounds, m.Time)})
	return t.String()
}

// callersOf are the numbers of callers with which a system was asked.
func (r *report) callersOf(system, name, database string) []int {
	var callers []int
	for _, s := range r.sums {
		if s.System == system && s.Name == name && s.Database == database && s.Stored == 0 {
			callers = append(callers, s.Callers)
		}
	}
	slices.Sort(callers)
	return slices.Compact(callers)
}

// floors holds the runtime against the bare SQL.
func (r *report) floors(database, title string) table {
	t := table{title: "The runtime on " + title + ", and the floor under it", words: 1,
		header: []string{"operations per second", "callers", "floor", "runtime", "lowest–highest", "runtime/floor", "p50 ms", "p99 ms", "floor p50 ms", "floor p99 ms"}}
	for _, what := range titles {
		for _, n := range r.callersOf("runtime", what.name, database) {
			s := r.by[key{"runtime", what.name, database, n, 0}]
			f := r.by[key{"floor", what.name, database, n, 0}]
			t.rows = append(t.rows, []string{what.title, fmt.Sprint(n), rate(f.Rate), rate(s.Rate), span(s), ratio(s.Rate, f.Rate),
				latency(s.P50), latency(s.P99), latency(f.P50), latency(f.P99)})
		}
	}
	return t
}

// home is the database of a system, where it is asked for on another: that, or its own.
func home(system, database string) string {
	if system == "restate" {
		return ownStore
	}
	return database
}

func (r *report) peerNames(database string) []string {
	var names []string
	for _, s := range r.sums {
		if s.Database == home(s.System, database) && s.System != "runtime" && s.System != "floor" && !slices.Contains(names, s.System) {
			names = append(names, s.System)
		}
	}
	return names
}

// peers holds the runtime against peers that were asked for the same.
func (r *report) peers(database, title string) table {
	t := table{title: "Peers on " + title, words: 2,
		header: []string{"operations per second", "system", "callers", "rate", "lowest–highest", "p50 ms", "p99 ms", "runtime/peer"}}
	for _, what := range titles {
		for _, system := range r.peerNames(database) {
			for _, n := range r.callersOf(system, what.name, home(system, database)) {
				s := r.by[key{system, what.name, home(system, database), n, 0}]
				ours := r.by[key{"runtime", what.name, database, n, 0}]
				if what.name == "accept" || what.name == "work" || what.name == "bulk" { // how many at once is each one's own affair
					ours = r.by[key{"runtime", what.name, database, workers, 0}]
				}
				t.rows = append(t.rows, []string{what.title, system, fmt.Sprint(n), rate(s.Rate), span(s), latency(s.P50), latency(s.P99), ratio(ours.Rate, s.Rate)})
			}
		}
	}
	return t
}

// bestOf is the scenario in which a system has carried out the most new calls,
// however many were outstanding.
func (r *report) bestOf(system, database string) (best summary) {
	for _, s := range r.sums {
		if s.System == system && s.Database == home(system, database) && s.Stored == 0 && (s.Name == "fresh" || s.Name == "bulk") && s.Rate > best.Rate {
			best = s
		}
	}
	return best
}

// best holds everybody's best number against the runtime's.
func (r *report) best(database, title string) table {
	t := table{title: "Most new calls carried out on " + title, words: 2,
		note:   "Every system in the way in which it was fastest here, however many calls were outstanding.",
		header: []string{"system", "how", "callers", "per second", "runtime/system"}}
	ours := r.bestOf("runtime", database)
	for _, system := range append([]string{"floor", "runtime"}, r.peerNames(database)...) {
		if s := r.bestOf(system, database); s.Rate > 0 {
			t.rows = append(t.rows, []string{system, titleOf(s.Name), fmt.Sprint(s.Callers), rate(s.Rate), ratio(ours.Rate, s.Rate)})
		}
	}
	return t
}

// scale is how a ledger behaves as it grows: a column for each size.
func (r *report) scale() table {
	t := table{title: "Operations per second, by how many are stored (SQLite)", words: 2, header: []string{"", "system", "callers"}}
	var stored []int64
	for _, s := range r.sums {
		if !slices.Contains(stored, s.Stored) {
			stored = append(stored, s.Stored)
			t.header = append(t.header, strings.Replace(rate(float64(s.Stored)), none, "0", 1))
		}
	}
	row := func(title string, k key, value func(summary) string) {
		cells := []string{title, k.System, fmt.Sprint(k.Callers)}
		for _, k.Stored = range stored {
			cells = append(cells, value(r.by[k]))
		}
		if slices.ContainsFunc(cells[3:], func(c string) bool { return c != none }) {
			t.rows = append(t.rows, cells)
		}
	}
	for _, what := range titles {
		for _, k := range r.kinds(what.name) {
			row(what.title, k, func(s summary) string { return rate(s.Rate) })
			if k.System == "runtime" {
				row(what.title+": runtime/floor", k, func(s summary) string {
					s.System = "floor"
					return ratio(s.Rate, r.by[s.key].Rate)
				})
			}
			row(what.title+": p99 ms", k, func(s summary) string { return latency(s.P99) })
			row(what.title+": most memory, MiB", k, func(s summary) string { return rate(s.Extra[peakMiB]) })
			row(what.title, k, func(s summary) string { return rate(s.Extra[bytesPerOperation]) })
		}
	}
	return t
}

// kinds are the scenarios of a name, the floor's first, without their sizes.
func (r *report) kinds(name string) []key {
	var kinds []key
	for _, s := range r.sums {
		k := s.key
		if k.Stored = 0; k.Name == name && !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	slices.SortStableFunc(kinds, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.Callers, b.Callers), cmp.Compare(a.System, b.System))
	})
	return kinds
}
