package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/mattn/go-sqlite3"
)

// A machine is where and with what was measured, without a name or a path.
type machine struct {
	CPU        string            `json:"cpu"`
	Cores      int               `json:"cores"`
	Memory     string            `json:"memory"`
	System     string            `json:"system"`
	Go         string            `json:"go"`
	SQLite     string            `json:"sqlite"`
	PostgreSQL string            `json:"postgresql,omitempty"`
	Peers      map[string]string `json:"peers"`
	Rounds     int               `json:"rounds"`
	Time       string            `json:"time"`
}

var peerModules = map[string]string{
	"github.com/riverqueue/river":              "River",
	"maragu.dev/goqite":                        "goqite",
	"github.com/dbos-inc/dbos-transact-golang": "DBOS",
	"github.com/mattn/go-sqlite3":              "mattn/go-sqlite3",
	"github.com/jackc/pgx/v5":                  "pgx",
}

func thisMachine(c config, postgres string) machine {
	version, _, _ := sqlite3.Version()
	m := machine{CPU: procValue("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(), Memory: procValue("/proc/meminfo", "MemTotal"),
		System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), SQLite: version, PostgreSQL: postgres,
		Peers: map[string]string{}, Rounds: c.rounds, Time: c.time.String()}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.System += " " + string(bytes.TrimSpace(release))
	}
	var kib int
	if _, err := fmt.Sscan(m.Memory, &kib); err == nil {
		m.Memory = fmt.Sprintf("%d GiB", (kib+1<<19)>>20)
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if name := peerModules[d.Path]; name != "" {
				m.Peers[name] = d.Version
			}
		}
	}
	return m
}

// procValue is the first value of a name in a file of Linux's, "" elsewhere.
func procValue(file, name string) string {
	text, _ := os.ReadFile(file)
	for l := range strings.Lines(string(text)) {
		if before, value, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(before) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
