package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// A measurement is one scenario in one round, and a line of the results.
type measurement struct {
	System   string `json:"system"`
	Name     string `json:"name"`
	Database string `json:"database,omitempty"`
	Callers  int    `json:"callers"`
	Round    int    `json:"round"`
	// Stored is how many operations the ledger had, where that is the question.
	Stored     int64   `json:"stored,omitempty"`
	Operations int64   `json:"operations"`
	Seconds    float64 `json:"seconds"`
	PerSecond  float64 `json:"per_second"`
	// The latencies, in milliseconds, are 0 where a single operation has none.
	P50   float64            `json:"p50_ms"`
	P99   float64            `json:"p99_ms"`
	Extra map[string]float64 `json:"extra,omitempty"`
}

// The names of what is extra.
const (
	peakMiB           = "peak_mib"
	bytesPerOperation = "bytes_per_operation"
	rowsPerOperation  = "rows_per_operation"
	ownMicros         = "own_us" // processor time per operation
	serverMicros      = "server_us"
	logLines          = "log_lines_per_1000"
	leastShare        = "least_share" // of a process, of what each would have if all had the same
)

// A key is what the rounds of a scenario have in common.
type key struct {
	System, Name, Database string
	Callers                int
	Stored                 int64
}

// A summary is the median of the rounds, and between which rates they were.
type summary struct {
	key
	Rate, Least, Most, P50, P99 float64
	Extra                       map[string]float64
}

// summarize puts the rounds together, in the order in which the scenarios came.
func summarize(all []measurement) []summary {
	rounds := map[key][]measurement{}
	var order []key
	for _, m := range all {
		k := key{m.System, m.Name, m.Database, m.Callers, m.Stored}
		if rounds[k] == nil {
			order = append(order, k)
		}
		rounds[k] = append(rounds[k], m)
	}
	sums := make([]summary, len(order))
	for i, k := range order {
		of := rounds[k]
		rate := func(m measurement) float64 { return m.PerSecond }
		byRate := func(a, b measurement) int { return cmp.Compare(a.PerSecond, b.PerSecond) }
		sums[i] = summary{k, median(of, rate), slices.MinFunc(of, byRate).PerSecond, slices.MaxFunc(of, byRate).PerSecond,
			median(of, func(m measurement) float64 { return m.P50 }), median(of, func(m measurement) float64 { return m.P99 }), nil}
		for name := range of[0].Extra {
			if sums[i].Extra == nil {
				sums[i].Extra = map[string]float64{}
			}
			value := func(m measurement) float64 { return m.Extra[name] }
			sums[i].Extra[name] = median(of, value)
			if name == leastShare { // who starves in one round of three has starved
				sums[i].Extra[name] = value(slices.MinFunc(of, func(a, b measurement) int { return cmp.Compare(value(a), value(b)) }))
			}
		}
	}
	return sums
}

func median(of []measurement, value func(measurement) float64) float64 {
	var v []float64
	for _, m := range of {
		v = append(v, value(m))
	}
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// A line of the results is about the machine, which is the first, or a
// measurement.
type line struct {
	Machine     *machine     `json:"machine,omitempty"`
	Measurement *measurement `json:"measurement,omitempty"`
}

func writeLine(w io.Writer, l line) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", text)
	return err
}

func readLines(r io.Reader) (m machine, all []measurement, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return m, nil, err
		}
		if l.Machine != nil {
			m = *l.Machine
		}
		if l.Measurement != nil {
			all = append(all, *l.Measurement)
		}
	}
	if len(all) == 0 {
		return m, nil, errors.Join(lines.Err(), errors.New("there are no measurements"))
	}
	return m, all, lines.Err()
}
