package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// rounds are three of a scenario with these rates.
func rounds(system, name, database string, callers int, rates ...float64) []measurement {
	var all []measurement
	for i, r := range rates {
		all = append(all, measurement{System: system, Name: name, Database: database, Callers: callers, Round: i + 1, Operations: 1, PerSecond: r, P50: 1, P99: float64(i)})
	}
	return all
}

func with(all []measurement, extra map[string]float64) []measurement {
	for i := range all {
		all[i].Extra = extra
	}
	return all
}

func sample() *report {
	var all []measurement
	for _, m := range [][]measurement{
		rounds("floor", "fresh", "sqlite", 64, 9000, 10000, 8000),
		rounds("runtime", "fresh", "sqlite", 64, 4500, 3000, 6000),
		rounds("runtime", "fresh", "sqlite", 1, 1000),
		rounds("runtime", "bulk", "sqlite", 64, 3000),
		rounds("river", "fresh", "sqlite", 64, 250),
		rounds("river", "bulk", "sqlite", 1000, 2000),
		with(rounds("runtime", "processes", "postgres", 32, 500), map[string]float64{leastShare: 1}),
		with(rounds("runtime", "processes", "postgres", 64, 600), map[string]float64{leastShare: 0.9}),
		with(rounds("runtime", "work", "postgres", 64, 300), map[string]float64{rowsPerOperation: 6.01, bytesPerOperation: 5000, ownMicros: 900, serverMicros: 1700}),
		with(rounds("floor", "work", "postgres", 500, 3000), map[string]float64{rowsPerOperation: 6, bytesPerOperation: 6000, ownMicros: 40, serverMicros: 250, logLines: 0.5}),
	} {
		all = append(all, m...)
	}
	return newReport(machine{CPU: "a <CPU> & more", Cores: 2, Rounds: 3}, all)
}

func TestSummarize(t *testing.T) {
	got := summarize(append(rounds("a", "b", "c", 1, 3, 1, 2), rounds("a", "b", "c", 2, 4, 6)...))
	want := []summary{
		{key: key{"a", "b", "c", 1, 0}, Rate: 2, Least: 1, Most: 3, P50: 1, P99: 1},
		{key: key{"a", "b", "c", 2, 0}, Rate: 5, Least: 4, Most: 6, P50: 1, P99: 0.5},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(summary{})); diff != "" {
		t.Error(diff)
	}
}

func TestSummarizeExtra(t *testing.T) {
	all := rounds("a", "b", "c", 1, 1, 1, 1)
	for i, v := range []float64{3, 1, 2} {
		all[i].Extra = map[string]float64{ownMicros: v, leastShare: v}
	}
	want := map[string]float64{ownMicros: 2, leastShare: 1}
	if diff := cmp.Diff(want, summarize(all)[0].Extra); diff != "" {
		t.Error(diff)
	}
}

func TestTables(t *testing.T) {
	r := sample()
	for _, c := range []struct {
		name string
		got  table
		want [][]string
	}{
		{"floor", r.floors("sqlite", "SQLite"), [][]string{
			{"new call, answered", "1", none, "1,000", "1,000–1,000", none, "1.000", none, none, none},
			{"new call, answered", "64", "9,000", "4,500", "3,000–6,000", "0.50", "1.000", "1.000", "1.000", "1.000"},
			{"backlog accepted and carried out", "64", none, "3,000", "3,000–3,000", none, "1.000", none, none, none},
		}},
		{"peers", r.peers("sqlite", "SQLite"), [][]string{
			{"new call, answered", "river", "64", "250", "250–250", "1.000", none, "18"},
			{"backlog accepted and carried out", "river", "1000", "2,000", "2,000–2,000", "1.000", none, "1.50"},
		}},
		{"best", r.best("sqlite", "SQLite"), [][]string{
			{"floor", "new call, answered", "64", "9,000", "0.50"},
			{"runtime", "new call, answered", "64", "4,500", "1.00"},
			{"river", "backlog accepted and carried out", "1000", "2,000", "2.25"},
		}},
		{"nothing", r.peers("postgres", "PostgreSQL"), nil},
		{"processes", r.processes(), [][]string{
			{"PostgreSQL", "1", "500", "500–500", "1.00", "1.00", "1.000", none},
			{"PostgreSQL", "2", "600", "600–600", "1.20", "0.90", "1.000", none},
		}},
		{"sets", r.sets("postgres", "PostgreSQL"), [][]string{
			{"worker: backlog carried out", "runtime", "64", "300", "300–300", "1.00", "6.0", "5,000", "900", "1,700"},
			{"worker: backlog carried out", "floor", "500", "3,000", "3,000–3,000", "0.10", "6.0", "6,000", "40.0", "250"},
		}},
		{"costs", r.costs("postgres", "PostgreSQL"), [][]string{
			{"worker: backlog carried out", "runtime", "64", "900", "1,700", "2,600", "0.0"},
		}},
	} {
		if diff := cmp.Diff(c.want, c.got.rows); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
	}
}

func TestScale(t *testing.T) {
	var all []measurement
	for _, stored := range []int64{0, 100_000} {
		for _, m := range []measurement{
			{System: "runtime", Name: "fresh", Callers: 1, PerSecond: 500, P99: 2},
			{System: "floor", Name: "fresh", Callers: 1, PerSecond: 1000},
			{System: "runtime", Name: "audit", Callers: 1, PerSecond: 9000, Extra: map[string]float64{peakMiB: 50}},
		} {
			m.Stored = stored
			all = append(all, m)
		}
	}
	got := newReport(machine{}, all).scale()
	if diff := cmp.Diff([]string{"", "system", "callers", "0", "100,000"}, got.header); diff != "" {
		t.Error(diff)
	}
	want := [][]string{
		{"new call, answered", "floor", "1", "1,000", "1,000"},
		{"new call, answered", "runtime", "1", "500", "500"},
		{"new call, answered: runtime/floor", "runtime", "1", "0.50", "0.50"},
		{"new call, answered: p99 ms", "runtime", "1", "2.000", "2.000"},
		{"audit", "runtime", "1", "9,000", "9,000"},
		{"audit: most memory, MiB", "runtime", "1", "50.0", "50.0"},
	}
	if diff := cmp.Diff(want, got.rows); diff != "" {
		t.Error(diff)
	}
}

func TestMarkdown(t *testing.T) {
	got := table{title: "T", header: []string{"what", "n"}, words: 1, rows: [][]string{{"ä", "1,000"}, {"long word", "2"}}}.String()
	want := "### T\n\n| what      |     n |\n| --------- | ----: |\n| ä         | 1,000 |\n| long word |     2 |\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNumbers(t *testing.T) {
	got := []string{rate(0), rate(4.04), rate(999.6), rate(12345), rate(1234567), ratio(1, 2), ratio(30, 2), ratio(1, 0), latency(0.0371), latency(12.34)}
	want := []string{none, "4.0", "1,000", "12,345", "1,234,567", "0.50", "15", none, "0.037", "12.3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestChart reads the picture as XML, and the widths of the bars of its first
// group.
func TestChart(t *testing.T) {
	decoder := xml.NewDecoder(strings.NewReader(sample().chart().svg()))
	type drawn struct{ Class, Width string }
	var bars []drawn
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "rect" {
			var b drawn
			for _, a := range e.Attr {
				switch a.Name.Local {
				case "class":
					b.Class = a.Value
				case "width":
					b.Width = a.Value
				}
			}
			bars = append(bars, b)
		}
	}
	want := []drawn{
		{"runtime", "560"}, // one caller
		{"floor", "560"}, {"runtime", "280"}, {"peer", "15"},
		{"floor", "560"}, {"runtime", "280"}, {"peer", "124"},
	}
	if diff := cmp.Diff(want, bars); diff != "" {
		t.Error(diff)
	}
}

func TestReplaceBetween(t *testing.T) {
	got, err := replaceBetween("a\n<!-- bench:begin -->\nold\n<!-- bench:end -->\nb\n", "bench", "new\n")
	if want := "a\n<!-- bench:begin -->\n\nnew\n\n<!-- bench:end -->\nb\n"; err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	for _, without := range []string{"", "<!-- bench:begin -->\n", "<!-- bench:end -->"} {
		if _, err := replaceBetween(without, "bench", "new"); err == nil {
			t.Errorf("%q: no error", without)
		}
	}
}

func TestLines(t *testing.T) {
	var b bytes.Buffer
	m, all := machine{CPU: "c", Rounds: 2}, rounds("a", "b", "c", 1, 3, 1)
	if err := writeLine(&b, line{Machine: &m}); err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		if err := writeLine(&b, line{Measurement: &v}); err != nil {
			t.Fatal(err)
		}
	}
	gotMachine, got, err := readLines(&b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, gotMachine) + cmp.Diff(all, got); diff != "" {
		t.Error(diff)
	}
}

func TestHistogram(t *testing.T) {
	var h histogram
	for d := time.Duration(1); d <= 1000; d++ {
		h.add(d*time.Microsecond, 1)
	}
	for _, q := range []float64{0, 0.5, 0.99, 1} {
		want := 1 + math.Floor(q*999)
		if got := float64(h.quantile(q)) / 1000; math.Abs(got-want) > want/64 {
			t.Errorf("quantile %v is %v, want about %v", q, got, want)
		}
	}
	for _, v := range []uint64{0, 1, 63, 64, 127, 128, 129, 1 << 20, math.MaxInt64} {
		if i := bucket(v); lowest(i) > v || v >= lowest(i+1) && v != math.MaxInt64 {
			t.Errorf("%d is in bucket %d, from %d to %d", v, i, lowest(i), lowest(i+1))
		}
	}
	if (&histogram{}).quantile(0.5) != 0 {
		t.Error("an empty histogram has a median")
	}
}

func TestSizes(t *testing.T) {
	got, err := sizes("0,100k,1M,5M")
	if diff := cmp.Diff([]int64{0, 100_000, 1_000_000, 5_000_000}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	for _, bad := range []string{"x", "1M,1k", "-1", "1,1", ""} {
		if _, err := sizes(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
