package main

import (
	"context"
	"os"
	"sync/atomic"
)

// diskSync appends 4 KiB and syncs: no database can commit more often than that.
var diskSync = scenario{"disk", "sync", "", 1, func(_ context.Context, b *bed) (load, error) {
	f, err := os.Create(b.file("sync"))
	if err != nil {
		return load{}, err
	}
	b.later(f.Close)
	page := make([]byte, 4096)
	return load{do: func(context.Context, int) error {
		if _, err := f.Write(page); err != nil {
			return err
		}
		return f.Sync()
	}}, nil
}}

// floorCommit is one commit of one small row under the ledger's settings.
var floorCommit = scenario{"floor", "commit", "sqlite", 1, func(ctx context.Context, b *bed) (load, error) {
	l := &ledger{address: b.file("commit.sqlite3")}
	conns, err := l.connect(ctx, b, 1, sqliteWriter)
	if err != nil {
		return load{}, err
	}
	c := <-conns
	if _, err := c.ExecContext(ctx, "CREATE TABLE t (i INTEGER PRIMARY KEY, v TEXT) STRICT"); err != nil {
		return load{}, err
	}
	var n atomic.Int64
	return load{do: func(context.Context, int) error {
		_, err := c.ExecContext(context.Background(), "INSERT INTO t VALUES (?, 'a value')", n.Add(1))
		return err
	}}, nil
}}
