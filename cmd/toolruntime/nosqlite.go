//go:build !cgo

package main

import (
	"context"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// A program that was built without cgo works on PostgreSQL alone.

var errNoSQLite = &toolresult.InputError{Field: "db", Rule: "is a file, and this program was built without SQLite: build it with CGO_ENABLED=1 and a C compiler, or name a PostgreSQL database"}

func openFile(context.Context, string, access) (*toolruntime.Store, error) { return nil, errNoSQLite }

func migrateFile(context.Context, string) (migration, error) { return migration{}, errNoSQLite }

func backupFile(context.Context, string, string, []toolresult.Profile, func(done, total int64)) (*toolruntime.AuditReport, error) {
	return nil, errNoSQLite
}

func compactFile(context.Context, string) (compaction, error) { return compaction{}, errNoSQLite }

func sqliteVersion() string { return "" }
