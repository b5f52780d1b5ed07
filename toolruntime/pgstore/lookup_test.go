package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/pgquery"
	"github.com/toolruntime/toolruntime-go/internal/pgtest"
	"github.com/toolruntime/toolruntime-go/internal/verbtest"
)

// TestLookup: what is looked up together is what the generated queries read, one
// after the other, into the same fields; in both formats of the protocol.
func TestLookup(t *testing.T) {
	ctx := context.Background()
	for _, mode := range []string{"cache_statement", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			first, address := newEngine(t, Options{MaxConns: 1})
			ended := mustReserve(t, first, "a", "call-a")
			if m := verbtest.Commit(ended); first.Move(ctx, m) != nil || m.Answer != engine.Stored {
				t.Fatal(m.Answer)
			}
			mustReserve(t, first, "b", "call-b")
			if _, err := pgtest.Open(t, address).Exec(`INSERT INTO tombstones (tenant_id, subject_id, tool_name, idempotency_key, status_ref, state, request_sha256,
				created_at, completed_at, pruned_at) VALUES ('t', 's', 'tool', 'd', 'status_' || repeat('d', 32), 'failed', repeat('a', 64), 1, 1, 1);
				UPDATE operations SET arguments_json = U&'"\00e9"', row_digest = decode(repeat('ff', 32), 'hex')`); err != nil {
				t.Fatal(err)
			}
			e, err := open(ctx, pgtest.With(address, "default_query_exec_mode", mode), &Options{MaxConns: 1}, false)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			generated := pgquery.New(e.db, classify)
			var keys []dbgen.LookupParams
			for _, key := range []string{"a", "b", "c", "d"} {
				for _, call := range []string{"call-a", "call-b", "call-c"} {
					keys = append(keys, dbgen.LookupParams{TenantID: "t", SubjectID: "s", ToolName: "tool", IdempotencyKey: key,
						Provider: "p", APIFamily: "f", ResponseID: "r", CallID: call})
				}
			}
			for _, n := range []int{1, len(keys)} { // alone, and together
				batch := make([]*lookup, n)
				for i := range batch {
					batch[i] = &lookup{key: keys[i]}
				}
				if err := e.with(ctx, func(conn *sql.Conn) error { return e.sendLookups(ctx, conn, batch) }); err != nil {
					t.Fatal(err)
				}
				for _, l := range batch {
					var want pgquery.Known
					var err error
					if want.Row, err = generated.Lookup(ctx, l.key); err == nil {
						want.Found = true
						want.Free.Fingerprint = want.Row.Fingerprint
					} else if want.Free, err = generated.LookupFree(ctx, dbgen.LookupFreeParams(l.key)); err != nil {
						t.Fatal(err)
					}
					if !l.known.Found {
						l.known.Row = dbgen.LookupRow{}
					}
					if diff := cmp.Diff(want, l.known); diff != "" {
						t.Errorf("%s, %s (-generated +read):\n%s", l.key.IdempotencyKey, l.key.CallID, diff)
					}
				}
			}
		})
	}
}

// TestLookupOfANewCall: both looks at a call that is new are one, and the second is
// asked by itself where it is about something else.
func TestLookupOfANewCall(t *testing.T) {
	ctx := context.Background()
	e, _ := newEngine(t, Options{})
	r := mustReserve(t, e, "a", "call-a")
	key := dbgen.LookupParams{TenantID: "t", SubjectID: "s", ToolName: "tool", IdempotencyKey: "b",
		Provider: "p", APIFamily: "f", ResponseID: "r", CallID: "call-a"}
	err := e.Peek(ctx, func(ctx context.Context, q engine.Querier) error {
		if _, err := q.Lookup(ctx, key); !errors.Is(err, sql.ErrNoRows) {
			t.Errorf("got %v", err)
		}
		// Without a connection, only what is known already can be answered.
		nobody, cancel := context.WithCancel(ctx)
		cancel()
		free, err := q.LookupFree(nobody, dbgen.LookupFreeParams(key))
		if want := (dbgen.LookupFreeRow{Fingerprint: r.Binding.FingerprintSha256}); err != nil || free != want {
			t.Errorf("%+v, %v", free, err)
		}
		key.CallID = "call-b"
		if _, err := q.LookupFree(nobody, dbgen.LookupFreeParams(key)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		free, err = q.LookupFree(ctx, dbgen.LookupFreeParams(key))
		if err != nil || free != (dbgen.LookupFreeRow{}) {
			t.Errorf("%+v, %v", free, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestLookupRefused: what the server refuses is refused to the one who has asked.
func TestLookupRefused(t *testing.T) {
	e, _ := newEngine(t, Options{MaxConns: 1})
	var all sync.WaitGroup
	release := hold(t, e)
	for i, key := range []string{"a", "b\x00", "c"} {
		all.Go(func() {
			err := e.Peek(context.Background(), func(ctx context.Context, q engine.Querier) error {
				_, err := q.Lookup(ctx, dbgen.LookupParams{IdempotencyKey: key})
				return err
			})
			if refused := strings.Contains(key, "\x00"); refused != errors.Is(err, engine.ErrConstraint) || refused == errors.Is(err, sql.ErrNoRows) {
				t.Errorf("%q: %v", key, err)
			}
		})
		awaitQueue(&e.lookups, i+1)
	}
	release()
	all.Wait()
}
