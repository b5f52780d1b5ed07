package main

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// A chart is groups of horizontal bars; each group has a scale of its own.
type chart struct {
	title  string
	groups []group
}

type group struct {
	title string
	bars  []bar
}

type bar struct {
	label string
	value float64
}

// chart is of what people ask first.
func (r *report) chart() chart {
	c := chart{title: fmt.Sprintf("Durable calls per second (%s, %d cores)", r.machine.CPU, r.machine.Cores)}
	for _, d := range databases {
		systems := append([]string{"floor", "runtime"}, r.peerNames(d.name)...)
		for _, g := range []struct {
			name    string
			callers int
		}{{"fresh", 1}, {"fresh", 64}, {"replay", 64}} {
			of := group{title: fmt.Sprintf("%s: %s, %d at a time", d.title, titleOf(g.name), g.callers)}
			if g.callers == 1 {
				of.title = fmt.Sprintf("%s: %s, one at a time", d.title, titleOf(g.name))
			}
			for _, system := range systems {
				if s, ok := r.by[key{system, g.name, home(system, d.name), g.callers, 0}]; ok {
					of.bars = append(of.bars, bar{system, s.Rate})
				}
			}
			c.add(of)
		}
		most := group{title: d.title + ": most new calls carried out, however many outstanding"}
		for _, system := range systems {
			if s := r.bestOf(system, d.name); s.Rate > 0 {
				most.bars = append(most.bars, bar{system, s.Rate})
			}
		}
		c.add(most)
	}
	return c
}

func (c *chart) add(g group) {
	if len(g.bars) > 0 {
		c.groups = append(c.groups, g)
	}
}

// Where things are in the picture, in its own units.
const (
	chartWidth = 760
	barLeft    = 90
	barMost    = 560
	barHeight  = 16
	barStep    = 21
	groupStep  = 40
)

// The picture says itself which colours it has on a dark page.
const chartStyle = `
text { font: 13px system-ui, sans-serif; fill: #24292f; }
.title { font-size: 15px; font-weight: 600; }
.group { font-weight: 600; }
.label { text-anchor: end; }
.peer { fill: #8c959f; }
.floor { fill: #bf8700; }
.runtime { fill: #0969da; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .peer { fill: #6e7681; }
  .floor { fill: #d29922; }
  .runtime { fill: #4493f8; }
}
`

// svg draws the chart.
func (c chart) svg() string {
	var body strings.Builder
	y := 24
	text := func(class string, x, y int, s string) {
		fmt.Fprintf(&body, "<text class=%q x=\"%d\" y=\"%d\">", class, x, y)
		_ = xml.EscapeText(&body, []byte(s)) // a strings.Builder takes everything
		body.WriteString("</text>\n")
	}
	text("title", 8, y, c.title)
	for _, g := range c.groups {
		y += groupStep
		text("group", 8, y, g.title)
		longest := 0.0
		for _, b := range g.bars {
			longest = max(longest, b.value)
		}
		y += 8
		for _, b := range g.bars {
			class := "peer"
			if b.label == "floor" || b.label == "runtime" {
				class = b.label
			}
			width := max(int(barMost*b.value/longest), 1)
			text("label", barLeft-6, y+13, b.label)
			fmt.Fprintf(&body, "<rect class=%q x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"2\"/>\n", class, barLeft, y, width, barHeight)
			text("value", barLeft+width+6, y+13, rate(b.value))
			y += barStep
		}
		y -= barHeight - 4
	}
	height := y + 28
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n<style>%s</style>\n%s</svg>\n",
		chartWidth, height, chartWidth, height, chartStyle, &body)
}
