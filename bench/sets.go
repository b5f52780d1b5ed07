package main

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// The floor in sets: the rows that the ledger keeps of each operation, and the moves
// of a worker, for many operations in a statement. It is what bulk and workers can
// come near to on PostgreSQL. SQLite runs in the process, where a statement costs no
// round trip.

// setWriters is how many connections write sets at once.
const setWriters = 4

// A tableSet inserts rows of a table, each column as an array.
type tableSet struct {
	query string
	types []string // of the columns, "" for one that the database numbers
}

// tableSet describes a table whose columns are the fields of a generated row. Its
// statement ends in tail.
func (c bare) tableSet(ctx context.Context, table, tail string) (s tableSet, err error) {
	found, err := c.QueryContext(ctx, `SELECT attname, format_type(atttypid, NULL), attidentity <> '' FROM pg_attribute
		WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum`, table)
	if err != nil {
		return s, err
	}
	defer found.Close()
	var names, arrays []string
	for found.Next() {
		var name, kind string
		var numbered bool
		if err := found.Scan(&name, &kind, &numbered); err != nil {
			return s, err
		}
		if numbered {
			s.types = append(s.types, "")
			continue
		}
		s.types, names = append(s.types, kind), append(names, name)
		arrays = append(arrays, fmt.Sprintf("$%d::%s[]", len(names), kind))
	}
	columns := strings.Join(names, ", ")
	s.query = "INSERT INTO " + table + " (" + columns + ") SELECT " + columns + " FROM unnest(" + strings.Join(arrays, ", ") + ") AS s(" + columns + ")" + tail
	return s, found.Err()
}

// arrays turns rows, which are structs of the same type, into a value per column.
func (s tableSet) arrays(n int, row func(int) any) ([]any, error) {
	var all []any
	for i, kind := range s.types {
		var array any
		switch kind {
		case "":
			continue
		case "text":
			array = make([]sql.NullString, n)
		case "bigint":
			array = make([]sql.NullInt64, n)
		case "bytea":
			array = make([][]byte, n)
		default:
			return nil, fmt.Errorf("a column of type %s", kind)
		}
		for j := range n {
			switch v := reflect.ValueOf(row(j)).Field(i).Interface().(type) {
			case string:
				array.([]sql.NullString)[j] = sql.NullString{String: v, Valid: true}
			case sql.NullString:
				array.([]sql.NullString)[j] = v
			case int64:
				array.([]sql.NullInt64)[j] = sql.NullInt64{Int64: v, Valid: true}
			case sql.NullInt64:
				array.([]sql.NullInt64)[j] = v
			case []byte:
				array.([][]byte)[j] = v
			default:
				return nil, fmt.Errorf("a field of type %T", v)
			}
		}
		all = append(all, array)
	}
	return all, nil
}

// A setWriter is the floor in sets on one ledger.
type setWriter struct {
	*floorWriter
	size                                                   int
	conns                                                  chan bare
	bindings, operations, events, downstream, local, tries tableSet
}

func newSetWriter(ctx context.Context, b *bed, size int) (*setWriter, error) {
	l, err := newLedger(ctx, b, "postgres")
	if err != nil {
		return nil, err
	}
	w := &setWriter{size: size}
	if w.floorWriter, err = newFloorWriter(l, 0); err != nil {
		return nil, err
	}
	// What a worker is to carry out is open.
	r := &w.sample
	r.operation.State = "pending"
	r.event.State, r.event.AttemptCount, r.event.NextAttemptAt = "pending", 0, 0
	r.event.LeaseOwner, r.event.LeaseUntil = sql.NullString{}, sql.NullInt64{}
	r.seal()
	if w.conns, err = l.connect(ctx, b, setWriters, ""); err != nil {
		return nil, err
	}
	for range setWriters { // repeatable reads of the outbox would fail each other
		c := <-w.conns
		c.begin = "BEGIN ISOLATION LEVEL READ COMMITTED"
		w.conns <- c
	}
	c := <-w.conns
	defer func() { w.conns <- c }()
	const free = " ON CONFLICT DO NOTHING" // as the ledger's own statements
	for _, t := range []struct {
		set         *tableSet
		table, tail string
	}{
		{&w.bindings, "call_bindings", free}, {&w.operations, "operations", free + " RETURNING operation_pk"}, {&w.events, "outbox", ""},
		{&w.downstream, "downstream_receipts", free}, {&w.local, "local_receipts", free}, {&w.tries, "attempts", free},
	} {
		if *t.set, err = c.tableSet(ctx, t.table, t.tail); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (c bare) insertSet(ctx context.Context, s tableSet, n int, row func(int) any) error {
	arrays, err := s.arrays(n, row)
	if err != nil {
		return err
	}
	_, err = c.ExecContext(ctx, s.query, arrays...)
	return err
}

// accept stores a set of new operations in one transaction.
func (w *setWriter) accept(ctx context.Context) error {
	calls := make([]*rows, w.size)
	for i := range calls {
		calls[i] = w.call()
	}
	c := <-w.conns
	defer func() { w.conns <- c }()
	return c.transact(ctx, func() error {
		if err := c.insertSet(ctx, w.bindings, w.size, func(i int) any { return calls[i].binding }); err != nil {
			return err
		}
		arrays, err := w.operations.arrays(w.size, func(i int) any { return calls[i].operation })
		if err != nil {
			return err
		}
		keys, err := c.QueryContext(ctx, w.operations.query, arrays...)
		if err != nil {
			return err
		}
		defer keys.Close()
		for i := 0; keys.Next(); i++ {
			if err := keys.Scan(&calls[i].event.OperationPK); err != nil {
				return err
			}
		}
		if err := keys.Err(); err != nil {
			return err
		}
		return c.insertSet(ctx, w.events, w.size, func(i int) any { return calls[i].event })
	})
}

const (
	claimSet = `WITH due AS (
			SELECT operation_pk FROM outbox WHERE state IN ('pending', 'processing') AND lane = $1 AND next_attempt_at <= $2
			ORDER BY next_attempt_at, operation_pk LIMIT $3 FOR UPDATE SKIP LOCKED
		), claimed AS (
			UPDATE outbox SET state = 'processing', lease_owner = $4, lease_until = $5, next_attempt_at = $5,
				attempt_count = attempt_count + 1, updated_at = $2, row_digest = $6
			FROM due WHERE outbox.operation_pk = due.operation_pk RETURNING outbox.operation_pk
		)
		UPDATE operations SET state = 'processing', updated_at = $2, row_digest = $7
		FROM claimed WHERE operations.operation_pk = claimed.operation_pk
		RETURNING operations.operation_pk, operations.idempotency_key, operations.arguments_json`
	deliverSet = `UPDATE outbox SET state = 'delivered', lease_owner = NULL, lease_until = NULL, next_attempt_at = 0, updated_at = $1,
			row_digest = s.digest
		FROM unnest($2::bigint[], $3::bytea[]) AS s(pk, digest) WHERE operation_pk = s.pk`
	succeedSet = `UPDATE operations SET state = 'succeeded', updated_at = $1, completed_at = $1, row_digest = s.digest
		FROM unnest($2::bigint[], $3::bytea[]) AS s(pk, digest) WHERE operation_pk = s.pk`
)

// claim takes a set of what is due.
func (w *setWriter) claim(ctx context.Context, c bare) (claimed []*rows, err error) {
	now := time.Now().Unix()
	err = c.transact(ctx, func() error {
		found, err := c.QueryContext(ctx, claimSet, w.sample.event.Lane, now, w.size, worker, now+30, w.sample.event.RowDigest, w.sample.operation.RowDigest)
		if err != nil {
			return err
		}
		defer found.Close()
		for found.Next() {
			r := w.call()
			o := &r.operation
			if err := found.Scan(&o.OperationPK, &o.IdempotencyKey, &o.ArgumentsJSON); err != nil {
				return err
			}
			r.downstream.IdempotencyKey = o.IdempotencyKey
			r.local.OperationPK, r.attempt.OperationPK = o.OperationPK, o.OperationPK
			claimed = append(claimed, r)
		}
		return found.Err()
	})
	return claimed, err
}

// settle stores how a set has ended.
func (w *setWriter) settle(ctx context.Context, c bare, claimed []*rows) error {
	n, now := len(claimed), time.Now().Unix()
	keys, events, operations := make([]int64, n), make([][]byte, n), make([][]byte, n)
	for i, r := range claimed {
		keys[i], events[i], operations[i] = r.operation.OperationPK, r.event.RowDigest, r.operation.RowDigest
	}
	return c.transact(ctx, func() error {
		for _, insert := range []struct {
			set tableSet
			row func(int) any
		}{
			{w.downstream, func(i int) any { return claimed[i].downstream }},
			{w.local, func(i int) any { return claimed[i].local }},
			{w.tries, func(i int) any { return claimed[i].attempt }},
		} {
			if err := c.insertSet(ctx, insert.set, n, insert.row); err != nil {
				return err
			}
		}
		if _, err := c.ExecContext(ctx, deliverSet, now, keys, events); err != nil {
			return err
		}
		_, err := c.ExecContext(ctx, succeedSet, now, keys, operations)
		return err
	})
}

// fill accepts so many operations, in whole sets, and gives how many that were.
func (w *setWriter) fill(ctx context.Context, operations int) (int, error) {
	sets := (operations + w.size - 1) / w.size
	return sets * w.size, together(setWriters, sets, func(int64) error { return w.accept(ctx) })
}

// drain claims and settles until nothing is due.
func (w *setWriter) drain(ctx context.Context) (int, error) {
	done := make([]int, setWriters)
	err := together(setWriters, setWriters, func(i int64) error {
		c := <-w.conns
		defer func() { w.conns <- c }()
		for {
			claimed, err := w.claim(ctx, c)
			if err != nil || len(claimed) == 0 {
				return err
			}
			if err := w.settle(ctx, c, claimed); err != nil {
				return err
			}
			done[i-1] += len(claimed)
		}
	})
	n := 0
	for _, d := range done {
		n += d
	}
	return n, err
}

// setScenarios are named after what they do as the runtime's are. Their callers are
// the rows of a set.
func setScenarios() []scenario {
	var all []scenario
	for _, size := range []int{64, 500} {
		scene := func(name string, ready func(*setWriter, *bed) load) {
			all = append(all, scenario{"floor", name, "postgres", size, func(ctx context.Context, b *bed) (load, error) {
				w, err := newSetWriter(ctx, b, size)
				if err != nil {
					return load{}, err
				}
				return ready(w, b), nil
			}})
		}
		scene("accept", func(w *setWriter, b *bed) load {
			return load{batch: func(ctx context.Context) (n int, took time.Duration, err error) {
				took, err = b.watch.time(func() error {
					n, err = w.fill(context.WithoutCancel(ctx), bulkOperations)
					return err
				})
				return n, took, err
			}}
		})
		scene("work", func(w *setWriter, b *bed) load {
			return load{batch: func(ctx context.Context) (n int, took time.Duration, err error) {
				ctx = context.WithoutCancel(ctx)
				want, err := w.fill(ctx, bulkOperations)
				if err != nil {
					return 0, 0, err
				}
				took, err = b.watch.time(func() error {
					n, err = w.drain(ctx)
					return err
				})
				if err == nil && n != want {
					err = fmt.Errorf("%d of %d operations have ended", n, want)
				}
				return n, took, err
			}}
		})
	}
	return all
}

// accepts submits so many operations at a time that nobody carries out, by as many
// callers as there are in scenario work.
func (l *ledger) accepts(operations int) load {
	next := int64(0)
	return load{batch: func(ctx context.Context) (int, time.Duration, error) {
		first := next
		next += int64(operations)
		took, err := l.watch.time(func() error {
			return together(submitters, operations, func(i int64) error { return l.submit(ctx, first+i) })
		})
		return operations, took, err
	}}
}

// sets holds what is done in bulk against the floor in sets and against peers, with
// what each of them keeps of an operation.
func (r *report) sets(database, title string) table {
	t := table{title: "In bulk on " + title, words: 2,
		note:   "At once: the rows of a statement (floor), callers and handlers (runtime), jobs of an insertion and workers (River). Kept in the end: rows and bytes for each operation, indexes included.",
		header: []string{"operations per second", "system", "at once", "rate", "lowest–highest", "runtime/system", "rows kept", "bytes kept", "own µs", "server µs"}}
	for _, name := range []string{"accept", "work"} {
		ours := r.by[key{"runtime", name, database, workers, 0}]
		for _, s := range r.sums {
			if s.Name != name || s.Database != database || s.Stored > 0 {
				continue
			}
			t.rows = append(t.rows, []string{titleOf(name), s.System, fmt.Sprint(s.Callers), rate(s.Rate), span(s), ratio(ours.Rate, s.Rate),
				rate(s.Extra[rowsPerOperation]), rate(s.Extra[bytesPerOperation]), rate(s.Extra[ownMicros]), rate(s.Extra[serverMicros])})
		}
	}
	return t
}
