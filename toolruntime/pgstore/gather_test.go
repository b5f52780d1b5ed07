package pgstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/engine"
)

// nowhere makes connections to nothing: a gatherer only has to have one.
type nowhere struct{ driver.Conn }

func (nowhere) Connect(context.Context) (driver.Conn, error) { return nowhere{}, nil }
func (nowhere) Driver() driver.Driver                        { return nil }
func (nowhere) Close() error                                 { return nil }

// A sending is a batch that has been sent. It ends with what the test says.
type sending struct {
	batch []int
	end   chan error
}

// gathering is a gatherer with conns connections, in a bubble of its own.
func gathering(t *testing.T, conns int, leave bool, test func(t *testing.T, g *gatherer[int], sent chan sending)) {
	synctest.Test(t, func(t *testing.T) {
		db := sql.OpenDB(nowhere{})
		defer db.Close()
		db.SetMaxOpenConns(conns)
		sent := make(chan sending, 1000)
		test(t, &gatherer[int]{db: db, leave: leave, send: func(ctx context.Context, _ *sql.Conn, batch []int) error {
			s := sending{slices.Clone(batch), make(chan error)}
			sent <- s
			select {
			case err := <-s.end:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}}, sent)
	})
}

// start sends a statement, and returns when it is under way or in the queue.
func start(ctx context.Context, g *gatherer[int], statement int) (answer chan error) {
	answer = make(chan error, 1)
	go func() { answer <- g.do(ctx, statement) }()
	synctest.Wait()
	return answer
}

func startMany(g *gatherer[int], n int) (answers []chan error) {
	for i := range n {
		answers = append(answers, start(context.Background(), g, i))
	}
	return answers
}

// TestGatherAsTheyCome: a lone caller waits for nobody, and the more are under way,
// the more have to wait before the next are sent.
func TestGatherAsTheyCome(t *testing.T) {
	gathering(t, 100, false, func(t *testing.T, g *gatherer[int], sent chan sending) {
		answers := startMany(g, 200)
		var sizes []int
		for len(answers) > 0 {
			s := <-sent
			sizes = append(sizes, len(s.batch))
			s.end <- nil
			for range s.batch {
				if err := <-answers[0]; err != nil {
					t.Error(err)
				}
				answers = answers[1:]
			}
		}
		// What was left waits for half of what was under way, and then goes at once.
		want := []int{1, 1, 1, 1, 1, 1, 1, 1, 4, 6, 9, 14, 21, 31, 32, 32, 32, 11}
		if diff := cmp.Diff(want, sizes); diff != "" {
			t.Errorf("batches (-want +got):\n%s", diff)
		}
		if g.sent != 0 || g.led || len(g.queue) != 0 {
			t.Errorf("%d under way, %d in the queue, led: %v", g.sent, len(g.queue), g.led)
		}
	})
}

// TestGatherFailure: a batch that has failed is sent again one by one, and each
// gets the answer to its own. A batch in doubt is not sent again.
func TestGatherFailure(t *testing.T) {
	gathering(t, 1, false, func(t *testing.T, g *gatherer[int], sent chan sending) {
		first := start(context.Background(), g, -1)
		answers := startMany(g, 3)
		(<-sent).end <- nil
		refused := errors.New("refused")
		if err := <-first; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		together := <-sent
		if diff := cmp.Diff([]int{0, 1, 2}, together.batch); diff != "" {
			t.Fatal(diff)
		}
		together.end <- refused
		for range 3 {
			s := <-sent
			if len(s.batch) != 1 {
				t.Fatal(s.batch)
			}
			if s.batch[0] == 1 {
				s.end <- refused
			} else {
				s.end <- nil
			}
		}
		for i, answer := range answers {
			if err := <-answer; (i == 1) != errors.Is(err, refused) || (i != 1) != (err == nil) {
				t.Errorf("%d: %v", i, err)
			}
		}

		first = start(context.Background(), g, -1)
		answers = startMany(g, 3)
		(<-sent).end <- nil
		(<-sent).end <- engine.ErrCommitUnknown
		for _, answer := range append(answers, first) {
			if err := <-answer; answer != first && !errors.Is(err, engine.ErrCommitUnknown) {
				t.Error(err)
			}
		}
		if len(sent) != 0 {
			t.Error("what is in doubt was sent again")
		}
	})
}

// TestGatherCancelled: who gives up before its turn is not sent. Afterwards it is
// waited for, or left.
func TestGatherCancelled(t *testing.T) {
	for _, leave := range []bool{false, true} {
		gathering(t, 1, leave, func(t *testing.T, g *gatherer[int], sent chan sending) {
			ctx, cancel := context.WithCancel(context.Background())
			first := start(context.Background(), g, 0)
			leader, queued, stays := start(ctx, g, 1), start(ctx, g, 2), start(context.Background(), g, 3)
			cancel() // the leader waits for the only connection
			for _, answer := range []chan error{leader, queued} {
				if err := <-answer; !errors.Is(err, context.Canceled) {
					t.Errorf("a cancelled call got %v", err)
				}
			}
			ctx, cancel = context.WithCancel(context.Background())
			late := start(ctx, g, 4)
			(<-sent).end <- nil
			s := <-sent
			if diff := cmp.Diff([]int{3, 4}, s.batch); diff != "" {
				t.Error(diff)
			}
			cancel()
			synctest.Wait()
			if left := len(late) == 1; left != leave {
				t.Errorf("left: %v, want %v", left, leave)
			}
			s.end <- nil
			if err := errors.Join(<-first, <-stays); err != nil {
				t.Error(err)
			}
			if err := <-late; leave != errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if err := g.do(ctx, 5); !errors.Is(err, context.Canceled) || len(sent) != 0 {
				t.Errorf("a cancelled call got %v", err)
			}
		})
	}
}

// TestGatherLeaderLeaves: the end of the leader's context is not that of the others.
func TestGatherLeaderLeaves(t *testing.T) {
	gathering(t, 1, true, func(t *testing.T, g *gatherer[int], sent chan sending) {
		first := start(context.Background(), g, 0)
		ctx, cancel := context.WithCancel(context.Background())
		leader, other := start(ctx, g, 1), start(context.Background(), g, 2)
		(<-sent).end <- nil
		<-sent
		cancel()
		if err := <-leader; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		(<-sent).end <- nil
		if err := errors.Join(<-first, <-other); err != nil {
			t.Error(err)
		}
	})
}

// TestGatherPatience: a batch that takes long holds up nobody.
func TestGatherPatience(t *testing.T) {
	gathering(t, 100, false, func(t *testing.T, g *gatherer[int], sent chan sending) {
		answers := startMany(g, few)
		var stuck []sending
		for range few {
			stuck = append(stuck, <-sent)
		}
		waits := start(context.Background(), g, few)
		if len(sent) != 0 {
			t.Fatal("it was sent at once")
		}
		time.Sleep(patience)
		synctest.Wait()
		(<-sent).end <- nil
		if err := <-waits; err != nil {
			t.Error(err)
		}
		for _, s := range stuck {
			s.end <- nil
		}
		for _, answer := range answers {
			if err := <-answer; err != nil {
				t.Error(err)
			}
		}
		if g.sent != 0 {
			t.Errorf("%d under way", g.sent)
		}
	})
}

// one makes a single connection; a second attempt hangs until its caller gives up.
type one struct {
	nowhere
	made *atomic.Int64
}

func (o one) Connect(ctx context.Context) (driver.Conn, error) {
	if o.made.Add(1) == 1 {
		return nowhere{}, nil
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestGatherDialing: a leader whose connection is not to be had holds up nobody,
// and goes alone in the end.
func TestGatherDialing(t *testing.T) {
	gathering(t, 2, false, func(t *testing.T, g *gatherer[int], sent chan sending) {
		g.db = sql.OpenDB(one{made: new(atomic.Int64)})
		defer g.db.Close()
		g.db.SetMaxOpenConns(2)
		ctx, cancel := context.WithCancel(context.Background())
		first := start(context.Background(), g, 0)
		dials, waits := start(ctx, g, 1), start(context.Background(), g, 2)
		(<-sent).end <- nil
		time.Sleep(patience)
		s := <-sent
		if diff := cmp.Diff([]int{2}, s.batch); diff != "" {
			t.Error(diff)
		}
		s.end <- nil
		if err := errors.Join(<-first, <-waits); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-dials; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if g.sent != 0 || g.led || len(g.queue) != 0 {
			t.Errorf("%d under way, %d in the queue, led: %v", g.sent, len(g.queue), g.led)
		}
	})
}

// TestGatherPanic: whoever shares a batch in which something panics is answered,
// and does not know what has become of it.
func TestGatherPanic(t *testing.T) {
	gathering(t, 1, false, func(t *testing.T, g *gatherer[int], sent chan sending) {
		first := start(context.Background(), g, 0)
		g.send = func(context.Context, *sql.Conn, []int) error { panic("a bug") }
		answers := startMany(g, 2)
		(<-sent).end <- nil
		for _, answer := range answers {
			if err := <-answer; !errors.Is(err, engine.ErrCommitUnknown) {
				t.Error(err)
			}
		}
		if err := <-first; err != nil || g.sent != 0 {
			t.Errorf("%d under way, %v", g.sent, err)
		}
	})
}

// TestGatherNoConnection: who finds no connection says so to all that wait.
func TestGatherNoConnection(t *testing.T) {
	gathering(t, 1, false, func(t *testing.T, g *gatherer[int], sent chan sending) {
		first := start(context.Background(), g, 0)
		answers := startMany(g, 2)
		closed := make(chan error)
		go func() { closed <- g.db.Close() }()
		for _, answer := range answers {
			if err := <-answer; err == nil {
				t.Error("no error")
			}
		}
		(<-sent).end <- nil
		if err := errors.Join(<-first, <-closed); err != nil || g.sent != 0 {
			t.Errorf("%d under way, %v", g.sent, err)
		}
	})
}
