package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A table is written as Markdown that a terminal shows just as well.
type table struct {
	title  string
	note   string
	header []string
	rows   [][]string
	words  int // so many columns from the left are text; the others are numbers
}

func (t table) String() string {
	width := make([]int, len(t.header))
	for _, row := range append([][]string{t.header}, t.rows...) {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell), 3)
		}
	}
	var b strings.Builder
	if t.title != "" {
		fmt.Fprintf(&b, "### %s\n\n", t.title)
	}
	if t.note != "" {
		fmt.Fprintf(&b, "%s\n\n", t.note)
	}
	write := func(row []string) {
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i < t.words {
				fmt.Fprintf(&b, "| %s%s ", cell, pad)
			} else {
				fmt.Fprintf(&b, "| %s%s ", pad, cell)
			}
		}
		b.WriteString("|\n")
	}
	write(t.header)
	rule := make([]string, len(width))
	for i, w := range width {
		rule[i] = strings.Repeat("-", w)
		if i >= t.words {
			rule[i] = rule[i][1:] + ":"
		}
	}
	write(rule)
	for _, row := range t.rows {
		write(row)
	}
	return b.String()
}

const none = "–"

// rate is a number of operations per second, with as many digits as mean
// something.
func rate(v float64) string {
	switch {
	case v == 0:
		return none
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// span is between which rates the rounds were.
func span(s summary) string { return rate(s.Least) + "–" + rate(s.Most) }

func latency(ms float64) string {
	switch {
	case ms == 0:
		return none
	case ms < 10:
		return fmt.Sprintf("%.3f", ms)
	}
	return fmt.Sprintf("%.1f", ms)
}

// ratio is of two rates, one of which may not be there.
func ratio(of, to float64) string {
	if of == 0 || to == 0 {
		return none
	}
	if r := of / to; r < 10 {
		return fmt.Sprintf("%.2f", r)
	}
	return fmt.Sprintf("%.0f", of/to)
}
