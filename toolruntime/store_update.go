package toolruntime

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A HostTx is a transaction in which the host writes rows of its own, and in which a
// [Submission] is stored: that of [Store.Update], or what pgstore.SQLTx and
// pgstore.PgxTx make of a transaction that the host has begun itself. Nobody else can
// make one.
type HostTx interface {
	// HostTx is for the packages of this module.
	HostTx() engine.HostTx
}

// An UpdateTx is the transaction of a [Store.Update]. Its statements are for tables of
// the host's. It ends with the function that it was given to, and fails from then on,
// with [sql.ErrTxDone] where it can say so.
type UpdateTx interface {
	Tx
	HostTx
}

// Update runs do in one writing transaction of the store, which it commits when do
// returns nil and rolls back when that fails, panics or ends its goroutine. In it the
// host writes tables of its own that are in the ledger's database, and may store a
// [Submission] in the same transaction.
//
// The context that do gets does not end: nothing is left half done. do may run more
// than once (PostgreSQL repeats what has lost a race), so it only assigns results. On
// SQLite every other writer of the ledger waits for it; it must not call anything that
// writes through the same store, which is refused where it is seen by its context. It
// must not write the ledger's tables, end the transaction or change settings; SQLite
// refuses that with [ErrInvalidInput].
//
// nil says that the transaction is committed and durable. [ErrCommitUnknown] says that
// it may be: repeat all of it, from [Runtime.Prepare] on, which answers from the ledger
// where it was.
func (s *Store) Update(ctx context.Context, do func(ctx context.Context, tx UpdateTx) error) error {
	if do == nil {
		return &toolresult.InputError{Field: "update", Rule: "must be a function"}
	}
	if err := s.mayBegin(ctx); err != nil {
		return err
	}
	var last *update
	err := s.engine.WriteWith(ctx, func(ctx context.Context, q dbgen.Querier, tx dbgen.DBTX) error {
		u := &update{store: s, querier: q, own: tx, lentTx: lend(tx)}
		last = u
		defer u.end()
		return do(context.WithValue(ctx, updating{s}, true), u)
	})
	if last != nil && (err == nil || errors.Is(err, ErrCommitUnknown)) {
		last.committed()
	}
	return err
}

// updating is the key under which a context says that it is in an Update of a store.
type updating struct{ store *Store }

// mayBegin refuses a transaction of its own inside an Update: on SQLite it would wait
// for the one that waits for it.
func (s *Store) mayBegin(ctx context.Context) error {
	if ctx.Value(updating{s}) != nil {
		return &toolresult.InputError{Field: "context", Rule: "must not be that of an Update of the same store: " +
			"it holds the ledger; call Prepare before the Update, and SubmitTx in it"}
	}
	return nil
}

// An update is the transaction of an Update.
type update struct {
	store   *Store
	querier dbgen.Querier
	own     dbgen.DBTX
	*lentTx

	submitted []*Runtime
}

func (u *update) HostTx() engine.HostTx { return engine.HostTx{Tx: u} }

// committed wakes workers for what was submitted.
func (u *update) committed() {
	for _, rt := range u.submitted {
		rt.signal()
	}
}

// join runs unit in the transaction; where it fails nothing of it is left.
func (u *update) join(ctx context.Context, unit engine.Unit) (err error) {
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

// join runs unit in a transaction of the host's, for a submission of rt.
func (s *Store) join(ctx context.Context, tx HostTx, rt *Runtime, unit engine.Unit) error {
	if tx == nil {
		return &toolresult.InputError{Field: "tx", Rule: "must be the transaction of Store.Update, or of pgstore.SQLTx or PgxTx"}
	}
	h := tx.HostTx()
	if u, ok := h.Tx.(*update); ok {
		if u.store != s {
			return &toolresult.InputError{Field: "tx", Rule: "must be an Update of the store that the runtime was made of"}
		}
		err := u.join(ctx, unit)
		if err == nil {
			u.submitted = append(u.submitted, rt)
		}
		return err
	}
	j, ok := s.engine.(engine.Joiner)
	if !ok {
		return &toolresult.InputError{Field: "tx", Rule: "must be of the ledger's database: on SQLite that is the transaction of Store.Update"}
	}
	return j.Join(ctx, h, unit)
}

// reserveWith is reserve for a new operation in a transaction of the host's. Where the
// scope is taken the record is nil, and seen says by what.
func (s *Store) reserveWith(ctx context.Context, tx HostTx, rt *Runtime, v reservation) (r *record, seen lookup, err error) {
	o, binding := newOperation(v), bindingOf(v)
	if err := s.holdsCall(v, &o); err != nil {
		return nil, seen, err
	}
	err = s.join(ctx, tx, rt, func(ctx context.Context, q dbgen.Querier) (err error) {
		r, seen = nil, lookup{}
		made, err := s.reserveIn(ctx, q, v, o, binding)
		if !errors.Is(err, errScopeChanged) {
			r = made
			return err
		}
		seen, _, err = look(ctx, q, lookupOf(v.bound))
		if err == nil && seen.current == nil && !seen.pruned {
			err = fmt.Errorf("%w: %w", ErrRepeat, errScopeChanged) // who has taken it is not seen
		}
		return err
	})
	return r, seen, err
}
