package toolruntime

import (
	"errors"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/ledger"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// An error of the runtime is one of three things; match it with [errors.Is].
//
//   - [ErrInvalidInput]: the host misused the API, or its resolver answered with
//     what it may not. Nothing was stored by what has failed.
//   - [ErrContract]: stored state breaks its contract, so it was not used.
//   - [ErrDatabase]: the database failed; the other sentinels say how.
//
// What a model sends is none of these: it ends in a package.
//
// Errors of the host's own callbacks come back wrapped, and those of a context
// as they are. No error of a call means that the effect did not happen.
var (
	ErrInvalidInput = toolresult.ErrInvalidInput
	ErrContract     = engine.ErrContract
	ErrDatabase     = engine.ErrDatabase
)

// ErrSchema says that a database was not opened because it is not a ledger of this
// version: an older or newer one, somebody else's database, or a copy that was not
// finished. The error's text says which, and what to do. Nothing was changed, and
// nothing is wrong with what is stored: ask for it before [ErrContract], which every
// such error matches as well.
var ErrSchema = engine.ErrSchema

// The kinds of database errors; each matches [ErrDatabase] as well.
var (
	ErrBusy       = engine.ErrBusy
	ErrConstraint = engine.ErrConstraint
	ErrFull       = engine.ErrFull
	ErrReadOnly   = engine.ErrReadOnly
	ErrCorrupt    = engine.ErrCorrupt
	ErrCannotOpen = engine.ErrCannotOpen
	// ErrDetached: the ledger's file, its -wal or its -shm was removed, moved or
	// replaced under the open store. The store acknowledges nothing any more: see what
	// is at the path, close the store and open it again. One that is only gone may come
	// back, and matches [ErrUnavailable] as well. Or a -wal lies there alone, and
	// nothing is opened until the ledger's file is back.
	ErrDetached = engine.ErrDetached
	// ErrUnavailable: the server cannot be reached, and may be restarting; or the
	// ledger's file is gone.
	ErrUnavailable = engine.ErrUnavailable
)

// ErrCommitUnknown says that a commit failed and may have taken all the same.
// The call may be repeated: it finds out, and never has a second effect. A
// dispatch whose reservation had taken is then answered with OUTCOME_UNKNOWN.
var ErrCommitUnknown = engine.ErrCommitUnknown

// ErrNotRecorded says that what an attempt has come to is not in the ledger yet: its
// effect may have happened, and whoever asks the ledger is not told so. It comes with
// the database's error when the caller waits no longer: a dispatch or a processing
// when its context or the lease ends, a worker when it shuts down. The store goes on
// trying for an hour, or until it is closed, and then once more. A receipt that comes
// after somebody else has claimed the operation is kept beside it ([Runtime.History]).
var ErrNotRecorded = errors.New("what the attempt has come to is not recorded yet")

// ErrClosed says that the store was closed.
var ErrClosed = engine.ErrClosed

// ErrLeaseLost says that a write came under a claim that no longer holds: the
// lease ran out and somebody else has claimed the operation, or it has ended.
// The write changed nothing.
var ErrLeaseLost = ledger.ErrLeaseLost

// A ContractError says which stored evidence of which operation breaks its contract. It
// names no tenant, subject, key or value. Its fields are StatusRef, the operation, or ""
// where the fault is not one operation's; and Rule, what does not hold. Every one
// matches [ErrContract].
type ContractError = ledger.ContractError
