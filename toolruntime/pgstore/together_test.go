package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/pgtest"
	"github.com/toolruntime/toolruntime-go/internal/verbtest"
)

// A tried is what became of a write.
type tried struct {
	answer engine.Answer
	err    error // the kind of its error
}

// hold takes every connection of an engine, until release.
func hold(t *testing.T, e *pgEngine) (release func()) {
	t.Helper()
	var conns []*sql.Conn
	for range e.db.Stats().MaxOpenConnections {
		conn, err := e.db.Conn(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	return func() {
		for _, conn := range conns {
			conn.Close()
		}
	}
}

// awaitQueue returns when so many wait.
func awaitQueue[T any](g *gatherer[T], n int) {
	for waiting := -1; waiting != n; {
		g.mu.Lock()
		waiting = len(g.queue)
		g.mu.Unlock()
		runtime.Gosched()
	}
}

// together does writes on an engine whose connections it holds until they all wait:
// they are one batch.
func together(t *testing.T, e *pgEngine, writes ...func() (engine.Answer, error)) []tried {
	t.Helper()
	results := make([]tried, len(writes))
	var all sync.WaitGroup
	release := hold(t, e)
	for i, write := range writes {
		all.Go(func() {
			answer, err := write()
			if results[i].answer = answer; err != nil {
				results[i] = tried{err: kindOf(t, err)} // no answer means anything
			}
		})
		awaitQueue(&e.writes, i+1)
	}
	release()
	all.Wait()
	return results
}

func kindOf(t *testing.T, err error) error {
	t.Helper()
	for _, kind := range []error{engine.ErrCommitUnknown, engine.ErrConstraint} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	t.Error(err)
	return err
}

func reserving(e *pgEngine, key, call string) func() (engine.Answer, error) {
	return func() (engine.Answer, error) {
		r := verbtest.Reservation(key, call)
		err := e.Reserve(context.Background(), r)
		return r.Answer, err
	}
}

// bindingOtherwise reserves with a call identity for something else than others do.
func bindingOtherwise(e *pgEngine, key, call string) func() (engine.Answer, error) {
	return func() (engine.Answer, error) {
		r := verbtest.Reservation(key, call)
		r.Binding.FingerprintSha256 = strings.Repeat("b", 64)
		err := e.Reserve(context.Background(), r)
		return r.Answer, err
	}
}

func committing(e *pgEngine, r *engine.Reservation) func() (engine.Answer, error) {
	return func() (engine.Answer, error) {
		m := verbtest.Commit(r)
		err := e.Move(context.Background(), m)
		return m.Answer, err
	}
}

// transactions counts those that have written the operations named.
func transactions(t *testing.T, db *sql.DB, keys string) (n int64) {
	t.Helper()
	err := db.QueryRow("SELECT count(DISTINCT xmin::text) FROM operations WHERE idempotency_key IN (" + keys + ")").Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestTogether: writes that wait together commit together, and each is answered
// for itself.
func TestTogether(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	yes, taken, bound, lost := tried{answer: engine.Stored}, tried{answer: engine.Taken}, tried{answer: engine.Bound}, tried{answer: engine.Lost}
	refused := tried{err: engine.ErrConstraint}
	const deferred = `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''refused''; END';
		CREATE CONSTRAINT TRIGGER late AFTER INSERT ON operations DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW WHEN (NEW.idempotency_key = 'd') EXECUTE FUNCTION refuse()`
	type writes = []func() (engine.Answer, error)
	atOnce := strings.Replace(deferred, "DEFERRABLE INITIALLY DEFERRED", "", 1)
	tests := []struct {
		name   string
		before string
		writes func(e *pgEngine, a *engine.Reservation) writes
		want   []tried
		rows   [6]int64
		commit int64 // transactions that have written b and c
	}{
		{"new ones", "", func(e *pgEngine, a *engine.Reservation) writes {
			return writes{reserving(e, "c", "call-c"), committing(e, a), reserving(e, "b", "call-b")}
		}, []tried{yes, yes, yes}, [6]int64{3, 3, 3, 1, 1, 1}, 1},
		{"one of a taken scope", "", func(e *pgEngine, a *engine.Reservation) writes {
			return writes{reserving(e, "b", "call-b"), reserving(e, "a", "call-d"), reserving(e, "c", "call-c")}
		}, []tried{yes, taken, yes}, [6]int64{3, 3, 3, 0, 0, 0}, 1},
		{"one of a call that is bound to something else", "", func(e *pgEngine, a *engine.Reservation) writes {
			return writes{reserving(e, "b", "call-b"), bindingOtherwise(e, "d", "call-a"), reserving(e, "c", "call-c")}
		}, []tried{yes, bound, yes}, [6]int64{3, 3, 3, 0, 0, 0}, 1},
		{"one that is refused", atOnce, func(e *pgEngine, a *engine.Reservation) writes {
			return writes{reserving(e, "b", "call-b"), reserving(e, "d", "call-d"), reserving(e, "c", "call-c")}
		}, []tried{yes, refused, yes}, [6]int64{3, 3, 3, 0, 0, 0}, 2},
		{"one that is refused at the commit", deferred, func(e *pgEngine, a *engine.Reservation) writes {
			return writes{reserving(e, "b", "call-b"), reserving(e, "d", "call-d"), reserving(e, "c", "call-c")}
		}, []tried{yes, refused, yes}, [6]int64{3, 3, 3, 0, 0, 0}, 2},
		{"two of one scope", "", func(e *pgEngine, a *engine.Reservation) writes {
			return writes{reserving(e, "b", "call-b"), reserving(e, "b", "call-d"), reserving(e, "c", "call-c")}
		}, []tried{yes, taken, yes}, [6]int64{3, 3, 3, 0, 0, 0}, 1},
		{"two of one claim", "", func(e *pgEngine, a *engine.Reservation) writes {
			return writes{committing(e, a), committing(e, a), reserving(e, "b", "call-b"), reserving(e, "c", "call-c")}
		}, []tried{yes, lost, yes, yes}, [6]int64{3, 3, 3, 1, 1, 1}, 1},
	}
	for _, tt := range tests {
		test := func(t *testing.T, mode string) {
			first, address := newEngine(t, Options{MaxConns: 1})
			e, err := open(context.Background(), pgtest.With(address, "default_query_exec_mode", mode), &Options{MaxConns: 1}, false)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			a := mustReserve(t, first, "a", "call-a")
			admin := pgtest.Open(t, address)
			if _, err := admin.Exec(tt.before); err != nil {
				t.Fatal(err)
			}
			got := together(t, e, tt.writes(e, a)...)
			for i := range got {
				// Which of two that are equal is the first is not said.
				if got[i] == yes && i > 0 && tt.want[i-1] == yes && got[i-1] == tt.want[i] {
					got[i-1], got[i] = yes, got[i-1]
				}
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(tried{}), cmpopts.EquateErrors()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if n := rows(t, admin); n != tt.rows {
				t.Errorf("rows %v, want %v", n, tt.rows)
			}
			if n := transactions(t, admin, "'b', 'c'"); n != tt.commit {
				t.Errorf("%d transactions, want %d", n, tt.commit)
			}
			// The keys are nobody else's, whatever has become of them.
			mustReserve(t, e, "e", "call-e")
			// Nor does the only connection keep a batch's patience.
			var patience string
			if err := e.db.QueryRow("SELECT current_setting('lock_timeout')").Scan(&patience); err != nil || patience != "5s" {
				t.Errorf("lock_timeout is %q, %v", patience, err)
			}
		}
		for _, mode := range []string{"cache_statement", "exec", "simple_protocol"} {
			t.Run(tt.name+"/"+mode, func(t *testing.T) { test(t, mode) })
		}
	}
}

// TestTogetherWithALockedRow: who waits for somebody else's lock does so alone.
func TestTogetherWithALockedRow(t *testing.T) {
	ctx := context.Background()
	e, address := newEngine(t, Options{MaxConns: 2})
	a := mustReserve(t, e, "a", "call-a")
	tx, err := pgtest.Open(t, address).BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec("SELECT FROM outbox FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	b := func() (engine.Answer, error) {
		answer, err := reserving(e, "b", "call-b")()
		return answer, errors.Join(err, tx.Rollback()) // only now can the other go on
	}
	got := together(t, e, committing(e, a), b)
	if diff := cmp.Diff([]tried{{answer: engine.Stored}, {answer: engine.Stored}}, got, cmp.AllowUnexported(tried{}), cmpopts.EquateErrors()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTogetherLostAnswer: the connection breaks under a batch, before the server
// has it or after. Nobody is told that his rows are stored, and all or none are.
func TestTogetherLostAnswer(t *testing.T) {
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("after=%v", after), func(t *testing.T) {
			c := newCutter(t, after)
			c.mark = "call-c"
			address := pgtest.Schema(t)
			e, err := open(context.Background(), c.url(address), &Options{Migrate: true, MaxConns: 1}, false)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			a := mustReserve(t, e, "a", "call-a")
			mustReserve(t, e, "e", "call-e")
			admin := pgtest.Open(t, address)
			before := rows(t, admin)
			c.armed.Store(true)
			got := together(t, e, committing(e, a), reserving(e, "b", "call-b"), reserving(e, "c", "call-c"))
			in := tried{err: engine.ErrCommitUnknown}
			if diff := cmp.Diff([]tried{in, in, in}, got, cmp.AllowUnexported(tried{}), cmpopts.EquateErrors()); diff != "" || c.armed.Load() {
				t.Errorf("(-want +got):\n%s", diff)
			}
			want := before
			if after {
				want = [6]int64{4, 4, 4, 1, 1, 1}
			}
			if n := rows(t, admin); n != want {
				t.Errorf("rows %v, want %v", n, want)
			}
		})
	}
}

// TestTogetherClose: an engine that is closed answers those who have come before.
func TestTogetherClose(t *testing.T) {
	e, _ := newEngine(t, Options{MaxConns: 1})
	release := hold(t, e)
	answers, closed := make(chan engine.Answer), make(chan error)
	for _, key := range []string{"a", "b"} {
		go func() {
			answer, err := reserving(e, key, "call-"+key)()
			if err != nil {
				t.Error(err)
			}
			answers <- answer
		}()
	}
	awaitQueue(&e.writes, 2)
	go func() { closed <- e.Close() }()
	for e.enter() == nil {
		e.leave()
	}
	release()
	if first, second := <-answers, <-answers; first != engine.Stored || second != engine.Stored {
		t.Errorf("got %q and %q", first, second)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}
