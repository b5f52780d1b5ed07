package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
	"github.com/toolruntime/toolruntime-go/internal/scenario"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// operating are the commands of who looks after a running ledger.
func operating() []command {
	return []command{
		workCommand(),
		{
			name: "show", needs: []string{"db", "status-ref"},
			summary: "print an operation's whole life",
			detail: `Prints when and by whom an operation was approved, every attempt and how it
ended, the answers that were refused because they broke the output contract or
came after their lease was lost, what people have decided, and how it stands.`,
			example: `toolruntime show --db refunds.sqlite3 --status-ref status_0123456789abcdef0123456789abcdef`,
			flags:   (*options).withRef,
			run:     show,
		},
		listCommand(),
		{
			name: "review list", needs: []string{"db"},
			summary: "list the operations that wait for a person",
			detail: `Lists the operations in review, the oldest first (on PostgreSQL about so), and for
how long each has waited. Exit code 1 means that there are some.`,
			example: `toolruntime review list --db refunds.sqlite3`,
			flags: func(o *options, f *flag.FlagSet) {
				o.common(f)
				f.IntVar(&o.limit, "limit", 100, "at most `N` operations")
			},
			run: reviewList,
		},
		{
			name: "review resolve", needs: []string{"db", "status-ref", "decision", "actor", "reason"},
			summary: "record what a person has found out about an operation",
			detail: `Ends the review of an operation. The decision is one of
  confirmed_done      it has happened; --receipt says how, and is the answer from now on
  confirmed_not_done  nothing has happened, and nothing shall
  try_again           nothing has happened, and it shall be attempted again
  abandoned           nobody will find out
It is final. The tool must be one of this program's, or of --tools, for
confirmed_done: its output contract is what the receipt is held against. The receipt is a JSON object with receipt_id,
request_id, data, and optionally resource_revision and observed_at.`,
			example: `toolruntime review resolve --db refunds.sqlite3 --status-ref status_0123456789abcdef0123456789abcdef \
    --decision confirmed_not_done --actor dana --reason "the bank has no such refund"`,
			flags: func(o *options, f *flag.FlagSet) {
				o.withRef(f)
				o.withTools(f)
				o.withActor(f)
				f.StringVar(&o.decision, "decision", "", "`what` was found out")
				f.StringVar(&o.receipt, "receipt", "", "`file` with the receipt of confirmed_done")
			},
			run: reviewResolve,
		},
		{
			name: "cancel", needs: []string{"db", "status-ref", "actor", "reason"},
			summary: "cancel an operation before its first attempt",
			detail: `Ends an operation that was accepted and of which no attempt has begun: nothing was
done, and nothing will be. Its key stays used. Once an attempt has begun it is
refused, because the effect may happen.`,
			example: `toolruntime cancel --db refunds.sqlite3 --status-ref status_0123456789abcdef0123456789abcdef \
    --actor dana --reason "the customer has called"`,
			flags: func(o *options, f *flag.FlagSet) {
				o.withRef(f)
				o.withActor(f)
			},
			run: cancel,
		},
		{
			name: "redrive", needs: []string{"db", "actor", "reason"},
			summary: "let operations be attempted again that certainly did nothing",
			detail: `Gives operations back to the workers that are in review with TOOL_ERROR: of them
it is certain that nothing was done. Those whose outcome is unknown are left
alone; resolve them first.`,
			example: `toolruntime redrive --db refunds.sqlite3 --tool create_refund_draft --limit 50 --stagger 2s --actor dana --reason "the bank is back"`,
			flags: func(o *options, f *flag.FlagSet) {
				o.common(f)
				o.withActor(f)
				o.withTool(f, "only the tool of this `name`")
				f.IntVar(&o.limit, "limit", 100, "at most `N` operations")
				spanVar(f, &o.stagger, "stagger", time.Second, "`time` between one and the next")
			},
			run: redrive,
		},
		pauseCommand(),
		pausesCommand(),
		resumeCommand(),
		{
			name: "stats", needs: []string{"db"},
			summary: "print the backlog and the lost leases by tool",
			detail: `Prints what waits, what is leased and what is in review, and since when; how
often what waits and is leased was attempted so far; and how many leases were
lost, because a worker died or stood still, over all operations not yet pruned.`,
			example: `toolruntime stats --db refunds.sqlite3`,
			flags:   (*options).common,
			run:     stats,
		},
	}
}

func show(ctx context.Context, o *options, p *printer) (bool, error) {
	return with(ctx, o, toLook, func(d *desk) (bool, error) {
		h, err := d.rt.History(ctx, o.statusRef)
		if err != nil {
			return false, err
		}
		p.print(struct {
			Gate scenario.Gate `json:"gate"`
			historyView
		}{gate(true), viewHistory(h)}, func(w io.Writer) {
			fmt.Fprintf(w, "%s  %s  %s %s\n", h.StatusRef, visible(h.Tool), h.State, h.Reason)
			for _, m := range h.Moments {
				fmt.Fprintf(w, "%s  %s\n", clock(m.At), visible(moment(m)))
			}
		})
		return true, nil
	})
}

// moment is a line of a timeline.
func moment(m toolruntime.Moment) string {
	s := string(m.What)
	switch m.What {
	case toolruntime.MomentAccepted:
		if m.Who != "" { // of one that was pruned nobody knows any more
			s += ", approved by " + m.Who
		}
	case toolruntime.MomentAttempt:
		s += fmt.Sprintf(" %d by %s: %s after %ds", m.Attempt, m.Who, m.How, unix(m.Until)-unix(m.At))
		if m.Why != "" {
			s += ", " + strings.ReplaceAll(m.Why, "_", " ")
		}
	case toolruntime.MomentRefused:
		s = fmt.Sprintf("receipt %q of attempt %d was refused: %q", m.How, m.Attempt, m.Why)
	case toolruntime.MomentRunning:
		s += fmt.Sprintf(" attempt %d by %s, leased until %s", m.Attempt, m.Who, clock(m.Until))
	case toolruntime.MomentWaiting:
		s += ", due at " + clock(m.Until)
	case toolruntime.MomentResolved:
		s += fmt.Sprintf(" by %s: %s (%s)", m.Who, m.How, m.Why)
	}
	return s
}

func reviewList(ctx context.Context, o *options, p *printer) (bool, error) {
	return with(ctx, o, toLook, func(d *desk) (bool, error) {
		if o.limit < 1 {
			return false, &toolresult.InputError{Field: "limit", Rule: "must be at least 1"}
		}
		items, err := d.rt.Review(ctx, "", o.limit)
		if err != nil {
			return false, err
		}
		pass := len(items) == 0
		p.print(struct {
			Gate  scenario.Gate `json:"gate"`
			Items []itemView    `json:"items"`
		}{gate(pass), viewItems(items)}, func(w io.Writer) {
			fmt.Fprintf(w, "%s  %d operations wait for a person\n", gate(pass), len(items))
			for _, i := range items {
				fmt.Fprintf(w, "%s  %s  %s  %d attempts  for %s\n", i.StatusRef, visible(i.Tool), i.Reason, i.Attempts, age(d.now(), i.Since))
			}
		})
		return pass, nil
	})
}

func reviewResolve(ctx context.Context, o *options, p *printer) (bool, error) {
	return with(ctx, o, mustBe, func(d *desk) (bool, error) {
		v := toolruntime.Resolution{StatusRef: o.statusRef, Decision: toolruntime.Decision(o.decision), Actor: o.actor, Reason: o.reason}
		if v.Decision == toolruntime.ConfirmedDone && o.receipt == "" {
			return false, &toolresult.InputError{Field: "receipt", Rule: "is missing: confirmed_done needs --receipt FILE, which shows what was done"}
		}
		if o.receipt != "" {
			r, err := readReceipt(o.receipt)
			if err != nil {
				return false, err
			}
			v.Receipt = r
		}
		if err := d.rt.Resolve(ctx, v); err != nil {
			return false, err
		}
		return show(ctx, o, p)
	})
}

func cancel(ctx context.Context, o *options, p *printer) (bool, error) {
	return with(ctx, o, mustBe, func(d *desk) (bool, error) {
		if err := d.rt.Cancel(ctx, o.statusRef, o.actor, o.reason); err != nil {
			return false, err
		}
		return show(ctx, o, p)
	})
}

// readReceipt reads the evidence of confirmed_done.
func readReceipt(path string) (*toolruntime.Receipt[json.RawMessage], error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	// Strict first, which says what is wrong and where.
	if _, err := canonjson.Parse(data); err != nil {
		return nil, &scenario.FixtureError{Problems: []string{"receipt: " + err.Error()}}
	}
	var v struct {
		ReceiptID        string          `json:"receipt_id"`
		RequestID        string          `json:"request_id"`
		Data             json.RawMessage `json:"data"`
		ResourceRevision string          `json:"resource_revision"`
		ObservedAt       time.Time       `json:"observed_at"`
	}
	if err := jsonv2.Unmarshal(data, &v, jsonv2.RejectUnknownMembers(true)); err != nil {
		return nil, &scenario.FixtureError{Problems: []string{"receipt: must be an object with receipt_id, request_id, data and, if they are known, resource_revision and observed_at, and with nothing else"}}
	}
	return &toolruntime.Receipt[json.RawMessage]{ID: v.ReceiptID, RequestID: v.RequestID, Data: v.Data,
		ResourceRevision: v.ResourceRevision, ObservedAt: v.ObservedAt}, nil
}

func redrive(ctx context.Context, o *options, p *printer) (bool, error) {
	return with(ctx, o, mustBe, func(d *desk) (bool, error) {
		refs, err := d.rt.Redrive(ctx, &toolruntime.RedriveOptions{Tool: o.tool, Limit: o.limit, Stagger: o.stagger, Actor: o.actor, Reason: o.reason})
		if err != nil {
			return false, err
		}
		p.print(struct {
			Gate     scenario.Gate `json:"gate"`
			Redriven []string      `json:"redriven"`
		}{gate(true), refs}, func(w io.Writer) {
			fmt.Fprintf(w, "PASS  %d operations will be attempted again\n", len(refs))
			for _, ref := range refs {
				fmt.Fprintln(w, ref)
			}
		})
		return true, nil
	})
}

func stats(ctx context.Context, o *options, p *printer) (bool, error) {
	return with(ctx, o, toLook, func(d *desk) (bool, error) { return printStats(ctx, d, p) })
}

func printStats(ctx context.Context, d *desk, p *printer) (bool, error) {
	st, err := d.rt.Stats(ctx)
	if err != nil {
		return false, err
	}
	p.print(struct {
		Gate  scenario.Gate `json:"gate"`
		Tools []toolView    `json:"tools"`
	}{gate(true), viewStats(st)}, func(w io.Writer) {
		fmt.Fprintf(w, "%-32s %8s %10s %9s %8s %9s %11s\n", "tool", "pending", "processing", "in review", "unknown", "attempts", "leases lost")
		for _, t := range st.Tools {
			name := visible(t.Tool)
			if t.Paused {
				name += " (paused)"
			}
			fmt.Fprintf(w, "%-32s %8d %10d %9d %8d %9d %11d\n", name, t.Pending, t.Processing, t.InReview, t.Unknown, t.Attempts, t.LeasesLost)
		}
	})
	return true, nil
}
