package engine

import (
	"context"
	"errors"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
)

// ErrRepeat: the transaction of the host's in which this has happened must be rolled
// back, and may be repeated as a whole.
var ErrRepeat = errors.New("roll the transaction back, and repeat the whole of it")

// A HostTx is a transaction that the host has begun and will end. Tx is known to the
// engine that joins it.
type HostTx struct{ Tx any }

// A Joiner is what an engine may be besides: it runs a unit in a transaction of the
// host's.
type Joiner interface {
	// Join runs unit in tx. Unlike a transaction of the engine's own, tx may see what
	// others commit meanwhile, and a row that was there may be gone in the next
	// statement: a unit has its reasons in its statements, or finds them there. It may
	// run more than once.
	//
	// Whatever becomes of unit, the host's session is as it was afterwards, and where it
	// fails nothing of it is left: the transaction can go on, unless the error matches
	// ErrRepeat. What a nil means becomes true when the host commits.
	Join(ctx context.Context, tx HostTx, unit Unit) error
}

// Guarded is a transaction that an engine gives to a UnitWith, where it can keep
// statements of the host's from what is the store's.
type Guarded interface{ Guard() dbgen.DBTX }
