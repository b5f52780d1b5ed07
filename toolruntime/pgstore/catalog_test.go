package pgstore

import (
	"context"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/pgtest"
)

var update = flag.Bool("update", false, "write catalog.txt anew from the migrations")

// TestSchemaFacts holds catalog.txt against what the migrations make.
func TestSchemaFacts(t *testing.T) {
	conn, err := pgtest.Open(t, newLedger(t, 0)).Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	tx, err := conn.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	got, err := factsOf(context.Background(), conn)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(got, "\n") + "\n"
	if *update {
		if err := os.WriteFile("catalog.txt", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		wanted = text
	}
	if diff := cmp.Diff(wanted, text); diff != "" {
		t.Errorf("run `go test -run TestSchemaFacts -update ./toolruntime/pgstore` (-want +got):\n%s", diff)
	}
}

// TestAuditSchema: what was added to the ledger's tables, taken from them or changed
// in them is found; what a host has beside them, and what it may choose, is not.
func TestAuditSchema(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	for _, test := range []struct {
		name, change string
		want         []string
	}{
		{"a host's own", `CREATE TABLE accounts (id bigint PRIMARY KEY, operation bigint REFERENCES operations (operation_pk));
			CREATE VIEW open_operations AS SELECT * FROM operations WHERE completed_at IS NULL;
			CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
			CREATE TRIGGER watch AFTER INSERT ON accounts FOR EACH ROW EXECUTE FUNCTION nothing();
			GRANT SELECT ON operations TO PUBLIC; ALTER TABLE outbox SET (fillfactor = 70)`, nil},
		{"a trigger", `CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
			CREATE TRIGGER "secret" BEFORE INSERT ON tombstones FOR EACH ROW EXECUTE FUNCTION nothing()`,
			[]string{"the table tombstones has what this version does not make: trigger"}},
		{"a rule", "CREATE RULE secret AS ON INSERT TO tombstones DO INSTEAD NOTHING", []string{"the table tombstones has what this version does not make: rule"}},
		{"a policy", "CREATE POLICY secret ON operations USING (true)", []string{"the table operations has what this version does not make: policy"}},
		{"row security", "ALTER TABLE operations ENABLE ROW LEVEL SECURITY", []string{"the table operations has what this version does not make: policy"}},
		{"a view", "ALTER TABLE paused_tools RENAME TO secret; CREATE VIEW paused_tools AS SELECT * FROM secret WHERE false",
			[]string{"the table paused_tools has what this version does not make: column", "the table paused_tools has what this version does not make: table",
				"the table paused_tools lacks what this version makes: column", "the table paused_tools lacks what this version makes: constraint",
				"the table paused_tools lacks what this version makes: index", "the table paused_tools lacks what this version makes: table"}},
		{"a child", "CREATE TABLE secret () INHERITS (paused_tools)", []string{"the table paused_tools has what this version does not make: relative"}},
		{"a column", "ALTER TABLE attempts ADD COLUMN secret text", []string{"the table attempts has what this version does not make: column"}},
		{"a generated column", "ALTER TABLE attempts ADD COLUMN secret text GENERATED ALWAYS AS (upper(worker_id)) STORED",
			[]string{"the table attempts has what this version does not make: column"}},
		{"a default", "ALTER TABLE attempts ALTER COLUMN worker_id SET DEFAULT 'secret'",
			[]string{"the table attempts has what this version does not make: column", "the table attempts lacks what this version makes: column"}},
		{"a check is gone", "ALTER TABLE attempts DROP CONSTRAINT attempts_outcome", []string{"the table attempts lacks what this version makes: constraint"}},
		{"a check was added", "ALTER TABLE attempts ADD CONSTRAINT secret CHECK (attempt < 1000)", []string{"the table attempts has what this version does not make: constraint"}},
		{"an index", "CREATE INDEX secret ON operations (lower(tenant_id))", []string{"the table operations has what this version does not make: index"}},
		{"an index is gone", "DROP INDEX attempts_lost", []string{"the table attempts lacks what this version makes: index"}},
		{"everybody", "GRANT DELETE ON tombstones TO PUBLIC", []string{"the table tombstones has what this version does not make: privilege of everybody"}},
		{"everybody, a column", "GRANT UPDATE (state) ON operations TO PUBLIC", []string{"the table operations has what this version does not make: privilege of everybody"}},
		{"a table is gone", "DROP TABLE paused_tools", []string{"the table paused_tools lacks what this version makes: column", "the table paused_tools lacks what this version makes: constraint",
			"the table paused_tools lacks what this version makes: index", "the table paused_tools lacks what this version makes: table"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			address := newLedger(t, 1)
			if _, err := pgtest.Open(t, address).Exec(test.change); err != nil {
				t.Fatal(err)
			}
			r := audit(t, address)
			var got []string
			for _, line := range r.SemanticErrors {
				if rule, is := strings.CutPrefix(line, "AUDIT_SCHEMA: "); is {
					got = append(got, rule)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if r.Passed != (test.want == nil) || slices.ContainsFunc(r.SemanticErrors, func(s string) bool { return strings.Contains(s, "secret") }) {
				t.Errorf("%+v", r)
			}
		})
	}
}
