package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/scenario"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

func workCommand() command {
	return command{
		name: "work", needs: []string{"db"},
		summary: "carry out what was accepted and has not ended",
		detail: `Carries out operations of the two example tools that were accepted and have not
ended, as a worker of a service does, and ends when none is left: those that
dispatch has left with --failure, for instance. With --status-ref it makes one
attempt at that operation. It waits for leases that have not run out, for --wait
at most, and not for paused tools. Exit code 1 means that something is still open,
theirs too, or that the attempt has not succeeded.`,
		example: `toolruntime work --db refunds.sqlite3
  toolruntime work --db refunds.sqlite3 --status-ref status_0123456789abcdef0123456789abcdef`,
		flags: func(o *options, f *flag.FlagSet) {
			o.withRef(f)
			f.StringVar(&o.workerID, "worker-id", "cli-worker", "`name` of the worker")
			spanVar(f, &o.wait, "wait", time.Minute, "`time` after which to leave what is still open")
		},
		run: work,
	}
}

func work(ctx context.Context, o *options, p *printer) (bool, error) {
	return with(ctx, o, mustBe, func(d *desk) (bool, error) {
		if o.statusRef != "" {
			return workOne(ctx, o, p, d)
		}
		working, idle := context.WithTimeout(ctx, o.wait)
		defer idle()
		watched := make(chan error, 1)
		go func() {
			defer idle()
			watched <- d.untilIdle(working)
		}()
		// A case may be long past, and so is what it has left.
		err := d.rt.Work(working, &toolruntime.WorkOptions{WorkerID: o.workerID, Poll: 200 * time.Millisecond, MaxAge: math.MaxInt64})
		idle()
		if watchErr := <-watched; err == nil && ctx.Err() == nil {
			err = watchErr
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return false, err
		}
		return printWork(ctx, p, d)
	})
}

// untilIdle returns when nothing of the tools that this program knows is open.
func (d *desk) untilIdle(ctx context.Context) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		open, _, err := d.open(ctx)
		if ctx.Err() != nil || err == nil && open == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// open is how many operations of known tools have not ended and wait for no person, and
// how many of paused tools do not go on before somebody resumes them.
func (d *desk) open(ctx context.Context) (goOn, paused int64, err error) {
	st, err := d.rt.Stats(ctx)
	if err != nil {
		return 0, 0, err
	}
	for _, t := range st.Tools {
		switch _, known := d.rt.Spec(t.Tool); {
		case known && t.Paused:
			paused += t.Pending + t.Processing
		case known:
			goOn += t.Pending + t.Processing
		}
	}
	return goOn, paused, nil
}

func printWork(ctx context.Context, p *printer, d *desk) (bool, error) {
	goOn, paused, err := d.open(ctx)
	if err != nil {
		return false, err
	}
	open := goOn + paused
	attempts := map[toolruntime.Outcome]int64{}
	for _, a := range d.rt.Metrics().Attempts {
		attempts[a.Outcome] += a.Count
	}
	pass := open == 0
	p.print(struct {
		Gate     scenario.Gate                 `json:"gate"`
		Attempts map[toolruntime.Outcome]int64 `json:"attempts"` // by how they ended
		Open     int64                         `json:"open"`
	}{gate(pass), attempts, open}, func(w io.Writer) {
		fmt.Fprintf(w, "%s  %d operations are still open\n", gate(pass), open)
		outcomes := make([]string, 0, len(attempts))
		for how, n := range attempts {
			outcomes = append(outcomes, fmt.Sprintf("%6d attempts: %s\n", n, how))
		}
		slices.Sort(outcomes)
		for _, line := range outcomes {
			fmt.Fprint(w, line)
		}
	})
	return pass, nil
}

func workOne(ctx context.Context, o *options, p *printer, d *desk) (bool, error) {
	if !contract.ValidStatusRef(o.statusRef) {
		return false, errStatusRef
	}
	outcome, err := d.rt.Process(ctx, o.statusRef, o.workerID, nil)
	if err != nil {
		return false, err
	}
	pass := outcome == toolruntime.Succeeded
	p.print(struct {
		Gate      scenario.Gate       `json:"gate"`
		Outcome   toolruntime.Outcome `json:"outcome"`
		StatusRef string              `json:"status_ref"`
	}{gate(pass), outcome, o.statusRef}, func(w io.Writer) {
		fmt.Fprintf(w, "%s  %s  %s\n", gate(pass), o.statusRef, outcome)
	})
	return pass, nil
}
