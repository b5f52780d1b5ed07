// Package db holds the ledger's schema and queries, written by hand. It embeds
// the migrations, which the goose CLI runs as well, and nothing else.
package db

import "embed"

// SQLite holds the migrations of the SQLite ledger, in migrations/sqlite.
//
//go:embed migrations/sqlite/*.sql
var SQLite embed.FS

// Postgres holds the migrations of the PostgreSQL ledger, in
// migrations/postgres.
//
//go:embed migrations/postgres/*.sql
var Postgres embed.FS

// AdoptV3 moves the rows of a persistent-tool-runtime-v3 database.
//
//go:embed adopt/v3.sql
var AdoptV3 string
