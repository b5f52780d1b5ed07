package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// Update runs do in a writing transaction, which the host's statements share. It may run
// more than once.
func (s *Ledger) Update(ctx context.Context, do func(ctx context.Context, u *Update) error) error {
	var last *Update
	err := s.engine.WriteWith(ctx, func(ctx context.Context, q engine.Querier, tx dbgen.DBTX) error {
		u := &Update{store: s, querier: q, own: tx, Lent: lend(tx)}
		last = u
		defer u.end()
		return do(ctx, u)
	})
	if last != nil && (err == nil || errors.Is(err, engine.ErrCommitUnknown)) {
		for _, committed := range last.reserved {
			committed()
		}
	}
	return err
}

// An Update is a transaction of the host's that is the store's.
type Update struct {
	store   *Ledger
	querier engine.Querier
	own     dbgen.DBTX
	*Lent

	reserved []func() // who is told of the commit
}

// HostTx is the transaction as one in which operations are reserved.
func (u *Update) HostTx() engine.HostTx { return engine.HostTx{Tx: u} }

// join runs unit in the transaction; where it fails nothing of it is left.
func (u *Update) join(ctx context.Context, unit engine.Unit) (err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		return &toolresult.InputError{Field: "tx", Rule: "must not have ended: begin another, and submit in that"}
	}
	ctx = context.WithoutCancel(ctx)
	if _, err := u.own.ExecContext(ctx, "SAVEPOINT toolruntime"); err != nil {
		return err
	}
	if err = unit(ctx, u.querier); err != nil {
		_, undone := u.own.ExecContext(ctx, "ROLLBACK TO SAVEPOINT toolruntime")
		err = errors.Join(err, undone)
	}
	_, released := u.own.ExecContext(ctx, "RELEASE SAVEPOINT toolruntime")
	return errors.Join(err, released)
}

// join runs unit in a transaction of the host's. An update tells committed when it has
// ended.
func (s *Ledger) join(ctx context.Context, h engine.HostTx, committed func(), unit engine.Unit) error {
	if u, ok := h.Tx.(*Update); ok {
		if u.store != s {
			return &toolresult.InputError{Field: "tx", Rule: "must be an Update of the store that the runtime was made of"}
		}
		err := u.join(ctx, unit)
		if err == nil {
			u.reserved = append(u.reserved, committed)
		}
		return err
	}
	j, ok := s.engine.(engine.Joiner)
	if !ok {
		return &toolresult.InputError{Field: "tx", Rule: "must be of the ledger's database: on SQLite that is the transaction of Store.Update"}
	}
	return j.Join(ctx, h, unit)
}

// errLate says that the time of a reservation's rows has passed.
var errLate = errors.New("the time of the rows has passed")

// ReserveWith is Reserve for a new operation in a transaction of the host's, of whose end
// committed is told where the store learns of it. Where the scope is taken the record is
// nil, and seen says by what.
func (s *Ledger) ReserveWith(ctx context.Context, tx engine.HostTx, committed func(), v Reservation) (r *Operation, seen Known, err error) {
	if err := s.mayReserve(v); err != nil {
		return nil, seen, err
	}
	for again := 0; ; again++ {
		err = s.join(ctx, tx, committed, func(ctx context.Context, q engine.Querier) (err error) {
			r, seen, err = s.reserveIn(ctx, q, v)
			return err
		})
		if !errors.Is(err, errLate) || again == maxLate {
			return r, seen, err
		}
		if v, err = s.later(v); err != nil {
			return nil, seen, err
		}
	}
}

// reserveIn is the body of ReserveWith.
func (s *Ledger) reserveIn(ctx context.Context, q engine.Querier, v Reservation) (r *Operation, seen Known, err error) {
	made := s.reservation(v)
	if err := q.Reserve(ctx, made); err != nil && engine.Whole(err) != nil {
		return nil, seen, err
	}
	switch made.Answer {
	case engine.Late:
		return nil, seen, errLate
	case engine.Taken:
		if err := bindCall(ctx, q, &made.Binding); err != nil { // whatever the answer to the call is
			return nil, seen, err
		}
		seen, _, err = look(ctx, q, lookupOf(v.Bound))
		if err == nil && seen.Current == nil && !seen.Pruned {
			err = fmt.Errorf("%w: %w", engine.ErrRepeat, ErrScopeChanged) // who has taken it is not seen
		}
		return nil, seen, err
	}
	r, err = s.reserved(ctx, v, made)
	return r, seen, err
}
