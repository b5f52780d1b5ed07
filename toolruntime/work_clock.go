package toolruntime

import (
	"context"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/ledger"
)

// recheck is how long a worker leaves alone what is not due after all: its attempt
// runs, by what this process knows of it.
const recheck = time.Second

// lookThrough is how often a worker looks for events that are astray, besides when
// it sees that the clock was set back.
const lookThrough = time.Minute

// watch looks at the clocks before the worker claims by them, and lets nothing wait
// because one was set back. A clock that the host gave is as steady as it says.
func (w *worker) watch(ctx context.Context, now time.Time) {
	step := time.Duration(0)
	if w.rt.own {
		if step = w.sees.look(now); step != 0 {
			w.rt.clocks.steps.Add(1)
			w.rt.log.WarnContext(ctx, "work: the ledger's clock was set", "worker", w.WorkerID, "by", step)
		}
	}
	if step >= 0 && !w.looked.IsZero() && time.Since(w.looked) < lookThrough {
		return
	}
	w.looked = time.Now()
	w.rt.tellSkew(ctx)
	n, err := w.rt.ledger.BringAllBack(ctx, ledger.Term{Now: now.Unix(), Own: w.rt.own})
	switch {
	case err != nil && ctx.Err() == nil:
		w.rt.log.WarnContext(ctx, "work: cannot look for what waits too long", "worker", w.WorkerID, "error", err)
	case n > 0:
		w.rt.log.WarnContext(ctx, "work: the clock was set back; what waited for it to pass waits no longer",
			"worker", w.WorkerID, "operations", n)
	}
}

func (w *worker) leaveWaiting(pks []int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, pk := range pks {
		w.waiting[pk] = time.Now().Add(recheck)
	}
}
