package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/pgtest"
)

// A tried is what became of a write.
type tried struct {
	stored, unknown bool
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
func together(t *testing.T, e *pgEngine, writes ...func() (bool, error)) []tried {
	t.Helper()
	results := make([]tried, len(writes))
	var all sync.WaitGroup
	release := hold(t, e)
	for i, write := range writes {
		all.Go(func() {
			stored, err := write()
			if err != nil && !errors.Is(err, engine.ErrCommitUnknown) {
				t.Error(err)
			}
			results[i] = tried{stored, err != nil}
		})
		awaitQueue(&e.writes, i+1)
	}
	release()
	all.Wait()
	return results
}

func reserving(e *pgEngine, key, call string) func() (bool, error) {
	return func() (bool, error) { return e.Reserve(context.Background(), reservationOf(key, call)) }
}

func committing(e *pgEngine, r engine.Reservation) func() (bool, error) {
	return func() (bool, error) { return e.Commit(context.Background(), commitmentOf(r)) }
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
	yes, no := tried{stored: true}, tried{}
	const deferred = `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''refused''; END';
		CREATE CONSTRAINT TRIGGER late AFTER INSERT ON operations DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW WHEN (NEW.idempotency_key = 'd') EXECUTE FUNCTION refuse()`
	tests := []struct {
		name   string
		before string
		writes func(e *pgEngine, a engine.Reservation) []func() (bool, error)
		want   []tried
		rows   [6]int64
		commit int64 // transactions that have written b and c
	}{
		{"new ones", "", func(e *pgEngine, a engine.Reservation) []func() (bool, error) {
			return []func() (bool, error){reserving(e, "c", "call-c"), committing(e, a), reserving(e, "b", "call-b")}
		}, []tried{yes, yes, yes}, [6]int64{3, 3, 3, 1, 1, 1}, 1},
		{"one of a taken scope", "", func(e *pgEngine, a engine.Reservation) []func() (bool, error) {
			return []func() (bool, error){reserving(e, "b", "call-b"), reserving(e, "a", "call-d"), reserving(e, "c", "call-c")}
		}, []tried{yes, no, yes}, [6]int64{3, 3, 3, 0, 0, 0}, 1},
		{"one that is refused", "", func(e *pgEngine, a engine.Reservation) []func() (bool, error) {
			return []func() (bool, error){reserving(e, "b", "call-b"), reserving(e, "d", "call-a"), reserving(e, "c", "call-c")}
		}, []tried{yes, no, yes}, [6]int64{3, 3, 3, 0, 0, 0}, 2},
		{"one that is refused at the commit", deferred, func(e *pgEngine, a engine.Reservation) []func() (bool, error) {
			return []func() (bool, error){reserving(e, "b", "call-b"), reserving(e, "d", "call-d"), reserving(e, "c", "call-c")}
		}, []tried{yes, no, yes}, [6]int64{3, 3, 3, 0, 0, 0}, 2},
		{"two of one scope", "", func(e *pgEngine, a engine.Reservation) []func() (bool, error) {
			return []func() (bool, error){reserving(e, "b", "call-b"), reserving(e, "b", "call-d"), reserving(e, "c", "call-c")}
		}, []tried{yes, no, yes}, [6]int64{3, 3, 3, 0, 0, 0}, 1},
		{"two of one claim", "", func(e *pgEngine, a engine.Reservation) []func() (bool, error) {
			return []func() (bool, error){committing(e, a), committing(e, a), reserving(e, "b", "call-b"), reserving(e, "c", "call-c")}
		}, []tried{yes, no, yes, yes}, [6]int64{3, 3, 3, 1, 1, 1}, 1},
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
				if got[i] == yes && tt.want[i] == no && i > 0 && got[i-1] == no {
					got[i-1], got[i] = yes, no
				}
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(tried{})); diff != "" {
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
	b := func() (bool, error) {
		stored, err := e.Reserve(ctx, reservationOf("b", "call-b"))
		return stored, errors.Join(err, tx.Rollback()) // only now can the other go on
	}
	got := together(t, e, committing(e, a), b)
	if diff := cmp.Diff([]tried{{stored: true}, {stored: true}}, got, cmp.AllowUnexported(tried{})); diff != "" {
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
			in := tried{unknown: true}
			if diff := cmp.Diff([]tried{in, in, in}, got, cmp.AllowUnexported(tried{})); diff != "" || c.armed.Load() {
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
	stored, closed := make(chan bool), make(chan error)
	for _, key := range []string{"a", "b"} {
		go func() {
			ok, err := e.Reserve(context.Background(), reservationOf(key, "call-"+key))
			if err != nil {
				t.Error(err)
			}
			stored <- ok
		}()
	}
	awaitQueue(&e.writes, 2)
	go func() { closed <- e.Close() }()
	for e.enter() == nil {
		e.leave()
	}
	release()
	if first, second := <-stored, <-stored; !first || !second {
		t.Errorf("stored: %v and %v", first, second)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}
