package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/examples/payments"
	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/internal/hostclock"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// The processes that are killed and frozen are this test binary again, which
// finds its part in serviceEnv.
const serviceEnv = "TOOLRUNTIME_SERVICE_CHILD"

// A service is the part of a process.
type service struct {
	Role            string // of roles
	Name            string
	Engine, Address string // the ledger
	Bank, Careless  string // the base URLs of the payment servers
	Offset          int64  // of the clock, in seconds
	Frozen          int64  // the time of a clock that stands still, or 0
	Own             bool   // by the ledger's own clock
	HostAhead       int64  // how wrong the host's clock is, in seconds
	Versions        string // of the tools that it knows, the current one first
	File, Listen    string // of a payment server, and File of a submitter
	Switches        payments.Switches
	Seed            uint64
}

var roles = map[string]func(*part, context.Context) error{
	"server":    (*part).serve,
	"worker":    (*part).work,
	"submitter": (*part).submit,
	"frozen":    (*part).freeze,
	"dying":     (*part).die,
	"sender":    (*part).send,
	"version":   (*part).carry,
}

// A part is a service at work.
type part struct {
	t testing.TB
	service
	lines chan string // from the parent
}

// TestServiceChild is no test: it is what the child processes run. One whose
// parent is gone ends.
func TestServiceChild(t *testing.T) {
	text := os.Getenv(serviceEnv)
	if text == "" {
		t.Skip("runs in the child processes of the other tests")
	}
	p := &part{t: t, lines: make(chan string)}
	if err := json.Unmarshal([]byte(text), &p.service); err != nil {
		t.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			p.lines <- in.Text()
		}
		os.Exit(3)
	}()
	if err := roles[p.Role](p, ctx); err != nil {
		t.Fatal(err)
	}
}

// say tells the parent something, which [child.hear] returns.
func (p *part) say(format string, a ...any) { fmt.Printf("child: "+format+"\n", a...) }

func (p *part) now() time.Time {
	if p.Frozen != 0 {
		return time.Unix(p.Frozen, 0)
	}
	return time.Now().Add(time.Duration(p.Offset) * time.Second)
}

func (p *part) engine() engine { return engineNamed(p.t.(*testing.T), p.Engine) }

// open opens the ledger with a runtime of the given tools.
func (p *part) open(log *slog.Logger, tools ...toolruntime.Registration) (*toolruntime.Runtime, func() error, error) {
	hostclock.Set(time.Duration(p.HostAhead) * time.Second)
	store, err := p.engine().open(context.Background(), p.Address)
	if err != nil {
		return nil, nil, err
	}
	o := toolruntime.Options{Authorizer: anybody, Approvers: refunds.Approvers, Now: p.now, Logger: log}
	if p.Own {
		o.Now = nil
	}
	rt, err := toolruntime.New(store, &o, tools...)
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return rt, store.Close, nil
}

func anybody(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil }

func (p *part) serve(ctx context.Context) error {
	return payments.ListenAndServe(ctx, p.File, p.Listen, p.Switches, os.Stdout)
}

func (p *part) work(ctx context.Context) error {
	rt, closeStore, err := p.open(nil, p.tools()...)
	if err != nil {
		return err
	}
	p.say(opened)
	err = rt.Work(ctx, &toolruntime.WorkOptions{WorkerID: p.Name + " " + p.Versions, Concurrency: 4, Lease: time.Second, Poll: 50 * time.Millisecond})
	return errors.Join(err, closeStore())
}

// burst is how many payments a submitter accepts at the same moment now and then,
// so that they share commits.
const burst = 16

// submit accepts payments, one after the other or many at once, and writes what was
// acknowledged to its file: a line per key, with when it asked and when it heard. It goes on where the file ends, so a
// call whose acknowledgement was lost is sent again. Some calls are carried out at
// once, as a service does whose caller waits, and now and then it asks what became
// of an earlier one.
func (p *part) submit(ctx context.Context) error {
	rt, closeStore, err := p.open(nil, p.tools()...)
	if err != nil {
		return err
	}
	acknowledged, err := os.ReadFile(p.File)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(p.File, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	p.say(opened)
	random := rand.New(rand.NewPCG(p.Seed, uint64(len(acknowledged))))
	pause := time.NewTimer(0)
	for i := countLines(acknowledged); ; {
		select {
		case <-ctx.Done():
			return errors.Join(file.Close(), closeStore())
		case <-pause.C:
		}
		n := 1
		if random.IntN(4) == 0 {
			n = burst
		}
		lines, err := p.submitMany(ctx, rt, i, n)
		switch {
		case ctx.Err() != nil:
			continue
		case err != nil:
			return errors.Join(err, file.Close(), closeStore())
		}
		if _, err := file.WriteString(lines); err != nil {
			return err
		}
		i += n
		pause.Reset(time.Duration(n) * time.Duration(random.Int64N(int64(40*time.Millisecond))))
	}
}

// submitMany accepts the payments of n keys from first on, all at once.
func (p *part) submitMany(ctx context.Context, rt *toolruntime.Runtime, first, n int) (lines string, err error) {
	heard, errs := make([]acknowledgement, n), make([]error, n)
	var all sync.WaitGroup
	for k := range n {
		all.Go(func() {
			a := acknowledgement{key: p.key(first + k), begun: time.Now().UnixNano()}
			a.ref, errs[k] = p.submitOne(ctx, rt, first, first+k)
			a.ended = time.Now().UnixNano()
			heard[k] = a
		})
	}
	all.Wait()
	for _, a := range heard {
		lines += a.String()
	}
	return lines, errors.Join(errs...)
}

func (p *part) key(i int) string { return fmt.Sprintf("%s-%d", p.Name, i) }

// submitOne accepts a payment. All keys below known have been accepted before.
func (p *part) submitOne(ctx context.Context, rt *toolruntime.Runtime, known, i int) (ref string, err error) {
	random := rand.New(rand.NewPCG(p.Seed, uint64(i)))
	call := payCall(crashNames[i%len(crashNames)], p.key(i))
	b, err := rt.Bind(user("user-1"), call)
	if err != nil {
		return "", err
	}
	if random.IntN(8) == 0 {
		if err := p.submitLate(ctx, rt, i); err != nil {
			return "", err
		}
	}
	approved := approvals(p.t, b, "valid", p.now().Unix())
	var pkg *toolresult.Package
	if random.IntN(8) == 0 {
		pkg, err = rt.Dispatch(ctx, user("user-1"), call, &toolruntime.DispatchOptions{Approvals: approved, WorkerID: p.Name, Lease: 2 * time.Second})
	} else {
		pkg, err = rt.Submit(ctx, user("user-1"), call, approved...)
	}
	if errors.Is(err, toolruntime.ErrLeaseLost) {
		return b.StatusRef(), nil // carried out at once, and a worker was faster: it is in the ledger
	}
	if err != nil {
		return "", err
	}
	switch pkg.Code() {
	case toolresult.OK, toolresult.Accepted, toolresult.OutcomeUnknown, toolresult.OutputContractViolation, toolresult.ToolError:
	default:
		return "", fmt.Errorf("%s: %s", p.key(i), pkg.Code())
	}
	if known > 0 && random.IntN(8) == 0 {
		if err := p.ask(ctx, rt, known-1); err != nil {
			return "", err
		}
	}
	return b.StatusRef(), nil
}

// lateKey begins the keys whose approvals have expired.
const lateKey = "late-"

// submitLate submits a payment with an approval that has expired a second ago.
func (p *part) submitLate(ctx context.Context, rt *toolruntime.Runtime, i int) error {
	call := payCall(crashNames[i%len(crashNames)], lateKey+p.key(i))
	b, err := rt.Bind(user("user-1"), call)
	if err != nil {
		return err
	}
	pkg, err := rt.Submit(ctx, user("user-1"), call, approvals(p.t, b, "expired", p.now().Unix())...)
	if err == nil && pkg.Code() != toolresult.ApprovalInvalid {
		err = fmt.Errorf("%s, whose approval has expired: %s", call.IdempotencyKey, pkg.Code())
	}
	return err
}

// ask asks what became of an earlier payment.
func (p *part) ask(ctx context.Context, rt *toolruntime.Runtime, i int) error {
	call := payCall(crashNames[i%len(crashNames)], p.key(i))
	b, err := rt.Bind(user("user-1"), call)
	if err != nil {
		return err
	}
	_, err = rt.QueryStatus(ctx, user("user-1"), call.StatusQuery(b.StatusRef()), b.StatusRef(), nil)
	return err
}

func countLines(text []byte) (n int) {
	for _, c := range text {
		if c == '\n' {
			n++
		}
	}
	return n
}

// freeze is a worker whose handlers say that they run, wait until their lease is
// lost, and then answer what their arguments say, whatever their context.
func (p *part) freeze(ctx context.Context) error {
	log := slog.New(slog.NewTextHandler(prefixed{}, nil))
	rt, closeStore, err := p.open(log, noteTool("note", toolruntime.Idempotent, func(ctx context.Context, e toolruntime.Effect, a noteArgs) (toolruntime.Receipt[note], error) {
		p.say("running %s", a.Text)
		<-ctx.Done()
		p.say("cause %s %v", a.Text, context.Cause(ctx))
		switch a.Text {
		case "receipt":
			return noteReceipt(e, "late"), nil
		case "retry":
			return toolruntime.Receipt[note]{}, toolruntime.RetryLater(0, errLost)
		case "give up":
			return toolruntime.Receipt[note]{}, toolruntime.GiveUp(errLost)
		}
		return toolruntime.Receipt[note]{}, errLost
	}))
	if err != nil {
		return err
	}
	err = rt.Work(ctx, &toolruntime.WorkOptions{WorkerID: p.Name, Concurrency: 4, Lease: time.Second, Poll: 10 * time.Millisecond})
	return errors.Join(err, closeStore())
}

// prefixed passes the log on to the parent.
type prefixed struct{}

func (prefixed) Write(line []byte) (int, error) {
	if _, err := io.WriteString(os.Stdout, "child: "+string(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// die is a worker that never gets beyond its effect: it says that it has paid
// and waits to be killed.
func (p *part) die(ctx context.Context) error {
	tool := payments.Tool(p.Bank, nil, toolruntime.Queryable)
	pay := tool.Run
	tool.Run = func(ctx context.Context, e toolruntime.Effect, a payments.PayArgs) (toolruntime.Receipt[payments.Paid], error) {
		r, err := pay(ctx, e, a)
		p.say("paid %s %v", r.ID, err)
		select {}
	}
	rt, _, err := p.open(nil, tool)
	if err != nil {
		return err
	}
	return rt.Work(ctx, &toolruntime.WorkOptions{WorkerID: p.Name, Poll: 10 * time.Millisecond})
}

// send sends the call of each key that the parent names, and says the answer.
func (p *part) send(ctx context.Context) error {
	rt, closeStore, err := p.open(nil, payments.Tool(p.Bank, nil, toolruntime.Queryable))
	if err != nil {
		return err
	}
	defer closeStore()
	p.say("ready")
	for {
		select {
		case <-ctx.Done():
			return nil
		case key := <-p.lines:
			pkg, err := rt.Dispatch(ctx, user("user-1"), payCall("create_payment", key), nil)
			if err != nil {
				return err
			}
			p.say("%s %s", pkg.Code(), pkg.StatusRef())
		}
	}
}
