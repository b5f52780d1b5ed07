package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// A process is a service as a child process, which may be started again.
type process struct {
	t *testing.T
	service
	weight int // how often it is killed, in proportion

	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner // nil unless listen
	ended  chan error
	errors bytes.Buffer
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
	p.errors.Reset()
	p.cmd.Stdout, p.cmd.Stderr = &p.errors, &p.errors
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
	ended, cmd := make(chan error, 1), p.cmd
	p.ended = ended
	if listen {
		return // Wait would close the pipe under the reader
	}
	go func() { ended <- cmd.Wait() }()
}

// signal sends a signal to a process that must be alive.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Errorf("%s: %v\n%s", p.Name, err, p.errors.String())
	}
}

// kill ends the process with SIGKILL. One that has ended by itself is an error.
func (p *process) kill() {
	p.t.Helper()
	select {
	case err := <-p.ended:
		p.t.Errorf("%s has ended by itself: %v\n%s", p.Name, err, p.errors.String())
	default:
		p.signal(syscall.SIGKILL)
		p.wait()
	}
	p.cmd = nil
}

// stop ends the process with SIGTERM, after which it must end well and soon.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	if err := p.wait(); err != nil {
		p.t.Errorf("%s: after SIGTERM: %v\n%s", p.Name, err, p.errors.String())
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
	case err := <-p.ended:
		return err
	case <-late.C:
		p.cmd.Process.Kill()
		return fmt.Errorf("does not end: %w", <-p.ended)
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
	p.t.Fatalf("%s has died: %s", p.Name, p.errors.String())
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
