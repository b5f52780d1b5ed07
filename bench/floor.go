package main

import (
	"context"
	"database/sql"
	"strconv"
	"sync/atomic"
	"time"
)

// The floor is what the database alone takes for what the ledger stores: the same
// statements in the same transactions over the same schema, through the same
// driver with the same settings, without a digest, a check, or a look at what is
// there.

// floorApproval tells the floor's rows from the runtime's.
const floorApproval = "floor"

// A floorWriter stores calls whose values were made up front.
type floorWriter struct {
	sample rows
	next   atomic.Int64
}

func newFloorWriter(l *ledger, after int64) (*floorWriter, error) {
	now := time.Now().Unix()
	r, err := l.endedRows(0, 0, now)
	if err != nil {
		return nil, err
	}
	r.operation.ApprovalID = floorApproval
	r.operation.State, r.operation.CompletedAt = "processing", sql.NullInt64{}
	r.event.State, r.event.NextAttemptAt = "processing", now+30
	r.event.LeaseOwner, r.event.LeaseUntil = sql.NullString{String: worker, Valid: true}, sql.NullInt64{Int64: now + 30, Valid: true}
	r.seal()
	w := &floorWriter{sample: r}
	w.next.Store(after)
	return w, nil
}

// call is the sample with what must differ between two calls.
func (w *floorWriter) call() *rows {
	id := scatter(w.next.Add(1))
	long := id + id
	r := w.sample
	r.binding.ResponseID, r.binding.CallID, r.binding.StatusRef = "resp_"+id, "call_"+id, "status_"+long
	r.operation.IdempotencyKey, r.operation.StatusRef = "key_"+id, "status_"+long
	r.operation.FirstOperationID, r.operation.FirstCallID, r.operation.FirstResponseID = "op_"+id, "call_"+id, "resp_"+id
	r.event.EventID = "outbox_" + long
	r.downstream.IdempotencyKey = r.operation.IdempotencyKey
	r.downstream.ReceiptID, r.downstream.DownstreamRequestID = "refund-receipt-"+long[:24], "refund-request-"+long[:24]
	r.local.ReceiptID, r.local.DownstreamRequestID = r.downstream.ReceiptID, r.downstream.DownstreamRequestID
	return &r
}

// The moves find their rows by key alone: the ledger's compare every column too,
// which is a check. SQLite numbers parameters with a dollar in the order in which
// they first appear.
const (
	moveEvent = `UPDATE outbox SET state = 'delivered', lease_owner = NULL, lease_until = NULL, next_attempt_at = 0,
		updated_at = $1, row_digest = $2 WHERE operation_pk = $3`
	moveOperation = `UPDATE operations SET state = 'succeeded', updated_at = $1, completed_at = $2, row_digest = $3 WHERE operation_pk = $4`
)

// finish is what the ledger stores after the effect.
func (r *rows) finish(ctx context.Context, c bare) error {
	if err := r.insertReceipts(ctx, c); err != nil {
		return err
	}
	o := &r.operation
	if _, err := c.ExecContext(ctx, moveEvent, o.UpdatedAt, r.event.RowDigest, o.OperationPK); err != nil {
		return err
	}
	_, err := c.ExecContext(ctx, moveOperation, o.UpdatedAt, o.UpdatedAt, o.RowDigest, o.OperationPK)
	return err
}

// A step is what a transaction of the ledger stores of a call.
type step func(*rows, context.Context, bare) error

func accept(r *rows, ctx context.Context, c bare) error { return r.insertOperation(ctx, c) }

var (
	accepting = []step{accept}
	answering = []step{accept, (*rows).finish}
)

// store runs a transaction for each step, all calls in one.
func (c bare) store(ctx context.Context, steps []step, calls ...*rows) error {
	for _, step := range steps {
		err := c.transact(ctx, func() error {
			for _, r := range calls {
				if err := step(r, ctx, c); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// floorWrites stores calls: on SQLite as many as there are callers in the same
// transactions, on PostgreSQL each in its own.
func floorWrites(name, database string, callers int, steps []step) scenario {
	return scenario{"floor", name, database, callers, func(ctx context.Context, b *bed) (load, error) {
		l, err := newLedger(ctx, b, database)
		if err != nil {
			return load{}, err
		}
		return l.floorWrites(ctx, b, callers, 0, steps)
	}}
}

// floorWrites numbers its calls from after on.
func (l *ledger) floorWrites(ctx context.Context, b *bed, callers int, after int64, steps []step) (load, error) {
	w, err := newFloorWriter(l, after)
	if err != nil {
		return load{}, err
	}
	if l.database == "postgres" {
		conns, err := l.connect(ctx, b, min(callers, pgConns), "")
		return load{do: func(ctx context.Context, _ int) error {
			c := <-conns
			defer func() { conns <- c }()
			return c.store(context.WithoutCancel(ctx), steps, w.call())
		}}, err
	}
	conns, err := l.connect(ctx, b, 1, sqliteWriter)
	if err != nil {
		return load{}, err
	}
	c := <-conns
	group := make([]*rows, callers)
	return load{together: true, batch: func(ctx context.Context) (int, time.Duration, error) {
		begin := time.Now()
		for i := range group {
			group[i] = w.call()
		}
		err := c.store(context.WithoutCancel(ctx), steps, group...)
		return callers, time.Since(begin), err
	}}, nil
}

// sqliteReaders is how many connections the floor of a replay has at most.
const sqliteReaders = 8

// floorReplay reads an operation with its receipt.
func floorReplay(database string, callers int) scenario {
	return scenario{"floor", "replay", database, callers, func(ctx context.Context, b *bed) (load, error) {
		l, err := newFilled(ctx, b, database)
		if err != nil {
			return load{}, err
		}
		return l.floorReplay(ctx, b, callers, func(i int64) int64 { return i%stored + 1 })
	}}
}

// floorReplay replays the calls that pick chooses.
func (l *ledger) floorReplay(ctx context.Context, b *bed, callers int, pick func(int64) int64) (load, error) {
	n := min(callers, sqliteReaders)
	if l.database == "postgres" {
		n = min(callers, pgConns)
	}
	conns, err := l.connect(ctx, b, n, sqliteReader)
	if err != nil {
		return load{}, err
	}
	query := replayQuery(l.database)
	read := func(ctx context.Context, i int64) error {
		c := <-conns
		defer func() { conns <- c }()
		return c.readOne(ctx, query, owner.TenantID, owner.SubjectID, refundTool, call(pick(i)).IdempotencyKey)
	}
	for i := range int64(n) { // prepared on every connection, and its cache not empty
		if err := read(ctx, i); err != nil {
			return load{}, err
		}
	}
	var next atomic.Int64
	// A context that can be cancelled would cost every query of SQLite a goroutine.
	return load{do: func(ctx context.Context, _ int) error { return read(context.WithoutCancel(ctx), next.Add(1)) }}, nil
}

// replayQuery casts its parameters because SQLite prepares a join anew whenever
// it is executed if a parameter is compared bare with a column.
func replayQuery(database string) string {
	query := `SELECT o.*, l.* FROM operations o JOIN local_receipts l ON l.operation_pk = o.operation_pk WHERE `
	for i, column := range []string{"tenant_id", "subject_id", "tool_name", "idempotency_key"} {
		if i > 0 {
			query += " AND "
		}
		mark := "?"
		if database == "postgres" {
			mark = "$" + strconv.Itoa(i+1)
		}
		query += "o." + column + " = CAST(" + mark + " AS TEXT)"
	}
	return query
}

func (c bare) readOne(ctx context.Context, query string, args ...any) error {
	found, err := c.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer found.Close()
	if !found.Next() {
		if err := found.Err(); err != nil {
			return err
		}
		return sql.ErrNoRows
	}
	columns, err := found.Columns()
	if err != nil {
		return err
	}
	row := make([]any, len(columns))
	to := make([]any, len(row))
	for i := range row {
		to[i] = &row[i]
	}
	return found.Scan(to...)
}
