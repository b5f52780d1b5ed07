package conformance

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/tables"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
)

// uncovered are the columns whose change nobody can find, each for a reason that
// ARCHITECTURE.md gives.
var uncovered = map[string]bool{"downstream_receipts.downstream_pk": true, "endings.ending_pk": true}

// digestAlone are the columns of which some change is found by their row's digest
// and by nothing else, as ARCHITECTURE.md says. Every change of the others is found
// by a check that needs no digest.
var digestAlone = map[string]bool{
	"attempts.cause": true, "attempts.ended_at": true, "attempts.outcome": true, "attempts.started_at": true, "attempts.worker_id": true,
	"call_bindings.api_family": true, "call_bindings.call_id": true, "call_bindings.created_at": true, "call_bindings.fingerprint_sha256": true, "call_bindings.provider": true, "call_bindings.response_id": true, "call_bindings.status_ref": true, "call_bindings.subject_id": true, "call_bindings.tenant_id": true,
	"downstream_receipts.committed_at": true, "downstream_receipts.downstream_request_id": true, "downstream_receipts.observed_at": true, "downstream_receipts.receipt_id": true, "downstream_receipts.resource_revision": true, "downstream_receipts.result_json": true,
	"endings.status_ref":             true,
	"local_receipts.reconciled_at":   true,
	"operations.approval_expires_at": true, "operations.approval_id": true, "operations.completed_at": true,
	"outbox.decisions": true, "outbox.lease_owner": true, "outbox.next_attempt_at": true,
	"paused_tools.actor": true, "paused_tools.paused_at": true, "paused_tools.reason": true, "paused_tools.tool_name": true,
	"past_pauses.actor": true, "past_pauses.paused_at": true, "past_pauses.reason": true, "past_pauses.resume_reason": true, "past_pauses.resumed_at": true, "past_pauses.resumed_by": true, "past_pauses.tool_name": true,
	"rejected_receipts.downstream_request_id": true, "rejected_receipts.observed_at": true, "rejected_receipts.producer_revision": true, "rejected_receipts.receipt_id": true, "rejected_receipts.recorded_at": true, "rejected_receipts.resource_revision": true, "rejected_receipts.result_text": true, "rejected_receipts.violation": true,
	"resolutions.actor": true, "resolutions.decided_at": true, "resolutions.reason": true,
	"tombstone_resolutions.actor": true, "tombstone_resolutions.decided_at": true, "tombstone_resolutions.reason": true, "tombstone_resolutions.seq": true,
	"tombstones.completed_at": true, "tombstones.created_at": true, "tombstones.pruned_at": true, "tombstones.receipt_pk": true, "tombstones.state": true,
}

// mixedLedger leaves an operation in every state that the runtime leaves behind.
func mixedLedger(t testing.TB, e engine) *desk {
	lost := noteTool("lost_note", toolruntime.Once, func(context.Context, toolruntime.Effect, noteArgs) (toolruntime.Receipt[note], error) {
		return toolruntime.Receipt[note]{}, errLost
	})
	bad := noteTool("bad_note", toolruntime.Idempotent, func(_ context.Context, e toolruntime.Effect, _ noteArgs) (toolruntime.Receipt[note], error) {
		return noteReceipt(e, strings.Repeat("too long ", 10)), nil
	})
	d := newDesk(t, e, func(d *desk, _ *toolruntime.Options, tools *[]toolruntime.Registration) {
		*tools = append(*tools, lost, bad)
	})
	p := user("user-1")
	for _, point := range []drill.Point{alive, drill.AfterIntentCommit, drill.AfterClaim, drill.AfterDownstreamCommit} {
		for i := range 2 {
			d.setTime(d.time() + 1)
			d.send(p, refundCall(fmt.Sprintf("secret-%s-%d", cmp.Or(point, "none"), i)), point)
		}
	}
	d.send(p, callOf("lost_note", "secret-lost", `{"text":"hello"}`), alive)
	d.send(p, callOf("bad_note", "secret-bad-1", `{"text":"hello"}`), alive)
	d.send(p, callOf("bad_note", "secret-bad-2", `{"text":"hello"}`), alive)
	// Call identities that belong to no operation, and one of a status query.
	denied := refundCall("secret-denied")
	if _, err := d.Dispatch(context.Background(), p, denied, nil); err != nil {
		t.Fatal(err)
	}
	asked := refundCall("secret-none-0")
	ref := d.bind(p, asked).StatusRef()
	if _, err := d.QueryStatus(context.Background(), p, asked.StatusQuery(ref), ref, nil); err != nil {
		t.Fatal(err)
	}
	return d
}

// addTombstone leaves what remains of operations that were pruned, one of which a
// person had ended.
func (d *desk) addTombstone() {
	d.t.Helper()
	now := d.time()
	d.setTime(now - 2*day)
	d.send(user("user-1"), refundCall("secret-pruned"), alive)
	lost := callOf("lost_note", "secret-pruned-lost", `{"text":"hello"}`)
	d.send(user("user-1"), lost, alive)
	d.resolve(d.bind(user("user-1"), lost).StatusRef(), toolruntime.ConfirmedNotDone)
	d.setTime(now - 2*day + 1)
	d.send(user("user-1"), refundCall("secret-newer"), alive) // its receipt is the newest
	d.send(user("user-1"), refundCall("secret-newest"), drill.AfterIntentCommit)
	d.setTime(now)
	if r := d.pruneAll(toolruntime.PruneOptions{}); r.Pruned != 2 {
		d.t.Fatalf("%+v", r)
	}
}

// addPastPause leaves a pause that has ended.
func (d *desk) addPastPause() {
	d.t.Helper()
	ctx := context.Background()
	if err := errors.Join(d.Pause(ctx, "secret_past", "secret-actor", "secret reason"), d.Resume(ctx, "secret_past", "secret-actor", "secret reason")); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) resolve(statusRef string, decision toolruntime.Decision) {
	d.t.Helper()
	err := d.Resolve(context.Background(), toolruntime.Resolution{StatusRef: statusRef, Decision: decision, Actor: "dana", Reason: "asked the bank"})
	if err != nil {
		d.t.Fatal(err)
	}
}

// TestTamper changes every column of every row, in several ways each, past the
// runtime: the schema refuses it, or the audit finds it and names nobody.
func TestTamper(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	forEachEngine(t, func(t *testing.T, e engine) {
		d := mixedLedger(t, e)
		d.addTombstone()
		d.resolve(d.bind(user("user-1"), callOf("bad_note", "secret-bad-1", `{"text":"hello"}`)).StatusRef(), toolruntime.Abandoned)
		d.resolve(d.bind(user("user-1"), callOf("bad_note", "secret-bad-2", `{"text":"hello"}`)).StatusRef(), toolruntime.TryAgain)
		if err := d.Pause(context.Background(), "secret_tool", "secret-actor", "secret reason"); err != nil {
			t.Fatal(err)
		}
		d.addPastPause()
		if r := d.audit(); !r.Passed {
			t.Fatalf("the audit of the untouched ledger: %q", r.SemanticErrors)
		}
		db := e.plain(t, d.address)
		db.SetMaxOpenConns(1)
		if _, err := db.Exec(e.noForeignKeys); err != nil {
			t.Fatal(err)
		}
		refused, detected := 0, 0
		missed := map[string]bool{}
		for _, table := range []string{"runtime_metadata", "call_bindings", "operations", "outbox",
			"downstream_receipts", "local_receipts", "rejected_receipts", "attempts", "resolutions",
			"tombstones", "tombstone_resolutions", "paused_tools", "past_pauses", "endings"} {
			tampering := readTable(t, db, table)
			for _, m := range sample(e, tampering.mutations()) {
				switch tampering.try(t, d, db, m, missed) {
				case "refused":
					refused++
				case "found":
					detected++
				}
			}
		}
		if r := d.audit(); !r.Passed {
			t.Fatalf("the audit of the restored ledger: %q", r.SemanticErrors)
		}
		for column := range digestAlone {
			if !missed[column] && !sampled(e) {
				t.Errorf("%s: every change is found without its row's digest", column)
			}
		}
		t.Logf("%d changes: %d refused by the schema, %d found by the audit", refused+detected, refused, detected)
		if sampled(e) {
			refused, detected = 16*refused, 16*detected
		}
		if refused < 60 || detected < 500 {
			t.Error("hardly anything was changed")
		}
	})
}

func sampled(e engine) bool { return e.name != engines[0].name && !long() }

// sample is all changes on SQLite. Elsewhere, where an audit takes far longer, it is
// one in sixteen unless all are asked for: the rule is the same code, and every column of
// every table is among them.
func sample(e engine, ms []mutation) []mutation {
	if !sampled(e) {
		return ms
	}
	var some []mutation
	seen := map[int]bool{}
	for i, m := range ms {
		if i%16 == 0 || !seen[m.column] {
			some, seen[m.column] = append(some, m), true
		}
	}
	return some
}

// A table with its rows as they were read.
type table struct {
	name    string
	columns []string
	rows    [][]any
}

func readTable(t *testing.T, db *sql.DB, name string) *table {
	t.Helper()
	rows, err := db.Query("SELECT * FROM " + name)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	tab := &table{name: name}
	if tab.columns, err = rows.Columns(); err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		row, to := make([]any, len(tab.columns)), make([]any, len(tab.columns))
		for i := range row {
			to[i] = &row[i]
		}
		if err := rows.Scan(to...); err != nil {
			t.Fatal(err)
		}
		tab.rows = append(tab.rows, row)
	}
	if err := rows.Err(); err != nil || len(tab.rows) == 0 {
		t.Fatalf("%s: %d rows, %v", name, len(tab.rows), err)
	}
	return tab
}

type mutation struct {
	row, column int
	value       any
}

// mutations lists several other values for each column of each row.
func (tab *table) mutations() (ms []mutation) {
	for r, row := range tab.rows {
		for c, old := range row {
			values := []any{nil}
			switch old := old.(type) {
			case string:
				values = append(values, old+"x", "", strings.ToUpper(old), flip(old))
			case int64:
				values = append(values, old+1, old-1, int64(0), old+1_000_000)
			case []byte:
				values = append(values, []byte{}, bytes.Repeat([]byte{7}, 32), []byte(flip(string(old))))
			case nil:
				values = append(values, "x", int64(1), int64(2_000_000_000))
			}
			values = append(values, tab.rows[(r+1)%len(tab.rows)][c])
			for _, v := range values {
				if !same(v, old) {
					ms = append(ms, mutation{r, c, v})
				}
			}
		}
	}
	return ms
}

// flip changes one character to another of the same kind, so that the result
// keeps its shape.
func flip(s string) string {
	b := []byte(s)
	for i := len(b) - 1; i >= 0; i-- {
		switch {
		case b[i] >= '0' && b[i] < '9', b[i] >= 'a' && b[i] < 'f':
			b[i]++
			return string(b)
		}
	}
	return s + "1"
}

func same(a, b any) bool {
	x, ok := a.([]byte)
	y, okToo := b.([]byte)
	if ok && okToo {
		return bytes.Equal(x, y)
	}
	return !ok && !okToo && a == b
}

// try makes one change, looks, and takes it back. Then it does it again with a digest
// that fits the changed row, so that another check has to find it.
func (tab *table) try(t *testing.T, d *desk, db *sql.DB, m mutation, missed map[string]bool) string {
	t.Helper()
	column := tab.columns[m.column]
	name := tab.name + "." + column
	old := tab.rows[m.row]
	changed := slices.Clone(old)
	changed[m.column] = m.value
	if !tab.replace(t, d, db, old, changed) {
		return "refused"
	}
	if tab.passes(t, d, column) && !uncovered[name] {
		t.Errorf("%s of row %d: the audit does not find %v instead of %v", name, m.row, m.value, old[m.column])
	}
	if sealed := tab.sealed(changed); sealed != nil && column != "row_digest" {
		if !tab.replace(t, d, db, changed, sealed) {
			t.Fatalf("%s: the digest is refused", name)
		}
		if tab.passes(t, d, column) && !uncovered[name] {
			if missed[name] = true; !digestAlone[name] {
				t.Errorf("%s of row %d: the audit does not find %v instead of %v with a digest that fits", name, m.row, m.value, old[m.column])
			}
		}
		changed = sealed
	}
	if !tab.replace(t, d, db, changed, old) {
		t.Fatalf("%s: cannot be taken back", name)
	}
	return "found"
}

// replace makes one row of another; false means that the schema refuses it.
func (tab *table) replace(t *testing.T, d *desk, db *sql.DB, from, to []any) bool {
	t.Helper()
	var set, where []string
	var args []any
	for c, name := range tab.columns {
		args = append(args, to[c])
		set = append(set, fmt.Sprintf("%s = {%d}", name, len(args)))
	}
	for c, name := range tab.columns {
		if from[c] == nil {
			where = append(where, name+" IS NULL")
			continue
		}
		args = append(args, from[c])
		where = append(where, fmt.Sprintf("%s = {%d}", name, len(args)))
	}
	result, err := db.Exec(d.engine.args(fmt.Sprintf("UPDATE %s SET %s WHERE %s",
		tab.name, strings.Join(set, ", "), strings.Join(where, " AND "))), args...)
	if err != nil {
		return false
	}
	if n, _ := result.RowsAffected(); n != 1 {
		t.Fatalf("%s: %d rows changed", tab.name, n)
	}
	return true
}

// passes reports whether the audit finds nothing; what it finds names nobody.
func (tab *table) passes(t *testing.T, d *desk, column string) bool {
	t.Helper()
	r := d.audit()
	for _, line := range r.SemanticErrors {
		if !wellNamed(line) {
			t.Errorf("%s.%s: the finding %q names its row otherwise than by status_ref", tab.name, column, line)
		}
	}
	if text, _ := json.Marshal(r); bytes.Contains(text, []byte("secret")) || bytes.Contains(text, []byte("tenant-a")) {
		t.Errorf("%s.%s: the report names a tenant or a key: %s", tab.name, column, text)
	}
	return r.Passed
}

// digests of rows, by the table.
var digests = map[string]func(row []any) []byte{}

func init() {
	digestsOf(tables.CallBindings)
	digestsOf(tables.Operations)
	digestsOf(tables.Outbox)
	digestsOf(tables.DownstreamReceipts)
	digestsOf(tables.LocalReceipts)
	digestsOf(tables.RejectedReceipts)
	digestsOf(tables.Attempts)
	digestsOf(tables.Resolutions)
	digestsOf(tables.Tombstones)
	digestsOf(tables.TombstoneResolutions)
	digestsOf(tables.PausedTools)
	digestsOf(tables.PastPauses)
	digestsOf(tables.Endings)
}

func digestsOf[Row any](t *tables.Table[Row]) {
	digests[t.Name] = func(row []any) []byte {
		r := rowOf[Row](row)
		return t.Digest(&r)
	}
}

// sealed is a row with the digest that fits it; nil where the table has none.
func (tab *table) sealed(row []any) []any {
	digest := digests[tab.name]
	if digest == nil {
		return nil
	}
	sum := digest(row)
	row = slices.Clone(row)
	row[slices.Index(tab.columns, "row_digest")] = sum
	return row
}

// rowOf makes a generated row of values in the order of the table's columns, which
// is that of its fields.
func rowOf[T any](values []any) (row T) {
	fields := reflect.ValueOf(&row).Elem()
	for i, v := range values {
		switch field := fields.Field(i).Addr().Interface().(type) {
		case *string:
			*field = v.(string)
		case *int64:
			*field = v.(int64)
		case *[]byte:
			*field = v.([]byte)
		case sql.Scanner:
			if err := field.Scan(v); err != nil {
				panic(err)
			}
		default:
			panic(fmt.Sprintf("a field of type %T", field))
		}
	}
	return row
}

func wellNamed(finding string) bool {
	name, _, _ := strings.Cut(finding, ":")
	_, ref, named := strings.Cut(name, "[")
	return !named || contract.ValidStatusRef(strings.TrimSuffix(ref, "]"))
}
