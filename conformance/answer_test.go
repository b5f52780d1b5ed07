package conformance

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolruntime/toolruntime-go/toolresult"
)

// answerEnv tells a child process where the ledger is, and at which of its
// answers it is to die.
const answerEnv = "TOOLRUNTIME_CONFORMANCE_ANSWER"

// TestAnswerChild is no test: it is the process that dies at an answer.
func TestAnswerChild(t *testing.T) {
	spec := strings.SplitN(os.Getenv(answerEnv), " ", 3)
	if len(spec) != 3 {
		t.Skip("runs in the child processes of TestAnswerIsDurable")
	}
	last, err := strconv.ParseInt(spec[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	e := engineNamed(t, spec[0])
	d := newDesk(t, engine{name: e.name, open: e.open, plain: e.plain, create: func(testing.TB) string { return spec[2] }})
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	var answers atomic.Int64
	die := func(id string) {
		// One write, past every buffer: what was said before the end is heard.
		if _, err := os.Stdout.WriteString("answered " + id + "\n"); err == nil && answers.Add(1) >= last {
			_ = self.Kill()
			select {}
		}
	}
	const callers = 16
	for caller := range callers {
		go func() {
			for n := 0; ; n++ {
				id := fmt.Sprint(caller, "-", n)
				if pkg := d.send(user("user-1"), refundCall(id), alive); pkg.Code() == toolresult.OK {
					die(id)
				}
			}
		}()
	}
	select {}
}

// TestAnswerIsDurable: nobody is answered before the commit. A process with many
// callers, who share commits, kills itself at the moment of an answer; whatever it
// has answered until then is in the ledger.
func TestAnswerIsDurable(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	forEachEngine(t, func(t *testing.T, e engine) {
		for range rounds() {
			d := newDesk(t, e)
			child := exec.Command(self, "-test.run=^TestAnswerChild$")
			child.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %s", answerEnv, e.name, 1+rand.IntN(60), d.address))
			var out bytes.Buffer
			child.Stdout, child.Stderr = &out, os.Stderr
			if err := child.Run(); err == nil {
				t.Fatalf("the child ended by itself:\n%s", out.String())
			}
			var answered int
			for line := range strings.Lines(out.String()) {
				id, ok := strings.CutPrefix(strings.TrimSpace(line), "answered ")
				if !ok {
					t.Fatalf("the child said %q", line)
				}
				answered++
				pkg, err := d.Dispatch(context.Background(), user("user-1"), refundCall(id), nil)
				if err != nil || pkg.Delivery() != toolresult.LocalReplay {
					t.Errorf("%s was answered and is not in the ledger: %v, %v", id, pkg, err)
				}
			}
			if answered == 0 {
				t.Error("the child has answered nothing")
			}
			if r := d.audit(); !r.Passed {
				t.Errorf("audit: %v", r.SemanticErrors)
			}
			d.store.Close()
		}
	})
}
