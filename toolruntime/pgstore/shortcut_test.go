package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/pgtest"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// reservationOf is a reservation of the key and call named, as the schema wants it.
func reservationOf(key, call string) func(int64) engine.Reservation {
	return func(pk int64) engine.Reservation {
		ref := "status_" + strings.Repeat(fmt.Sprintf("%x", key[0]%16), 32)
		sha := strings.Repeat("a", 64)
		lease := sql.NullInt64{Int64: 30, Valid: true}
		return engine.Reservation{
			Operation: dbgen.Operation{OperationPK: pk, TenantID: "t", SubjectID: "s", ToolName: "tool", IdempotencyKey: key,
				RequestSha256: sha, ArgumentsJSON: "{}", ApprovalDigest: sha, StatusRef: ref, State: "processing",
				CreatedAt: 1, UpdatedAt: 1, RowDigest: []byte{}},
			Event: dbgen.Outbox{OperationPK: pk, EventID: fmt.Sprint("event-", pk), State: "processing", Lane: "lane",
				LeaseOwner: sql.NullString{String: "worker", Valid: true}, LeaseUntil: lease, AttemptCount: 1,
				CreatedAt: 1, UpdatedAt: 1, NextAttemptAt: 30, RowDigest: []byte{}},
			Binding: dbgen.CallBinding{TenantID: "t", SubjectID: "s", Provider: "p", APIFamily: "f", ResponseID: "r", CallID: call,
				FingerprintSha256: sha, CreatedAt: 1, StatusRef: ref, RowDigest: []byte{}},
			Until: contract.MaxTime,
		}
	}
}

// commitmentOf ends what a reservation has stored.
func commitmentOf(r engine.Reservation) engine.Commitment {
	o, e := r.Operation, r.Event
	o.State, o.UpdatedAt, o.CompletedAt = "succeeded", 2, sql.NullInt64{Int64: 2, Valid: true}
	e.State, e.UpdatedAt, e.LeaseOwner, e.LeaseUntil, e.NextAttemptAt = "delivered", 2, sql.NullString{}, sql.NullInt64{}, 0
	return engine.Commitment{FromOperation: r.Operation, Operation: o, FromEvent: r.Event, Event: e,
		Attempt: dbgen.Attempt{Attempt: 1, WorkerID: "worker", StartedAt: 1, EndedAt: 2, Outcome: "succeeded", RowDigest: []byte{}},
		Observed: dbgen.DownstreamReceipt{ReceiptID: "receipt-" + o.IdempotencyKey, DownstreamRequestID: "request-" + o.IdempotencyKey,
			ResultJSON: "{}", RowDigest: []byte{}},
		Accepted: dbgen.LocalReceipt{RowDigest: []byte{}},
	}
}

// rows counts the rows of the tables that the shortcuts write.
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

func mustReserve(t *testing.T, e *pgEngine, key, call string) (r engine.Reservation) {
	t.Helper()
	stored, err := e.Reserve(context.Background(), func(pk int64) engine.Reservation {
		r = reservationOf(key, call)(pk)
		return r
	})
	if !stored || err != nil {
		t.Fatalf("reserve: %v, %v", stored, err)
	}
	return r
}

// TestShortcutStoresAllOrNothing: whatever is not as the caller has read it leaves
// every table as it was.
func TestShortcutStoresAllOrNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	reserve := func(key, call string) func(*pgEngine, engine.Reservation) (bool, error) {
		return func(e *pgEngine, _ engine.Reservation) (bool, error) {
			return e.Reserve(context.Background(), reservationOf(key, call))
		}
	}
	commit := func(e *pgEngine, r engine.Reservation) (bool, error) {
		return e.Commit(context.Background(), commitmentOf(r))
	}
	const tombstone = `INSERT INTO tombstones (tenant_id, subject_id, tool_name, idempotency_key, status_ref, state, request_sha256,
		created_at, completed_at, pruned_at) VALUES ('t', 's', 'tool', 'b', 'status_' || repeat('b', 32), 'failed', repeat('a', 64), 1, 1, 1)`
	const receipt = `INSERT INTO downstream_receipts (tenant_id, subject_id, tool_name, idempotency_key, request_sha256, receipt_id, downstream_request_id,
		result_json, producer_revision, resource_revision, observed_at, effect_revision, committed_at)
		VALUES ('t', 's', 'tool', '%s', repeat('a', 64), '%s', 'request', '', '', '', '', '', 1)`
	tests := []struct {
		name, before string
		do           func(*pgEngine, engine.Reservation) (bool, error)
		stored       bool
	}{
		{"a new scope", "", reserve("b", "call-b"), true},
		{"a taken scope", "", reserve("a", "call-b"), false},
		{"a bound call", "", reserve("b", "call-a"), false},
		{"a tombstone", tombstone, reserve("b", "call-b"), false},
		{"a refused row", "ALTER TABLE outbox ADD CHECK (operation_pk = 1)", reserve("b", "call-b"), false},
		{"a row refused at the commit", "ALTER TABLE outbox ADD UNIQUE (lane) DEFERRABLE INITIALLY DEFERRED", reserve("b", "call-b"), false},
		{"a claim", "", commit, true},
		{"an attempt that is known", "INSERT INTO attempts VALUES (1, 1, 'worker', 1, 1, 'unknown', '')", commit, true},
		{"a receipt of the scope", fmt.Sprintf(receipt, "a", "receipt"), commit, false},
		{"a receipt of another scope", fmt.Sprintf(receipt, "b", "receipt-a"), commit, false},
		{"an accepted receipt", "INSERT INTO local_receipts VALUES (1, '', '', repeat('a', 64), '', '', '', '', '', 1, '')", commit, false},
	}
	for _, table := range []string{"operations", "outbox"} {
		for _, column := range columns(t, table) {
			tests = append(tests, struct {
				name, before string
				do           func(*pgEngine, engine.Reservation) (bool, error)
				stored       bool
			}{"changed " + table + "." + column[0], "UPDATE " + table + " SET " + column[0] + " = " + column[1], commit, false})
		}
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, address := newEngine(t, Options{MaxConns: 1})
			r := mustReserve(t, e, "a", "call-a")
			admin := pgtest.Open(t, address)
			if _, err := admin.Exec(tt.before); err != nil {
				t.Fatal(err)
			}
			before := rows(t, admin)
			stored, err := tt.do(e, r)
			if stored != tt.stored || err != nil {
				t.Errorf("got %v, %v", stored, err)
			}
			if after := rows(t, admin); (after != before) != tt.stored {
				t.Errorf("rows %v, before %v", after, before)
			}
			var open int64
			if err := admin.QueryRow("SELECT count(*) FROM outbox JOIN operations USING (operation_pk) WHERE completed_at IS NULL AND outbox.state <> 'delivered'").Scan(&open); err != nil {
				t.Fatal(err)
			}
			if done := strings.HasPrefix(tt.name, "a claim") || strings.HasPrefix(tt.name, "an attempt"); done && open != 0 {
				t.Error("the operation has not ended")
			}
		})
	}
}

// columns are those of a table that may be changed by themselves, with a value
// that no reservation has.
func columns(t *testing.T, table string) (all [][2]string) {
	t.Helper()
	_, address := newEngine(t, Options{})
	result, err := pgtest.Open(t, address).Query(`SELECT column_name, CASE
			WHEN column_name = 'status_ref' THEN '''status_'' || repeat(''f'', 32)'
			WHEN column_name IN ('request_sha256', 'approval_digest') THEN 'repeat(''f'', 64)'
			WHEN column_name = 'row_digest' THEN 'decode(repeat(''00'', 32), ''hex'')'
			WHEN column_name = 'state' THEN '''in_review'', reason = ''x'''
			WHEN column_name = 'created_at' THEN '0'
			WHEN column_name = 'effect_kind' THEN '''once'''
			WHEN data_type = 'bigint' THEN '99' ELSE '''changed''' END
		FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = $1
			AND column_name <> 'operation_pk' AND ($1, column_name) NOT IN (('outbox', 'state'), ('operations', 'reason'))
		ORDER BY ordinal_position`, table)
	if err != nil {
		t.Fatal(err)
	}
	defer result.Close()
	for result.Next() {
		var c [2]string
		if err := result.Scan(&c[0], &c[1]); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	if result.Err() != nil || len(all) < 9 {
		t.Fatal(all, result.Err())
	}
	return all
}

// TestShortcutRaces: a statement that comes while another transaction has its rows
// waits, and then decides by what that one has left.
func TestShortcutRaces(t *testing.T) {
	const moved = "UPDATE outbox SET attempt_count = 2, updated_at = 5"
	other := reservationOf("b", "call-c")(99).Operation
	insert := `INSERT INTO operations SELECT (jsonb_populate_record(o, '{"operation_pk": 99, "idempotency_key": "b", "status_ref": "` + other.StatusRef + `"}')).* FROM operations o`
	tests := []struct {
		name, first, end string
		commit, stored   bool
	}{
		{"a reservation of the scope", insert, "COMMIT", false, false},
		{"a reservation of the scope that fails", insert, "ROLLBACK", false, true},
		{"a claim", moved, "COMMIT", true, false},
		{"a claim that fails", moved, "ROLLBACK", true, true},
		{"a change of the operation", "UPDATE operations SET approver_id = 'mallory'", "COMMIT", true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx := context.Background()
			e, address := newEngine(t, Options{MaxConns: 1})
			r := mustReserve(t, e, "a", "call-a")
			admin := pgtest.Open(t, address)
			before := rows(t, admin)
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
			stored := make(chan error, 1)
			go func() {
				var ok bool
				var err error
				if tt.commit {
					ok, err = e.Commit(ctx, commitmentOf(r))
				} else {
					ok, err = e.Reserve(ctx, reservationOf("b", "call-b"))
				}
				if ok != tt.stored || err != nil {
					err = fmt.Errorf("stored %v, %w", ok, err)
				}
				stored <- err
			}()
			for waits := int64(0); waits == 0; {
				if err := admin.QueryRow("SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))", mine).Scan(&waits); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := tx.ExecContext(ctx, tt.end); err != nil {
				t.Fatal(err)
			}
			if err := <-stored; err != nil {
				t.Error(err)
			}
			after := rows(t, admin)
			after[0] = before[0] // the other's
			if diff := cmp.Diff(before, after); (diff != "") != tt.stored {
				t.Errorf("(-before +after):\n%s", diff)
			}
		})
	}
}

// TestShortcutLostAnswer: the connection breaks at either statement, before the
// server has it or after. The call ends as if nothing had happened.
func TestShortcutLostAnswer(t *testing.T) {
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

// TestShortcutOfAClosedEngine: it says that it has stored nothing, and the
// transaction says why.
func TestShortcutOfAClosedEngine(t *testing.T) {
	e, _ := newEngine(t, Options{})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if stored, err := e.Reserve(context.Background(), reservationOf("a", "call-a")); stored || err != nil {
		t.Errorf("got %v, %v", stored, err)
	}
	if err := e.Write(context.Background(), putMetadata("row")); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("got %v", err)
	}
}
