package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
)

// The child of a race between processes is this test binary again. It reads a
// heat per line, opens the database, says so, waits for the start, and answers.
const childEnv = "TOOLRUNTIME_CONFORMANCE_CHILD"

type heat struct {
	Engine, Address, Contest, Word string
	Racer                          int
}

// TestChild is no test: it is what a child process runs.
func TestChild(t *testing.T) {
	if os.Getenv(childEnv) == "" {
		t.Skip("runs in the child processes of TestRaceProcesses")
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var h heat
		if err := json.Unmarshal(in.Bytes(), &h); err != nil {
			t.Fatal(err)
		}
		e, c := engineNamed(t, h.Engine), contestNamed(t, h.Contest)
		d := newDesk(t, engine{name: e.name, open: e.open, plain: e.plain,
			create: func(testing.TB) string { return h.Address }})
		fmt.Println("child: ready")
		in.Scan()
		fmt.Printf("child: %s\n", c.run(context.Background(), d, h.Word, h.Racer))
		d.store.Close()
	}
}

func engineNamed(t *testing.T, name string) engine {
	for _, e := range engines {
		if e.name == name {
			return e
		}
	}
	t.Fatalf("no engine %q", name)
	return engine{}
}

func contestNamed(t *testing.T, name string) contest {
	for _, c := range contests {
		if c.name == name {
			return c
		}
	}
	t.Fatalf("no contest %q", name)
	return contest{}
}

type child struct {
	in  io.WriteCloser
	out *bufio.Scanner
}

func startChild(t *testing.T) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), childEnv+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("child: %v", err)
		}
	})
	return &child{in, bufio.NewScanner(out)}
}

func (c *child) tell(t *testing.T, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(c.in, line); err != nil {
		t.Fatal(err)
	}
}

// hear returns the next line that the child says, past what the test framework
// prints.
func (c *child) hear(t *testing.T) string {
	t.Helper()
	for c.out.Scan() {
		var word string
		if line := c.out.Text(); len(line) > 7 && line[:7] == "child: " {
			word = line[7:]
			return word
		}
	}
	t.Fatal("the child has died")
	return ""
}

// TestRaceProcesses runs every contest between processes.
func TestRaceProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	forEachEngine(t, func(t *testing.T, e engine) {
		children := make([]*child, racers)
		for i := range children {
			children[i] = startChild(t)
		}
		for _, c := range contests {
			t.Run(c.name, func(t *testing.T) {
				for range rounds() {
					raceProcesses(t, e, c, children)
				}
			})
		}
	})
}

func raceProcesses(t *testing.T, e engine, c contest, children []*child) {
	d := newDesk(t, e)
	defer d.store.Close()
	word := c.prepare(d)
	for i, child := range children {
		text, err := json.Marshal(heat{e.name, d.address, c.name, word, i})
		if err != nil {
			t.Fatal(err)
		}
		child.tell(t, string(text))
	}
	for _, child := range children {
		if word := child.hear(t); word != "ready" {
			t.Fatalf("child: %q", word)
		}
	}
	for _, child := range children {
		child.tell(t, "go")
	}
	answers := make([]string, len(children))
	for i, child := range children {
		answers[i] = child.hear(t)
	}
	c.judge(d, tally(answers))
}
