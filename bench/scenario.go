package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// A scenario is one thing that is measured: what a system does for a number of
// callers on a database.
type scenario struct {
	system   string // "floor", "runtime", or a peer's name
	name     string // what is done; the same name means the same work
	database string // "sqlite", "postgres", ownStore, or "" where there is none
	callers  int
	// setup makes all that the load needs, in the bed and nowhere else.
	setup func(context.Context, *bed) (load, error)
}

// ownStore is the database of a peer that has its own.
const ownStore = "own"

// String is how -run sees a scenario.
func (s scenario) String() string {
	return fmt.Sprintf("%s/%s/%s/%d", s.system, s.name, s.database, s.callers)
}

// A load is the work of a scenario that is ready: one of its functions is set.
type load struct {
	// do does it once, for one of the callers; all of them do it at once. With
	// errAside it says that it did something else, which does not count.
	do func(ctx context.Context, caller int) error
	// batch does it many times and says how long that took, without what it
	// needed to get there.
	batch func(context.Context) (n int, took time.Duration, err error)
	// fleet lets callers that it has itself, in other processes, do it until the time
	// is over.
	fleet func(ctx context.Context, limit time.Duration) (histogram, time.Duration, error)
	// together says that each operation of a batch waits for all of it, as in a
	// commit that they share: then the batch's time is each one's latency.
	together bool
	// once says that a batch cannot be repeated on the same database.
	once bool
}

var errAside = errors.New("not what is measured")

// closedLoop lets callers do it one after the other until the time is over, and
// gives the operations that were finished, in which time, and how long each took.
// Any error ends it: a rate with failures in it means nothing.
func closedLoop(ctx context.Context, callers int, limit time.Duration, do func(context.Context, int) error) (histogram, time.Duration, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	each := make([]histogram, callers)
	var all sync.WaitGroup
	begin := time.Now()
	for caller := range callers {
		all.Go(func() {
			for before := time.Now(); before.Sub(begin) < limit && ctx.Err() == nil; {
				err := do(ctx, caller)
				if err != nil && !errors.Is(err, errAside) {
					stop(err)
					return
				}
				after := time.Now()
				if err == nil {
					each[caller].add(after.Sub(before), 1)
				}
				before = after
			}
		})
	}
	all.Wait()
	took := time.Since(begin)
	var sum histogram
	for i := range each {
		sum.merge(&each[i])
	}
	return sum, took, context.Cause(ctx)
}

// batches repeats a batch until the time is over, at least once.
func batches(ctx context.Context, limit time.Duration, l load) (n int64, took time.Duration, h histogram, err error) {
	for n == 0 || took < limit && !l.once {
		count, d, err := l.batch(ctx)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return 0, 0, h, err
		}
		if count == 0 {
			return 0, 0, h, errors.New("a batch did nothing")
		}
		n, took = n+int64(count), took+d
		if l.together {
			h.add(d, uint64(count))
		}
	}
	return n, took, h, nil
}

func (l load) run(ctx context.Context, callers int, limit time.Duration) (int64, time.Duration, histogram, error) {
	if l.batch != nil {
		return batches(ctx, limit, l)
	}
	if l.fleet != nil {
		h, took, err := l.fleet(ctx, limit)
		return int64(h.count), took, h, err
	}
	h, took, err := closedLoop(ctx, callers, limit, l.do)
	return int64(h.count), took, h, err
}

// rotated begins a list elsewhere in each round, so that what the machine does
// meanwhile falls on all of it alike.
func rotated(all []scenario, round, rounds int) []scenario {
	first := (round - 1) * len(all) / rounds
	return slices.Concat(all[first:], all[:first])
}

// measure runs a scenario once, in a bed of its own.
func measure(ctx context.Context, s scenario, b *bed, limit time.Duration) (m measurement, err error) {
	defer func() { err = errors.Join(err, b.close()) }()
	m = measurement{System: s.system, Name: s.name, Database: s.database, Callers: s.callers}
	if s.database != "postgres" {
		b.watch.server = nil
	}
	l, err := s.setup(ctx, b)
	if err != nil {
		return m, fmt.Errorf("%v: set up: %w", s, err)
	}
	// What happens once per connection and per file is not what is asked for.
	if l.batch == nil || l.together {
		_, _, _, err = l.run(ctx, s.callers, limit/10)
	}
	var took time.Duration
	var h histogram
	if err == nil {
		all := l.do != nil || l.together
		if all {
			b.watch.start()
		}
		m.Operations, took, h, err = l.run(ctx, s.callers, limit)
		if all {
			b.watch.stop()
		}
	}
	if err != nil {
		return m, fmt.Errorf("%v: %w", s, err)
	}
	if m.Extra, err = b.watch.per(m.Operations); err != nil {
		return m, fmt.Errorf("%v: what it cost: %w", s, err)
	}
	if b.found != nil {
		more, err := b.found(ctx)
		if err != nil {
			return m, fmt.Errorf("%v: what it found: %w", s, err)
		}
		if m.Extra == nil {
			m.Extra = map[string]float64{}
		}
		maps.Copy(m.Extra, more)
	}
	m.Seconds = took.Seconds()
	m.PerSecond = float64(m.Operations) / m.Seconds
	m.P50, m.P99 = milliseconds(h.quantile(0.5)), milliseconds(h.quantile(0.99))
	return m, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
