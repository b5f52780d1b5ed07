package main

import (
	"fmt"
	"os"
)

// compare holds every row of this report against the same row of an earlier one. The
// floor's own change, where there is a floor, is what the machine did: the rate with it
// taken out is of the runtime's change alone.
func (r *report) compare(before *report) table {
	t := table{title: "Now, by how it was before", words: 3,
		note:   "Ratios of medians, now/before: more is better of rates, less of all others. The last two are processor time for each operation.",
		header: []string{"what", "system", "database", "callers", "before", "now", "rate", "rate, less the floor's", "p50", "p99", "own µs", "server µs"}}
	for _, what := range titles {
		for _, s := range r.sums {
			b, ok := before.by[s.key]
			if !ok || s.Name != what.name {
				continue
			}
			floor := s.key
			floor.System = "floor"
			less := none
			if s.System == "runtime" {
				less = ratio(s.Rate*before.by[floor].Rate, b.Rate*r.by[floor].Rate)
			}
			title := what.title
			if s.Stored > 0 {
				title += fmt.Sprintf(" (%s stored)", rate(float64(s.Stored)))
			}
			t.rows = append(t.rows, []string{title, s.System, s.Database, fmt.Sprint(s.Callers), rate(b.Rate), rate(s.Rate), ratio(s.Rate, b.Rate), less,
				ratio(s.P50, b.P50), ratio(s.P99, b.P99), ratio(s.Extra[ownMicros], b.Extra[ownMicros]), ratio(s.Extra[serverMicros], b.Extra[serverMicros])})
		}
	}
	return t
}

// readReport reads the results of an earlier run.
func readReport(path string) (*report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, all, err := readLines(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return newReport(m, all), nil
}
