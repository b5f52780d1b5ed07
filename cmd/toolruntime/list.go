package main

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/toolruntime/toolruntime-go/internal/limits"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

func listCommand() command {
	return command{
		name: "list", needs: []string{"db"},
		summary: "list operations by state, tool and time",
		detail: `Lists operations, the newest first: how each stands, how often it was attempted, and
who carries it. What was pruned is not there any more. Piped, it prints a JSON object a
line; where --limit leaves some out, the last line has the cursor to go on from, for
--after. There is no index for what is asked, so that what is rare takes as long as
reading the whole ledger, in short reads; "review list" and "stats" need none.`,
		example: `toolruntime list --db refunds.sqlite3 --state failed --since 24h`,
		flags: func(o *options, f *flag.FlagSet) {
			o.common(f)
			f.StringVar(&o.state, "state", "", "only in this `state`: pending, processing, succeeded, failed or in_review")
			o.withTool(f, "only of the tool of this `name`")
			f.StringVar(&o.tenant, "tenant", "", "only of the tenant of this `name`")
			spanVar(f, &o.since, "since", 0, "only what was accepted in this last `time`")
			f.BoolVar(&o.oldest, "oldest", false, "the oldest first")
			f.IntVar(&o.limit, "limit", 100, "at most `N` operations")
			f.StringVar(&o.after, "after", "", "`cursor` to go on from")
		},
		run: listOperations,
	}
}

// A listLine is an operation as it is printed. Times are Unix seconds.
type listLine struct {
	StatusRef  string            `json:"status_ref"`
	Tool       string            `json:"tool"`
	State      toolruntime.State `json:"state"`
	Reason     toolresult.Code   `json:"reason,omitempty"`
	Attempts   int64             `json:"attempts"`
	AcceptedAt int64             `json:"accepted_at"`
	ChangedAt  int64             `json:"changed_at"`
	EndedAt    int64             `json:"ended_at,omitempty"`
	Worker     string            `json:"worker,omitempty"`
	DueAt      int64             `json:"due_at,omitempty"`
}

func listOperations(ctx context.Context, o *options, p *printer) (bool, error) {
	return with(ctx, o, toLook, func(d *desk) (bool, error) {
		if err := limits.Page.Check("limit", o.limit); err != nil {
			return false, err
		}
		opts := &toolruntime.ListOptions{State: toolruntime.State(o.state), Tool: o.tool, Tenant: o.tenant, Oldest: o.oldest,
			After: toolruntime.Cursor(o.after)}
		if o.since > 0 {
			opts.Since = d.now().Add(-o.since)
		}
		if !p.json {
			p.text(func(w io.Writer) {
				fmt.Fprintf(w, "%-39s  %-10s  %-20s  %8s  %s\n", "status_ref", "state", "accepted", "attempts", "tool")
			})
		}
		for left := o.limit; ; {
			opts.Limit = min(left, 1000)
			page, err := d.rt.List(ctx, opts)
			if err != nil {
				return false, err
			}
			for _, v := range page.Operations {
				p.operation(v)
			}
			opts.After = page.Next
			if left -= len(page.Operations); page.Next == "" || left == 0 || p.failed != nil {
				break
			}
		}
		if opts.After == "" {
			return true, nil
		}
		if p.json {
			p.line(struct {
				Next toolruntime.Cursor `json:"next"`
			}{opts.After})
		} else {
			p.text(func(w io.Writer) { fmt.Fprintf(w, "there may be more: --after %s\n", opts.After) })
		}
		return true, nil
	})
}

// operation writes a line about an operation.
func (p *printer) operation(v toolruntime.Operation) {
	if p.json {
		p.line(listLine{StatusRef: v.StatusRef, Tool: v.Tool, State: v.State, Reason: v.Reason, Attempts: v.Attempts,
			AcceptedAt: unix(v.AcceptedAt), ChangedAt: unix(v.ChangedAt), EndedAt: unix(v.EndedAt),
			Worker: v.Worker, DueAt: unix(v.DueAt)})
		return
	}
	p.text(func(w io.Writer) {
		fmt.Fprintf(w, "%-39s  %-10s  %s  %8d  %s", v.StatusRef, v.State, clock(v.AcceptedAt), v.Attempts, visible(v.Tool))
		switch {
		case v.Reason != "":
			fmt.Fprintf(w, "  %s", v.Reason)
		case v.Worker != "":
			fmt.Fprintf(w, "  by %s until %s", visible(v.Worker), clock(v.DueAt))
		}
		fmt.Fprintln(w)
	})
}
