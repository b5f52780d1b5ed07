package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

var databaseContractTests = map[string]seedTest{
	"test_database_uses_wal_and_full_synchronous": onSQLite(func(t *testing.T, d *seedDesk) {
		r := d.audit()
		wantEqual(t, "journal mode", "wal", r.JournalMode)
		wantEqual(t, "synchronous", int64(2), r.Synchronous)
	}),

	"test_database_integrity_and_foreign_keys_are_clean": onEvery(func(t *testing.T, d *seedDesk) {
		// That the audit reads one snapshot shows where somebody else commits in
		// its middle: it must not see that, although it would be a finding. That it
		// needs one connection shows in how many there are meanwhile.
		before, counted, committed := d.connections(), 0, false
		r, err := d.Audit(context.Background(), &toolruntime.AuditOptions{Progress: func(int64, int64) {
			n := d.connections()
			switch {
			case !committed:
				if n == 0 || n > before+1 {
					t.Errorf("%d connections when the audit has begun, and %d before", n, before)
				}
				insertOrphan(d, "tenant-a", "user-1", "create_refund_draft", "persistent-key-1")
				committed, counted = true, d.connections() // SQLite keeps the descriptor of it
			case n > counted:
				t.Errorf("%d connections in the middle of the audit, and %d when it had begun", n, counted)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, "somebody committed meanwhile", true, committed)
		wantEqual(t, "integrity check", []string{"ok"}, r.IntegrityCheck)
		wantEqual(t, "foreign key violations", []string{}, r.ForeignKeyViolations)
		wantEqual(t, "semantic errors", []string{}, r.SemanticErrors)
		wantEqual(t, "counts", toolruntime.Counts{}, r.Counts)
		wantEqual(t, "passed", true, r.Passed)
		wantEqual(t, "passed, of the next audit", false, d.audit().Passed)
	}),

	"test_orphan_receipt_audit_uses_opaque_reference": onEvery(func(t *testing.T, d *seedDesk) {
		secrets := []string{"tenant-audit-secret", "subject-audit-secret", "tool-audit-secret", "idempotency-audit-secret"}
		insertOrphan(d, secrets[0], secrets[1], secrets[2], secrets[3])
		r := d.audit()
		wantEqual(t, "passed", false, r.Passed)
		opaque := regexp.MustCompile(`^AUDIT_ORPHAN_DOWNSTREAM_RECEIPT\[status_[0-9a-f]{32}\]$`)
		if len(r.SemanticErrors) == 0 || !opaque.MatchString(r.SemanticErrors[0]) {
			t.Errorf("semantic errors: %q, want the first to match %v", r.SemanticErrors, opaque)
		}
		rendered, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range secrets {
			if strings.Contains(string(rendered), secret) {
				t.Errorf("the report names %q", secret)
			}
		}
	}),

	"test_all_runtime_tables_are_strict": onSQLite(allTablesAreStrict),

	"test_foreign_keys_are_enabled_on_each_connection": onSQLite(foreignKeysAreEnabled),

	"test_memory_database_is_rejected_for_multi_connection_project": onSQLite(func(t *testing.T, _ *seedDesk) {
		_, err := sqlitestore.Open(context.Background(), ":memory:", nil)
		wantError(t, toolruntime.ErrInvalidInput, err)
	}),

	"test_missing_parent_directory_is_rejected": onSQLite(func(t *testing.T, _ *seedDesk) {
		_, err := sqlitestore.Open(context.Background(), filepath.Join(t.TempDir(), "missing", "db.sqlite3"), nil)
		wantError(t, toolruntime.ErrInvalidInput, err)
	}),

	"test_invalid_busy_timeout_is_rejected": onSQLite(func(t *testing.T, d *seedDesk) {
		// The zero value stands for the default, as in every option of the API.
		// What SQLite would take for 0 ms is refused.
		for _, wait := range []time.Duration{1, time.Millisecond - 1, -1, -time.Second} {
			_, err := sqlitestore.Open(context.Background(), d.address, &sqlitestore.Options{BusyTimeout: wait})
			wantError(t, toolruntime.ErrInvalidInput, err)
		}
	}),

	"test_schema_version_mismatch_is_rejected_on_reopen": onEvery(func(t *testing.T, d *seedDesk) {
		d.mustSQL("UPDATE runtime_metadata SET metadata_value = 'future' WHERE metadata_key = 'schema_version'")
		_, err := d.engine.open(context.Background(), d.address)
		wantError(t, toolruntime.ErrContract, err)
	}),

	"test_outbox_check_constraint_rejects_invalid_lease_shape": onEvery(func(t *testing.T, d *seedDesk) {
		wantCode(t, toolresult.OutcomeUnknown, d.dispatch(drill.AfterIntentCommit))
		err := d.sql("UPDATE outbox SET state = 'processing', lease_owner = NULL, lease_until = NULL")
		if !refused(err) {
			t.Errorf("error: %v, want a broken constraint", err)
		}
	}),

	"test_intent_and_outbox_roll_back_together": onEvery(func(t *testing.T, d *seedDesk) {
		d.refuse("BEFORE INSERT ON outbox", "TRUE")
		_, err := d.Dispatch(dying(drill.AfterIntentCommit), d.actor, d.call, &toolruntime.DispatchOptions{Approvals: d.approved(d.call)})
		wantError(t, toolruntime.ErrConstraint, err)
		wantEqual(t, "counts", toolruntime.Counts{}, d.counts())
	}),

	"test_database_counts_start_at_zero": onEvery(func(t *testing.T, d *seedDesk) {
		wantEqual(t, "counts", toolruntime.Counts{}, d.counts())
	}),
}

// connections counts those that the desk's store has to its database: on SQLite
// the descriptors of the file, of which no other is open in this process.
func (d *seedDesk) connections() (n int) {
	d.t.Helper()
	if d.engine.name != "sqlite" {
		d.scan("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name <> ''", &n)
		return n
	}
	const open = "/proc/self/fd"
	entries, err := os.ReadDir(open)
	if err != nil {
		d.t.Skip("needs /proc: ", err)
	}
	for _, e := range entries {
		// One that was closed since the folder was read has no target.
		if target, err := os.Readlink(filepath.Join(open, e.Name())); err == nil && target == d.address {
			n++
		}
	}
	return n
}

// insertOrphan inserts a downstream receipt that belongs to no operation.
func insertOrphan(d *seedDesk, tenant, subject, tool, key string) {
	d.t.Helper()
	d.mustSQL(d.engine.args(`INSERT INTO downstream_receipts (tenant_id, subject_id, tool_name, idempotency_key, request_sha256,
		receipt_id, downstream_request_id, result_json, producer_revision, resource_revision, observed_at,
		effect_revision, committed_at)
		VALUES ({1}, {2}, {3}, {4}, {5}, 'receipt-orphan', 'request-orphan', '{}', 'producer-orphan', 'resource-orphan',
		'2026-07-19T00:00:00Z', 'effect-orphan', 1)`), tenant, subject, tool, key, zeros)
}

// allTablesAreStrict wants the six tables of the contract, and every table of
// the runtime to be STRICT: all but goose's bookkeeping, whose shape is goose's.
func allTablesAreStrict(t *testing.T, d *seedDesk) {
	db := d.engine.plain(t, d.address)
	rows, err := db.Query(`SELECT name, strict FROM pragma_table_list
		WHERE name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name <> 'goose_db_version'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	strict := map[string]bool{}
	for rows.Next() {
		var name string
		var is bool
		if err := rows.Scan(&name, &is); err != nil {
			t.Fatal(err)
		}
		strict[name] = is
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"runtime_metadata", "call_bindings", "operations", "outbox", "downstream_receipts", "local_receipts"} {
		if _, ok := strict[name]; !ok {
			t.Errorf("there is no table %s", name)
		}
	}
	for name, is := range strict {
		if !is {
			t.Errorf("table %s is not STRICT", name)
		}
	}
}

// foreignKeysAreEnabled shows it on the runtime's own connections, which no
// PRAGMA of ours can reach: a trigger turns the event that the runtime inserts
// into one of an operation that does not exist, and only a connection that
// enforces foreign keys refuses that. It shows for each store's writer; the
// others cannot write, and the store refuses to open one that does not have
// foreign keys on.
func foreignKeysAreEnabled(t *testing.T, d *seedDesk) {
	d.mustSQL(`CREATE TRIGGER orphan_event AFTER INSERT ON outbox BEGIN
		UPDATE outbox SET operation_pk = NEW.operation_pk + 1000 WHERE operation_pk = NEW.operation_pk; END`)
	second := d.another()
	d.reopen()
	for _, each := range []*seedDesk{d, second, d.another()} {
		_, err := each.Dispatch(dying(drill.AfterIntentCommit), each.actor, each.call, &toolruntime.DispatchOptions{Approvals: each.approved(each.call)})
		wantError(t, toolruntime.ErrConstraint, err)
		var lite sqlite3.Error
		if !errors.As(err, &lite) || lite.ExtendedCode != sqlite3.ErrConstraintForeignKey {
			t.Errorf("error: %v, want a broken foreign key", err)
		}
	}
	wantEqual(t, "counts", toolruntime.Counts{}, d.counts())
}
