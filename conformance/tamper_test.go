package conformance

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// uncovered are the columns whose change nobody can find, each for a reason that
// ARCHITECTURE.md gives.
var uncovered = map[string]bool{"downstream_receipts.downstream_pk": true}

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
	for _, failure := range []toolruntime.Failure{toolruntime.NoFailure, toolruntime.AfterIntentCommit, toolruntime.AfterClaim, toolruntime.AfterDownstreamCommit} {
		for i := range 2 {
			d.setTime(d.time() + 1)
			d.send(p, refundCall(fmt.Sprintf("secret-%s-%d", failure, i)), failure)
		}
	}
	d.send(p, callOf("lost_note", "secret-lost", `{"text":"hello"}`), toolruntime.NoFailure)
	d.send(p, callOf("bad_note", "secret-bad-1", `{"text":"hello"}`), toolruntime.NoFailure)
	d.send(p, callOf("bad_note", "secret-bad-2", `{"text":"hello"}`), toolruntime.NoFailure)
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

// addTombstone leaves what remains of an operation that was pruned.
func (d *desk) addTombstone() {
	d.t.Helper()
	now := d.time()
	d.setTime(now - 2*day)
	d.send(user("user-1"), refundCall("secret-pruned"), toolruntime.NoFailure)
	d.setTime(now - 2*day + 1)
	d.send(user("user-1"), refundCall("secret-newest"), toolruntime.AfterIntentCommit)
	d.setTime(now)
	if r := d.pruneAll(toolruntime.PruneOptions{}); r.Pruned != 1 {
		d.t.Fatalf("%+v", r)
	}
}

// TestTamper changes every column of every row, in several ways each, past the
// runtime: the schema refuses it, or the audit finds it and names nobody.
func TestTamper(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		d := mixedLedger(t, e)
		d.addTombstone()
		if r := d.audit(); !r.Passed {
			t.Fatalf("the audit of the untouched ledger: %q", r.SemanticErrors)
		}
		db := e.plain(t, d.address)
		db.SetMaxOpenConns(1)
		if _, err := db.Exec(e.noForeignKeys); err != nil {
			t.Fatal(err)
		}
		refused, detected := 0, 0
		for _, table := range []string{"runtime_metadata", "call_bindings", "operations", "outbox",
			"downstream_receipts", "local_receipts", "rejected_receipts", "tombstones"} {
			tampering := readTable(t, db, table)
			for _, m := range tampering.mutations() {
				switch tampering.try(t, d, db, m) {
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
		t.Logf("%d changes: %d refused by the schema, %d found by the audit", refused+detected, refused, detected)
		if refused < 100 || detected < 1000 {
			t.Error("hardly anything was changed")
		}
	})
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

// try makes one change, looks, and takes it back.
func (tab *table) try(t *testing.T, d *desk, db *sql.DB, m mutation) string {
	t.Helper()
	column := tab.columns[m.column]
	old := tab.rows[m.row]
	where, key := tab.key(m.row, -1, nil)
	update := func(where string) string {
		return d.engine.args(fmt.Sprintf("UPDATE %s SET %s = {1} WHERE %s", tab.name, column, where))
	}
	result, err := db.Exec(update(where), append([]any{m.value}, key...)...)
	if err != nil {
		return "refused"
	}
	if n, _ := result.RowsAffected(); n != 1 {
		t.Fatalf("%s.%s: %d rows changed", tab.name, column, n)
	}
	r := d.audit()
	if r.Passed && !uncovered[tab.name+"."+column] {
		t.Errorf("%s.%s of row %d: the audit does not find %v instead of %v", tab.name, column, m.row, m.value, old[m.column])
	}
	for _, line := range r.SemanticErrors {
		if !wellNamed(line) {
			t.Errorf("%s.%s: the finding %q names its row otherwise than by status_ref", tab.name, column, line)
		}
	}
	if text, _ := json.Marshal(r); bytes.Contains(text, []byte("secret")) || bytes.Contains(text, []byte("tenant-a")) {
		t.Errorf("%s.%s: the report names a tenant or a key: %s", tab.name, column, text)
	}
	where, key = tab.key(m.row, m.column, m.value)
	if _, err := db.Exec(update(where), append([]any{old[m.column]}, key...)...); err != nil {
		t.Fatalf("take back: %v", err)
	}
	return "found"
}

// key is a condition that finds a row, with parameters from {2} on: all its
// columns, one of them perhaps with a changed value.
func (tab *table) key(row, changed int, value any) (string, []any) {
	var conditions []string
	var args []any
	for c, name := range tab.columns {
		v := tab.rows[row][c]
		if c == changed {
			v = value
		}
		if v == nil {
			conditions = append(conditions, name+" IS NULL")
			continue
		}
		args = append(args, v)
		conditions = append(conditions, fmt.Sprintf("%s = {%d}", name, len(args)+1))
	}
	return strings.Join(conditions, " AND "), args
}

func wellNamed(finding string) bool {
	name, _, _ := strings.Cut(finding, ":")
	_, ref, named := strings.Cut(name, "[")
	return !named || toolresult.ValidStatusRef(strings.TrimSuffix(ref, "]"))
}
