package ledger

import (
	"context"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
)

// maxCrew bounds how many snapshots are open at once, and with it the memory of
// an audit on a large machine.
const maxCrew = 4

// A span is a range of operation keys, both ends included.
type span struct{ from, to int64 }

// firstSpan may begin anywhere: the keys of damaged rows can be anything.
var firstSpan = span{math.MinInt64, math.MinInt64}

// next is the span after s that begins with the first key under which there is a
// row, however far it is. Where spans lie follows from the rows alone.
func (s span) next(ctx context.Context, q dbgen.Querier, keys int64) (span, bool, error) {
	from := s.to
	if s != firstSpan {
		if from++; from == math.MinInt64 { // s had the largest key
			return span{}, false, nil
		}
	}
	key, err := q.NextAuditKey(ctx, from)
	return spanFrom(key.PK, keys), key.Found > 0 && err == nil, err
}

func spanFrom(key, keys int64) span {
	if key > math.MaxInt64-keys {
		return span{key, math.MaxInt64}
	}
	return span{key, key + keys - 1}
}

// nextPage examines the page after the rows that w has seen. It returns how many
// rows it looked at, and whether there are more.
type nextPage func(ctx context.Context, s engine.Snapshot, w *walk) (n int64, more bool, err error)

// A walk examines a table page after page, in the order of a key.
type walk struct {
	part
	next nextPage
	what string // the rows are called
	page int64
	done *atomic.Int64

	scope     dbgen.GetDownstreamReceiptParams
	tombstone string // its status_ref
	call      dbgen.CallBinding
	ending    int64
}

// pages takes w further in one snapshot, by at least so many rows.
func (a *auditor) pages(ctx context.Context, s engine.Snapshot, w *walk, rows int64, page func()) (ended bool, err error) {
	for seen := int64(0); seen < rows; {
		n, more, err := w.next(ctx, s, w)
		if err != nil || !more {
			return true, err
		}
		page()
		seen += n
	}
	return false, nil
}

// inOneSnapshot examines a small ledger: nobody who writes meanwhile is seen.
func (a *auditor) inOneSnapshot(ctx context.Context, s engine.Snapshot) error {
	if err := a.count(ctx, s); err != nil {
		return err
	}
	a.tellProgress()
	if err := a.inspect(ctx, s); err != nil {
		return err
	}
	for sp := firstSpan; ; {
		next, more, err := sp.next(ctx, s, a.Sizes.Span)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if err := a.examine(ctx, s, next, &a.operations, a.tellProgress); err != nil {
			return err
		}
		sp = next
	}
	for _, w := range a.walks {
		if _, err := a.pages(ctx, s, w, math.MaxInt64, a.tellProgress); err != nil {
			return err
		}
	}
	return nil
}

// inManySnapshots examines a large ledger in several snapshots, some of them
// beside each other.
//
// The database's own checks read the whole file, which takes as long as a good
// part of the rest, in a snapshot of their own. It is opened after the audit has
// begun: what was damaged before is found.
func (a *auditor) inManySnapshots(ctx context.Context) error {
	c := newCrew(ctx, a.store.engine)
	defer c.stop(nil)
	c.do(func() error { return a.inspectApart(c) })
	c.do(func() error { return a.countApart(c) })
	for _, w := range a.walks {
		c.do(func() error { return a.walkOn(c, w) })
	}
	c.do(func() error { return a.spans(c) })
	err := c.lead(a.tellProgress)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func (a *auditor) walkOn(c *crew, w *walk) error {
	for ended := false; !ended; {
		err := c.snapshot(func(ctx context.Context, s engine.Snapshot) (err error) {
			ended, err = a.pages(ctx, s, w, a.Sizes.Snapshot, c.moved)
			return err
		})
		if unreadable(err, a.differs) {
			w.add("AUDIT_DAMAGED", "", w.what+" cannot be read")
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// spans examines the operations. What is found is added in the order of the
// spans, and no span runs ahead of the others by more than a few.
func (a *auditor) spans(c *crew) error {
	ahead := make(chan struct{}, 2*maxCrew)
	before := make(chan struct{})
	close(before)
	for sp := firstSpan; ; {
		var more bool
		err := a.store.engine.Read(c.ctx, func(ctx context.Context, q engine.Querier) (err error) {
			sp, more, err = sp.next(ctx, q, a.Sizes.Span)
			return err
		})
		if unreadable(err, a.differs) {
			sp, more, err = a.blindly(c, sp)
		}
		if err != nil || !more {
			return err
		}
		select {
		case ahead <- struct{}{}:
		case <-c.ctx.Done():
			return nil
		}
		mine, predecessor, done := sp, before, make(chan struct{})
		before = done
		c.do(func() error {
			defer close(done)
			p, err := a.examineApart(c, mine)
			if err != nil {
				return err
			}
			<-predecessor
			c.tell(func() error {
				err := p.askApprovers(c.ctx)
				a.operations.merge(p)
				return err
			})
			<-ahead
			return nil
		})
	}
}

// maxBlind bounds how far an audit goes on without knowing where the next rows are:
// the key of a damaged row can be anything.
const maxBlind = 1 << 20

// blindly is the span after s where the next key cannot be read.
func (a *auditor) blindly(c *crew, s span) (span, bool, error) {
	a.blind++
	var newest int64
	err := a.store.engine.Read(c.ctx, func(ctx context.Context, q engine.Querier) (err error) {
		newest, err = q.NewestOperation(ctx)
		return err
	})
	from := max(s.to, 0) + 1
	if unreadable(err, a.differs) || err == nil && (from <= 0 || from > newest || a.blind > maxBlind) {
		a.unreadable.Store(true)
		return s, false, nil
	}
	return spanFrom(from, a.Sizes.Span), true, err
}

const unreadableOperations = "operations, or what stands under their keys, cannot be read"

// examineApart examines a span in a snapshot of its own. Where something of it
// cannot be read, each page of it gets one, so that little is passed over.
func (a *auditor) examineApart(c *crew, sp span) (*part, error) {
	p := &part{how: &a.Auditing}
	err := c.snapshot(func(ctx context.Context, s engine.Snapshot) error {
		return a.examine(ctx, s, sp, p, c.moved)
	})
	if !unreadable(err, a.differs) {
		return p, err
	}
	p = &part{how: &a.Auditing}
	first := spanFrom(sp.from, a.Sizes.Keys)
	if first.to >= sp.to {
		p.add("AUDIT_DAMAGED", "", unreadableOperations)
		return p, nil
	}
	for r := first; ; r = spanFrom(r.to+1, a.Sizes.Keys) {
		r.to = min(r.to, sp.to)
		of, err := a.examineApart(c, r)
		if err != nil {
			return nil, err
		}
		p.merge(of)
		if r.to == sp.to {
			return p, nil
		}
	}
}

// A crew does work beside each other, at most so many snapshots at once. The
// first error ends it all. What runs code of the host, or puts results together,
// is told to the leader: the goroutine that has called Audit.
type crew struct {
	ctx     context.Context
	stop    context.CancelCauseFunc
	engine  engine.Engine
	turns   chan struct{}
	running sync.WaitGroup
	told    chan func() error
	news    chan struct{} // says that there was progress
}

func newCrew(ctx context.Context, e engine.Engine) *crew {
	c := &crew{engine: e, turns: make(chan struct{}, min(runtime.GOMAXPROCS(0), maxCrew)),
		told: make(chan func() error), news: make(chan struct{}, 1)}
	c.ctx, c.stop = context.WithCancelCause(ctx)
	return c
}

// do runs work in a goroutine of its own.
func (c *crew) do(work func() error) {
	c.running.Go(func() {
		if err := work(); err != nil {
			c.stop(err)
		}
	})
}

// snapshot waits for a turn, and looks at one state of the database. The turns
// are taken in the order in which they were asked for.
func (c *crew) snapshot(view func(context.Context, engine.Snapshot) error) error {
	select {
	case c.turns <- struct{}{}:
		defer func() { <-c.turns }()
		return c.engine.Snapshot(c.ctx, view)
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
}

// tell waits until the leader does what it is told, or until all has ended.
func (c *crew) tell(what func() error) {
	select {
	case c.told <- what:
	case <-c.ctx.Done():
	}
}

// moved says that a page was examined. It does not wait: it is called with a
// snapshot open.
func (c *crew) moved() {
	select {
	case c.news <- struct{}{}:
	default:
	}
}

// lead does what it is told until everything has ended.
func (c *crew) lead(progress func()) error {
	ended := make(chan struct{})
	go func() { c.running.Wait(); close(ended) }()
	for {
		select {
		case do := <-c.told:
			if err := do(); err != nil {
				c.stop(err)
			}
		case <-c.news:
			progress()
		case <-ended:
			return context.Cause(c.ctx)
		}
	}
}
