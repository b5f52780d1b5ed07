// Package sqlitestore keeps the ledger of package toolruntime in one SQLite
// file, through github.com/mattn/go-sqlite3 (which needs cgo).
//
//	store, err := sqlitestore.Open(ctx, "tools.db", nil)
//	if err != nil { … }
//	defer store.Close()
//	rt, err := toolruntime.New(store, &toolruntime.Options{…}, refund)
//
// Every connection runs with a write-ahead log, synchronous=FULL and foreign
// keys, and refuses to open otherwise: what the store has acknowledged survives
// a crash of the process and of the machine, as far as the disk keeps its word.
// Transactions that wait at the same time share one commit.
//
// The schema is that of db/migrations/sqlite. The goose command runs the same
// files; [Open] makes them in a new file, and [Migrate] (or Options.Migrate)
// brings an older one up to date and adopts the database of another
// implementation (persistent-tool-runtime-v3).
package sqlitestore
