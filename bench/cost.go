package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A cost is what has been used up since this process and its server began.
type cost struct {
	own    time.Duration // processor time of this process
	server time.Duration // of all of the server's
	lines  int64         // in the server's log
}

// A watch sums up costs while it runs.
type watch struct {
	server *process // nil where there is none
	begun  cost
	sum    cost
	err    error
}

// start begins the time of this process last, and stop ends it first: looking at the
// server takes some too.
func (w *watch) start() {
	w.begun = w.read()
	w.begun.own = w.own()
}

func (w *watch) stop() {
	now := w.read()
	w.sum.own += now.own - w.begun.own
	w.sum.server += now.server - w.begun.server
	w.sum.lines += now.lines - w.begun.lines
}

// time runs it under the watch and says how long that took.
func (w *watch) time(do func() error) (time.Duration, error) {
	w.start()
	defer w.stop()
	begin := time.Now()
	err := do()
	return time.Since(begin), err
}

func (w *watch) read() (c cost) {
	c.own = w.own()
	if w.server != nil {
		var err error
		if c.server, err = w.server.processorTime(); err == nil {
			c.lines, err = w.server.logLines()
		}
		w.err = errors.Join(w.err, err)
	}
	return c
}

func (w *watch) own() time.Duration {
	var u syscall.Rusage
	w.err = errors.Join(w.err, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// per gives what an operation has cost. A watch that never ran gives nothing.
func (w *watch) per(operations int64) (map[string]float64, error) {
	if w.sum.own == 0 || operations == 0 {
		return nil, w.err
	}
	n := float64(operations)
	extra := map[string]float64{ownMicros: float64(w.sum.own) / n / 1e3}
	if w.server != nil {
		extra[serverMicros] = float64(w.sum.server) / n / 1e3
		extra[logLines] = float64(w.sum.lines) / n * 1e3
	}
	return extra, w.err
}

// A process is the first one of a server. If it has more they are its children, as
// PostgreSQL's are.
type process struct{ pid int }

func findPostmaster(data string) (*process, error) {
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return nil, err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		return nil, fmt.Errorf("the server's process: %w", err)
	}
	return findProcess(pid)
}

// findProcess fails where /proc does not show it: it is Linux's.
func findProcess(pid int) (*process, error) {
	if _, err := processStat(pid); err != nil {
		return nil, err
	}
	return &process{pid}, nil
}

// tick is the unit of the times in /proc.
const tick = 10 * time.Millisecond

// A stat is a line of /proc/PID/stat.
type stat struct {
	parent         int
	used, children time.Duration // children: those that have ended
}

func processStat(pid int) (s stat, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return s, err
	}
	return parseStat(text)
}

func parseStat(text []byte) (s stat, err error) {
	// The second field is a name in parentheses, in which anything may be.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 15 {
		return s, fmt.Errorf("/proc: %q is no stat of a process", text)
	}
	var n [15]int64
	for _, i := range []int{1, 11, 12, 13, 14} {
		if n[i], err = strconv.ParseInt(string(fields[i]), 10, 64); err != nil {
			return s, err
		}
	}
	return stat{int(n[1]), time.Duration(n[11]+n[12]) * tick, time.Duration(n[13]+n[14]) * tick}, nil
}

// processorTime is that of the server and all its processes, those that have ended
// included. Of those that live it is read where it is exact: a tick of each of 32
// would be as much as some measurements are.
func (p *process) processorTime() (sum time.Duration, err error) {
	own, err := processStat(p.pid)
	if err != nil {
		return 0, err
	}
	sum = own.used + own.children
	all, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, entry := range all {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		s, err := processStat(pid)
		if err != nil || s.parent != p.pid { // one that has just ended is in its parent's sum next time
			continue
		}
		var exact int64
		if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid)); err == nil {
			_, _ = fmt.Sscan(string(text), &exact)
		}
		if exact > 0 {
			s.used = time.Duration(exact)
		}
		sum += s.used
	}
	return sum, nil
}

// logLines counts the lines in the server's log, without those of its checkpoints,
// which come by the clock.
func (p *process) logLines() (n int64, err error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/fd/2", p.pid))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		if !bytes.Contains(lines.Bytes(), []byte("LOG:  checkpoint ")) {
			n++
		}
	}
	return n, lines.Err()
}

// costs is how much of a processor an operation takes, here and in the server: what
// decides on a slow or shared machine.
func (r *report) costs(database, title string) table {
	t := table{title: "Processor time on " + title, words: 2,
		note:   "Microseconds of a processor for each operation. SQLite is in the process itself.",
		header: []string{"what", "system", "callers", "own µs"}}
	server := database == "postgres"
	if server {
		t.note = "Microseconds of a processor for each operation, and lines in the server's log for a thousand (without those of checkpoints)."
		t.header = append(t.header, "server µs", "both µs", "log lines per 1,000")
	}
	for _, name := range []string{"fresh", "replay", "work"} {
		for _, s := range r.sums {
			if s.Name != name || s.Database != database && (!server || s.Database != ownStore) || s.Stored > 0 || s.Extra[ownMicros] == 0 || s.Callers == 8 || s.Callers > 64 {
				continue
			}
			row := []string{titleOf(name), s.System, fmt.Sprint(s.Callers), rate(s.Extra[ownMicros])}
			if server {
				row = append(row, rate(s.Extra[serverMicros]), rate(s.Extra[ownMicros]+s.Extra[serverMicros]), fmt.Sprintf("%.1f", s.Extra[logLines]))
			}
			t.rows = append(t.rows, row)
		}
	}
	return t
}
