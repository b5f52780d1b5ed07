package toolruntime

import (
	"context"
	"math"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// The kinds of a list's cursors.
const (
	newestFirst byte = 'N'
	oldestFirst byte = 'O'
)

// list reads a page of operations, a few at a time.
func (s *Store) list(ctx context.Context, o ListOptions, by listSizes) (*ListPage, error) {
	kind, what, place := newestFirst, "a list with the newest first", int64(math.MaxInt64)
	if o.Oldest {
		kind, what, place = oldestFirst, "a list with the oldest first", math.MinInt64
	}
	if o.After != "" {
		after, err := o.After.numbers(kind, what, 1)
		if err != nil {
			return nil, err
		}
		place = after[0]
	}
	page := &ListPage{Operations: []Operation{}}
	for examined := 0; examined < by.examined && len(page.Operations) < o.Limit; {
		n := by.rows
		if o.all() {
			n = min(n, o.Limit-len(page.Operations))
		}
		var rows []dbgen.ListOldestRow
		err := s.engine.Read(ctx, func(ctx context.Context, q dbgen.Querier) (err error) {
			if o.Oldest {
				rows, err = q.ListOldest(ctx, dbgen.ListOldestParams{AfterPK: place, Page: int64(n)})
				return err
			}
			newest, err := q.ListNewest(ctx, dbgen.ListNewestParams{BeforePK: place, Page: int64(n)})
			rows = make([]dbgen.ListOldestRow, len(newest))
			for i, row := range newest {
				rows[i] = dbgen.ListOldestRow(row)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		page.Next = ""
		for i, row := range rows {
			if len(page.Operations) == o.Limit {
				page.Next = cursorOf(kind, place)
				return page, nil
			}
			place = row.OperationPK
			if v := listed(&row); o.wants(&v, row.TenantID) {
				page.Operations = append(page.Operations, v)
			}
			if i == n-1 {
				page.Next = cursorOf(kind, place)
			}
		}
		if examined += len(rows); len(rows) < n {
			return page, nil
		}
	}
	return page, nil
}

func listed(row *dbgen.ListOldestRow) Operation {
	v := Operation{
		StatusRef: row.StatusRef, Tool: row.ToolName, State: State(row.State), Reason: toolresult.Code(row.Reason),
		Attempts: row.AttemptCount.Int64, AcceptedAt: at(row.CreatedAt), ChangedAt: at(row.UpdatedAt),
		EndedAt: at(row.CompletedAt.Int64), Worker: row.LeaseOwner.String,
	}
	if v.State == StatePending || v.State == StateProcessing {
		v.DueAt = at(row.NextAttemptAt.Int64)
	}
	return v
}
