package pgstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/pgtest"
	"github.com/toolruntime/toolruntime-go/internal/verbtest"
)

// A planNode is what EXPLAIN says of a part of a plan.
type planNode struct {
	Type     string `json:"Node Type"`
	Relation string `json:"Relation Name"`
	Index    string `json:"Index Cond"`
	Filter   string `json:"Filter"`
	Plans    []planNode
}

// scans says by which columns the tables below a node are read.
func (n planNode) scans(by map[string]string) {
	switch {
	case n.Relation == "":
	case n.Filter == "" && (n.Type == "Index Scan" || n.Type == "Index Only Scan"):
		by[n.Relation] = columnsOf(n.Index)
	case n.Filter == "" && n.Type == "Bitmap Heap Scan" && len(n.Plans) == 1:
		by[n.Relation] = columnsOf(n.Plans[0].Index)
	default:
		by[n.Relation] = n.Type + " with a filter"
	}
	for _, below := range n.Plans {
		below.scans(by)
	}
}

func columnsOf(condition string) string {
	var columns []string
	for part := range strings.SplitSeq(condition, " AND ") {
		column, _, _ := strings.Cut(strings.TrimLeft(part, "("), " = ")
		columns = append(columns, column)
	}
	slices.Sort(columns)
	return strings.Join(columns, " ")
}

// TestLookupPlan: the server looks up by index, call by call, what is looked up together,
// whatever it knows of the tables; so a plan that it has kept from an empty ledger is
// right for a full one.
func TestLookupPlan(t *testing.T) {
	ctx := context.Background()
	few := func(t *testing.T, e *pgEngine, _ *sql.DB) {
		r := mustReserve(t, e, "a", "call-a")
		if m := verbtest.Commit(r); e.Move(ctx, m) != nil || m.Answer != engine.Stored {
			t.Fatal(m.Answer)
		}
	}
	many := func(t *testing.T, e *pgEngine, db *sql.DB) {
		few(t, e, db)
		for _, table := range []string{"operations", "outbox", "call_bindings", "local_receipts"} {
			var columns string
			if err := db.QueryRow(`SELECT string_agg(CASE column_name WHEN 'operation_pk' THEN '100 + n' WHEN 'status_ref' THEN '''status_'' || lpad(n::text, 32, ''0'')'
				WHEN 'idempotency_key' THEN '''k'' || n' WHEN 'call_id' THEN '''c'' || n' WHEN 'event_id' THEN '''e'' || n' ELSE quote_ident(column_name) END, ', ' ORDER BY ordinal_position)
				FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = $1`, table).Scan(&columns); err != nil {
				t.Fatal(err)
			}
			if _, err := db.Exec("INSERT INTO " + table + " SELECT " + columns + " FROM " + table + ", generate_series(1, 3000) AS n"); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := []struct {
		name    string
		fill    func(*testing.T, *pgEngine, *sql.DB)
		analyse bool
	}{
		{name: "empty"},
		{name: "empty and analysed", analyse: true},
		{name: "few", fill: few},
		{name: "few and analysed", fill: few, analyse: true},
		{name: "many", fill: many},
		{name: "many and analysed", fill: many, analyse: true},
	}
	var batch []*lookup
	for _, call := range []string{"a", "b", "c"} {
		batch = append(batch, &lookup{key: dbgen.LookupParams{TenantID: "t", SubjectID: "s", ToolName: "tool", IdempotencyKey: call,
			Provider: "p", APIFamily: "f", ResponseID: "r", CallID: "call-" + call}})
	}
	const scope = "idempotency_key subject_id tenant_id tool_name"
	want := map[string]string{"operations": scope, "tombstones": scope, "outbox": "operation_pk", "local_receipts": "operation_pk",
		"call_bindings": "api_family call_id provider response_id subject_id tenant_id"}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, address := newEngine(t, Options{MaxConns: 1})
			db := pgtest.Open(t, address)
			if _, err := db.Exec(`ALTER TABLE operations SET (autovacuum_enabled = off); ALTER TABLE outbox SET (autovacuum_enabled = off);
				ALTER TABLE call_bindings SET (autovacuum_enabled = off); ALTER TABLE local_receipts SET (autovacuum_enabled = off)`); err != nil {
				t.Fatal(err)
			}
			if tt.fill != nil {
				tt.fill(t, e, db)
			}
			if tt.analyse {
				if _, err := db.Exec("ANALYZE operations, outbox, call_bindings, local_receipts, tombstones"); err != nil {
					t.Fatal(err)
				}
			}
			err := e.with(ctx, func(conn *sql.Conn) error {
				if err := e.sendLookups(ctx, conn, batch); err != nil {
					return err
				}
				var name string
				var kept, others int
				if err := conn.QueryRowContext(ctx, `SELECT name, generic_plans, custom_plans FROM pg_prepared_statements
					WHERE statement LIKE '-- name: LookupMany%'`).Scan(&name, &kept, &others); err != nil {
					return err
				}
				if kept == 0 || others != 0 {
					t.Errorf("the plan is made anew %d times, and kept %d times", others, kept)
				}
				// The plan that the server has kept, and the settings of nobody's.
				var plan []byte
				explain := fmt.Sprintf(`EXPLAIN (FORMAT JSON) EXECUTE %q ('{a}', '{a}', '{a}', '{a}', '{a}', '{a}', '{a}', '{a}', 1, 'a')`, name)
				if _, err := run(ctx, conn, "SET plan_cache_mode = force_generic_plan"); err != nil {
					return err
				}
				if err := conn.QueryRowContext(ctx, explain).Scan(&plan); err != nil {
					return err
				}
				var explained []struct{ Plan planNode }
				if err := json.Unmarshal(plan, &explained); err != nil {
					return err
				}
				got := map[string]string{}
				explained[0].Plan.scans(got)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("tables by columns (-want +got):\n%s\n%s", diff, plan)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}
