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
// The files stay in their places while a store is open, and no other code of the
// process opens them but through SQLite; see [Open]. The write-ahead log beside the
// ledger stays below 100 MB, unless a reader (an audit, a backup, another program)
// stays for longer than half of Options.BusyTimeout: leave it 200 MB of room, and
// look at toolruntime's Metrics.LogBytes or the lines of Options.Logger. [Compact]
// gives the room back that pruning has left; it and [Backup] need room of their own.
//
// The schema is that of db/migrations/sqlite. The goose command runs the same
// files; [Open] makes them in a new file, and [Migrate] (or Options.Migrate)
// brings an older one up to date and adopts the database of another
// implementation (persistent-tool-runtime-v3).
package sqlitestore
