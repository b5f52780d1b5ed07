package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// maxBatch bounds how many units share a commit, and with it how long the first
// of them waits for the last.
const maxBatch = 256

// A committer runs units on the one writer connection and commits together
// those that wait together, each answered only after the shared commit. A failing
// unit takes no other with it: the batch then begins again, each unit in a
// SAVEPOINT of its own. Savepoints from the start would be a fifth of the work,
// because SQLite keeps a copy of every page that is changed under one.
//
// There is no goroutine of its own. Whoever comes while nobody commits becomes
// the leader and runs everyone's units, its own among them; who comes meanwhile
// queues up and is the next batch. A lone caller so waits for nobody.
type committer struct {
	conn    *sql.Conn
	driver  *sqlite3.SQLiteConn // of conn
	queries *queries
	kept    *queries      // for a unit that stands alone
	lent    dbgen.DBTX    // what such a unit gives to the host
	wait    time.Duration // how long another process may hold the database
	log     *logGuard
	watch   *watch
	last    sight // after the last commit
	version any   // of the schema, when the database was opened or became smaller; what the host has made since belongs to it
	guard   guard // of the host's statements
	tried   bool  // to save what the log has, after it was found gone
	saved   bool  // and it is saved: the log is empty

	lead  chan struct{} // holds one token: the right to use conn
	mu    sync.Mutex
	queue []*pending
	shut  bool
}

type pending struct {
	ctx   context.Context
	unit  engine.UnitWith
	alone bool          // shares its commit with nobody
	done  chan struct{} // closed when err is final
	err   error
}

func (p *pending) answered() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func newCommitter(conn *sql.Conn, wait time.Duration, w *watch, log *logGuard) (*committer, error) {
	c := &committer{conn: conn, wait: wait, lead: make(chan struct{}, 1), watch: w, last: sight{database: w.files[0].info}, log: log}
	c.lead <- struct{}{}
	var err error
	c.driver, err = driverOf(conn)
	if err != nil {
		return c, err // whoever closes c closes the connection
	}
	c.driver.RegisterAuthorizer(c.guard.allow)
	own := &direct{Conn: conn, driver: c.driver}
	c.queries = newQueries(own, c.driver)
	c.kept = newQueries(engine.Checked{DBTX: own, Over: c.over}, c.driver)
	c.lent = lent{engine.Checked{DBTX: conn, Over: c.over}, &c.guard}
	c.version, err = pragma(c.driver, "schema_version")
	return c, classify(err)
}

// write runs unit and returns after its commit. Cancelling ctx takes a unit out
// of the queue; a unit whose turn has come runs to its end.
func (c *committer) write(ctx context.Context, unit engine.UnitWith, alone bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if ctx.Value(inside{c}) != nil {
		return &toolresult.InputError{Field: "context", Rule: "must not be that of a transaction of the same store: it would wait for itself"}
	}
	p := &pending{ctx: ctx, unit: unit, alone: alone, done: make(chan struct{})}
	c.mu.Lock()
	if c.shut {
		c.mu.Unlock()
		return engine.ErrClosed
	}
	c.queue = append(c.queue, p)
	c.mu.Unlock()
	return c.await(ctx, p)
}

// await waits for p to be answered, leading where nobody does, and gives up on
// cancellation only while p is still in the queue.
func (c *committer) await(ctx context.Context, p *pending) error {
	cancelled := ctx.Done()
	for {
		select {
		case <-p.done:
			return p.err
		default:
		}
		select {
		case <-p.done:
			return p.err
		case <-c.lead:
			c.turn()
		case <-cancelled:
			if c.withdraw(p) {
				return ctx.Err()
			}
			cancelled = nil
		}
	}
}

// turn answers the batch whose turn it is, and passes the lead on: whatever happens,
// and be it that a unit ends the goroutine.
func (c *committer) turn() {
	batch := c.take()
	ended := false
	defer func() {
		if !ended {
			c.rollback()
			answer(slices.DeleteFunc(batch, (*pending).answered), errGoexit)
		}
		c.lead <- struct{}{}
	}()
	c.run(batch)
	c.bound()
	ended = true
}

// peek runs queries on the writer's connection, or reports false when it is not
// free at once.
func (c *committer) peek(ctx context.Context, unit engine.Unit) (bool, error) {
	if err := ctx.Err(); err != nil {
		return true, err
	}
	select {
	case <-c.lead:
	default:
		return false, nil
	}
	defer func() { c.lead <- struct{}{} }()
	if c.ended() {
		return true, engine.ErrClosed
	}
	return true, classify(unit(context.WithoutCancel(ctx), c.queries))
}

func (c *committer) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shut
}

func (c *committer) take() []*pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for n < min(len(c.queue), maxBatch) && !c.queue[n].alone {
		n++
	}
	if n == 0 && len(c.queue) > 0 {
		n = 1 // it stands alone
	}
	batch := c.queue[:n:n]
	c.queue = c.queue[n:]
	return batch
}

func (c *committer) withdraw(p *pending) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, q := range c.queue {
		if q == p {
			c.queue = append(c.queue[:i:i], c.queue[i+1:]...)
			return true
		}
	}
	return false
}

// run answers every unit of a batch.
func (c *committer) run(batch []*pending) {
	batch, err := c.begin(batch)
	switch {
	case len(batch) == 0:
	case err != nil:
		answer(batch, err)
	case len(batch) == 1:
		c.runAlone(batch[0])
	case c.each(batch, c.call):
		c.commitAll(batch)
	default:
		c.rollback()
		c.runApart(batch)
	}
}

// runApart runs the units of a batch of which one fails.
func (c *committer) runApart(batch []*pending) {
	batch, err := c.begin(batch)
	switch {
	case len(batch) == 0:
	case err != nil:
		answer(batch, err)
	case c.each(batch, c.runInSavepoint):
		c.commitAll(batch)
	default:
		// The database gave up the whole transaction (a full disk, for example).
		// Nothing is committed or answered, so each unit gets a transaction of
		// its own.
		c.rollback()
		for _, p := range batch {
			c.run([]*pending{p})
		}
	}
}

// each runs every unit of a batch in the open transaction, or reports false.
func (c *committer) each(batch []*pending, run func(*pending) error) bool {
	for _, p := range batch {
		p.err = nil
		if run(p) != nil {
			return false
		}
	}
	return true
}

// commitAll ends the open transaction and answers the batch.
func (c *committer) commitAll(batch []*pending) {
	err := c.commit()
	for _, p := range batch {
		if p.err == nil {
			p.err = err
		}
		close(p.done)
	}
}

// runAlone runs p in the open transaction and ends both.
func (c *committer) runAlone(p *pending) {
	before := c.schemaFor(p)
	if p.err = c.call(p); p.err != nil {
		c.rollback()
	} else {
		after := c.schemaFor(p)
		if p.err = c.commit(); p.err == nil && p.alone && before == c.version {
			c.version = after // what the host has made is no VACUUM
		}
	}
	close(p.done)
}

// schemaFor is the version of the schema, where p may change it.
func (c *committer) schemaFor(p *pending) any {
	if !p.alone {
		return nil
	}
	version, _ := pragma(c.driver, "schema_version")
	return version
}

// runInSavepoint runs p so that it leaves nothing behind when it fails. It returns
// an error only when the whole transaction is lost.
func (c *committer) runInSavepoint(p *pending) error {
	if err := c.exec("SAVEPOINT unit"); err != nil {
		return err
	}
	if p.err = c.call(p); p.err != nil {
		// ROLLBACK TO leaves the savepoint on the stack.
		if err := c.exec("ROLLBACK TO unit"); err != nil {
			return err
		}
	}
	return c.exec("RELEASE unit")
}

// errGoexit says that a unit has ended its goroutine, as testing.T.FailNow does.
var errGoexit = errors.New("toolruntime: runtime.Goexit in a transaction")

// errTransactionLost says that a statement ended the transaction of its unit.
var errTransactionLost = errors.New("toolruntime: the database ended the transaction")

// call runs a unit's body. One that stands alone has code of the host in it, which
// may end its goroutine: that is not to be the leader's, who is somebody else.
func (c *committer) call(p *pending) error {
	if !p.alone {
		return c.body(p)
	}
	err := errGoexit
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = c.body(p)
	}()
	<-done
	return err
}

// inside is the key under which a context says that it is that of a unit with code of
// the host's in it, which may not wait for another.
type inside struct{ c *committer }

// body runs a unit's body; a panic is the unit's own failure, and so is the end
// of the transaction, after which each statement would commit by itself.
func (c *committer) body(p *pending) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("toolruntime: panic in a transaction: %v", r)
		}
	}()
	q, ctx := c.queries, context.WithoutCancel(p.ctx)
	if p.alone {
		q, ctx = c.kept, context.WithValue(ctx, inside{c}, true)
	}
	err = classify(p.unit(ctx, q, c.lent))
	c.log.note(err)
	// A statement that a lent connection did not run says that it was cancelled.
	if over := c.over(); over != nil && (err == nil || errors.Is(err, context.Canceled)) {
		err = over
	}
	return err
}

// begin opens a transaction, waiting for other processes up to the limit, and
// returns those of the batch that still want it. Callers who give up meanwhile
// are answered and dropped.
func (c *committer) begin(batch []*pending) ([]*pending, error) {
	if err := c.inPlace(); err != nil {
		return batch, err
	}
	for begun := time.Now(); ; {
		batch = dropCancelled(batch)
		if len(batch) == 0 {
			return nil, nil
		}
		err := classify(c.exec("BEGIN IMMEDIATE"))
		c.log.note(err)
		if err == nil || !errors.Is(err, engine.ErrBusy) || time.Since(begun) >= c.wait {
			return batch, err
		}
	}
}

func dropCancelled(batch []*pending) []*pending {
	return slices.DeleteFunc(batch, func(p *pending) bool {
		err := p.ctx.Err()
		if err != nil {
			p.err = err
			close(p.done)
		}
		return err != nil
	})
}

// commit makes the transaction durable, in the file that has the ledger's name. When
// it fails, whether it took is not known to the caller, who may repeat the unit.
func (c *committer) commit() error {
	err := classify(c.exec("COMMIT"))
	if err != nil {
		c.log.note(err)
		c.rollback()
		return fmt.Errorf("%w: %w", engine.ErrCommitUnknown, err)
	}
	seen, err := c.watch.look()
	if err == nil {
		err = c.hold(seen)
	}
	if err != nil {
		c.save()
		return fmt.Errorf("%w: %w", engine.ErrCommitUnknown, err)
	}
	return nil
}

// rollback ends the transaction; an error means that there is none any more.
func (c *committer) rollback() { _ = c.exec("ROLLBACK") }

func (c *committer) exec(statement string) error {
	_, err := c.conn.ExecContext(context.Background(), statement)
	return err
}

func answer(batch []*pending, err error) {
	for _, p := range batch {
		p.err = err
		close(p.done)
	}
}

// close waits for the leader, refuses who is still queued, and closes the
// connection.
func (c *committer) close() error {
	<-c.lead
	c.mu.Lock()
	c.shut = true
	rest := c.queue
	c.queue = nil
	c.mu.Unlock()
	answer(rest, engine.ErrClosed)
	c.save()
	// Whoever was about to lead finds an empty queue.
	c.lead <- struct{}{}
	return c.conn.Close()
}
