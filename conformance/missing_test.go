package conformance

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
)

// TestMissing takes rows away past the runtime: the audit misses each of them.
func TestMissing(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		d := mixedLedger(t, e)
		d.addTombstone()
		p := user("user-1")
		ended := d.bind(p, callOf("bad_note", "secret-bad-1", `{"text":"hello"}`)).StatusRef()
		again := d.bind(p, callOf("bad_note", "secret-bad-2", `{"text":"hello"}`)).StatusRef()
		pruned := d.bind(p, callOf("lost_note", "secret-pruned-lost", `{"text":"hello"}`)).StatusRef()
		d.resolve(ended, toolruntime.Abandoned)
		d.resolve(again, toolruntime.TryAgain)
		if _, err := d.Process(context.Background(), again, "worker", nil); err != nil {
			t.Fatal(err)
		}
		d.addPastPause()
		if err := d.Pause(context.Background(), "secret_tool", "secret-actor", "secret reason"); err != nil {
			t.Fatal(err)
		}
		d.wantAudit()
		db := e.plain(t, d.address)
		db.SetMaxOpenConns(1)
		if _, err := db.Exec(e.noForeignKeys); err != nil {
			t.Fatal(err)
		}
		under := func(ref string) string {
			return "operation_pk = (SELECT operation_pk FROM operations WHERE status_ref = '" + ref + "')"
		}
		for _, test := range []struct {
			name, table, where string
			uncounted          bool // by the event, whose digest fits
			want               string
		}{
			{"an attempt", "attempts", "attempt = 1 AND " + under(ended), false, "AUDIT_ATTEMPT[" + ended + "]: an attempt that has ended was not recorded"},
			{"the first of two attempts", "attempts", "attempt = 1 AND " + under(again), false, "AUDIT_ATTEMPT[" + again + "]: an attempt that has ended was not recorded"},
			{"a refused answer", "rejected_receipts", "attempt = 1 AND " + under(again), false, "AUDIT_ATTEMPT[" + again + "]: the answer is missing that was refused in an attempt"},
			{"a decision that ended it", "resolutions", under(ended), false, "AUDIT_RESOLUTION[" + ended + "]: there are not as many resolutions as its event counts"},
			{"a decision that ended it, and its number", "resolutions", under(ended), true, "AUDIT_RESOLUTION[" + ended + "]: it has ended without an attempt or a resolution that ends it"},
			{"a decision after which it went on", "resolutions", under(again), false, "AUDIT_RESOLUTION[" + again + "]: there are not as many resolutions as its event counts"},
			{"a decision after which it went on, and its number", "resolutions", under(again), true, "AUDIT_RESOLUTION[" + again + "]: it went on after an attempt without a resolution"},
			{"a tombstone", "tombstones", "idempotency_key = 'secret-pruned'", false, "AUDIT_TOMBSTONE: there are not as many tombstones as the ledger counts"},
			{"the number of tombstones", "runtime_metadata", "metadata_key = 'tombstones'", false, "AUDIT_TOMBSTONE: there are not as many tombstones as the ledger counts"},
			{"a pause that holds", "paused_tools", "true", false, "AUDIT_PAUSE: there are not as many pauses as the ledger counts"},
			{"a pause that has ended", "past_pauses", "true", false, "AUDIT_PAUSE: there are not as many pauses as the ledger counts"},
			{"the number of pauses", "runtime_metadata", "metadata_key = 'pauses'", false, "AUDIT_PAUSE: there are not as many pauses as the ledger counts"},
			{"a decision of what was pruned", "tombstone_resolutions", "status_ref = '" + pruned + "'", false, "AUDIT_RESOLUTION[" + pruned + "]: there are not as many resolutions as its tombstone counts"},
		} {
			t.Run(test.name, func(t *testing.T) {
				tab, events := readTable(t, db, test.table), readTable(t, db, "outbox")
				if _, err := db.Exec("DELETE FROM " + test.table + " WHERE " + test.where); err != nil {
					t.Fatal(err)
				}
				if test.uncounted {
					events.uncount(t, d, db)
				}
				if r := d.audit(); r.Passed || !slices.Contains(r.SemanticErrors, test.want) {
					t.Errorf("%q, want %q", r.SemanticErrors, test.want)
				}
				tab.restore(t, d, db)
				if test.uncounted {
					for _, row := range events.rows {
						db.Exec(d.engine.args("DELETE FROM outbox WHERE operation_pk = {1}"), row[0])
					}
					events.restore(t, d, db)
				}
			})
		}
		d.wantAudit()
	})
}

// uncount makes events forget how many decisions there are.
func (tab *table) uncount(t *testing.T, d *desk, db *sql.DB) {
	t.Helper()
	for _, row := range tab.rows {
		to := slices.Clone(row)
		to[slices.Index(tab.columns, "decisions")] = int64(0)
		if !tab.replace(t, d, db, row, tab.sealed(to)) {
			t.Fatal("the schema refuses it")
		}
	}
}

// restore inserts the rows that are gone.
func (tab *table) restore(t *testing.T, d *desk, db *sql.DB) {
	t.Helper()
	var marks []string
	for i := range tab.columns {
		marks = append(marks, fmt.Sprintf("{%d}", i+1))
	}
	for _, row := range tab.rows {
		_, err := db.Exec(d.engine.args("INSERT INTO "+tab.name+" ("+strings.Join(tab.columns, ", ")+") VALUES ("+
			strings.Join(marks, ", ")+") ON CONFLICT DO NOTHING"), row...)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestMistyped: whatever a column holds, no answer, error or finding quotes it, and
// the audit goes on beside it.
func TestMistyped(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	loose := func(table, column string) map[string]string {
		return map[string]string{
			"sqlite": fmt.Sprintf(`PRAGMA foreign_keys = OFF; CREATE TABLE loose AS SELECT * FROM %[1]s; DROP TABLE %[1]s;
				ALTER TABLE loose RENAME TO %[1]s; UPDATE %[1]s SET %[2]s = 'secret value'`, table, column),
			"postgres": fmt.Sprintf(`ALTER TABLE %[1]s DROP CONSTRAINT %[1]s_%[2]s; DROP INDEX IF EXISTS outbox_due;
				ALTER TABLE %[1]s ALTER COLUMN %[2]s TYPE text USING 'secret value'`, table, column),
		}
	}
	for name, damage := range map[string]map[string]string{
		"an operation":    loose("operations", "approved_at"),
		"a local receipt": loose("local_receipts", "reconciled_at"),
		"an attempt":      loose("attempts", "ended_at"),
		"an event":        loose("outbox", "next_attempt_at"),
		"a call":          loose("call_bindings", "created_at"),
		"a scope": {
			"sqlite": `PRAGMA foreign_keys = OFF; CREATE TABLE loose AS SELECT * FROM downstream_receipts; DROP TABLE downstream_receipts;
				ALTER TABLE loose RENAME TO downstream_receipts; UPDATE downstream_receipts SET tenant_id = CAST('secret value' AS BLOB)`,
			"postgres": `ALTER TABLE downstream_receipts DROP CONSTRAINT IF EXISTS downstream_receipts_tenant_id;
				ALTER TABLE downstream_receipts ALTER COLUMN tenant_id TYPE bytea USING 'secret value'`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			forEachEngine(t, func(t *testing.T, e engine) { testMistyped(t, e, damage[e.name]) })
		})
	}
}

func testMistyped(t *testing.T, e engine, damage string) {
	ctx, p, call := context.Background(), user("user-1"), refundCall("key")
	d := newDesk(t, e)
	ref := d.bind(p, call).StatusRef()
	d.send(p, call, alive)
	d.send(p, refundCall("another"), drill.AfterClaim)
	if _, err := e.plain(t, d.address).Exec(damage); err != nil {
		t.Fatal(err)
	}
	d.reopen()
	r, err := d.Audit(ctx, nil)
	if err != nil {
		t.Fatalf("the audit: %v", err)
	}
	if r.Passed || !slices.ContainsFunc(r.SemanticErrors, func(s string) bool { return strings.HasPrefix(s, "AUDIT_DAMAGED") }) {
		t.Errorf("the audit finds %q", r.SemanticErrors)
	}
	said := []string{strings.Join(r.SemanticErrors, "\n")}
	stranger := user("user-2")
	for _, ask := range []func() error{
		func() error { _, err := d.Dispatch(ctx, p, call, nil); return err },
		func() error { _, err := d.QueryStatus(ctx, p, call.StatusQuery(ref), ref, nil); return err },
		func() error { _, err := d.QueryStatus(ctx, stranger, call.StatusQuery(ref), ref, nil); return err },
		func() error { _, err := d.History(ctx, ref); return err },
		func() error { _, err := d.Process(ctx, ref, "worker", nil); return err },
		func() error { _, err := d.Review(ctx, "", 10); return err },
		func() error { _, err := d.Stats(ctx); return err },
		func() error {
			_, err := d.Prune(ctx, &toolruntime.PruneOptions{OlderThan: toolruntime.MinPruneAge})
			return err
		},
		func() error {
			return d.Resolve(ctx, toolruntime.Resolution{StatusRef: ref, Decision: toolruntime.Abandoned, Actor: "dana", Reason: "why"})
		},
	} {
		err := ask()
		if err == nil {
			continue
		}
		said = append(said, err.Error())
		var input *toolresult.InputError
		if !errors.Is(err, toolruntime.ErrContract) && !errors.Is(err, toolruntime.ErrDatabase) && !errors.Is(err, toolruntime.ErrNotInReview) && !errors.As(err, &input) {
			t.Errorf("an error of no kind: %v", err)
		}
	}
	if text := strings.Join(said, "\n"); strings.Contains(text, "secret") || strings.Contains(text, "tenant-a") {
		t.Errorf("it is quoted: %s", text)
	}
}
