package toolruntime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/ledger"
	"github.com/toolruntime/toolruntime-go/internal/limits"
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
	// waiting are operations that are not due after all, and until when, by the
	// monotonic clock, to leave them alone.
	waiting map[int64]time.Time

	sees   sight
	looked time.Time // when the ledger was last looked through for what is astray

	// Of the loop alone: what it has said once.
	met  map[string]bool // versions that it does not know
	told map[int64]bool  // operations that cannot be claimed
}

// Work claims operations that are due and carries them out, until ctx ends; then
// it claims no more, lets the handlers that run finish within Drain, ends their
// contexts, and returns nil; for a database that is away it waits no longer than
// that, see [ErrNotRecorded]. It takes turns between tools and tenants, renews
// the leases of what it runs, retries what did nothing with exponential backoff,
// asks about lost attempts before it repeats one, and puts in review what it may
// not repeat or has tried for too long. A store that will never claim again, because
// other files are in the place of the ledger's, or it was closed, ends it in the same
// way with an error that matches [ErrDetached] or [ErrClosed]; one whose file is only
// gone it waits for.
//
// A handler whose lease is lost has its context ended, and nothing that it says
// afterwards is recorded. Any number of workers, in any number of processes, may
// work on one ledger. A context of package drill is refused.
func (rt *Runtime) Work(ctx context.Context, opts *WorkOptions) error {
	o, err := opts.complete()
	if err == nil {
		_, ctx, err = stopping(ctx, "a worker")
	}
	if err == nil {
		err = rt.ledger.Holds("worker_id", o.WorkerID)
	}
	if err != nil {
		return err
	}
	w := &worker{WorkOptions: o, rt: rt, slots: make(chan struct{}, o.Concurrency),
		busy: map[int64]bool{}, pace: map[string]*pace{}, broken: map[int64]time.Time{}, waiting: map[int64]time.Time{},
		met: map[string]bool{}, told: map[int64]bool{}}
	running, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	ctx, end := context.WithCancel(ctx)
	defer end()
	// The drain begins when ctx ends, whatever the loop is waiting for then.
	var drain *time.Timer
	ending := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		drain = time.AfterFunc(o.Drain, func() { stop(errDrained) })
		close(ending)
	})()
	var handlers sync.WaitGroup
	err = w.loop(ctx, func(c ledger.Claim) {
		w.begin(c)
		handlers.Go(func() {
			defer w.done(c)
			w.handle(running, c)
		})
	})
	end()
	<-ending
	defer drain.Stop()
	handlers.Wait()
	return err
}

// loop starts due operations as long as there are slots for them, and until nothing
// can be claimed any more.
func (w *worker) loop(ctx context.Context, start func(ledger.Claim)) error {
	idle, blocked := time.Duration(0), 0
	for cursor := ""; ctx.Err() == nil; {
		free := w.free(ctx)
		if free == 0 {
			return nil
		}
		claims, last, due, err := w.claim(ctx, cursor, free)
		if errors.Is(err, ErrClosed) || errors.Is(err, ErrDetached) && !passes(err) {
			return fmt.Errorf("toolruntime: work: %w", err)
		}
		if err != nil && ctx.Err() == nil {
			w.rt.failedSweeps.Add(1)
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
	return nil
}

// maxLanePages is how many pages of lanes that cannot go on are looked at before
// the worker rests.
const maxLanePages = 16

// claim claims as many due operations as there are slots for, in one
// transaction. last is the lane after which to look next, or "" for anywhere; due
// says that there was something to claim.
func (w *worker) claim(ctx context.Context, cursor string, free int) (claims []ledger.Claim, last string, due bool, err error) {
	now := w.rt.clock()
	w.watch(ctx, now)
	pass := w.passOver()
	u, err := w.rt.ledger.Due(ctx, ledger.Demand{Cursor: cursor, Now: now.Unix(), Limit: min(free, ledger.MaxBatch), Pass: pass,
		Room: w.room, Known: w.rt.knows})
	if err != nil {
		return nil, "", false, err
	}
	for _, version := range u.Foreign {
		w.meet(ctx, version)
	}
	if len(u.Shares) == 0 {
		return nil, u.Last, false, nil
	}
	b, err := w.rt.ledger.ClaimDue(ctx, u.Shares, ledger.Claiming{Worker: w.WorkerID, Term: w.lease(), Knows: w.rt.carries, Alive: w.sees.alive}, pass)
	w.leaveWaiting(b.Waiting)
	for pk, tool := range b.Foreign {
		w.leaveAlone(pk, time.Hour) // it stays unknown to this process
		w.meet(ctx, ledger.LanePart(tool))
	}
	for pk, cause := range b.Refused {
		// It must not keep a slot busy, nor be asked for again and again.
		w.leaveAlone(pk, time.Minute)
		if !w.told[pk] {
			w.told[pk] = true
			w.rt.log.ErrorContext(ctx, "work: cannot be claimed", "worker", w.WorkerID, "error", cause)
		}
	}
	return b.Claims, u.Last, true, err
}

// meet says once that there is work which this worker leaves to others, because it
// does not know the tool, or not that version of it.
func (w *worker) meet(ctx context.Context, version string) {
	if w.met[version] {
		return
	}
	st, err := w.rt.Stats(ctx)
	if err != nil {
		return // next time
	}
	w.met[version] = true
	log := w.rt.log.With("worker", w.WorkerID, "tool", ledger.ToolOf(version))
	for _, t := range st.Tools {
		if t.Tool == ledger.ToolOf(version) && t.NotKnownHere > 0 {
			log = log.With("operations", t.NotKnownHere, "oldest", time.Unix(w.rt.now(), 0).Sub(t.OldestNotKnownHere))
		}
	}
	log.WarnContext(ctx, "work: no worker here knows it")
}

// handBack gives back a claim for which the worker has no time any more.
func (w *worker) handBack(ctx context.Context, c ledger.Claim) {
	if err := w.giveBack(ctx, c, 0); err != nil {
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
	for pk, until := range w.waiting {
		if time.Now().Before(until) {
			all[pk] = true
		} else {
			delete(w.waiting, pk)
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
func (w *worker) begin(c ledger.Claim) {
	w.slots <- struct{}{}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy[c.PK()] = true
	tool := c.ToolName()
	if t := w.rt.tools[tool]; t.concurrent > 0 || t.perSecond > 0 {
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

func (w *worker) done(c ledger.Claim) {
	w.mu.Lock()
	delete(w.busy, c.PK())
	if p := w.pace[c.ToolName()]; p != nil {
		p.running--
	}
	w.mu.Unlock()
	<-w.slots
	w.rt.signal()
}

// wait ends early when something was submitted in this process.
func (w *worker) wait(ctx context.Context, d time.Duration) {
	_ = sleep(ctx, d, w.rt.wake) // who calls it looks at ctx
}

// handle carries out an operation that is claimed.
func (w *worker) handle(ctx context.Context, c ledger.Claim) {
	pk := c.PK()
	defer func() {
		// A callback of the host that panics must not take the worker with it. The
		// lease runs out.
		if r := recover(); r != nil {
			w.leaveAlone(pk, time.Minute)
			w.rt.log.ErrorContext(ctx, "work: panic", "worker", w.WorkerID, "stack", string(debug.Stack()))
		}
	}()
	err := w.run(ctx, c)
	switch {
	case err == nil, errors.Is(err, ledger.ErrLeaseLost), ctx.Err() != nil:
	default:
		// Not this operation's turn for a while: what cannot be decoded, or meets
		// a failing callback, must not keep a slot busy.
		w.leaveAlone(pk, time.Minute)
	}
	if err != nil {
		w.rt.log.ErrorContext(ctx, "work: attempt failed", "worker", w.WorkerID, "error", err)
	}
}

func (w *worker) leaveAlone(pk int64, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken[pk] = w.rt.clock().Add(d)
}
