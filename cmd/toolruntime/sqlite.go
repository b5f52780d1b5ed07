//go:build cgo

package main

import (
	"context"
	"errors"
	"os"

	"github.com/mattn/go-sqlite3"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

// What the commands need of SQLite, whose driver is C. A program that was built
// without has nosqlite.go instead.

func openFile(ctx context.Context, path string, a access) (*toolruntime.Store, error) {
	info, err := os.Stat(path)
	if a != mayMake && (errors.Is(err, os.ErrNotExist) || err == nil && info.Mode().IsRegular() && info.Size() == 0) {
		// What is wrong with the name itself, opening it says best.
		store, err := sqlitestore.Open(ctx, path, &sqlitestore.Options{ReadOnly: true})
		if err == nil {
			err = store.Close()
		}
		if errors.Is(err, toolruntime.ErrInvalidInput) {
			return nil, err
		}
		return nil, &toolresult.InputError{Field: "db", Rule: "names no ledger: there is no such file, or it is empty. `toolruntime migrate` makes one"}
	}
	return sqlitestore.Open(ctx, path, &sqlitestore.Options{ReadOnly: a == toLook})
}

func migrateFile(ctx context.Context, path string) (migration, error) {
	m, err := sqlitestore.Migrate(ctx, path, nil)
	return migration(m), err
}

func backupFile(ctx context.Context, from, to string, profiles []toolresult.Profile, progress func(done, total int64)) (*toolruntime.AuditReport, error) {
	return sqlitestore.Backup(ctx, from, to, &sqlitestore.BackupOptions{Profiles: profiles, Progress: progress})
}

func compactFile(ctx context.Context, path string) (compaction, error) {
	c, err := sqlitestore.Compact(ctx, path, nil)
	return compaction(c), err
}

func sqliteVersion() string {
	v, _, _ := sqlite3.Version()
	return v
}
