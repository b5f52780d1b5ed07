// Package engine is the seam between the runtime's store and a database.
//
// The store writes its transactions once, over sqlc's Querier; an engine says
// how they are run on its database. Two databases, one store: what differs is
// here, and nothing above it knows which one it is.
package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
)

// SchemaVersion is what the ledger's runtime_metadata says of itself.
const SchemaVersion = "toolruntime-ledger-v1"

// A Unit is the body of a transaction. It may run more than once before its
// transaction commits, so it must only assign results, never add to them, and
// it must not keep the Querier.
type Unit func(ctx context.Context, q Querier) error

// A UnitWith is a Unit with the connection that its transaction is on.
type UnitWith func(ctx context.Context, q Querier, tx dbgen.DBTX) error

// An Engine runs units on a database. Its methods are safe for concurrent use.
type Engine interface {
	// Write runs unit in a transaction that sees one state of the database and
	// excludes every other that writes a row, or inserts a key, which it writes.
	// That is serializable as long as units keep to a rule: a unit writes the
	// rows by which it decides, or inserts under the key by which it decides.
	// One that counts rows of others, say, has to write a row that they write.
	//
	// It returns nil only when the transaction is committed and durable. When
	// unit fails, nothing of it is stored and its error comes back. An error that
	// matches ErrCommitUnknown means that the commit may have taken.
	//
	// ctx is obeyed until the unit's turn has come, and not after: a unit sees a
	// context that is never cancelled, so no transaction is left half done.
	Write(ctx context.Context, unit Unit) error

	// Reserve and Move are the verbs, each of its things in a transaction that is its own
	// or shared with others who come at the same moment. ctx is obeyed until its turn has
	// come. An error says that something has no answer, and nothing of that is stored; one
	// that matches ErrCommitUnknown says that it may be stored all the same.
	Reserve(ctx context.Context, all ...*Reservation) error
	Move(ctx context.Context, all ...*Motion) error

	// WriteWith is Write for a unit that runs statements of the host's too, on tx.
	// It shares its transaction with nobody.
	WriteWith(ctx context.Context, unit UnitWith) error

	// Read runs queries that need no common snapshot.
	Read(ctx context.Context, unit Unit) error

	// Peek is Read for one or two queries by key, on the way of every call. They may
	// hold up a transaction for as long as they take.
	Peek(ctx context.Context, unit Unit) error

	// Snapshot runs queries that all see one state of the database, and cannot
	// write. ctx interrupts them.
	Snapshot(ctx context.Context, view func(ctx context.Context, s Snapshot) error) error

	// LogBytes is how large the write-ahead log was at the last look, where it lies
	// beside the database and its size is ours to watch; 0 otherwise.
	LogBytes() int64

	// Limits says what the database cannot hold.
	Limits() Limits

	// Now is the ledger's clock, the same for all who work on the ledger: by it
	// leases run out, operations fall due and approvals expire. A unit that runs in
	// Write or WriteWith may read it again, as it is at that moment. It asks nobody.
	Now() time.Time

	// Skew is how far the host's clock was ahead of the ledger's when the two were
	// last held against each other; 0 where they are one.
	Skew() time.Duration

	// Close ends the engine after the units that are running.
	Close() error
}

// Limits are what a database cannot hold although the contract allows it. The zero
// value has none.
type Limits struct {
	NoZero   bool // texts with U+0000
	KeyBytes int  // how long the texts of a unique key may be together; 0: as long as they are
}

// A Snapshot is one state of the database.
type Snapshot struct {
	dbgen.Querier
	// Inspect asks the database about its own health and durability.
	Inspect func(ctx context.Context) (Health, error)
	// Schema says how the ledger's tables differ from those that this version makes,
	// and what was added to them. Tables of others beside them are nobody's concern.
	Schema func(ctx context.Context) ([]string, error)
	// Writers names the transactions that are writing receipts or endings at this moment,
	// whatever the snapshot shows: each is named from before it takes a key until its rows
	// are seen by every snapshot that is taken from then on. It is nil where rows are
	// committed in the order of their keys.
	Writers func(ctx context.Context) ([]string, error)
}

// Health is what a database says of itself, in the words of the audit.
type Health struct {
	SQLiteVersion     string // "" where the database is another
	PostgreSQLVersion string // "" where the database is another
	// JournalMode is SQLite's journal_mode, or "postgresql-wal".
	JournalMode string
	// Synchronous is 2 where a commit is flushed to the disk before it is
	// acknowledged, as SQLite counts it.
	Synchronous int64
	// Settings are the server's settings that durability rests on.
	Settings             map[string]string
	IntegrityCheck       []string
	ForeignKeyViolations []string
	Durable              bool // an acknowledged commit survives a power failure
}

// The kinds of database errors. Match them with errors.Is.
var (
	// ErrBusy: another process holds the database longer than the wait allows.
	ErrBusy = errors.New("database is busy")
	// ErrConstraint: the database refused a row.
	ErrConstraint = errors.New("constraint failed")
	// ErrFull: no space is left.
	ErrFull = errors.New("database or disk is full")
	// ErrReadOnly: the database cannot be written.
	ErrReadOnly = errors.New("database is read-only")
	// ErrCorrupt: the file is damaged, or it is no database.
	ErrCorrupt = errors.New("database is corrupt or not a database")
	// ErrCannotOpen: the database cannot be opened; trying again will not help.
	ErrCannotOpen = errors.New("database cannot be opened")
	// ErrDetached: the ledger's file, or one that belongs to it, was removed, moved
	// or replaced under the open store. Nothing is acknowledged any more; close the
	// store, see what is at the path, and open it again.
	ErrDetached = errors.New("the ledger's file, or its write-ahead log, is not in its place any more")
	// ErrUnavailable: the database server cannot be reached, or ended the
	// connection; it may be restarting.
	ErrUnavailable = errors.New("database server is not available")
	// ErrCommitUnknown: the commit failed and may have taken all the same.
	// Every transaction of the store may be repeated with equal arguments.
	ErrCommitUnknown = errors.New("outcome of the commit is unknown")
	// ErrContract: stored state breaks its contract.
	ErrContract = errors.New("stored state breaks its contract")
	// ErrSchema: the database is of another version, or is no ledger.
	ErrSchema = errors.New("the database is not a ledger of this version")
	// ErrMistyped: a stored value is of another type than its column should have.
	// It matches ErrContract.
	ErrMistyped = fmt.Errorf("%w: a value has another type than its column", ErrContract)
	// ErrDatabase matches every error that came from a database.
	ErrDatabase = errors.New("database error")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("store is closed")
)

// InDoubt is the error of a transaction of which an earlier try may have committed:
// where the database has failed the last one as well, or the caller waits no
// longer, the outcome still is unknown.
func InDoubt(err error) error {
	cut := errors.Is(err, ErrDatabase) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if !cut || errors.Is(err, ErrCommitUnknown) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrCommitUnknown, err)
}

// An Error is a database's error with its kind. Its text names the kind and the
// code and never the driver's message, which can hold paths and stored values;
// the cause is there for errors.As.
type Error struct {
	Kind  error // one of the sentinels, or ErrDatabase
	Code  string
	Cause error
}

func (e *Error) Error() string {
	if e.Code == "" {
		return e.Kind.Error()
	}
	return fmt.Sprintf("%v (%s)", e.Kind, e.Code)
}

// Is matches the kind, and ErrDatabase for every kind.
func (e *Error) Is(target error) bool { return target == e.Kind || target == ErrDatabase }

// Unwrap returns the driver's error.
func (e *Error) Unwrap() error { return e.Cause }

// Quotes reports whether an error is package database/sql's of a value that does not
// fit its destination, or wraps one: its text has the value in it. That package has
// no type for it, so a test holds its words.
func Quotes(err error) bool {
	for err != nil {
		if strings.HasPrefix(err.Error(), "sql: Scan error on column index ") {
			return true
		}
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			return slices.ContainsFunc(joined.Unwrap(), Quotes)
		}
		err = errors.Unwrap(err)
	}
	return false
}

// A SchemaError says that a database's schema is not the one that this version
// of the library works on. Nothing in the database was changed.
type SchemaError struct {
	Found string // what the database is
	Hint  string // what to do
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("the database is %s, and this version needs %s: %s", e.Found, SchemaVersion, e.Hint)
}

// Is matches ErrSchema, and ErrContract, as the contract's tests want it.
func (e *SchemaError) Is(target error) bool { return target == ErrSchema || target == ErrContract }
