package pgstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/pgtest"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// ledger is a migrated schema with some finished operations.
func newLedger(t *testing.T, operations int) (address string) {
	t.Helper()
	address = pgtest.Schema(t)
	store, err := Open(context.Background(), address, &Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	fill(t, store, operations)
	return address
}

func fill(t *testing.T, store *toolruntime.Store, operations int) {
	t.Helper()
	rt := newRuntime(t, store)
	for i := range operations {
		if pkg, err := dispatch(context.Background(), rt, fmt.Sprint("key-", i)); err != nil || pkg.Code() != toolresult.OK {
			t.Fatal(pkg, err)
		}
	}
}

func audit(t *testing.T, address string) *toolruntime.AuditReport {
	t.Helper()
	store, err := Open(context.Background(), address, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	r, err := newRuntime(t, store).Audit(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestAuditDurability: the audit passes only on a server that keeps what it
// acknowledges.
func TestAuditDurability(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	address := newLedger(t, 2)
	r := audit(t, address)
	if !r.Passed || r.JournalMode != "postgresql-wal" || r.Synchronous != 2 || r.PostgreSQLVersion == "" || r.SQLiteVersion != "" ||
		r.Settings["fsync"] != "on" || r.Settings["full_page_writes"] != "on" || r.Settings["synchronous_commit"] != "on" {
		t.Fatalf("%+v", r)
	}
	if r = audit(t, pgtest.With(address, "synchronous_commit", "off")); r.Passed || r.Synchronous != 0 {
		t.Errorf("synchronous_commit=off: %+v", r)
	}
	if r = audit(t, pgtest.With(address, "synchronous_commit", "remote_apply")); !r.Passed {
		t.Errorf("synchronous_commit=remote_apply: %+v", r)
	}
}

// TestAuditUnsafeServer: fsync and full_page_writes belong to the server.
func TestAuditUnsafeServer(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	for _, setting := range []string{"fsync", "full_page_writes"} {
		c, err := pgtest.NewCluster(setting + "=off")
		if err != nil {
			pgtest.Missing(t, err)
		}
		defer c.Remove()
		if _, err := Migrate(context.Background(), c.URL(), nil); err != nil {
			t.Fatal(err)
		}
		if r := audit(t, c.URL()); r.Passed || r.Settings[setting] != "off" {
			t.Errorf("%s=off: %+v", setting, r)
		}
	}
}

// TestAuditDamage: what the server itself knows to be wrong is a finding.
func TestAuditDamage(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	tests := []struct{ name, damage, integrity, foreign string }{
		{"unlogged table", "ALTER TABLE call_bindings SET UNLOGGED", "table call_bindings is not written to the log", ""},
		{"invalid index", "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'operations_pkey'::regclass", "index operations_pkey is not valid", ""},
		{"unvalidated constraint", `ALTER TABLE outbox DROP CONSTRAINT outbox_state;
			ALTER TABLE outbox ADD CONSTRAINT outbox_state CHECK (state <> '') NOT VALID`, "constraint outbox_state of outbox was never validated", ""},
		{"disabled foreign key", "ALTER TABLE outbox DISABLE TRIGGER ALL", "a foreign key of outbox is not enforced", ""},
		{"orphan", `SET session_replication_role = replica; DELETE FROM operations WHERE operation_pk = 1`, "", "outbox row 1 has no operations"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			address := newLedger(t, 2)
			if _, err := pgtest.Open(t, address).Exec(test.damage); err != nil {
				t.Fatal(err)
			}
			r := audit(t, address)
			has := func(list []string, text string) bool {
				return text == "" || slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, text) })
			}
			if r.Passed || !has(r.IntegrityCheck, test.integrity) || !has(r.ForeignKeyViolations, test.foreign) {
				t.Errorf("integrity %q, foreign keys %q, passed %v", r.IntegrityCheck, r.ForeignKeyViolations, r.Passed)
			}
		})
	}
}

// TestAuditTrees: where amcheck is installed, an index that misses a row is found,
// and the rest of the audit goes on.
func TestAuditTrees(t *testing.T) {
	address := newLedger(t, 2)
	admin := pgtest.Open(t, address)
	if _, err := admin.Exec("CREATE EXTENSION IF NOT EXISTS amcheck SCHEMA public"); err != nil {
		t.Skip(err)
	}
	defer admin.Exec("DROP EXTENSION amcheck")
	if r := audit(t, address); !r.Passed {
		t.Fatalf("%+v", r)
	}
	ready := func(is string) {
		if _, err := admin.Exec("UPDATE pg_index SET indisready = " + is + " WHERE indexrelid = 'operations_status_ref_key'::regclass"); err != nil {
			t.Fatal(err)
		}
	}
	ready("false")
	operation(t, address, "9")
	ready("true")
	r := audit(t, address)
	if r.Passed || !slices.Equal(r.IntegrityCheck, []string{"index operations_status_ref_key is damaged"}) || len(r.SemanticErrors) == 0 {
		t.Errorf("%+v", r)
	}
}

// TestAuditLosesConnection: an audit whose connection is lost, wherever that is, says
// that the server is not available, and nothing about the ledger.
func TestAuditLosesConnection(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	address := newLedger(t, 30)
	admin := pgtest.Open(t, address)
	before, after := newCutter(t, false), newCutter(t, true)
	before.mark, after.mark = "", "" // whatever comes next
	for name, tt := range map[string]struct {
		address string
		lose    func() error
	}{
		"the session is ended": {address, func() error {
			_, err := admin.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'audited'")
			return err
		}},
		"before the question": {before.url(address), func() error { before.armed.Store(true); return nil }},
		"before the answer":   {after.url(address), func() error { after.armed.Store(true); return nil }},
	} {
		t.Run(name, func(t *testing.T) { auditLoses(t, pgtest.With(tt.address, "application_name", "audited"), tt.lose) })
	}
}

func auditLoses(t *testing.T, address string, lose func() error) {
	ctx := context.Background()
	store, err := Open(ctx, address, &Options{RetryTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	rt := newRuntime(t, store)
	begun := time.Now()
	if r, err := rt.Audit(ctx, nil); err != nil || !r.Passed {
		t.Fatalf("%+v, %v", r, err)
	}
	took := time.Since(begun)
	lost := 0
	for range 12 {
		var all sync.WaitGroup
		timer := time.NewTimer(rand.N(took))
		all.Go(func() {
			<-timer.C
			if err := lose(); err != nil {
				t.Error(err)
			}
		})
		r, err := rt.Audit(ctx, nil)
		all.Wait()
		switch {
		case err == nil && !r.Passed, err != nil && !errors.Is(err, engine.ErrUnavailable):
			t.Fatalf("%+v, %v", r, err)
		case err != nil:
			lost++
		}
	}
	if lost == 0 {
		t.Error("no audit has lost its connection")
	}
}
