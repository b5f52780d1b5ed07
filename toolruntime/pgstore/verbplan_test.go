package pgstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/pgtest"
	"github.com/toolruntime/toolruntime-go/internal/verbtest"
)

// unindexed are the tables below a node that are read without the condition of an index.
func (n planNode) unindexed() (tables []string) {
	indexed := n.Index != "" || n.Type == "Bitmap Heap Scan" // the index is below it
	if n.Relation != "" && n.Type != "ModifyTable" && !indexed {
		tables = append(tables, n.Type+" on "+n.Relation)
	}
	for _, below := range n.Plans {
		tables = append(tables, below.unindexed()...)
	}
	return tables
}

// TestVerbPlan: the verbs look up by index whatever they look up, with the plans that the
// server has kept on the connection, whatever it knew of the tables when it made them, and
// whether a transaction was the first to use them there or not.
func TestVerbPlan(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	ctx := context.Background()
	n := 0
	// use runs every statement of the verbs.
	use := func(t *testing.T, e *pgEngine, unit bool) {
		t.Helper()
		for _, size := range []int{1, 3} {
			var rs []*engine.Reservation
			var ms []*engine.Motion
			for range size {
				n++
				rs = append(rs, verbtest.Reservation(fmt.Sprint("key ", n), fmt.Sprint("call ", n)))
			}
			reserve, move := func() error { return e.Reserve(ctx, rs...) }, func() error { return e.Move(ctx, ms...) }
			if unit {
				reserve = func() error {
					return e.Write(ctx, func(ctx context.Context, q engine.Querier) error { return q.Reserve(ctx, rs...) })
				}
				move = func() error {
					return e.Write(ctx, func(ctx context.Context, q engine.Querier) error { return q.Move(ctx, ms...) })
				}
			}
			if err := reserve(); err != nil {
				t.Fatal(err)
			}
			for _, r := range rs {
				ms = append(ms, verbtest.Commit(r))
			}
			if err := move(); err != nil {
				t.Fatal(err)
			}
			for i := range rs {
				if rs[i].Answer != engine.Stored || ms[i].Answer != engine.Stored {
					t.Fatalf("%q, then %q", rs[i].Answer, ms[i].Answer)
				}
			}
		}
	}
	grow := func(t *testing.T, db *sql.DB) {
		for _, table := range []string{"operations", "outbox", "call_bindings", "downstream_receipts", "local_receipts", "attempts"} {
			var columns string
			if err := db.QueryRow(`SELECT string_agg(CASE column_name WHEN 'operation_pk' THEN '100000 + n' WHEN 'downstream_pk' THEN '100000 + n'
				WHEN 'status_ref' THEN '''status_'' || lpad(n::text, 32, ''0'')' WHEN 'receipt_id' THEN '''r'' || n' WHEN 'downstream_request_id' THEN '''d'' || n'
				WHEN 'idempotency_key' THEN '''k'' || n' WHEN 'call_id' THEN '''c'' || n' WHEN 'event_id' THEN '''e'' || n' ELSE quote_ident(column_name) END, ', ' ORDER BY ordinal_position)
				FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = $1`, table).Scan(&columns); err != nil {
				t.Fatal(err)
			}
			if _, err := db.Exec("INSERT INTO " + table + " SELECT " + columns + " FROM (SELECT * FROM " + table + " LIMIT 1) AS one, generate_series(1, 3000) AS n"); err != nil {
				t.Fatal(err)
			}
		}
	}
	const filled = "operations, outbox, call_bindings, downstream_receipts, local_receipts, attempts, endings"
	const all = filled + ", tombstones, paused_tools"
	for _, first := range []string{"engine", "unit"} {
		for _, state := range []string{"never analysed", "grown since", "grown and analysed"} {
			t.Run(first+"/"+state, func(t *testing.T) {
				e, address := newEngine(t, Options{MaxConns: 1})
				db := pgtest.Open(t, address)
				for table := range strings.SplitSeq(all, ", ") {
					if _, err := db.Exec("ALTER TABLE " + table + " SET (autovacuum_enabled = off)"); err != nil {
						t.Fatal(err)
					}
				}
				exec := func(statement string) {
					if _, err := db.Exec(statement); err != nil {
						t.Fatal(err)
					}
				}
				for range 8 { // from the sixth on, the server may keep a plan
					use(t, e, first == "unit")
				}
				if state == "grown since" || state == "grown and analysed" {
					grow(t, db)
				}
				if state == "grown and analysed" {
					exec("ANALYZE " + filled)
				}
				use(t, e, false)
				use(t, e, true)
				if err := e.with(ctx, func(conn *sql.Conn) error { return indexedOnly(ctx, t, conn) }); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// indexedOnly looks at the plans of the verbs' statements that a connection has.
func indexedOnly(ctx context.Context, t *testing.T, conn *sql.Conn) error {
	t.Helper()
	seen := 0
	for _, query := range []string{"ReserveOne", "ReserveMany", "MoveOne", "MoveMany"} {
		var name string
		var parameters, generic, custom int
		err := conn.QueryRowContext(ctx, `SELECT name, cardinality(parameter_types), generic_plans, custom_plans FROM pg_prepared_statements WHERE statement LIKE $1`,
			"-- name: "+query+" %").Scan(&name, &parameters, &generic, &custom)
		if err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
		seen++
		modes := []string{"auto", "force_generic_plan"}
		if strings.HasSuffix(query, "Many") {
			modes = modes[1:] // it is run with no other
		}
		for _, mode := range modes {
			if _, err := run(ctx, conn, "SET plan_cache_mode = "+mode); err != nil {
				return err
			}
			var plan []byte
			null := strings.TrimSuffix(strings.Repeat("NULL, ", parameters), ", ")
			if err := conn.QueryRowContext(ctx, fmt.Sprintf("EXPLAIN (FORMAT JSON) EXECUTE %q (%s)", name, null)).Scan(&plan); err != nil {
				return fmt.Errorf("%s: %w", query, err)
			}
			var explained []struct{ Plan planNode }
			if err := json.Unmarshal(plan, &explained); err != nil {
				return err
			}
			if tables := explained[0].Plan.unindexed(); len(tables) > 0 {
				t.Errorf("%s (%s; %d generic, %d custom): %v", query, mode, generic, custom, tables)
			}
		}
		if _, err := run(ctx, conn, "RESET plan_cache_mode"); err != nil {
			return err
		}
	}
	if seen != 4 {
		t.Errorf("%d statements", seen)
	}
	return nil
}
