package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/engine"
)

const (
	// few is how many statements are under way before anybody waits for company.
	// They leave the server and the network idle for most of the time, to which it
	// would only add.
	few = 8
	// maxBatch bounds how many statements share a round trip, and with it how long
	// the first of them waits for the last.
	maxBatch = 64
	// patience is how long a leader or its batch may keep others waiting, and how long
	// a statement of a batch may wait for each of somebody else's locks while its
	// neighbours hold theirs.
	patience = 100 * time.Millisecond
)

// errApart says that a batch has failed and left nothing behind.
var errApart = errors.New("a statement of the batch has failed")

// A gatherer sends together the statements of those who wait at the same moment,
// in one round trip and one implicit transaction. Where that fails, each is sent
// alone: nobody fails for another's sake.
//
// There is no goroutine of its own. While few statements are under way, and there
// is a connection, whoever comes sends his own. Others queue up until there are half as many of them as are
// under way; then the first becomes the leader and sends all that wait. So the more
// callers there are, the more they share, and a lone one waits for nobody.
type gatherer[T any] struct {
	db *sql.DB
	// send runs statements as one. Its error says that none of them has left
	// anything behind, unless it matches engine.ErrCommitUnknown.
	send func(ctx context.Context, conn *sql.Conn, batch []T) error
	// leave lets a caller go on without the answer when its context ends.
	leave bool

	mu    sync.Mutex
	queue []*waiting[T]
	led   bool // the first in the queue knows that it leads
	sent  int  // how many are under way
}

type waiting[T any] struct {
	statement T
	turn      chan bool // true: lead; false: err is final
	err       error
}

// all sends statements, and returns the error of each: one with others who come at the
// same moment, and many together.
func (g *gatherer[T]) all(ctx context.Context, statements []T) []error {
	if len(statements) == 1 {
		return []error{g.do(ctx, statements[0])}
	}
	var errs []error
	for some := range slices.Chunk(statements, maxBatch) {
		batch := make([]*waiting[T], len(some))
		for i := range some {
			batch[i] = &waiting[T]{statement: some[i]}
		}
		err := g.apart(ctx, batch)
		for i := range batch {
			if err == errApart {
				errs = append(errs, g.apart(ctx, batch[i:i+1]))
			} else {
				errs = append(errs, err)
			}
		}
	}
	return errs
}

// do sends a statement, with others or alone. Cancelling ctx takes it out of the
// queue; one whose turn has come is waited for.
func (g *gatherer[T]) do(ctx context.Context, statement T) error {
	w := &waiting[T]{statement: statement, turn: make(chan bool, 1)}
	g.mu.Lock()
	g.queue = append(g.queue, w)
	g.next()
	g.mu.Unlock()
	for cancelled := ctx.Done(); ; {
		select {
		case lead := <-w.turn:
			if lead {
				w.err = g.lead(ctx, w)
			}
			if w.err == errApart {
				return g.apart(ctx, []*waiting[T]{w})
			}
			return w.err
		case <-cancelled:
			if g.withdraw(w) || g.leave {
				return ctx.Err()
			}
			cancelled = nil
		}
	}
}

// next makes the first in the queue the leader, if it is time. g.mu is held.
func (g *gatherer[T]) next() {
	enough := g.sent < few || 2*len(g.queue) >= min(g.sent, maxBatch)
	if enough && len(g.queue) > 0 && !g.led {
		g.led = true
		g.queue[0].turn <- true
	}
}

// lead sends what waits, on a connection for which it waits as w's caller would.
func (g *gatherer[T]) lead(ctx context.Context, w *waiting[T]) error {
	// The connection may have to be made, of a server that stands still. Another may
	// lead then, with one that is free meanwhile, and w goes alone.
	late := time.AfterFunc(patience, func() { g.withdraw(w) })
	conn, err := g.db.Conn(ctx)
	late.Stop()
	if err != nil && ctx.Err() != nil {
		g.withdraw(w) // that says nothing of the others
		return err
	}
	batch := g.take(w)
	if err != nil {
		g.end(len(batch))
	} else {
		err = g.sendOn(ctx, conn, batch)
	}
	for _, other := range batch[1:] {
		other.err = err
		other.turn <- false
	}
	return err
}

// sendOn sends a batch that was begun. One who waits for a lock, or for a server
// that stands still, does not make everybody wait.
func (g *gatherer[T]) sendOn(ctx context.Context, conn *sql.Conn, batch []*waiting[T]) (err error) {
	end := sync.OnceFunc(func() { g.end(len(batch)) })
	defer time.AfterFunc(patience, end).Stop()
	defer end()
	defer conn.Close()
	defer func() {
		if r := recover(); r != nil { // when, nobody knows
			err = fmt.Errorf("%w: panic in a transaction: %v", engine.ErrCommitUnknown, r)
		}
	}()
	statements := make([]T, len(batch))
	for i, w := range batch {
		statements[i] = w.statement
	}
	err = g.send(ctx, conn, statements)
	if err != nil && len(batch) > 1 && !errors.Is(err, engine.ErrCommitUnknown) {
		return errApart
	}
	return err
}

// apart sends a batch that nobody joins.
func (g *gatherer[T]) apart(ctx context.Context, batch []*waiting[T]) error {
	conn, err := g.db.Conn(ctx)
	if err != nil {
		return err
	}
	g.begin(len(batch))
	return g.sendOn(ctx, conn, batch)
}

// take begins the batch that w leads, or w alone where another leads by now.
func (g *gatherer[T]) take(w *waiting[T]) []*waiting[T] {
	g.mu.Lock()
	defer g.mu.Unlock()
	batch := []*waiting[T]{w}
	if len(g.queue) > 0 && g.queue[0] == w {
		n := min(len(g.queue), maxBatch)
		batch = g.queue[:n:n]
		g.queue, g.led = g.queue[n:], false
	}
	g.sent += len(batch)
	g.next()
	return batch
}

func (g *gatherer[T]) begin(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sent += n
}

func (g *gatherer[T]) end(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sent -= n
	g.next()
}

// withdraw takes w out of the queue, if it is still there. Where it was to lead, the
// next one does.
func (g *gatherer[T]) withdraw(w *waiting[T]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.queue, w)
	if i < 0 {
		return false
	}
	if i == 0 {
		g.led = false
	}
	g.queue = slices.Delete(g.queue, i, i+1)
	g.next()
	return true
}
