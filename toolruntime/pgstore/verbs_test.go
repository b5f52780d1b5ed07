package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/pgtest"
	"github.com/toolruntime/toolruntime-go/internal/verbtest"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// TestVerbs: the verbs are what they promise.
func TestVerbs(t *testing.T) {
	verbtest.Test(t, func(t *testing.T) verbtest.Ledger {
		e, address := newEngine(t, Options{RetryTimeout: 500 * time.Millisecond})
		return verbtest.Ledger{Engine: e, DB: pgtest.Open(t, address)}
	})
}

// rows counts the rows of the tables that the verbs write.
func rows(t *testing.T, db *sql.DB) (n [6]int64) {
	t.Helper()
	err := db.QueryRow(`SELECT (SELECT count(*) FROM operations), (SELECT count(*) FROM outbox), (SELECT count(*) FROM call_bindings),
		(SELECT count(*) FROM attempts), (SELECT count(*) FROM downstream_receipts), (SELECT count(*) FROM local_receipts)`).
		Scan(&n[0], &n[1], &n[2], &n[3], &n[4], &n[5])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func mustReserve(t *testing.T, e *pgEngine, key, call string) *engine.Reservation {
	t.Helper()
	r := verbtest.Reservation(key, call)
	if err := e.Reserve(context.Background(), r); err != nil || r.Answer != engine.Stored {
		t.Fatalf("reserve: %q, %v", r.Answer, err)
	}
	return r
}

// TestVerbsRefused: what the server refuses is an error, and leaves every table as it was,
// whether it does so at once or at the commit.
func TestVerbsRefused(t *testing.T) {
	for name, before := range map[string]string{
		"at once":       "ALTER TABLE outbox ADD CHECK (operation_pk = 1)",
		"at the commit": "ALTER TABLE outbox ADD UNIQUE (lane) DEFERRABLE INITIALLY DEFERRED",
	} {
		t.Run(name, func(t *testing.T) {
			e, address := newEngine(t, Options{MaxConns: 1})
			mustReserve(t, e, "a", "call-a")
			admin := pgtest.Open(t, address)
			if _, err := admin.Exec(before); err != nil {
				t.Fatal(err)
			}
			had := rows(t, admin)
			if err := e.Reserve(context.Background(), verbtest.Reservation("b", "call-b")); !errors.Is(err, engine.ErrConstraint) || errors.Is(err, engine.ErrCommitUnknown) {
				t.Errorf("got %v", err)
			}
			if after := rows(t, admin); after != had {
				t.Errorf("rows %v, before %v", after, had)
			}
		})
	}
}

// TestVerbRaces: a statement that comes while another transaction has its rows
// waits, and then decides by what that one has left.
func TestVerbRaces(t *testing.T) {
	const moved = "UPDATE outbox SET attempt_count = 2, updated_at = 5"
	other, _ := verbtest.Reservation("b", "call-c").Make(99)
	insert := `INSERT INTO operations SELECT (jsonb_populate_record(o, '{"operation_pk": 99, "idempotency_key": "b", "status_ref": "` + other.StatusRef + `"}')).* FROM operations o`
	const bind = `INSERT INTO call_bindings SELECT (jsonb_populate_record(c, '{"call_id": "call-b", "fingerprint_sha256": "%s"}')).* FROM call_bindings c`
	same, another := fmt.Sprintf(bind, strings.Repeat("a", 64)), fmt.Sprintf(bind, strings.Repeat("b", 64))
	const receipt = `INSERT INTO downstream_receipts (tenant_id, subject_id, tool_name, idempotency_key, request_sha256, receipt_id, downstream_request_id,
		result_json, producer_revision, resource_revision, observed_at, effect_revision, committed_at)
		VALUES ('t', 's', 'tool', 'x', repeat('a', 64), 'receipt-a', 'request', '', '', '', '', '', 1)`
	tests := []struct {
		name, first, end string
		move             bool
		want             engine.Answer
	}{
		{"a reservation of the scope", insert, "COMMIT", false, engine.Taken},
		{"a reservation of the scope that fails", insert, "ROLLBACK", false, engine.Stored},
		{"the call bound to the same", same, "COMMIT", false, engine.Stored},
		{"the call bound to something else", another, "COMMIT", false, engine.Taken}, // it is looked at again
		{"the call bound to something else, which fails", another, "ROLLBACK", false, engine.Stored},
		{"a claim", moved, "COMMIT", true, engine.Lost},
		{"a claim that fails", moved, "ROLLBACK", true, engine.Stored},
		{"a row that is written as it was", "UPDATE outbox SET lane = lane", "COMMIT", true, engine.Stored},
		{"a change of the operation", "UPDATE operations SET approver_id = 'mallory'", "COMMIT", true, engine.Lost},
		{"a pruning", "DELETE FROM outbox; DELETE FROM operations", "COMMIT", true, engine.Lost},
		{"a receipt with its id", receipt, "COMMIT", true, engine.Lost},
		{"a receipt with its id, which fails", receipt, "ROLLBACK", true, engine.Stored},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx := context.Background()
			e, address := newEngine(t, Options{MaxConns: 1})
			r := mustReserve(t, e, "a", "call-a")
			admin := pgtest.Open(t, address)
			tx, err := admin.Conn(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Close()
			for _, s := range []string{"BEGIN", tt.first} {
				if _, err := tx.ExecContext(ctx, s); err != nil {
					t.Fatal(err)
				}
			}
			var mine int64
			if err := tx.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&mine); err != nil {
				t.Fatal(err)
			}
			reservation, motion := verbtest.Reservation("b", "call-b"), verbtest.Commit(r)
			answered := make(chan error, 1)
			go func() {
				if tt.move {
					answered <- e.Move(ctx, motion)
				} else {
					answered <- e.Reserve(ctx, reservation)
				}
			}()
			for waits := int64(0); waits == 0; {
				if err := admin.QueryRow("SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))", mine).Scan(&waits); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := tx.ExecContext(ctx, tt.end); err != nil {
				t.Fatal(err)
			}
			if err := <-answered; err != nil {
				t.Error(err)
			}
			answer := reservation.Answer
			if tt.move {
				answer = motion.Answer
			}
			if answer != tt.want {
				t.Errorf("got %q, want %q", answer, tt.want)
			}
			// All of it is there, or nothing.
			var operations, events, ended, attempts, receipts int
			if err := admin.QueryRow(`SELECT (SELECT count(*) FROM operations WHERE operation_pk = $1), (SELECT count(*) FROM outbox WHERE operation_pk = $1),
				(SELECT count(*) FROM operations WHERE completed_at IS NOT NULL), (SELECT count(*) FROM attempts), (SELECT count(*) FROM local_receipts)`,
				reservation.Operation.OperationPK).Scan(&operations, &events, &ended, &attempts, &receipts); err != nil {
				t.Fatal(err)
			}
			want := 0
			if tt.want == engine.Stored {
				want = 1
			}
			if !tt.move && (operations != want || events != want) || tt.move && (ended != want || attempts != want || receipts != want) {
				t.Errorf("%d operations, %d events, %d have ended, %d attempts, %d receipts", operations, events, ended, attempts, receipts)
			}
		})
	}
}

// TestVerbLostAnswer: the connection breaks at either statement, before the
// server has it or after. The call ends as if nothing had happened.
func TestVerbLostAnswer(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	for _, mark := range []string{"operation-key", "refund-receipt-"} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/after=%v", mark, after), func(t *testing.T) {
				c := newCutter(t, after)
				c.mark = mark
				address := pgtest.Schema(t)
				store, err := Open(context.Background(), c.url(address), &Options{Migrate: true})
				if err != nil {
					t.Fatal(err)
				}
				defer store.Close()
				rt := newRuntime(t, store)
				c.armed.Store(true)
				pkg, err := dispatch(context.Background(), rt, "key")
				if err != nil || pkg.Code() != toolresult.OK || pkg.Delivery() != toolresult.Fresh || c.armed.Load() {
					t.Fatalf("%v, %v", pkg, err)
				}
				if r := audit(t, address); !r.Passed {
					t.Errorf("%+v", r)
				}
				if n := rows(t, pgtest.Open(t, address)); n != [6]int64{1, 1, 1, 1, 1, 1} {
					t.Errorf("rows %v", n)
				}
			})
		}
	}
}

// TestVerbInDoubtCancelled: whose context ends while the answer is under way is told that
// nobody knows, and not that nothing was stored.
func TestVerbInDoubtCancelled(t *testing.T) {
	c := newCutter(t, true)
	c.mark = "call-b"
	address := pgtest.Schema(t)
	e, err := open(context.Background(), c.url(address), &Options{Migrate: true, MaxConns: 1}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	mustReserve(t, e, "a", "call-a")
	ctx, cancel := context.WithCancel(context.Background())
	r := verbtest.Reservation("b", "call-b")
	rows := r.Make
	r.Make = func(pk int64) (dbgen.Operation, dbgen.Outbox) {
		cancel() // its turn has come
		return rows(pk)
	}
	c.armed.Store(true)
	if err := e.Reserve(ctx, r); !errors.Is(err, engine.ErrCommitUnknown) || c.armed.Load() {
		t.Errorf("got %q, %v", r.Answer, err)
	}
	r.Answer = ""
	if err := e.Write(context.Background(), engine.Again(r)); err != nil || r.Answer != engine.Stored {
		t.Errorf("again: %q, %v", r.Answer, err)
	}
}

// TestVerbsOfAClosedEngine: it says that it is closed, and stores nothing.
func TestVerbsOfAClosedEngine(t *testing.T) {
	e, address := newEngine(t, Options{})
	r := mustReserve(t, e, "a", "call-a")
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	admin := pgtest.Open(t, address)
	before := rows(t, admin)
	if err := e.Reserve(context.Background(), verbtest.Reservation("b", "call-b")); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if err := e.Move(context.Background(), verbtest.Commit(r)); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if after := rows(t, admin); after != before {
		t.Errorf("rows %v, before %v", after, before)
	}
}

// TestVerbsCrossed: batches that bind the same call identities in opposite orders, and
// those that want each other's scopes, get their answers: no deadlock is anybody's error,
// and no operation is without the identity of its call.
func TestVerbsCrossed(t *testing.T) {
	ctx := context.Background()
	e, address := newEngine(t, Options{MaxConns: 4})
	for name, batches := range map[string][2][][2]string{ // of scopes with calls
		"identities": {{{"a", "1"}, {"b", "2"}}, {{"c", "2"}, {"d", "1"}}},
		"both":       {{{"e", "3"}, {"f", "4"}}, {{"f", "3"}, {"e", "4"}}},
	} {
		stored := 0
		for round := range 50 {
			var all [2][]*engine.Reservation
			var both sync.WaitGroup
			for i, batch := range batches {
				for _, r := range batch {
					all[i] = append(all[i], verbtest.Reservation(fmt.Sprint(r[0], round), fmt.Sprint(r[1], round)))
				}
				both.Go(func() {
					if err := e.Reserve(ctx, all[i]...); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			both.Wait()
			for _, r := range slices.Concat(all[:]...) {
				if r.Answer == engine.Stored {
					stored++
				}
			}
		}
		want := 50 * 4
		if name == "both" {
			want = 50 * 2
		}
		if stored != want {
			t.Errorf("%s: %d are stored, want %d", name, stored, want)
		}
	}
	var alone, operations int
	if err := pgtest.Open(t, address).QueryRow(`SELECT count(*) FILTER (WHERE e.operation_pk IS NULL), count(*) FROM operations o LEFT JOIN outbox e USING (operation_pk)`).Scan(&alone, &operations); err != nil || alone != 0 || operations != 300 {
		t.Errorf("%d operations, of which %d have no event, %v", operations, alone, err)
	}
	// Where both cross, one call may have brought both operations of a round.
	var calls int
	if err := pgtest.Open(t, address).QueryRow("SELECT count(*) FROM call_bindings").Scan(&calls); err != nil || calls < 150 || calls > 200 {
		t.Errorf("%d call identities, %v", calls, err)
	}
}
