package main

import (
	"context"
	"time"
)

// firstCalls is how many calls a fresh database is asked for.
const firstCalls = 2000

// first is the first calls on a fresh database, of whose tables nobody has gathered
// statistics, with all that happens once per connection.
func first(s scenario) scenario {
	setup := s.setup
	s.name = "first"
	s.setup = func(ctx context.Context, b *bed) (load, error) {
		l, err := setup(ctx, b)
		if err != nil {
			return l, err
		}
		return firstOf(l, s.callers, &b.watch), nil
	}
	return s
}

// firstOf makes one batch of a load's first calls.
func firstOf(l load, callers int, w *watch) load {
	return load{once: true, batch: func(ctx context.Context) (n int, took time.Duration, err error) {
		took, err = w.time(func() error {
			if l.do != nil {
				n = firstCalls
				return together(callers, n, func(int64) error { return l.do(ctx, 0) })
			}
			for n < firstCalls {
				more, _, err := l.batch(ctx)
				if err != nil {
					return err
				}
				n += more
			}
			return nil
		})
		return n, took, err
	}}
}
