package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"maragu.dev/goqite"
	"maragu.dev/goqite/jobs"
)

// goqiteModule is where the module's schema is, which its users copy.
const goqiteModule = "maragu.dev/goqite"

func goqiteSchema(ctx context.Context) (string, error) {
	folder, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", goqiteModule).Output()
	if err != nil {
		return "", fmt.Errorf("find the schema of goqite: %w", err)
	}
	schema, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "schema_sqlite.sql"))
	return string(schema), err
}

// newGoqite makes a queue with the settings of the ledger.
func newGoqite(ctx context.Context, b *bed) (*sql.DB, *goqite.Queue, error) {
	schema, err := goqiteSchema(ctx)
	if err != nil {
		return nil, nil, err
	}
	db, err := sql.Open("sqlite3", "file:"+b.file("goqite.sqlite3")+"?"+sqliteWriter)
	if err != nil {
		return nil, nil, err
	}
	b.later(db.Close)
	db.SetMaxOpenConns(1) // more of them fail each other with SQLITE_BUSY
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, nil, err
	}
	return db, goqite.New(goqite.NewOpts{DB: db, Name: "refunds", Timeout: 30 * time.Second}), nil
}

func goqiteScenarios() []scenario {
	var all []scenario
	for _, callers := range []int{1, 64} {
		all = append(all,
			scenario{"goqite", "fresh", "sqlite", callers, goqiteFresh},
			scenario{"goqite", "submit", "sqlite", callers, goqiteSubmit})
	}
	return append(all, scenario{"goqite", "bulk", "sqlite", submitters, goqiteBulk})
}

// goqiteFresh sends a message, receives one and deletes it: no result remains.
func goqiteFresh(ctx context.Context, b *bed) (load, error) {
	_, q, err := newGoqite(ctx, b)
	return load{do: func(ctx context.Context, _ int) error {
		if err := q.Send(ctx, goqite.Message{Body: []byte(refundArguments)}); err != nil {
			return err
		}
		m, err := q.Receive(ctx)
		if err != nil {
			return err
		}
		if m == nil {
			return errors.New("there was no message")
		}
		return q.Delete(ctx, m.ID)
	}}, err
}

func goqiteSubmit(ctx context.Context, b *bed) (load, error) {
	_, q, err := newGoqite(ctx, b)
	return load{do: func(ctx context.Context, _ int) error {
		return q.Send(ctx, goqite.Message{Body: []byte(refundArguments)})
	}}, err
}

// goqiteBulk creates jobs while a runner works, until none is left.
func goqiteBulk(ctx context.Context, b *bed) (load, error) {
	db, q, err := newGoqite(ctx, b)
	return load{batch: func(ctx context.Context) (int, time.Duration, error) {
		var ran atomic.Int64
		runner := jobs.NewRunner(jobs.NewRunnerOpts{Limit: submitters, PollInterval: time.Millisecond, Queue: q})
		runner.Register("refund", func(context.Context, []byte) error { ran.Add(1); return nil })
		work, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		begin := time.Now()
		go func() {
			defer close(done)
			runner.Start(work)
		}()
		defer func() { stop(); <-done }()
		if err := together(submitters, bulkOperations, func(int64) error {
			_, err := jobs.Create(ctx, q, "refund", goqite.Message{Body: []byte(refundArguments)})
			return err
		}); err != nil {
			return 0, 0, err
		}
		for left := 1; left > 0; {
			if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM goqite").Scan(&left); err != nil {
				return 0, 0, err
			}
			time.Sleep(2 * time.Millisecond)
		}
		return int(ran.Load()), time.Since(begin), nil
	}}, err
}
