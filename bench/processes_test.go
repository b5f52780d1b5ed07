package main

import (
	"bufio"
	"context"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestFleet has two children, which are not processes here, measure twice on one file.
func TestFleet(t *testing.T) {
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
	f := &fleet{}
	ended := make(chan error, 2)
	for _, after := range []string{"0", "4294967296"} {
		in, tell := io.Pipe()
		hear, out := io.Pipe()
		go func() { ended <- dispatchAlone(ctx, "sqlite", l.address, after, in, out) }()
		c := &child{tell, bufio.NewScanner(hear)}
		var ready string
		if err := c.listen(&ready); err != nil {
			t.Fatal(err)
		}
		f.children = append(f.children, c)
	}
	var counted int64
	for range 2 {
		n, took, h, err := load{fleet: f.run}.run(ctx, 1, 50*time.Millisecond)
		if err != nil || took < 50*time.Millisecond || h.quantile(0.5) == 0 || n != int64(h.count) || f.least <= 0 || f.least > 1 {
			t.Fatal(n, took, f.least, err)
		}
		counted += n
	}
	for _, c := range f.children {
		c.tell.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	counts, err := l.rt.Counts(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(counted, counts.Operations); diff != "" {
		t.Error(diff)
	}
	if _, _, err := l.audit(int(counted)).batch(ctx); err != nil {
		t.Error(err)
	}
}

// TestChildEnds: a process that ends is an error, and so is an order that it does not
// know.
func TestChildEnds(t *testing.T) {
	hear, out := io.Pipe()
	out.Close()
	if err := (&child{nil, bufio.NewScanner(hear)}).listen(new(string)); err == nil {
		t.Error("a child that has ended was heard")
	}
	b, err := newBed(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	in, tell := io.Pipe()
	go tell.Write([]byte("soon\n"))
	if err := dispatchAlone(context.Background(), "sqlite", b.file("l.sqlite3"), "0", in, io.Discard); err == nil {
		t.Error("no error")
	}
	if err := dispatchAlone(context.Background(), "sqlite", b.file("l.sqlite3"), "first", in, io.Discard); err == nil {
		t.Error("no error")
	}
}
