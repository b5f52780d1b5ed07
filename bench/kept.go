package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// keeps has a scenario find out what its database holds in the end: rows and bytes,
// indexes included, for each row of the table that has one per operation.
func (b *bed) keeps(database, address, of string) {
	b.found = func(ctx context.Context) (extra map[string]float64, err error) {
		driver, dsn := "sqlite3", "file:"+address+"?_query_only=on&_busy_timeout=5000"
		if database == "postgres" {
			driver, dsn = "pgx", address
		}
		db, err := sql.Open(driver, dsn)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		return kept(ctx, db, database, of)
	}
}

// The tables of a database that are somebody's, and their bytes.
var (
	tablesOf = map[string]string{
		"sqlite":   `SELECT '"' || name || '"' FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'`,
		"postgres": `SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
	}
	bytesOf = map[string]string{
		"sqlite": `SELECT (p.page_count - f.freelist_count) * s.page_size FROM pragma_page_count p, pragma_freelist_count f, pragma_page_size s`,
		"postgres": `SELECT COALESCE(sum(pg_total_relation_size(format('%I.%I', schemaname, tablename)::regclass)), 0)::bigint
			FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
	}
)

func kept(ctx context.Context, db *sql.DB, database, of string) (map[string]float64, error) {
	names, err := texts(ctx, db, tablesOf[database])
	if err != nil {
		return nil, err
	}
	count := func(table string) (n float64, err error) {
		return n, db.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+table).Scan(&n)
	}
	operations, err := count(of)
	if err != nil || operations == 0 {
		return nil, err
	}
	var rows, bytes float64
	for _, name := range names {
		n, err := count(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		rows += n
	}
	if err := db.QueryRowContext(ctx, bytesOf[database]).Scan(&bytes); err != nil {
		return nil, err
	}
	return map[string]float64{rowsPerOperation: rows / operations, bytesPerOperation: bytes / operations}, nil
}

func texts(ctx context.Context, db *sql.DB, query string) (all []string, err error) {
	found, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	for found.Next() {
		var s string
		if err := found.Scan(&s); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, found.Err()
}
