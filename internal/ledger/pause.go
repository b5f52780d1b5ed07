package ledger

import (
	"context"
	"strconv"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/tables"
)

// A pause that holds is a row of paused_tools, which is what everybody looks at who
// begins something. When it ends the row becomes one of past_pauses. How many there
// are of both is counted, so that the audit misses one that is gone.

func (s *Ledger) Pause(ctx context.Context, tool, actor, reason string, now int64) error {
	row := dbgen.PausedTool{ToolName: tool, Actor: actor, Reason: reason, PausedAt: now}
	tables.PausedTools.Seal(&row)
	return s.engine.Write(ctx, func(ctx context.Context, q engine.Querier) error {
		n, err := q.PauseTool(ctx, dbgen.PauseToolParams(row))
		if err != nil || n == 0 {
			return err
		}
		return countPauses(ctx, q, 1)
	})
}

func countPauses(ctx context.Context, q dbgen.Querier, added int64) error {
	n, err := q.AddPauses(ctx, added)
	if err == nil && n != 1 {
		err = &ContractError{"", "the ledger does not say how many pauses it has"}
	}
	return err
}

func (s *Ledger) Resume(ctx context.Context, tool, actor, reason string, now int64) error {
	return s.engine.Write(ctx, func(ctx context.Context, q engine.Querier) error {
		p, err := q.GetPausedTool(ctx, tool)
		if there, err := found(err); !there {
			return err
		}
		if !tables.PausedTools.Intact(&p) {
			return &ContractError{"", "a paused tool's row does not fit its digest"}
		}
		// Of two who resume it the later finds no row, or loses the race for it.
		n, err := q.ResumeTool(ctx, dbgen.ResumeToolParams(p))
		if err != nil || n == 0 {
			return err
		}
		last, err := q.LastPastPause(ctx, tool)
		if err != nil {
			return err
		}
		row := dbgen.PastPause{ToolName: tool, Seq: last + 1, Actor: p.Actor, Reason: p.Reason, PausedAt: p.PausedAt,
			ResumedBy: actor, ResumeReason: reason, ResumedAt: max(now, p.PausedAt)}
		tables.PastPauses.Seal(&row)
		return q.InsertPastPause(ctx, dbgen.InsertPastPauseParams(row))
	})
}

// Paused reports whether a tool is paused.
func (s *Ledger) Paused(ctx context.Context, tool string) (paused bool, err error) {
	err = s.engine.Peek(ctx, func(ctx context.Context, q engine.Querier) error {
		n, err := q.IsPaused(ctx, tool)
		paused = n > 0
		return err
	})
	return paused, err
}

// A pauseRow is a pause. Times are in Unix seconds; it was resumed by nobody while it
// holds.
type Pause struct {
	Tool, Actor, Reason     string
	At                      int64
	ResumedBy, ResumeReason string
	ResumedAt               int64
}

// A PastPause is where a list of pauses goes on.
type PastPause struct {
	tool string
	seq  int64
}

// Pauses is a page of the pauses that have ended, of a tool or of all, after one of
// them. The first page begins with those that hold.
func (s *Ledger) Pauses(ctx context.Context, tool string, after *PastPause) (page []Pause, last *PastPause, err error) {
	err = s.engine.Snapshot(ctx, func(ctx context.Context, q engine.Snapshot) error {
		page, last = nil, nil
		from := dbgen.ListPastPausesParams{ToolName: tool, Page: AuditPage}
		if after != nil {
			from.ToolName, from.Seq = after.tool, after.seq
		} else {
			paused, err := q.ListPausedTools(ctx)
			if err != nil {
				return err
			}
			for _, p := range paused {
				if tool == "" || p.ToolName == tool {
					page = append(page, Pause{Tool: p.ToolName, Actor: p.Actor, Reason: p.Reason, At: p.PausedAt})
				}
			}
		}
		past, err := q.ListPastPauses(ctx, from)
		for i, p := range past {
			if tool != "" && p.ToolName != tool {
				return nil
			}
			page = append(page, Pause{Tool: p.ToolName, Actor: p.Actor, Reason: p.Reason, At: p.PausedAt,
				ResumedBy: p.ResumedBy, ResumeReason: p.ResumeReason, ResumedAt: p.ResumedAt})
			if i == AuditPage-1 {
				last = &PastPause{p.ToolName, p.Seq}
			}
		}
		return err
	})
	return page, last, err
}

// pauses examines the pauses that hold, and those that have ended: each tool's are
// numbered, and there are as many as were counted.
func (a *auditor) pauses(ctx context.Context, s engine.Snapshot) error {
	paused, err := s.ListPausedTools(ctx)
	if err != nil {
		return err
	}
	for _, p := range paused {
		if !tables.PausedTools.Intact(&p) {
			a.ledger.add("AUDIT_ROW_DIGEST", "", "a paused tool's row does not fit its digest")
		}
	}
	for last, more := (dbgen.PastPause{}), true; more; {
		page, err := s.ListPastPauses(ctx, dbgen.ListPastPausesParams{ToolName: last.ToolName, Seq: last.Seq, Page: AuditPage})
		if err != nil {
			return err
		}
		for _, p := range page {
			switch {
			case !tables.PastPauses.Intact(&p):
				a.ledger.add("AUDIT_ROW_DIGEST", "", "a past pause's row does not fit its digest")
			case p.ToolName == last.ToolName && p.Seq != last.Seq+1, p.ToolName != last.ToolName && p.Seq != 1:
				a.ledger.add("AUDIT_PAUSE", "", "a pause that has ended is missing")
			}
			last = p
		}
		more = len(page) == AuditPage
	}
	n, err := s.CountPauses(ctx)
	if err == nil && strconv.FormatInt(n.Found, 10) != n.Counted {
		a.ledger.add("AUDIT_PAUSE", "", "there are not as many pauses as the ledger counts")
	}
	return err
}

// paused brings over which tools are paused, and which were.
func (c *copier) paused(ctx context.Context) error {
	_, err := copyRows(ctx, c, func(ctx context.Context, q dbgen.Querier) ([]dbgen.PausedTool, error) {
		return q.ListPausedTools(ctx)
	}, func(p dbgen.PausedTool) bool {
		return tables.PausedTools.Intact(&p)
	}, func(ctx context.Context, q dbgen.Querier, p dbgen.PausedTool) error {
		err := inserted(q.PauseTool(ctx, dbgen.PauseToolParams(p)))
		if err == nil {
			err = countPauses(ctx, q, 1)
		}
		return err
	})
	for last, more := (dbgen.PastPause{}), true; err == nil && more; {
		var page []dbgen.PastPause
		page, err = copyRows(ctx, c, func(ctx context.Context, q dbgen.Querier) ([]dbgen.PastPause, error) {
			return q.ListPastPauses(ctx, dbgen.ListPastPausesParams{ToolName: last.ToolName, Seq: last.Seq, Page: copyPage})
		}, func(p dbgen.PastPause) bool {
			return tables.PastPauses.Intact(&p)
		}, func(ctx context.Context, q dbgen.Querier, p dbgen.PastPause) error {
			if err := q.InsertPastPause(ctx, dbgen.InsertPastPauseParams(p)); err != nil {
				return err
			}
			return countPauses(ctx, q, 1)
		})
		if more = len(page) == copyPage; more {
			last = page[copyPage-1]
		}
	}
	return err
}
