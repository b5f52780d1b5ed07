package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// stored is how many operations a ledger has whose operations are asked for again.
const stored = 2000

// newFilled makes a ledger of operations that have ended, numbered from 1.
func newFilled(ctx context.Context, b *bed, database string) (*ledger, error) {
	l, err := newLedger(ctx, b, database)
	if err != nil {
		return nil, err
	}
	conns, err := l.connect(ctx, b, 1, sqliteWriter)
	if err != nil {
		return nil, err
	}
	return l, l.fill(ctx, <-conns, 1, stored)
}

// onLedger is a scenario of the runtime on an empty ledger, or on a filled one.
func onLedger(name, database string, callers int, open func(context.Context, *bed, string) (*ledger, error), ready func(*ledger) load) scenario {
	return scenario{"runtime", name, database, callers, func(ctx context.Context, b *bed) (load, error) {
		l, err := open(ctx, b, database)
		if err != nil {
			return load{}, err
		}
		return ready(l), nil
	}}
}

// fresh dispatches calls that nobody has made, and has the answer.
func (l *ledger) fresh(after int64) load {
	var n atomic.Int64
	n.Store(after)
	return load{do: func(ctx context.Context, _ int) error {
		pkg, err := l.dispatch(ctx, call(n.Add(1)))
		return expect(pkg, err, toolresult.OK, toolresult.Fresh)
	}}
}

// dispatch binds, approves and dispatches a call.
func (l *ledger) dispatch(ctx context.Context, c toolresult.Call) (*toolresult.Package, error) {
	b, err := l.rt.Bind(owner, c)
	if err != nil {
		return nil, err
	}
	return l.rt.Dispatch(ctx, owner, b.Call(), &toolruntime.DispatchOptions{Approvals: []toolresult.Approval{approve(b)}})
}

func (l *ledger) submit(ctx context.Context, n int64) error {
	b, err := l.bind(n)
	if err != nil {
		return err
	}
	pkg, err := l.rt.Submit(ctx, owner, b.Call(), approve(b))
	if err == nil && pkg.Code() != toolresult.Accepted {
		err = fmt.Errorf("submit: %v", pkg.Code())
	}
	return err
}

// submits accepts calls that nobody carries out.
func (l *ledger) submits() load {
	var n atomic.Int64
	return load{do: func(ctx context.Context, _ int) error { return l.submit(ctx, n.Add(1)) }}
}

// replay repeats calls that have ended, those that pick chooses.
func (l *ledger) replay(pick func(int64) int64) load {
	var n atomic.Int64
	return load{do: func(ctx context.Context, _ int) error {
		pkg, err := l.rt.Dispatch(ctx, owner, call(pick(n.Add(1))), nil)
		return expect(pkg, err, toolresult.OK, toolresult.LocalReplay)
	}}
}

// status asks what became of operations that have ended, each time as a new call:
// the ledger binds its identity, which is a commit.
func (l *ledger) status(pick func(int64) int64) load {
	var n atomic.Int64
	return load{do: func(ctx context.Context, _ int) error {
		i := n.Add(1)
		b, err := l.bind(pick(i))
		if err != nil {
			return err
		}
		c := b.Call()
		c.ResponseID = fmt.Sprint("ask_", i)
		pkg, err := l.rt.QueryStatus(ctx, owner, c.StatusQuery(b.StatusRef()), b.StatusRef(), nil)
		return expect(pkg, err, toolresult.OK, toolresult.ReceiptReconciled)
	}}
}

func expect(pkg *toolresult.Package, err error, code toolresult.Code, d toolresult.Delivery) error {
	if err == nil && (pkg.Code() != code || pkg.Delivery() != d) {
		err = fmt.Errorf("answered %v, %v", pkg.Code(), pkg.Delivery())
	}
	return err
}

// audit examines the whole ledger of so many operations.
func (l *ledger) audit(operations int) load {
	return load{batch: func(ctx context.Context) (int, time.Duration, error) {
		begin := time.Now()
		report, err := l.rt.Audit(ctx, nil)
		took := time.Since(begin)
		if err == nil && !report.Passed {
			err = fmt.Errorf("the audit did not pass: %.3q", report.SemanticErrors)
		}
		if err == nil && report.Counts.Operations != int64(operations) {
			err = fmt.Errorf("the audit saw %d operations", report.Counts.Operations)
		}
		return operations, took, err
	}}
}

// submitters is how many callers submit what a worker then carries out.
const submitters = 64

// bulk submits so many operations, numbered from next on, and then has a worker
// carry out all of them. all says that submitting counts as well.
func (l *ledger) bulk(next int64, operations int, all bool) load {
	return load{batch: func(ctx context.Context) (int, time.Duration, error) {
		first := next
		next += int64(operations)
		begin := time.Now()
		if all {
			l.watch.start()
		}
		if err := together(submitters, operations, func(i int64) error { return l.submit(ctx, first+i) }); err != nil {
			return 0, 0, err
		}
		submitted := time.Since(begin)
		if !all {
			l.watch.start()
		}
		took, err := l.drain(ctx, operations)
		l.watch.stop()
		if all {
			took += submitted
		}
		return operations, took, err
	}}
}

// together does what is numbered from 1 to n, by so many callers at once.
func together(callers, n int, do func(i int64) error) error {
	var next atomic.Int64
	errs := make([]error, callers)
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for i := next.Add(1); i <= int64(n) && errs[caller] == nil; i = next.Add(1) {
				errs[caller] = do(i)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// drain works until so many handlers have run and what they did is committed, and
// gives the time of that.
func (l *ledger) drain(ctx context.Context, operations int) (time.Duration, error) {
	work, stop := context.WithCancel(ctx)
	defer stop()
	before, err := l.rt.Counts(ctx)
	if err != nil {
		return 0, err
	}
	l.want, l.full = l.ran.Load()+int64(operations), stop
	begin := time.Now()
	if err := l.rt.Work(work, &toolruntime.WorkOptions{WorkerID: worker, Concurrency: workers}); err != nil {
		return 0, err
	}
	took := time.Since(begin)
	after, err := l.rt.Counts(ctx)
	if done := after.LocalReceipts - before.LocalReceipts; err == nil && done != int64(operations) {
		err = fmt.Errorf("the worker has ended %d of %d operations", done, operations)
	}
	return took, errors.Join(ctx.Err(), err)
}
