package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
)

// A refundJob is the same refund for a peer: unique by its key.
type refundJob struct {
	Key       string `json:"key"`
	Arguments string `json:"arguments"`
}

func (refundJob) Kind() string { return "refund" }

const (
	refundArguments = `{"order_ref":"ORDER-7","reason":"duplicate"}`
	refundResult    = `{"draft_id":"DRAFT-211342250217029","order_ref":"ORDER-7","reason":"duplicate"}`
)

func job(n int64) refundJob { return refundJob{call(n).IdempotencyKey, refundArguments} }

// refundWorker records a result, as the ledger does.
type refundWorker struct {
	river.WorkerDefaults[refundJob]
}

func (*refundWorker) Work(ctx context.Context, _ *river.Job[refundJob]) error {
	return river.RecordOutput(ctx, map[string]string{"draft_id": "DRAFT-211342250217029", "order_ref": "ORDER-7", "reason": "duplicate"})
}

var unique = &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}}

// A riverQueue is a client of River on a fresh database.
type riverQueue[Tx any] struct {
	client *river.Client[Tx]

	mu    sync.Mutex
	ended map[int64]chan struct{} // by job
}

func newRiver[Tx any](ctx context.Context, driver riverdriver.Driver[Tx], workers int) (*riverQueue[Tx], error) {
	quiet := slog.New(slog.DiscardHandler)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	known := river.NewWorkers()
	river.AddWorker(known, &refundWorker{})
	// The fastest that it can be told to look for work; its defaults are slower.
	client, err := river.NewClient(driver, &river.Config{
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}},
		Workers: known, Logger: quiet, FetchCooldown: time.Millisecond, FetchPollInterval: 2 * time.Millisecond, MaxAttempts: 3,
	})
	return &riverQueue[Tx]{client: client, ended: map[int64]chan struct{}{}}, err
}

// start has the client work, and notes which jobs are completed.
func (q *riverQueue[Tx]) start(ctx context.Context, b *bed) error {
	events, cancel := q.client.SubscribeConfig(&river.SubscribeConfig{ChanSize: 20_000, Kinds: []river.EventKind{river.EventKindJobCompleted}})
	go func() {
		for e := range events {
			close(q.completion(e.Job.ID))
		}
	}()
	b.later(func() error { cancel(); return nil })
	if err := q.client.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	b.later(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		return q.client.Stop(ctx)
	})
	return nil
}

// completion is closed when a job is completed. Its event may come before who has
// inserted it asks.
func (q *riverQueue[Tx]) completion(id int64) chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	c, ok := q.ended[id]
	if !ok {
		c = make(chan struct{})
		q.ended[id] = c
	} else {
		delete(q.ended, id) // both sides have it
	}
	return c
}

func (q *riverQueue[Tx]) wait(ctx context.Context, id int64) error {
	select {
	case <-q.completion(id):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(30 * time.Second):
		return errors.New("no event of its completion")
	}
}

// fresh inserts a unique job, has it worked and hears that it is completed.
func (q *riverQueue[Tx]) fresh(ctx context.Context, b *bed) (load, error) {
	var n atomic.Int64
	return load{do: func(ctx context.Context, _ int) error {
		r, err := q.client.Insert(ctx, job(n.Add(1)), unique)
		if err != nil {
			return err
		}
		return q.wait(ctx, r.Job.ID)
	}}, q.start(ctx, b)
}

func (q *riverQueue[Tx]) submits() load {
	var n atomic.Int64
	return load{do: func(ctx context.Context, _ int) error {
		_, err := q.client.Insert(ctx, job(n.Add(1)), unique)
		return err
	}}
}

// replay inserts jobs that there are, which are then skipped.
func (q *riverQueue[Tx]) replay(ctx context.Context) (load, error) {
	if _, err := q.insert(ctx, 0, stored); err != nil {
		return load{}, err
	}
	var n atomic.Int64
	return load{do: func(ctx context.Context, _ int) error {
		r, err := q.client.Insert(ctx, job(n.Add(1)%stored+1), unique)
		if err == nil && !r.UniqueSkippedAsDuplicate {
			err = errors.New("the job was not there")
		}
		return err
	}}, nil
}

const riverBatch = 500

// insert inserts the jobs after first, so many at a time as its bulk interface is
// meant for.
func (q *riverQueue[Tx]) insert(ctx context.Context, first, n int64) (jobs []*rivertype.JobInsertResult, err error) {
	for i := int64(0); i < n; {
		var batch []river.InsertManyParams
		for range min(n-i, riverBatch) {
			i++
			batch = append(batch, river.InsertManyParams{Args: job(first + i), InsertOpts: unique})
		}
		inserted, err := q.client.InsertMany(ctx, batch)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, inserted...)
	}
	return jobs, nil
}

// accepts inserts jobs in bulk that nobody works.
func (q *riverQueue[Tx]) accepts(b *bed) load {
	next := int64(0)
	return load{batch: func(ctx context.Context) (int, time.Duration, error) {
		first := next
		next += bulkJobs
		took, err := b.watch.time(func() error {
			_, err := q.insert(ctx, first, bulkJobs)
			return err
		})
		return bulkJobs, took, err
	}}
}

// bulk inserts so many jobs and has all of them worked. Once only: the client does
// not stop at once, and would work the next ones while they are inserted.
func (q *riverQueue[Tx]) bulk(b *bed, operations int64, all bool) load {
	return load{once: true, batch: func(ctx context.Context) (int, time.Duration, error) {
		begin := time.Now()
		if all {
			b.watch.start()
		}
		jobs, err := q.insert(ctx, 0, operations)
		if err != nil {
			return 0, 0, err
		}
		if !all {
			begin = time.Now()
			b.watch.start()
		}
		defer b.watch.stop()
		if err := q.start(ctx, b); err != nil {
			return 0, 0, err
		}
		for _, j := range jobs {
			if err := q.wait(ctx, j.Job.ID); err != nil {
				return 0, 0, err
			}
		}
		return int(operations), time.Since(begin), nil
	}}
}

// riverScenarios are River's, on one kind of database. Its poller and its
// completer limit what few callers get from it, so that it is asked for many too.
func riverScenarios[Tx any](database string, workers int, open func(context.Context, *bed) (driver riverdriver.Driver[Tx], address string, err error)) []scenario {
	scene := func(name string, callers int, ready func(context.Context, *bed, *riverQueue[Tx]) (load, error)) scenario {
		return scenario{"river", name, database, callers, func(ctx context.Context, b *bed) (load, error) {
			driver, address, err := open(ctx, b)
			if err != nil {
				return load{}, err
			}
			b.keeps(database, address, "river_job")
			q, err := newRiver(ctx, driver, workers)
			if err != nil {
				return load{}, err
			}
			return ready(ctx, b, q)
		}}
	}
	var all []scenario
	for _, callers := range []int{1, 64, 1024} {
		all = append(all, scene("fresh", callers, func(ctx context.Context, b *bed, q *riverQueue[Tx]) (load, error) { return q.fresh(ctx, b) }))
	}
	for _, callers := range []int{1, 64} {
		all = append(all,
			scene("submit", callers, func(_ context.Context, _ *bed, q *riverQueue[Tx]) (load, error) { return q.submits(), nil }),
			scene("replay", callers, func(ctx context.Context, _ *bed, q *riverQueue[Tx]) (load, error) { return q.replay(ctx) }))
	}
	all = append(all, scene("accept", riverBatch, func(_ context.Context, b *bed, q *riverQueue[Tx]) (load, error) { return q.accepts(b), nil }))
	for _, name := range []string{"work", "bulk"} {
		all = append(all, scene(name, workers, func(_ context.Context, b *bed, q *riverQueue[Tx]) (load, error) {
			return q.bulk(b, bulkJobs, name == "bulk"), nil
		}))
	}
	return all
}

// riverSQLite goes through the ledger's driver, with which River does two to three
// times what it does with modernc.org/sqlite, the one that its documentation uses.
func riverSQLite() []scenario {
	return riverScenarios("sqlite", 1000, func(ctx context.Context, b *bed) (riverdriver.Driver[*sql.Tx], string, error) {
		address := b.file("river.sqlite3")
		db, err := sql.Open("sqlite3", "file:"+address+"?_txlock=immediate&"+sqliteWriter)
		if err != nil {
			return nil, "", err
		}
		b.later(db.Close)
		db.SetMaxOpenConns(1) // as its documentation says
		return riversqlite.New(db), address, nil
	})
}

func riverPostgres() []scenario {
	return riverScenarios("postgres", 1000, func(ctx context.Context, b *bed) (riverdriver.Driver[pgx.Tx], string, error) {
		address, err := b.database(ctx)
		if err != nil {
			return nil, "", err
		}
		pool, err := pgxpool.New(ctx, fmt.Sprintf("%s&pool_max_conns=%d", address, pgConns))
		if err != nil {
			return nil, "", err
		}
		b.later(func() error { pool.Close(); return nil })
		return riverpgxv5.New(pool), address, nil
	})
}
