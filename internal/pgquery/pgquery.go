// Package pgquery is PostgreSQL's half of the seam between the databases: sqlc's
// [dbgen.Querier], which the store is written over, on PostgreSQL.
//
// What sqlc generates of the shared queries for the two databases differs in the marks
// of the parameters alone: "make generate-check" compares it. So one package of it is
// enough, where the marks are rewritten. What is PostgreSQL's own is generated in
// [postgres].
package pgquery

import (
	"context"
	"errors"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/dbgen/postgres"
)

// Queries is a [dbgen.Querier] on PostgreSQL.
type Queries struct {
	dbgen.Querier
	own *postgres.Queries
}

var _ dbgen.Querier = (*Queries)(nil)

// New makes a Querier on db. The error of every statement passes through classify, so
// that the store's transactions see the kinds of package engine. What only shows when
// rows are read (a connection that breaks between two of them, a value of another type
// than its column) does not: who runs a unit classifies what it returns.
func New(db dbgen.DBTX, classify func(error) error) *Queries {
	s := statements{db, classify}
	return &Queries{Querier: dbgen.New(s), own: postgres.New(s)}
}

// InsertOperation returns the key that the server has given, or sql.ErrNoRows: SQLite's
// asks its driver for it.
func (q *Queries) InsertOperation(ctx context.Context, arg dbgen.InsertOperationParams) (int64, error) {
	return q.own.InsertOperation(ctx, postgres.InsertOperationParams(arg))
}

// LockDueInLane skips what others are claiming. SQLite's has nobody beside it, and here
// would give one event to two.
func (q *Queries) LockDueInLane(ctx context.Context, arg dbgen.LockDueInLaneParams) ([]int64, error) {
	return q.own.LockDueInLane(ctx, postgres.LockDueInLaneParams(arg))
}

// LookupTexts is SQLite's alone; here there is LookupOnce.
func (q *Queries) LookupTexts(context.Context, dbgen.LookupTextsParams) (dbgen.LookupTextsRow, error) {
	return dbgen.LookupTextsRow{}, errors.ErrUnsupported
}
