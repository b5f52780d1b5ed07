package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/scenario"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

func pauseCommand() command {
	return command{
		name: "pause", needs: []string{"db", "tool", "actor", "reason"},
		summary: "take a tool out of use",
		detail: `Nobody who shares the ledger begins anything of a paused tool: workers claim none of
its operations, and a new call of it ends in TOOL_PAUSED. What runs goes on, what was
submitted waits, and what has ended is answered as ever.`,
		example: `toolruntime pause --db refunds.sqlite3 --tool create_refund_draft --actor dana --reason "the bank has called"`,
		flags: func(o *options, f *flag.FlagSet) {
			o.common(f)
			o.withActor(f)
			o.withTool(f, "`name` of the tool")
			f.BoolVar(&o.unseen, "unseen", false, "pause a tool of which no operation is open, too")
		},
		run: pause,
	}
}

func pausesCommand() command {
	return command{
		name: "pauses", needs: []string{"db"},
		summary: "list who has paused which tool, when and why",
		detail: `Lists the pauses that hold, and then those that have ended: who has paused which
tool, when and why, and who has resumed it.`,
		example: `toolruntime pauses --db refunds.sqlite3 --tool create_refund_draft`,
		flags: func(o *options, f *flag.FlagSet) {
			o.common(f)
			o.withTool(f, "only the tool of this `name`")
		},
		run: pauses,
	}
}

func resumeCommand() command {
	return command{
		name: "resume", needs: []string{"db", "tool", "actor", "reason"},
		summary: "give a paused tool back",
		example: `toolruntime resume --db refunds.sqlite3 --tool create_refund_draft --actor dana --reason "the bank is back"`,
		flags: func(o *options, f *flag.FlagSet) {
			o.common(f)
			o.withActor(f)
			o.withTool(f, "`name` of the tool")
		},
		run: resume,
	}
}

func pause(ctx context.Context, o *options, p *printer) (bool, error) {
	return with(ctx, o, mustBe, func(d *desk) (bool, error) {
		if err := d.mustKnow(ctx, o, "; --unseen pauses it all the same"); err != nil {
			return false, err
		}
		if err := d.rt.Pause(ctx, o.tool, o.actor, o.reason); err != nil {
			return false, err
		}
		return printStats(ctx, d, p)
	})
}

// mustKnow refuses the name of a tool that neither this program has nor an open
// operation: who stops the wrong tool believes to have stopped the right one. more is
// what else the error says.
func (d *desk) mustKnow(ctx context.Context, o *options, more string) error {
	if _, known := d.rt.Spec(o.tool); known || o.unseen {
		return nil
	}
	st, err := d.rt.Stats(ctx)
	if err != nil || slices.ContainsFunc(st.Tools, func(t toolruntime.ToolStats) bool { return t.Tool == o.tool }) {
		return err
	}
	return &toolresult.InputError{Field: "tool", Rule: "is not known: no operation of it is open, and this program does not have it. `toolruntime stats` lists them" + more}
}

func resume(ctx context.Context, o *options, p *printer) (bool, error) {
	return with(ctx, o, mustBe, func(d *desk) (bool, error) {
		o.unseen = false
		if err := d.mustKnow(ctx, o, ", and those that are paused"); err != nil {
			return false, err
		}
		if err := d.rt.Resume(ctx, o.tool, o.actor, o.reason); err != nil {
			return false, err
		}
		return printStats(ctx, d, p)
	})
}

// A pauseLine is a pause as it is printed. Times are Unix seconds.
type pauseLine struct {
	Tool         string `json:"tool"`
	Holds        bool   `json:"holds"`
	Actor        string `json:"actor"`
	Reason       string `json:"reason"`
	PausedAt     int64  `json:"paused_at"`
	ResumedBy    string `json:"resumed_by,omitempty"`
	ResumeReason string `json:"resume_reason,omitempty"`
	ResumedAt    int64  `json:"resumed_at,omitempty"`
}

func pauses(ctx context.Context, o *options, p *printer) (bool, error) {
	return with(ctx, o, toLook, func(d *desk) (bool, error) {
		lines := []pauseLine{}
		for v, err := range d.rt.Pauses(ctx, o.tool) {
			if err != nil {
				return false, err
			}
			l := pauseLine{Tool: v.Tool, Holds: v.Holds(), Actor: v.Actor, Reason: v.Reason, PausedAt: v.At.Unix()}
			if !v.Holds() {
				l.ResumedBy, l.ResumeReason, l.ResumedAt = v.ResumedBy, v.ResumeReason, unix(v.ResumedAt)
			}
			lines = append(lines, l)
		}
		p.print(struct {
			Gate   scenario.Gate `json:"gate"`
			Pauses []pauseLine   `json:"pauses"`
		}{gate(true), lines}, func(w io.Writer) {
			for _, l := range lines {
				fmt.Fprintf(w, "%s  %s  paused by %s (%s)", contract.FormatTime(l.PausedAt), visible(l.Tool), visible(l.Actor), visible(l.Reason))
				if l.Holds {
					fmt.Fprintln(w)
				} else {
					fmt.Fprintf(w, ", resumed %s by %s (%s)\n", contract.FormatTime(l.ResumedAt), visible(l.ResumedBy), visible(l.ResumeReason))
				}
			}
		})
		return true, nil
	})
}
