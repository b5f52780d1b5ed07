package toolruntime

import (
	"context"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/ledger"
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
// nil says that the transaction is committed and durable. [engine.ErrCommitUnknown] says that
// it may be: repeat all of it, from [Runtime.Prepare] on, which answers from the ledger
// where it was.
func (s *Store) Update(ctx context.Context, do func(ctx context.Context, tx UpdateTx) error) error {
	if do == nil {
		return &toolresult.InputError{Field: "update", Rule: "must be a function"}
	}
	if err := s.mayBegin(ctx); err != nil {
		return err
	}
	return s.ledger.Update(ctx, func(ctx context.Context, u *ledger.Update) error {
		return do(context.WithValue(ctx, updating{s}, true), u)
	})
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
