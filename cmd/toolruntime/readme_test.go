package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// onTerminal runs a command line as run does for a person, in the current folder.
func onTerminal(t *testing.T, line string) string {
	t.Helper()
	c, rest, ok := find(strings.Fields(line))
	if !ok {
		t.Fatalf("there is no command %q", line)
	}
	var o options
	if err := c.parse(&o, rest); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	var out bytes.Buffer
	if _, err := c.run(context.Background(), &o, &printer{out: &out, err: &out}); err != nil {
		printError(&out, err, false)
	}
	return out.String()
}

// TestReadmeConsole runs the commands that the README shows, in a folder that has the
// examples, and holds what they print against it. A line of the README may end in a
// remark, and "…" stands for any lines.
func TestReadmeConsole(t *testing.T) {
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.Symlink(examples, "examples"); err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, block := range strings.Split(string(page), "\n```console\n")[1:] {
		block, _, _ = strings.Cut(block, "\n```")
		for _, shown := range strings.Split("\n"+block, "\n$ toolruntime ")[1:] {
			line, want, _ := strings.Cut(shown, "\n")
			commands++
			if got := onTerminal(t, line); !printed(want, got) {
				t.Errorf("toolruntime %s prints:\n%s\nthe README has:\n%s", line, got, want)
			}
		}
	}
	if commands < 5 {
		t.Errorf("the README shows %d commands", commands)
	}
}

// printed reports whether a page shows what a command has printed.
func printed(shown, got string) bool {
	want, lines := strings.Split(strings.TrimSpace(shown), "\n"), strings.Split(strings.TrimSpace(got), "\n")
	for len(want) > 0 {
		line, _, _ := strings.Cut(want[0], "  # ")
		line = strings.TrimSpace(line)
		want = want[1:]
		if line == "…" {
			if len(want) == 0 {
				return len(lines) > 0
			}
			for len(lines) > 0 && !printed(want[0], lines[0]) {
				lines = lines[1:]
			}
			continue
		}
		if len(lines) == 0 || strings.TrimSpace(lines[0]) != line {
			return false
		}
		lines = lines[1:]
	}
	return len(lines) == 0
}

// TestPrinted: what a page leaves out it says so.
func TestPrinted(t *testing.T) {
	for _, tt := range []struct {
		shown string
		want  bool
	}{
		{"a\nb\nc", true}, {"a  # the first\nb\nc   # the last", true}, {"a\n…", true}, {"a\n…\nc", true}, {"…\nc", true},
		{"a\nb", false}, {"a\nc", false}, {"a\nb\nc\nd", false}, {"b\nc", false}, {"a\n…\nd", false}, {"a\nb\nc\n…", false}, {"", false},
	} {
		if got := printed(tt.shown, "a\nb\nc\n"); got != tt.want {
			t.Errorf("%q: %t", tt.shown, got)
		}
	}
}

// TestGoRun: go run makes 1 of every code but 0, which is why a gate runs the built
// command.
func TestGoRun(t *testing.T) {
	err := exec.Command("go", "run", ".", "audit", "--db", filepath.Join(t.TempDir(), "none.sqlite3")).Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("go run: %v", err)
	}
	if code, _, _ := runCLI(t, "audit", "--db", filepath.Join(t.TempDir(), "none.sqlite3")); code != exitError {
		t.Errorf("the command: exit %d", code)
	}
}
