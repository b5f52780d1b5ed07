package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestFill fills a ledger twice with the runtime's and the floor's calls between,
// and takes the floor's away: the runtime must answer what was filled, and the
// audit must pass.
func TestFill(t *testing.T) {
	ctx := context.Background()
	b, err := newBed(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.close(); err != nil {
			t.Error(err)
		}
	}()
	l, err := newLedger(ctx, b, "sqlite")
	if err != nil {
		t.Fatal(err)
	}
	g := &growth{session: &session{}, b: b, l: l, fresh: 1 << 40}
	grow := func(size int64) {
		t.Helper()
		if err := g.grow(ctx, size); err != nil {
			t.Fatal(err)
		}
	}
	grow(10)
	if err := l.fresh(g.numbers()).do(ctx, 0); err != nil {
		t.Fatal(err)
	}
	floor, err := l.floorWrites(ctx, b, 3, g.numbers(), answering)
	if err != nil {
		t.Fatal(err)
	}
	if n, _, err := floor.batch(ctx); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	if _, _, err := l.audit(14).batch(ctx); err == nil {
		t.Error("the audit accepts the floor's rows")
	}
	if err := g.forgetFloor(); err != nil {
		t.Fatal(err)
	}
	if n, _, err := l.bulk(g.numbers(), 5, true).batch(ctx); n != 5 || err != nil {
		t.Fatal(n, err)
	}
	grow(30) // 16 are there
	if diff := cmp.Diff(int64(24), g.filled); diff != "" {
		t.Error(diff)
	}
	for _, answer := range []load{l.replay(func(i int64) int64 { return i }), l.status(func(i int64) int64 { return i })} {
		for range g.filled {
			if err := answer.do(ctx, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, _, err := l.audit(30).batch(ctx); err != nil {
		t.Error(err)
	}
}

// TestLoops: what fails is no measurement, and what a caller has begun counts.
func TestLoops(t *testing.T) {
	ctx, broken := context.Background(), errors.New("broken")
	if _, _, err := closedLoop(ctx, 2, time.Hour, func(context.Context, int) error { return broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
	ended, stop := context.WithCancel(ctx)
	h, _, err := closedLoop(ended, 1, time.Hour, func(context.Context, int) error { stop(); return nil })
	if h.count != 1 || !errors.Is(err, context.Canceled) {
		t.Error(h.count, err)
	}
	times := 0
	l := load{together: true, batch: func(context.Context) (int, time.Duration, error) { times++; return 4, time.Second, nil }}
	n, took, h, err := batches(ctx, 2500*time.Millisecond, l)
	if n != 12 || took != 3*time.Second || h.count != 12 || times != 3 || err != nil {
		t.Error(n, took, h.count, times, err)
	}
	l.once = true
	if n, _, _, err := batches(ctx, time.Hour, l); n != 4 || err != nil {
		t.Error(n, err)
	}
	l.batch = func(context.Context) (int, time.Duration, error) { return 0, 0, broken }
	if _, _, _, err := batches(ctx, time.Hour, l); !errors.Is(err, broken) {
		t.Error(err)
	}
}
