package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// A process is a service as a child process, which may be started again.
type process struct {
	t *testing.T
	service
	weight int // how often it is killed, in proportion
	// torn: the files of its ledger were not in their places since it has started. It
	// ends by itself when it notices.
	torn bool

	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner // nil unless listen
	ended  chan struct{}  // closed when exit is there
	exit   error
	errors *output
}

// opened is what a process says when it has the ledger open.
const opened = "open"

// An output is what a process has printed.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	open chan struct{} // closed when it has the ledger open
}

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(text)
	select {
	case <-o.open:
	default:
		if bytes.Contains(o.text.Bytes(), []byte("child: "+opened+"\n")) {
			close(o.open)
		}
	}
	return len(text), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start starts the process. With listen the parent reads what it says.
func (p *process) start(listen bool) {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	text, err := json.Marshal(p.service)
	if err != nil {
		p.t.Fatal(err)
	}
	p.cmd = exec.Command(self, "-test.run=^TestServiceChild$", "-test.v")
	p.cmd.Env = append(os.Environ(), serviceEnv+"="+string(text))
	p.torn, p.errors = false, &output{open: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.errors, p.errors
	if listen {
		p.cmd.Stdout = nil
		out, err := p.cmd.StdoutPipe()
		if err != nil {
			p.t.Fatal(err)
		}
		p.out = bufio.NewScanner(out)
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.ended = make(chan struct{})
	if listen {
		return // Wait would close the pipe under the reader
	}
	go func(cmd *exec.Cmd, ended chan struct{}) {
		p.exit = cmd.Wait()
		close(ended)
	}(p.cmd, p.ended)
}

// signal sends a signal to a process that must be alive.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Errorf("%s: %v\n%s", p.Name, err, p.errors)
	}
}

// kill ends the process with SIGKILL, and reports whether it had noticed before that
// the files of its ledger were not in their places. One that has ended by itself for
// any other reason is an error.
func (p *process) kill() (noticed bool) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("%s: %v", p.Name, err)
	}
	var exit *exec.ExitError
	if err := p.wait(); errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		p.cmd = nil
		return false
	}
	p.hasNoticed()
	return true
}

// hasEnded reports whether the process has ended by itself, as one may that notices.
func (p *process) hasEnded() bool {
	p.t.Helper()
	select {
	case <-p.ended:
		p.hasNoticed()
		return true
	default:
		return false
	}
}

// hasNoticed holds the last words of a process that has ended by itself against the
// only reason that it may have.
func (p *process) hasNoticed() {
	p.t.Helper()
	if !p.torn || !strings.Contains(p.errors.String(), toolruntime.ErrDetached.Error()) {
		p.t.Errorf("%s has ended by itself: %v\n%s", p.Name, p.exit, p.errors)
	}
	p.cmd = nil
}

// awaitEnd waits until the process has noticed.
func (p *process) awaitEnd() {
	p.t.Helper()
	late := time.NewTimer(20 * time.Second)
	defer late.Stop()
	select {
	case <-p.ended:
		p.hasNoticed()
	case <-late.C:
		p.t.Errorf("%s works in files that are not the ledger's any more", p.Name)
		p.kill()
	}
}

// awaitOpen waits until the process has the ledger open, or has ended.
func (p *process) awaitOpen() {
	select {
	case <-p.errors.open:
	case <-p.ended:
	}
}

// stop ends the process with SIGTERM, after which it must end well and soon.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	if err := p.wait(); err != nil {
		p.t.Errorf("%s: after SIGTERM: %v\n%s", p.Name, err, p.errors)
	}
	p.cmd = nil
}

func (p *process) wait() error {
	p.t.Helper()
	late := time.NewTimer(60 * time.Second)
	defer late.Stop()
	if p.out != nil {
		return p.cmd.Wait()
	}
	select {
	case <-p.ended:
		return p.exit
	case <-late.C:
		p.cmd.Process.Kill()
		<-p.ended
		return fmt.Errorf("does not end: %w", p.exit)
	}
}

// end makes sure that no process outlives the test.
func (p *process) end() {
	if p.cmd != nil {
		p.cmd.Process.Kill()
	}
}

// hear returns the next line that the process says. One that says nothing for
// long is ended.
func (p *process) hear() string {
	p.t.Helper()
	silent := time.AfterFunc(time.Minute, p.end)
	defer silent.Stop()
	for p.out.Scan() {
		if word, ok := bytes.CutPrefix(p.out.Bytes(), []byte("child: ")); ok {
			return string(word)
		}
	}
	p.t.Fatalf("%s has died: %s", p.Name, p.errors)
	return ""
}

// newProcess makes a process of a desk's ledger.
func (d *desk) newProcess(t *testing.T, s service) *process {
	s.Engine, s.Address = d.engine.name, d.address
	p := &process{t: t, service: s}
	t.Cleanup(p.end)
	return p
}

// freePort is a port to which a server can return after it was killed: below
// those that the system gives to clients, who could take it meanwhile.
func freePort(t *testing.T, random *rand.Rand) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 12000+random.IntN(18000))
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address
		}
	}
	t.Fatal("no free port")
	return ""
}
