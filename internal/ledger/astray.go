package ledger

import (
	"context"
	"database/sql"

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

// broughtBack lets an event that is astray wait from now on.
func (r *Operation) broughtBack(now int64) (*engine.Motion, error) {
	if err := r.intact(); err != nil {
		return nil, err
	}
	m := r.stay()
	m.Event.NextAttemptAt = now + r.wanted()
	if m.Event.LeaseUntil.Valid {
		m.Event.LeaseUntil = sql.NullInt64{Int64: m.Event.NextAttemptAt, Valid: true}
	}
	tables.Outbox.Seal(&m.Event)
	return m, nil
}

// maxAstray bounds how many events one transaction brings back.
const maxAstray = 64

// BringAllBack brings back what is astray, and returns how many events that were.
// It costs a look at what is open.
func (s *Ledger) BringAllBack(ctx context.Context, t Term) (n int, err error) {
	for more := true; more && err == nil; {
		var pks []int64
		err = s.engine.Read(ctx, func(ctx context.Context, q engine.Querier) (err error) {
			t = s.anew(t)
			pks, err = q.ListAstray(ctx, dbgen.ListAstrayParams{Now: t.Now, Page: maxAstray})
			return err
		})
		if err != nil || len(pks) == 0 {
			return n, err
		}
		back := 0
		err = s.engine.Write(ctx, func(ctx context.Context, q engine.Querier) error {
			back, t = 0, s.anew(t)
			rows, err := q.Claimed(ctx, pks)
			if err != nil {
				return err
			}
			var motions []*engine.Motion
			for _, row := range rows {
				r := &Operation{operation: row.Operation, event: row.Outbox}
				if !r.astray(t.Now) {
					continue
				}
				if m, err := r.broughtBack(t.Now); err == nil { // what is damaged is the audit's
					motions = append(motions, m)
				}
			}
			if err := q.Move(ctx, motions...); err != nil {
				return err
			}
			for _, m := range motions {
				if m.Answer == engine.Stored { // and not somebody else's
					back++
				}
			}
			return nil
		})
		n += back
		more = back > 0 && len(pks) == maxAstray
	}
	return n, err
}
