package ledger

import (
	"context"
	"math"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// The kinds of a list's cursors.
const (
	newestFirst byte = 'N'
	oldestFirst byte = 'O'
)

// A Listing says which operations are asked for, a page at a time.
type Listing struct {
	Oldest bool // the oldest first
	After  Cursor
	Limit  int
	// Wants tells which are asked for; nil means all.
	Wants func(*Listed) bool
	// Examined is how many operations a page looks at, and rows how many are read at once.
	Examined, Rows int
}

// A Listed operation, as a list shows it. Times are in Unix seconds, 0 for none.
type Listed struct {
	TenantID, StatusRef, Tool           string
	State                               State
	Reason                              toolresult.Code
	Attempts                            int64
	AcceptedAt, ChangedAt, EndedAt, Due int64
	Worker                              string
}

// List reads a page of operations, a few at a time, and returns where the next begins.
func (s *Ledger) List(ctx context.Context, o Listing) (page []Listed, next Cursor, err error) {
	kind, what, place := newestFirst, "a list with the newest first", int64(math.MaxInt64)
	if o.Oldest {
		kind, what, place = oldestFirst, "a list with the oldest first", math.MinInt64
	}
	if o.After != "" {
		after, err := o.After.numbers(kind, what, 1)
		if err != nil {
			return nil, "", err
		}
		place = after[0]
	}
	for examined := 0; examined < o.Examined && len(page) < o.Limit; {
		n := o.Rows
		if o.Wants == nil {
			n = min(n, o.Limit-len(page))
		}
		var rows []dbgen.ListOldestRow
		err := s.engine.Read(ctx, func(ctx context.Context, q engine.Querier) (err error) {
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
			return nil, "", err
		}
		next = ""
		for i, row := range rows {
			if len(page) == o.Limit {
				return page, cursorOf(kind, place), nil
			}
			place = row.OperationPK
			if v := listedOf(&row); o.Wants == nil || o.Wants(&v) {
				page = append(page, v)
			}
			if i == n-1 {
				next = cursorOf(kind, place)
			}
		}
		if examined += len(rows); len(rows) < n {
			return page, next, nil
		}
	}
	return page, next, nil
}

func listedOf(row *dbgen.ListOldestRow) Listed {
	v := Listed{
		TenantID: row.TenantID, StatusRef: row.StatusRef, Tool: row.ToolName, State: State(row.State), Reason: toolresult.Code(row.Reason),
		Attempts: row.AttemptCount.Int64, AcceptedAt: row.CreatedAt, ChangedAt: row.UpdatedAt,
		EndedAt: row.CompletedAt.Int64, Worker: row.LeaseOwner.String,
	}
	if v.State == Pending || v.State == Processing {
		v.Due = row.NextAttemptAt.Int64
	}
	return v
}
