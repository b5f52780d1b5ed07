package toolruntime

import (
	"cmp"
	"context"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/ledger"
	"github.com/toolruntime/toolruntime-go/internal/limits"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

func checkState(field string, s ledger.State) error {
	switch s {
	case StatePending, StateProcessing, StateSucceeded, StateFailed, StateInReview:
		return nil
	}
	return &toolresult.InputError{Field: field, Rule: "must be pending, processing, succeeded, failed or in_review"}
}

// ListOptions of [Runtime.List]. What is left out is not asked for: the zero value lists
// everything, the newest first.
type ListOptions struct {
	State  ledger.State
	Tool   string
	Tenant string
	Since  time.Time     // accepted at this time or later
	Until  time.Time     // accepted before this time
	Oldest bool          // the oldest first
	Limit  int           // of operations on the page, at most 1,000; 0 means 100
	After  ledger.Cursor // goes on where a page has ended, in the same order
}

// An Operation as a list shows it. Like a [History] it names no tenant, subject, key,
// argument or result. Times that are not known are zero.
type Operation struct {
	StatusRef  string
	Tool       string
	State      ledger.State
	Reason     toolresult.Code // of in_review and failed
	Attempts   int64           // that have begun
	AcceptedAt time.Time
	ChangedAt  time.Time // when it last changed its state
	EndedAt    time.Time // of succeeded and failed
	Worker     string    // who carries it: of processing
	DueAt      time.Time // the next attempt of pending, and the end of the lease of processing
}

// A ListPage is a part of a list.
type ListPage struct {
	Operations []Operation
	Next       ledger.Cursor // "" at the end of the list
}

// How many operations a page looks at, and how many are read at once.
const examinedInPage, readAtOnce = 5000, 500

// List returns a page of the operations that are in the ledger; what was pruned is not
// there any more. They stand in the order of the keys that they were given, which is
// about that of their acceptance: on PostgreSQL a connection may have kept a key for a
// while.
//
// A page costs a bounded amount of work, in short reads: it looks at no more than 5,000
// operations, by their keys alone, because there is no index for what is asked. So it may
// hold fewer operations than Limit, or none, and yet not be the last: [ListPage.Next]
// says so, and the next page goes on behind what was looked at. Whoever looks for
// something rare reads the whole ledger, page after page. [Runtime.Review] and
// [Runtime.Stats] have what is open and in review without that.
//
// Nothing holds the ledger still between two pages: each operation is shown as it was
// when it was read. One that is there from the first page to the last is seen once.
func (rt *Runtime) List(ctx context.Context, opts *ListOptions) (*ListPage, error) {
	return rt.list(ctx, opts, examinedInPage, readAtOnce)
}

func (rt *Runtime) list(ctx context.Context, opts *ListOptions, examined, rows int) (*ListPage, error) {
	o := given(opts)
	o.Limit = or(o.Limit, 100)
	err := limits.List.Check("limit", o.Limit)
	if o.State != "" {
		err = cmp.Or(err, checkState("state", o.State))
	}
	for field, name := range map[string]string{"tool": o.Tool, "tenant": o.Tenant} {
		if name != "" {
			err = cmp.Or(err, limits.Identifier(field, name), rt.ledger.Holds(field, name))
		}
	}
	if !o.Since.IsZero() && !o.Until.IsZero() && !o.Since.Before(o.Until) {
		err = cmp.Or(err, error(&toolresult.InputError{Field: "until", Rule: "must be later than since"}))
	}
	if err != nil {
		return nil, err
	}
	l := ledger.Listing{Oldest: o.Oldest, After: o.After, Limit: o.Limit, Examined: examined, Rows: rows}
	if !o.all() {
		l.Wants = o.wants
	}
	found, next, err := rt.ledger.List(ctx, l)
	if err != nil {
		return nil, err
	}
	page := &ListPage{Operations: make([]Operation, len(found)), Next: next}
	for i, v := range found {
		page.Operations[i] = Operation{v.StatusRef, v.Tool, v.State, v.Reason, v.Attempts, contract.At(v.AcceptedAt),
			contract.At(v.ChangedAt), contract.At(v.EndedAt), v.Worker, contract.At(v.Due)}
	}
	return page, nil
}

// wants reports whether an operation is asked for.
func (o *ListOptions) wants(v *ledger.Listed) bool {
	accepted := contract.At(v.AcceptedAt)
	return (o.State == "" || o.State == v.State) && (o.Tool == "" || o.Tool == v.Tool) &&
		(o.Tenant == "" || o.Tenant == v.TenantID) &&
		(o.Since.IsZero() || !accepted.Before(o.Since)) && (o.Until.IsZero() || accepted.Before(o.Until))
}

// all reports whether every operation is asked for.
func (o *ListOptions) all() bool {
	return o.State == "" && o.Tool == "" && o.Tenant == "" && o.Since.IsZero() && o.Until.IsZero()
}
