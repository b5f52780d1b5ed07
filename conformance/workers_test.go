package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/examples/payments"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// submit hands a call that an approver has accepted to the workers.
func (d *desk) submit(c toolresult.Call) string {
	d.t.Helper()
	pkg, err := d.Submit(context.Background(), user("user-1"), c, d.approval(user("user-1"), c, "valid")...)
	if err != nil || pkg.Code() != toolresult.Accepted {
		d.t.Fatalf("submit: %v, %v", pkg, err)
	}
	return pkg.StatusRef()
}

// work runs a worker until the test ends, or stop is called.
func (d *desk) work(o toolruntime.WorkOptions) (stop func()) {
	d.t.Helper()
	o.Poll = 5 * time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Work(ctx, &o) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			d.t.Errorf("work: %v", err)
		}
	})
	d.t.Cleanup(stop)
	return stop
}

// await waits until an operation has ended or is in review.
func (d *desk) await(ref string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := d.Wait(ctx, ref); err != nil {
		d.t.Fatal(err)
	}
}

// repeat sends a call once more, which runs nothing.
func (d *desk) repeat(c toolresult.Call) *toolresult.Package {
	d.t.Helper()
	pkg, err := d.Dispatch(context.Background(), user("user-1"), c, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	return pkg
}

// endings are how the attempts of an operation have ended.
func (d *desk) endings(ref string) (all []string) {
	d.t.Helper()
	h, err := d.History(context.Background(), ref)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, m := range h.Moments {
		if m.What == "attempt" {
			all = append(all, m.How)
		}
	}
	return all
}

func withRealClock(d *desk, o *toolruntime.Options, _ *[]toolruntime.Registration) {
	d.now = time.Now().Unix() // for approvals
	o.Now = time.Now
}

// TestWorkFrozen stops a worker for three leases in the middle of its handlers.
// Another one takes over. When the first goes on, its handlers hear that their
// leases are lost, and nothing that they answer is recorded: neither while the
// other one is still at work, nor after it has ended.
func TestWorkFrozen(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		t.Parallel()
		for _, ended := range []bool{false, true} {
			t.Run(fmt.Sprintf("ended=%v", ended), func(t *testing.T) {
				t.Parallel()
				workFrozen(t, e, ended)
			})
		}
	})
}

func workFrozen(t *testing.T, e engine, ended bool) {
	var ran sync.Map
	answers := []string{"receipt", "retry", "give up", "unknown"}
	running, hold := make(chan struct{}, len(answers)), make(chan struct{})
	d := newDesk(t, e, withAuthorizer(anybody), withRealClock, withTools(noteTool("note", toolruntime.Idempotent,
		func(_ context.Context, e toolruntime.Effect, a noteArgs) (toolruntime.Receipt[note], error) {
			if _, again := ran.LoadOrStore(a.Text, true); again {
				t.Errorf("%s ran twice at the second worker", a.Text)
			}
			running <- struct{}{}
			<-hold
			return noteReceipt(e, "in time"), nil
		})))
	frozen := d.newProcess(t, service{Role: "frozen", Name: "frozen"})
	frozen.start(true)
	calls, refs := map[string]toolresult.Call{}, map[string]string{}
	for i, answer := range answers {
		calls[answer] = callOf("note", fmt.Sprint("k", i), fmt.Sprintf(`{"text":%q}`, answer))
		refs[answer] = d.submit(calls[answer])
	}
	for range answers {
		if word := frozen.hear(); !strings.HasPrefix(word, "running ") {
			t.Fatalf("frozen: %q", word)
		}
	}
	const lease = 2 * time.Second // one, and one more that a clock of whole seconds needs
	thaw := time.NewTimer(3 * lease)
	frozen.signal(syscall.SIGSTOP)
	d.work(toolruntime.WorkOptions{WorkerID: "second", Lease: time.Second})
	finish := sync.OnceFunc(func() {
		close(hold)
		for _, ref := range refs {
			d.await(ref)
		}
	})
	t.Cleanup(finish)
	for range answers {
		<-running
	}
	if ended {
		finish()
	}
	<-thaw.C
	before := d.counts()
	frozen.signal(syscall.SIGCONT)
	heard := hearRefusals(frozen, len(answers))
	expectCounts(d, before)
	finish()
	for answer, ref := range refs {
		d.checkFrozen(heard, answer, ref, calls[answer])
	}
	frozen.signal(syscall.SIGTERM)
	drain(frozen)
	n := int64(len(answers))
	expectCounts(d, toolruntime.Counts{CallBindings: n, Operations: n, Outbox: n, DownstreamReceipts: n, LocalReceipts: n})
}

// checkFrozen holds what the frozen worker has said about an operation, and what
// became of it, against the contract.
func (d *desk) checkFrozen(heard []string, answer, ref string, c toolresult.Call) {
	d.t.Helper()
	if !slices.Contains(heard, "cause "+answer+" lease lost") {
		d.t.Errorf("the handler that answers %s has not heard that its lease is lost", answer)
	}
	i := slices.IndexFunc(heard, func(line string) bool {
		return strings.Contains(line, "work: attempt failed") && strings.Contains(line, ref)
	})
	if i < 0 || !strings.Contains(heard[i], "lease lost") {
		d.t.Errorf("the late answer %s was not refused as lease lost: %q", answer, heard[max(i, 0)])
	}
	if diff := cmp.Diff([]string{"lost", "succeeded"}, d.endings(ref)); diff != "" {
		d.t.Errorf("attempts of %s (-want +got):\n%s", answer, diff)
	}
	var n note
	if pkg := d.repeat(c); pkg.Decode(&n) != nil || n.Text != "in time" {
		d.t.Errorf("%s: answered %s %+v", answer, pkg.Code(), n)
	}
}

// hearRefusals collects what a worker says until n attempts have failed.
func hearRefusals(p *process, n int) (heard []string) {
	for n > 0 {
		line := p.hear()
		heard = append(heard, line)
		if strings.Contains(line, "work: attempt failed") {
			n--
		}
	}
	return heard
}

// drain reads what a process says to the end, and wants it to end well.
func drain(p *process) {
	for p.out.Scan() {
	}
	if err := p.wait(); err != nil {
		p.t.Errorf("%s: %v\n%s", p.Name, err, p.errors.String())
	}
	p.cmd = nil
}

// TestWorkPoison: operations that fail whatever is done do not keep those of the
// same tool waiting. The clock stands still, so none of them is due twice, and
// the good ones end although every bad one was accepted before them.
func TestWorkPoison(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	const poison, good = 100, 1000
	forEachEngine(t, func(t *testing.T, e engine) {
		var mu sync.Mutex
		ran := map[string]int{}
		tool := noteTool("note", toolruntime.Idempotent, func(_ context.Context, e toolruntime.Effect, a noteArgs) (toolruntime.Receipt[note], error) {
			mu.Lock()
			ran[a.Text]++
			mu.Unlock()
			switch a.Text {
			case "panics":
				panic("poison")
			case "knows nothing":
				return toolruntime.Receipt[note]{}, errLost
			case "later":
				return toolruntime.Receipt[note]{}, toolruntime.RetryLater(0, errLost)
			}
			return noteReceipt(e, a.Text), nil
		})
		var working bool // the rule holds when a call is accepted
		tool.Rule = func(_ context.Context, _ toolresult.Principal, a noteArgs) (bool, error) {
			mu.Lock()
			defer mu.Unlock()
			if a.Text != "has a bad rule" || !working {
				return true, nil
			}
			ran[a.Text]++
			return false, errors.New("the rule cannot be evaluated")
		}
		d := newDesk(t, e, withAuthorizer(anybody), withTools(tool))
		bad := []string{"panics", "knows nothing", "later", "has a bad rule"}
		for i := range poison {
			d.submit(callOf("note", fmt.Sprint("poison-", i), fmt.Sprintf(`{"text":%q}`, bad[i%len(bad)])))
		}
		refs := make([]string, good)
		var all sync.WaitGroup
		for i := range refs {
			all.Go(func() { refs[i] = d.submit(callOf("note", fmt.Sprint("good-", i), `{"text":"good"}`)) })
		}
		all.Wait()
		mu.Lock()
		working = true
		mu.Unlock()
		stop := d.work(toolruntime.WorkOptions{WorkerID: "one", Concurrency: 8})
		stopOther := d.another(withAuthorizer(anybody), withTools(tool)).work(toolruntime.WorkOptions{WorkerID: "two", Concurrency: 8})
		for _, ref := range refs {
			d.await(ref)
		}
		stop()
		stopOther()
		mu.Lock()
		defer mu.Unlock()
		if ran["good"] != good {
			t.Errorf("good ones ran %d times", ran["good"])
		}
		for _, text := range bad {
			if n := ran[text]; n < 1 || n > poison/len(bad) {
				t.Errorf("%q was tried %d times, and there are %d", text, n, poison/len(bad))
			}
		}
		if r := d.audit(); !r.Passed {
			t.Errorf("audit: %q", r.SemanticErrors)
		}
	})
}

// TestWorkDiesAfterEffect: the bank has paid, the worker dies before it can say
// so, and its lease runs out. Whoever sends the same call is told that the
// outcome is unknown, and nothing is paid; a status query finds the payment.
func TestWorkDiesAfterEffect(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		bank, url := openBank(t)
		d := newDesk(t, e, withAuthorizer(anybody), withTools(payments.Tool(url, nil, toolruntime.Queryable)))
		call := payCall("create_payment", "k")
		b := d.bind(user("user-1"), call)
		ref := d.submit(call)
		dying := d.newProcess(t, service{Role: "dying", Name: "dying", Bank: url, Frozen: start})
		dying.start(true)
		if word := dying.hear(); word != "paid pay_1 <nil>" {
			t.Fatalf("dying: %q", word)
		}
		dying.signal(syscall.SIGKILL)
		dying.cmd.Wait()

		const later = start + 3600
		d.setTime(later)
		var senders []*process
		for i := range 2 {
			p := d.newProcess(t, service{Role: "sender", Name: fmt.Sprint("sender-", i), Bank: url, Frozen: later})
			p.start(true)
			senders = append(senders, p)
		}
		for _, p := range senders {
			if word := p.hear(); word != "ready" {
				t.Fatalf("%s: %q", p.Name, word)
			}
		}
		sent := []*process{senders[0], senders[1], senders[0], senders[1], senders[0]}
		for _, p := range sent {
			fmt.Fprintln(p.in, "k")
		}
		for i, p := range sent {
			if word := p.hear(); word != "OUTCOME_UNKNOWN "+ref {
				t.Errorf("call %d: %q, want OUTCOME_UNKNOWN %s", i, word, ref)
			}
		}
		if n := effectsOf(t, bank, b); n != 1 {
			t.Errorf("%d effects before the query", n)
		}
		pkg, err := d.QueryStatus(context.Background(), user("user-1"), call.StatusQuery(ref), ref, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := payments.Paid{PaymentID: "pay_1", Account: "ACC-k", AmountCents: 101, Currency: "EUR"}
		var queried, replayed payments.Paid
		if pkg.Decode(&queried) != nil || queried != want || pkg.Delivery() != toolresult.ReceiptReconciled {
			t.Errorf("queried: %s %s %+v", pkg.Code(), pkg.Delivery(), queried)
		}
		pkg = d.repeat(call)
		if pkg.Decode(&replayed) != nil || replayed != want || pkg.Delivery() != toolresult.LocalReplay {
			t.Errorf("replayed: %s %s %+v", pkg.Code(), pkg.Delivery(), replayed)
		}
		if n := effectsOf(t, bank, b); n != 1 {
			t.Errorf("%d effects", n)
		}
		expectCounts(d, toolruntime.Counts{CallBindings: 2, Operations: 1, Outbox: 1, DownstreamReceipts: 1, LocalReceipts: 1})
		for _, p := range senders {
			p.signal(syscall.SIGTERM)
			drain(p)
		}
	})
}

// TestWorkBetween: a lease holder finishes late, while another worker, which has
// read that the lease ran out, has not yet written its claim. The claim changes
// nothing. The other worker's clock, which it reads between the two, holds it
// there.
func TestWorkBetween(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		entered, hold := make(chan struct{}), make(chan struct{})
		d := newDesk(t, e, withAuthorizer(anybody), withTools(noteTool("note", toolruntime.Idempotent,
			func(_ context.Context, e toolruntime.Effect, a noteArgs) (toolruntime.Receipt[note], error) {
				close(entered)
				<-hold
				return noteReceipt(e, "first"), nil
			})))
		ref := d.submit(callOf("note", "k", `{"text":"x"}`))
		holder := make(chan error, 1)
		go func() {
			outcome, err := d.Process(context.Background(), ref, "holder", nil)
			if err == nil && outcome != toolruntime.Succeeded {
				err = fmt.Errorf("the holder's outcome is %s", outcome)
			}
			holder <- err
		}()
		<-entered

		var looks atomic.Int64
		between, finished := make(chan struct{}), make(chan struct{})
		clock := func() time.Time {
			if looks.Add(1) == 2 { // the first is for the reading
				close(between)
				<-finished
			}
			return time.Unix(start+3600, 0)
		}
		other := d.another(withAuthorizer(anybody), withTools(noteTool("note", toolruntime.Idempotent,
			func(context.Context, toolruntime.Effect, noteArgs) (toolruntime.Receipt[note], error) {
				t.Error("the other worker has run it")
				return toolruntime.Receipt[note]{}, errLost
			})), func(_ *desk, o *toolruntime.Options, _ *[]toolruntime.Registration) { o.Now = clock })
		stop := other.work(toolruntime.WorkOptions{WorkerID: "other", Concurrency: 1})
		<-between
		close(hold)
		if err := <-holder; err != nil {
			t.Error(err)
		}
		close(finished)
		stop()
		if diff := cmp.Diff([]string{"succeeded"}, d.endings(ref)); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
		expectCounts(d, toolruntime.Counts{CallBindings: 1, Operations: 1, Outbox: 1, DownstreamReceipts: 1, LocalReceipts: 1})
	})
}
