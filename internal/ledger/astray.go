package ledger

import (
	"context"
	"database/sql"
	"errors"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/tables"
)

// When the ledger's clock is set back, what waits would wait for as much longer: the
// next attempt, and the end of a lease that nobody holds any more. An event that was
// written later than now tells how long it was to wait, and waits so long from now.

// wanted is for how long the event was to wait when it was written. A lease that was
// renewed since counts from its beginning.
func (r *Operation) wanted() int64 { return r.event.NextAttemptAt - r.event.UpdatedAt }

// astray reports whether the event waits for more than twice as long as it was to.
func (r *Operation) astray(now int64) bool {
	open := r.event.State == string(eventPending) || r.event.State == string(eventProcessing)
	return open && r.wanted() >= 0 && r.event.UpdatedAt-now > max(r.wanted(), 1)
}

// bringBack lets an event that is astray wait from now on.
func (r *Operation) bringBack(ctx context.Context, q dbgen.Querier, now int64) error {
	if err := r.intact(); err != nil {
		return err
	}
	e := r.event
	e.NextAttemptAt = now + r.wanted()
	if e.LeaseUntil.Valid {
		e.LeaseUntil = sql.NullInt64{Int64: e.NextAttemptAt, Valid: true}
	}
	tables.Outbox.Seal(&e)
	err := r.moveEvent(ctx, q, e)
	if err == nil {
		r.event = e
	}
	return err
}

// maxAstray bounds how many events one transaction brings back.
const maxAstray = 64

// BringAllBack brings back what is astray, and returns how many events that were.
// It costs a look at what is open.
func (s *Ledger) BringAllBack(ctx context.Context, t Term) (n int, err error) {
	for more := true; more && err == nil; {
		var pks []int64
		err = s.engine.Read(ctx, func(ctx context.Context, q dbgen.Querier) (err error) {
			t = s.anew(t)
			pks, err = q.ListAstray(ctx, dbgen.ListAstrayParams{Now: t.Now, Page: maxAstray})
			return err
		})
		if err != nil || len(pks) == 0 {
			return n, err
		}
		back := 0
		err = s.engine.Write(ctx, func(ctx context.Context, q dbgen.Querier) error {
			back, t = 0, s.anew(t)
			for _, pk := range pks {
				row, err := q.GetClaimed(ctx, pk)
				if there, err := found(err); err != nil {
					return err
				} else if !there {
					continue
				}
				r := &Operation{operation: row.Operation, event: row.Outbox}
				if !r.astray(t.Now) {
					continue
				}
				switch err := r.bringBack(ctx, q, t.Now); {
				case err == nil:
					back++
				case errors.Is(err, engine.ErrContract), errors.Is(err, ErrLeaseLost): // the audit's, or somebody else's
				default:
					return err
				}
			}
			return nil
		})
		n += back
		more = back > 0 && len(pks) == maxAstray
	}
	return n, err
}
