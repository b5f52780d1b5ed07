// Package pgstore keeps the ledger of package toolruntime in a PostgreSQL
// database, for services that run on many hosts. It needs no cgo.
//
//	store, err := pgstore.Open(ctx, "postgres://service@db.internal/tools?sslmode=verify-full", nil)
//	if err != nil { … }
//	defer store.Close()
//	rt, err := toolruntime.New(store, &toolruntime.Options{…}, refund)
//
// Nothing else in a service differs from SQLite. The schema is that of
// db/migrations/postgres; [Open] never makes or changes it unasked. Run
// [Migrate], the command "toolruntime migrate --db postgres://…", or goose.
//
// A transaction that meets a serialization failure, a deadlock or a lost
// connection is repeated whole. A fresh write is two statements, with such
// transactions behind them; those of callers who wait at the same moment share a
// round trip and a commit. When a connection breaks between a COMMIT and its
// answer, the store asks the server what became of that transaction; only when this
// cannot be found out does it return toolruntime.ErrCommitUnknown.
package pgstore
