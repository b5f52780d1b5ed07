package pgstore

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/pgquery"
)

// Peek implements [engine.Engine]. Those who look up a call at the same moment
// share a round trip; nobody has a connection of his own.
func (e *pgEngine) Peek(ctx context.Context, unit engine.Unit) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	return e.persist(ctx, func() error {
		return ended(ctx, unit(ctx, &peek{Querier: e.querier(e.db), e: e}))
	})
}

// peek is a Querier whose Lookup goes with those of others.
type peek struct {
	engine.Querier
	e    *pgEngine
	last *lookup
}

type lookup struct {
	key   dbgen.LookupParams
	known pgquery.Known
}

// Lookup also finds out what LookupFree is asked next where there is no operation.
func (p *peek) Lookup(ctx context.Context, key dbgen.LookupParams) (dbgen.LookupRow, error) {
	l := &lookup{key: key}
	if err := p.e.lookups.do(ctx, l); err != nil {
		return dbgen.LookupRow{}, fromDriver(err)
	}
	if p.last = l; !l.known.Found {
		return dbgen.LookupRow{}, sql.ErrNoRows
	}
	return l.known.Row, nil
}

// LookupFree returns what the Lookup before it has found, if that was for the same
// call.
func (p *peek) LookupFree(ctx context.Context, key dbgen.LookupFreeParams) (dbgen.LookupFreeRow, error) {
	if l := p.last; l != nil && !l.known.Found && key == dbgen.LookupFreeParams(l.key) {
		return l.known.Free, nil
	}
	return p.Querier.LookupFree(ctx, key)
}

// sendLookups obeys ctx: when the leader has no time left, the others go apart.
func (e *pgEngine) sendLookups(ctx context.Context, conn *sql.Conn, batch []*lookup) error {
	var statements []pgquery.Statement
	if len(batch) == 1 {
		statements = append(statements, pgquery.LookupOnce(e.path, batch[0].key, &batch[0].known))
	} else {
		keys, known := make([]dbgen.LookupParams, len(batch)), make([]*pgquery.Known, len(batch))
		for i, l := range batch {
			keys[i], known[i] = l.key, &l.known
		}
		statements = append(statements, pgquery.SetLocal(pgquery.ByKey...), pgquery.LookupMany(e.path, keys, known))
	}
	err := native(conn, func(conn *pgx.Conn) error { return pgquery.Send(ctx, conn, statements...) })
	if useless(err) {
		drop(conn)
	}
	return err
}
