package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestStorm makes the calls of three rounds of every kind, one after the other, and
// then many at once: the new ones count and nothing else, and the audit passes.
func TestStorm(t *testing.T) {
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
	l, err := newFilled(ctx, b, "sqlite")
	if err != nil {
		t.Fatal(err)
	}
	storm := l.storm()
	aside := 0
	for range 180 {
		switch err := storm.do(ctx, 0); {
		case errors.Is(err, errAside):
			aside++
		case err != nil:
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(9, aside); diff != "" {
		t.Error(diff)
	}
	counted, _, err := closedLoop(ctx, 16, 50*time.Millisecond, storm.do)
	if err != nil {
		t.Fatal(err)
	}
	counts, err := l.rt.Counts(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(int64(stored+171)+int64(counted.count), counts.Operations); diff != "" {
		t.Error(diff)
	}
	if _, _, err := l.audit(int(counts.Operations)).batch(ctx); err != nil {
		t.Error(err)
	}
}

// TestFirst: a batch has the first calls and no more, of a load of either form.
func TestFirst(t *testing.T) {
	ctx := context.Background()
	times := 0
	for _, c := range []struct {
		name string
		l    load
		want int
	}{
		{"calls", load{do: func(context.Context, int) error { times++; return nil }}, firstCalls},
		{"batches", load{batch: func(context.Context) (int, time.Duration, error) { times++; return 64, time.Second, nil }}, 2048},
	} {
		times = 0
		var w watch
		n, took, _, err := batches(ctx, time.Hour, firstOf(c.l, 1, &w))
		if err != nil || n != int64(c.want) || took == 0 || w.sum.own == 0 {
			t.Error(c.name, n, took, w.sum, err)
		}
		if made := map[string]int{"calls": times, "batches": times * 64}[c.name]; made != c.want {
			t.Errorf("%s: %d calls were made", c.name, made)
		}
	}
	broken := errors.New("broken")
	for _, l := range []load{
		{do: func(context.Context, int) error { return broken }},
		{batch: func(context.Context) (int, time.Duration, error) { return 0, 0, broken }},
	} {
		if _, _, err := firstOf(l, 2, &watch{}).batch(ctx); !errors.Is(err, broken) {
			t.Error(err)
		}
	}
}
