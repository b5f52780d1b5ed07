package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mattn/go-sqlite3"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
)

// TestHotStatements: no statement that stores a call makes a table of its own. For
// one SQLite opens a database beside the ledger and throws it away, every time: for
// RETURNING, for a SELECT from the table that it inserts into, and for a check with
// IN and more than two values.
func TestHotStatements(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.sqlite3")
	if _, err := Migrate(context.Background(), path, nil); err != nil {
		t.Fatal(err)
	}
	db := plain(t, path)
	for name, statement := range map[string]string{
		"InsertCallBinding": dbgen.InsertCallBinding, "ScopeTaken": dbgen.ScopeTaken,
		"InsertOperation": dbgen.InsertOperation, "InsertEvent": dbgen.InsertEvent,
		"InsertDownstreamReceipt": dbgen.InsertDownstreamReceipt, "InsertLocalReceipt": dbgen.InsertLocalReceipt,
		"InsertAttempt": dbgen.InsertAttempt, "MoveEvent": dbgen.MoveEvent, "MoveOperation": dbgen.MoveOperation,
	} {
		t.Run(name, func(t *testing.T) {
			for _, op := range opcodes(t, db, statement) {
				if op == "OpenEphemeral" || op == "OpenAutoindex" {
					t.Errorf("it needs %s", op)
				}
			}
		})
	}
	if !strings.Contains(strings.Join(opcodes(t, db, dbgen.HoldCallBinding), " "), "OpenEphemeral") {
		t.Error("the test does not see the tables of RETURNING")
	}
}

var parameter = regexp.MustCompile(`\?[0-9]+`)

// opcodes are the instructions of a statement.
func opcodes(t *testing.T, db *sql.DB, statement string) (all []string) {
	t.Helper()
	rows, err := db.Query("EXPLAIN " + parameter.ReplaceAllString(statement, "NULL"))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		row := make([]any, 8)
		for i := range row {
			row[i] = new(any)
		}
		if err := rows.Scan(row...); err != nil {
			t.Fatal(err)
		}
		all = append(all, (*row[1].(*any)).(string))
	}
	if rows.Err() != nil || len(all) == 0 {
		t.Fatal(len(all), rows.Err())
	}
	return all
}

// TestChecks: what the checks of a call let pass, and what not.
func TestChecks(t *testing.T) {
	path := copyOf(t, reference)
	if _, err := Migrate(context.Background(), path, nil); err != nil {
		t.Fatal(err)
	}
	db := plain(t, path)
	db.SetMaxOpenConns(1)
	var (
		digest  = strings.Repeat("0123456789abcdef", 4)
		digests = map[string]bool{
			digest: true, digest[1:]: false, digest + "0": false, "": false, digest[:62] + "\x00" + "a": false,
		}
		ref  = "status_" + digest[:32]
		refs = map[string]bool{
			ref: true, strings.ToUpper(ref): false, ref[:38]: false, ref + "0": false, "statuz_" + digest[:32]: false,
		}
		with = func(values map[string]bool, more string, ok bool) map[string]bool {
			all := map[string]bool{more: ok}
			for v, ok := range values {
				all[v] = ok
			}
			return all
		}
		words = func(good ...string) map[string]bool {
			all := map[string]bool{"": false, "PENDING": false, "done": false, good[0] + " ": false}
			for _, v := range good {
				all[v] = true
			}
			return all
		}
	)
	for column, values := range map[string]map[string]bool{
		"call_bindings.fingerprint_sha256":   digests,
		"call_bindings.status_ref":           with(refs, "", true),
		"operations.request_sha256":          digests,
		"operations.approval_digest":         digests,
		"operations.status_ref":              with(refs, "", false),
		"operations.state":                   words("pending", "processing", "succeeded"),
		"outbox.state":                       words("pending", "delivered", "parked"),
		"downstream_receipts.request_sha256": digests,
		"local_receipts.request_sha256":      digests,
	} {
		table, name, _ := strings.Cut(column, ".")
		for value, ok := range values {
			// No other row, so that only a check can refuse it; and no change is kept.
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			where := " WHERE rowid = (SELECT MIN(rowid) FROM " + table + ")"
			if table == "call_bindings" {
				where = " WHERE call_id = (SELECT MIN(call_id) FROM call_bindings)"
			}
			if table == "operations" && name == "state" {
				_, err = tx.Exec("UPDATE operations SET reason = ''" + where + " AND reason <> ''")
			}
			if err == nil {
				_, err = tx.Exec("UPDATE "+table+" SET "+name+" = ?"+where, value)
			}
			if e := (sqlite3.Error{}); ok && err != nil || !ok && (!errors.As(err, &e) || e.ExtendedCode != sqlite3.ErrConstraintCheck) {
				t.Errorf("%s = %q: %v", column, value, err)
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, outcome := range []string{"succeeded", "reconciled", "not_done", "given_up", "denied", "unknown", "rejected", "interrupted", "lost", "", "Lost", "won"} {
		_, err := db.Exec("INSERT OR REPLACE INTO attempts (operation_pk, attempt, worker_id, started_at, ended_at, outcome, row_digest) SELECT MIN(operation_pk), 99, 'w', 1, 1, ?, x'' FROM operations", outcome)
		if good := outcome != "" && outcome != "Lost" && outcome != "won"; good != (err == nil) {
			t.Errorf("outcome %q: %v", outcome, err)
		}
	}
	for reason, states := range map[string][]string{"": {"failed", "in_review"}, "tool_error": {"pending", "processing", "succeeded"}} {
		for _, state := range states {
			if _, err := db.Exec("UPDATE operations SET state = ?, reason = ?", state, reason); err == nil || !strings.Contains(err.Error(), "operations_reason") {
				t.Errorf("%s with the reason %q: %v", state, reason, err)
			}
		}
	}
}
