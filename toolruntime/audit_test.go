package toolruntime_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

// damagedLedger is a small ledger of refunds that somebody has changed.
func damagedLedger(t *testing.T, operations int, damage string) *toolruntime.Runtime {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.sqlite3")
	rt := refundLedger(t, path, operations)
	if damage == "" {
		return rt
	}
	plainExec(t, path, "PRAGMA foreign_keys = off; PRAGMA ignore_check_constraints = on; "+damage)
	return rt
}

// copyOf inserts what stands under the first operation's key again, under others.
func copyOf(table string, keys ...string) string {
	var b strings.Builder
	for _, key := range keys {
		fmt.Fprintf(&b, "CREATE TEMP TABLE copied AS SELECT * FROM %s WHERE operation_pk = 1; UPDATE copied SET operation_pk = %s;", table, key)
		if table == "outbox" {
			fmt.Fprintf(&b, "UPDATE copied SET event_id = 'other %s';", key)
		}
		fmt.Fprintf(&b, "INSERT INTO %s SELECT * FROM copied; DROP TABLE copied;", table)
	}
	return b.String()
}

func refundRef(t *testing.T, i int) string {
	t.Helper()
	b, err := bindRefund(newRefunds(t, toolruntime.TestingOnlyNewStore(nil)), i)
	if err != nil {
		t.Fatal(err)
	}
	return b.StatusRef()
}

const (
	lowest  = "-9223372036854775808"
	highest = "9223372036854775807"
)

// TestAuditDamage: what is wrong anywhere is found, in one snapshot as in many, and
// reported in the order of the rows.
func TestAuditDamage(t *testing.T) {
	ref := func(i int) string { return "[" + refundRef(t, i) + "]" }
	rejected := `INSERT INTO rejected_receipts VALUES (%s, 1, 'r', 'q', '{}', 'p', 'v', 'o', 'broken', 1, zeroblob(32));`
	resolution := `INSERT INTO resolutions VALUES (%s, 1, 'abandoned', 'somebody', 'why', 1, zeroblob(32));`
	for _, test := range []struct {
		name, damage string
		want         []string // the beginnings of the findings, in order
	}{
		{"none", "", []string{}},
		{"a hole", `DELETE FROM attempts WHERE operation_pk BETWEEN 3 AND 33; DELETE FROM local_receipts WHERE operation_pk BETWEEN 3 AND 33;
			DELETE FROM outbox WHERE operation_pk BETWEEN 3 AND 33; DELETE FROM operations WHERE operation_pk BETWEEN 3 AND 33;
			DELETE FROM downstream_receipts WHERE downstream_pk BETWEEN 3 AND 33;`, []string{}},
		{"operations without their rows", "DELETE FROM outbox WHERE operation_pk = 7; DELETE FROM local_receipts WHERE operation_pk = 8; DELETE FROM downstream_receipts WHERE downstream_pk = 9",
			[]string{"AUDIT_OUTBOX_MISSING" + ref(6), "AUDIT_ATTEMPT" + ref(6), "AUDIT_RECEIPT_MISSING" + ref(7) + ": it has succeeded and has no local", "AUDIT_RECEIPT_MISSING" + ref(8) + ": it has succeeded and has no downstream"}},
		{"rows without their operation", "DELETE FROM operations WHERE operation_pk = 11",
			[]string{"AUDIT_ORPHAN_OUTBOX_EVENT", "AUDIT_ORPHAN_LOCAL_RECEIPT", "AUDIT_ORPHAN_ATTEMPT", "AUDIT_ORPHAN_DOWNSTREAM_RECEIPT" + ref(10)}},
		{"events below and above", copyOf("outbox", lowest, "0", "100000", highest), slices.Repeat([]string{"AUDIT_ORPHAN_OUTBOX_EVENT"}, 4)},
		{"receipts below and above", copyOf("local_receipts", lowest, "-1", "41", highest), slices.Repeat([]string{"AUDIT_ORPHAN_LOCAL_RECEIPT"}, 4)},
		{"attempts below and above", copyOf("attempts", lowest, "0", "41", highest), slices.Repeat([]string{"AUDIT_ORPHAN_ATTEMPT"}, 4)},
		{"rejected answers below and above", fmt.Sprintf(rejected+rejected, lowest, highest), slices.Repeat([]string{"AUDIT_ORPHAN_REJECTED_RECEIPT"}, 2)},
		{"decisions below and above", fmt.Sprintf(resolution+resolution, lowest, highest), slices.Repeat([]string{"AUDIT_ORPHAN_RESOLUTION"}, 2)},
		{"keys at the ends", "UPDATE operations SET operation_pk = " + lowest + " WHERE operation_pk = 20; UPDATE operations SET operation_pk = " + highest + " WHERE operation_pk = 30",
			[]string{"AUDIT_OUTBOX_MISSING" + ref(19), "AUDIT_RECEIPT_MISSING" + ref(19), "AUDIT_ORPHAN_OUTBOX_EVENT", "AUDIT_ORPHAN_LOCAL_RECEIPT", "AUDIT_ORPHAN_ATTEMPT",
				"AUDIT_ORPHAN_OUTBOX_EVENT", "AUDIT_ORPHAN_LOCAL_RECEIPT", "AUDIT_ORPHAN_ATTEMPT", "AUDIT_OUTBOX_MISSING" + ref(29), "AUDIT_RECEIPT_MISSING" + ref(29)}},
		{"calls", `DELETE FROM call_bindings WHERE status_ref = (SELECT status_ref FROM operations WHERE operation_pk = 12);
			UPDATE call_bindings SET fingerprint_sha256 = printf('%064x', 7) WHERE status_ref = (SELECT status_ref FROM operations WHERE operation_pk = 13)`,
			[]string{"AUDIT_CALL_BINDING_MISSING" + ref(11), "AUDIT_CALL_BINDING" + ref(12), "AUDIT_ROW_DIGEST" + ref(12) + ": a call binding"}},
		{"equal receipts of another request", fmt.Sprintf("UPDATE %[1]s SET request_sha256 = printf('%%064x', 7) WHERE downstream_pk = 5; UPDATE %[2]s SET request_sha256 = printf('%%064x', 7) WHERE operation_pk = 5", "downstream_receipts", "local_receipts"),
			[]string{"AUDIT_RECEIPT" + ref(4), "AUDIT_ROW_DIGEST" + ref(4) + ": the downstream", "AUDIT_RECEIPT" + ref(4), "AUDIT_ROW_DIGEST" + ref(4) + ": the local"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			rt := damagedLedger(t, 40, test.damage)
			whole, err := rt.Audit(context.Background(), nil)
			if err != nil {
				t.Fatal(err)
			}
			parts, err := rt.TestingOnlyAuditInParts(context.Background(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(whole, parts); diff != "" {
				t.Errorf("one snapshot and many differ (-one +many):\n%s", diff)
			}
			if !slices.EqualFunc(parts.SemanticErrors, test.want, strings.HasPrefix) {
				t.Errorf("found\n%s\nwant\n%s", strings.Join(parts.SemanticErrors, "\n"), strings.Join(test.want, "\n"))
			}
			if parts.Passed != (len(test.want) == 0) {
				t.Errorf("passed: %v", parts.Passed)
			}
		})
	}
}

// TestAuditListsTheFirst: of more findings than are listed, those of the first
// rows are, whichever part of the ledger was ready first.
func TestAuditListsTheFirst(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	rt := damagedLedger(t, 600, "UPDATE operations SET updated_at = updated_at + 1")
	r, err := rt.TestingOnlyAuditInParts(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(r.SemanticErrors); n != 1001 || r.SemanticErrors[1000] != "AUDIT_MORE: 1200 errors in all" {
		t.Fatalf("%d errors, the last is %q", n, r.SemanticErrors[n-1])
	}
	for i, line := range r.SemanticErrors[:1000] {
		if want := refundRef(t, i/2); !strings.Contains(line, want) {
			t.Fatalf("error %d is %q, and should name %s", i, line, want)
		}
	}
}

// TestAuditApprovers: the host is asked on the goroutine of the audit, once for
// every operation that has not ended, and its failure ends the audit.
func TestAuditApprovers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.sqlite3")
	refundLedger(t, path, 30)
	plainExec(t, path, "UPDATE operations SET completed_at = NULL")
	asked := 0 // without a lock
	fail := errors.New("no answer")
	for _, answer := range []error{nil, fail} {
		store, err := sqlitestore.Open(context.Background(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		asked = 0
		rt, err := toolruntime.New(store, &toolruntime.Options{Approvers: func(context.Context, toolresult.Principal, string, string) (bool, error) {
			asked++
			return false, answer
		}}, refunds.NewOrders().Tools()...)
		if err != nil {
			t.Fatal(err)
		}
		r, err := rt.TestingOnlyAuditInParts(context.Background(), nil)
		if !errors.Is(err, answer) {
			t.Fatalf("%v, want %v", err, answer)
		}
		if answer == nil && (asked != 30 || strings.Count(strings.Join(r.SemanticErrors, "\n"), "the approver is not eligible") != 30) {
			t.Errorf("asked %d times: %q", asked, r.SemanticErrors)
		}
	}
}

// stopping cancels something when so many snapshots have been opened.
type stopping struct {
	engine.Engine
	left   int
	cancel func()
}

func (s *stopping) Read(ctx context.Context, unit engine.Unit) error {
	if s.left--; s.left == 0 {
		s.cancel()
	}
	return s.Engine.Read(ctx, unit)
}

// TestAuditCancel: an audit ends when its context does, and leaves nothing open.
func TestAuditCancel(t *testing.T) {
	for left := 1; left <= 5; left++ {
		ctx, cancel := context.WithCancel(context.Background())
		path := filepath.Join(t.TempDir(), "ledger.sqlite3")
		refundLedger(t, path, 40)
		store, err := sqlitestore.Open(context.Background(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		toolruntime.TestingOnlyWrapEngine(store, func(e engine.Engine) engine.Engine { return &stopping{e, left, cancel} })
		rt, err := toolruntime.New(store, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := rt.TestingOnlyAuditInParts(ctx, nil); !errors.Is(err, context.Canceled) || r != nil {
			t.Errorf("after %d looks: %v, %v", left, r, err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestAuditProgress: it grows, and ends where it should, however the ledger was
// divided.
func TestAuditProgress(t *testing.T) {
	rt := damagedLedger(t, 40, "DELETE FROM downstream_receipts WHERE downstream_pk = 3")
	for name, audit := range map[string]func(context.Context, *toolruntime.AuditOptions) (*toolruntime.AuditReport, error){
		"one snapshot": rt.Audit, "many": rt.TestingOnlyAuditInParts,
	} {
		var last, of int64
		_, err := audit(context.Background(), &toolruntime.AuditOptions{Progress: func(done, total int64) {
			if done < last || total != 40+39+40 {
				t.Errorf("%s: %d of %d after %d", name, done, total, last)
			}
			last, of = done, total
		}})
		if err != nil || last != of || of == 0 {
			t.Errorf("%s: %d of %d at the end, %v", name, last, of, err)
		}
	}
}

// TestAuditPostgres: the ranges of keys are PostgreSQL's as well.
func TestAuditPostgres(t *testing.T) {
	store, err := openPostgres(t)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	rt := fillWithRefunds(t, store, 40)
	for name, audit := range map[string]func(context.Context, *toolruntime.AuditOptions) (*toolruntime.AuditReport, error){
		"one snapshot": rt.Audit, "many": rt.TestingOnlyAuditInParts,
	} {
		if r, err := audit(context.Background(), nil); err != nil || !r.Passed || r.Counts.Operations != 40 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}
