package toolruntime

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/limits"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A pace holds a tool to its limits.
type pace struct {
	running int
	next    time.Time // when a handler may start again
}

// errDrained ends the context of a handler that has outlasted the drain.
var errDrained = errors.New("the worker is shutting down")

// A worker carries out due operations until its context ends.
type worker struct {
	*WorkOptions
	rt    *Runtime
	slots chan struct{}

	mu     sync.Mutex
	busy   map[int64]bool      // operations in hand
	pace   map[string]*pace    // of the tools that have limits
	broken map[int64]time.Time // operations that cannot be claimed, and until when to leave them alone
}

// Work claims operations that are due and carries them out, until ctx ends; then
// it claims no more, lets the handlers that run finish within Drain, ends their
// contexts, and returns nil. It takes turns between tools and tenants, renews
// the leases of what it runs, retries what did nothing with exponential backoff,
// asks about lost attempts before it repeats one, and puts in review what it may
// not repeat or has tried for too long.
//
// A handler whose lease is lost has its context ended, and nothing that it says
// afterwards is recorded. Any number of workers, in any number of processes, may
// work on one ledger.
func (rt *Runtime) Work(ctx context.Context, opts *WorkOptions) error {
	o, err := opts.complete()
	if err != nil {
		return err
	}
	w := &worker{WorkOptions: o, rt: rt, slots: make(chan struct{}, o.Concurrency),
		busy: map[int64]bool{}, pace: map[string]*pace{}, broken: map[int64]time.Time{}}
	running, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	// The drain begins when ctx ends, whatever the loop is waiting for then.
	var drain *time.Timer
	ending := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		drain = time.AfterFunc(o.Drain, func() { stop(errDrained) })
		close(ending)
	})()
	var handlers sync.WaitGroup
	w.loop(ctx, func(c claim) {
		w.begin(c)
		handlers.Go(func() {
			defer w.done(c)
			w.handle(running, c)
		})
	})
	<-ending
	defer drain.Stop()
	handlers.Wait()
	return nil
}

// loop starts due operations as long as there are slots for them.
func (w *worker) loop(ctx context.Context, start func(claim)) {
	idle, blocked := time.Duration(0), 0
	for cursor := ""; ctx.Err() == nil; {
		free := w.free(ctx)
		if free == 0 {
			return
		}
		claims, last, due, err := w.claim(ctx, cursor, free)
		if err != nil && ctx.Err() == nil {
			w.rt.log.WarnContext(ctx, "work: cannot claim", "worker", w.WorkerID, "error", err)
		}
		for _, c := range claims {
			if ctx.Err() == nil {
				start(c)
			} else {
				w.handBack(ctx, c)
			}
		}
		switch {
		case len(claims) > 0:
			cursor, idle, blocked = last, 0, 0
			continue
		case err == nil && due:
			// What was due, others have claimed; there may be more.
			w.wait(ctx, rand.N(w.Poll/64+1))
			continue
		case err == nil && last != "":
			// A page of lanes, and none of them can go on: the next ones may.
			if cursor, blocked = last, blocked+1; blocked%maxLanePages != 0 {
				continue
			}
		}
		idle = min(max(2*idle, w.Poll/16), w.Poll)
		w.wait(ctx, idle/2+rand.N(idle/2+1))
	}
}

// maxLanePages is how many pages of lanes that cannot go on are looked at before
// the worker rests.
const maxLanePages = 16

// claim claims as many due operations as there are slots for, in one
// transaction. last is the lane after which to look next, or "" for anywhere; due
// says that there was something to claim.
func (w *worker) claim(ctx context.Context, cursor string, free int) (claims []claim, last string, due bool, err error) {
	pass := w.passOver()
	shares, last, err := w.rt.store.due(ctx, demand{cursor: cursor, now: w.rt.now(), limit: min(free, maxBatch), pass: pass, room: w.room})
	if err != nil || len(shares) == 0 {
		return nil, last, false, err
	}
	now := w.rt.now()
	b, err := w.rt.store.claimDue(ctx, shares, claiming{w.WorkerID, now, w.leaseEnd(now)}, pass)
	for pk, cause := range b.refused {
		// It must not keep a slot busy, nor be asked for again and again.
		w.leaveAlone(pk)
		w.rt.log.ErrorContext(ctx, "work: cannot be claimed", "worker", w.WorkerID, "error", cause)
	}
	return b.claims, last, true, err
}

// handBack gives back a claim for which the worker has no time any more.
func (w *worker) handBack(ctx context.Context, c claim) {
	if err := w.rt.store.giveBack(context.WithoutCancel(ctx), c, w.rt.now(), 0); err != nil {
		w.rt.log.ErrorContext(ctx, "work: cannot give back", "worker", w.WorkerID, "error", err)
	}
}

// free waits until there is a slot, and returns how many there are.
func (w *worker) free(ctx context.Context) int {
	select {
	case w.slots <- struct{}{}:
		<-w.slots
		return cap(w.slots) - len(w.slots)
	case <-ctx.Done():
		return 0
	}
}

// passOver returns the operations that are not to be claimed, though they may be
// due: those in hand, and those that were left alone.
func (w *worker) passOver() map[int64]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := maps.Clone(w.busy)
	for pk, until := range w.broken {
		if w.rt.clock().Before(until) {
			all[pk] = true
		} else {
			delete(w.broken, pk)
		}
	}
	return all
}

// room is how many handlers a tool's limits allow to start now.
func (w *worker) room(tool string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.Concurrency
	t, p := w.rt.tools[tool], w.pace[tool]
	if t == nil {
		return n
	}
	if p == nil {
		p = &pace{}
	}
	if t.concurrent > 0 {
		n = min(n, max(0, t.concurrent-p.running))
	}
	if t.perSecond > 0 {
		n = min(n, 1)
		if w.rt.clock().Before(p.next) {
			n = 0
		}
	}
	return n
}

// begin takes a slot for a claim. Nobody else takes slots, so there is one, and
// what there was room for before the claim, there is now.
func (w *worker) begin(c claim) {
	w.slots <- struct{}{}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy[c.operation.OperationPK] = true
	tool := c.operation.ToolName
	if t := w.rt.tools[tool]; t != nil && (t.concurrent > 0 || t.perSecond > 0) {
		p := w.pace[tool]
		if p == nil {
			p = &pace{}
			w.pace[tool] = p
		}
		p.running++
		if t.perSecond > 0 {
			p.next = w.rt.clock().Add(limits.Interval(t.perSecond))
		}
	}
}

func (w *worker) done(c claim) {
	w.mu.Lock()
	delete(w.busy, c.operation.OperationPK)
	if p := w.pace[c.operation.ToolName]; p != nil {
		p.running--
	}
	w.mu.Unlock()
	<-w.slots
	w.rt.signal()
}

// wait ends early when something was submitted in this process.
func (w *worker) wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.rt.wake:
	case <-ctx.Done():
	}
}

// leaseEnd is the end of a lease that lasts for at least Lease: the ledger's
// clock counts whole seconds, and up to one of them has passed already.
func (w *worker) leaseEnd(now int64) int64 {
	return afterSeconds(now, limits.Plus(w.Lease, time.Second))
}

// handle carries out an operation that is claimed.
func (w *worker) handle(ctx context.Context, c claim) {
	pk := c.operation.OperationPK
	defer func() {
		// A callback of the host that panics must not take the worker with it. The
		// lease runs out.
		if r := recover(); r != nil {
			w.leaveAlone(pk)
			w.rt.log.ErrorContext(ctx, "work: panic", "worker", w.WorkerID, "stack", string(debug.Stack()))
		}
	}()
	err := w.run(ctx, c)
	switch {
	case err == nil, errors.Is(err, ErrLeaseLost), ctx.Err() != nil:
	default:
		// Not this operation's turn for a while: what cannot be decoded, or meets
		// a failing callback, must not keep a slot busy.
		w.leaveAlone(pk)
	}
	if err != nil {
		w.rt.log.ErrorContext(ctx, "work: attempt failed", "worker", w.WorkerID, "error", err)
	}
}

func (w *worker) leaveAlone(pk int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken[pk] = w.rt.clock().Add(time.Minute)
}

func (w *worker) run(ctx context.Context, c claim) error {
	t, ok := w.rt.tools[c.operation.ToolName]
	if !ok {
		// Another process may know it: give it back.
		return w.rt.store.giveBack(ctx, c, w.rt.now(), backoff(c.fence()))
	}
	if over, err := w.exhausted(ctx, c); over || err != nil {
		return err
	}
	// The claim may have taken long, and begin with little of its lease left.
	if now := w.rt.now(); limits.Duration(c.event.LeaseUntil.Int64-now) < w.Lease/3*2 {
		if err := w.rt.store.renew(ctx, c.record, w.leaseEnd(now)); err != nil {
			return err
		}
	}
	held, release := w.hold(ctx, c.record)
	defer release()
	outcome, err := w.rt.attempt(held, t, c, attemptOptions{worker: w.WorkOptions})
	_ = outcome // it is in the ledger
	return err
}

// exhausted puts an operation in review that was attempted too often or for too
// long.
func (w *worker) exhausted(ctx context.Context, c claim) (bool, error) {
	now, maxAge := w.rt.now(), int64(w.MaxAge/time.Second)
	if c.fence() <= w.MaxAttempts && now-c.operation.CreatedAt <= maxAge {
		return false, nil
	}
	n, since, err := w.rt.store.tries(ctx, &c.operation)
	if err != nil || n < w.MaxAttempts && now-since <= maxAge {
		return false, err
	}
	p := parking{record: c.record, fence: c.fence(), reason: toolresult.ToolError, now: now, ending: endNotDone}
	if c.lost {
		p.reason, p.ending = toolresult.OutcomeUnknown, endUnknown
	}
	return true, w.rt.store.park(ctx, p)
}

// hold renews the lease of a claim until release is called. The context that it
// returns ends when the lease is lost, or may be.
func (w *worker) hold(ctx context.Context, c *record) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	claimed := *c // the attempt changes c
	stop := make(chan struct{})
	var renewing sync.WaitGroup
	renewing.Go(func() {
		deadline := time.Now().Add(w.Lease)
		tick := time.NewTicker(w.Lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			err := w.rt.store.renew(ctx, &claimed, w.leaseEnd(w.rt.now()))
			switch {
			case err == nil:
				deadline = time.Now().Add(w.Lease)
			case errors.Is(err, ErrLeaseLost), !time.Now().Before(deadline):
				cancel(ErrLeaseLost)
				return
			}
		}
	})
	return ctx, func() {
		close(stop)
		renewing.Wait()
		cancel(nil)
	}
}
