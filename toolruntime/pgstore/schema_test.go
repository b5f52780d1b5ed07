package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/pgtest"
	"github.com/toolruntime/toolruntime-go/internal/verbtest"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A household is a database with the role of a service, which owns the ledger, and
// one that may create in the schema public, as everybody may before PostgreSQL 15.
type household struct {
	t                              *testing.T
	root                           *sql.DB
	admin, service, mallory, tools string            // URLs; tools has the ledger's schema
	names                          *strings.Replacer // roles are the server's, and every household has its own
}

var households atomic.Int64

func newHousehold(t *testing.T) *household {
	t.Helper()
	server := pgtest.URL(t)
	n := fmt.Sprintf("_%d_%d", os.Getpid(), households.Add(1))
	h := &household{t: t, names: strings.NewReplacer("service", "service"+n, "mallory", "mallory"+n, "house", "house"+n)}
	all := pgtest.Open(t, server)
	h.do(all, "CREATE DATABASE house", "CREATE ROLE service LOGIN", "CREATE ROLE mallory LOGIN", "GRANT CREATE ON DATABASE house TO mallory")
	h.admin = pgtest.With(server, "database", h.names.Replace("house"))
	h.service, h.mallory = pgtest.With(h.admin, "user", h.names.Replace("service")), pgtest.With(h.admin, "user", h.names.Replace("mallory"))
	h.tools = pgtest.With(h.service, "search_path", "tools")
	h.root = pgtest.Open(t, h.admin)
	t.Cleanup(func() {
		h.root.Close()
		h.do(all, "DROP DATABASE house WITH (FORCE)", "DROP ROLE service", "DROP ROLE mallory")
	})
	h.do(h.root, "CREATE SCHEMA tools AUTHORIZATION service", "GRANT CREATE ON SCHEMA public TO PUBLIC")
	return h
}

func (h *household) do(db *sql.DB, statements ...string) {
	h.t.Helper()
	for _, s := range statements {
		if _, err := db.Exec(h.names.Replace(s)); err != nil {
			h.t.Fatalf("%s: %v", s, err)
		}
	}
}

// serve opens the ledger, uses it, and audits it.
func (h *household) serve(address, key string) {
	h.t.Helper()
	ctx := context.Background()
	store, err := Open(ctx, address, &Options{Migrate: true})
	if err != nil {
		h.t.Fatal(err)
	}
	defer store.Close()
	rt := newRuntime(h.t, store)
	for range 2 {
		if pkg, err := dispatch(ctx, rt, key); err != nil || pkg.Code() != toolresult.OK {
			h.t.Fatal(pkg, err)
		}
	}
	if _, err := rt.Stats(ctx); err != nil {
		h.t.Error(err)
	}
	if r, err := rt.Audit(ctx, nil); err != nil || !r.Passed {
		h.t.Errorf("%+v, %v", r, err)
	}
}

func (h *household) refused(err error, words ...string) {
	t := h.t
	t.Helper()
	var refused *PlaceError
	if !errors.As(err, &refused) || !errors.Is(err, engine.ErrContract) {
		t.Fatalf("%v", err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), h.names.Replace(word)) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
}

// TestOpenToOthers: a schema in which others may create holds no ledger, whoever
// opens or migrates it, and the error says what to do.
func TestOpenToOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	ctx := context.Background()
	for name, tt := range map[string]struct{ before, schema, says string }{
		"everybody": {"GRANT CREATE ON SCHEMA tools TO PUBLIC", "tools", "REVOKE CREATE ON SCHEMA tools FROM PUBLIC"},
		"a role":    {"GRANT CREATE ON SCHEMA tools TO mallory", "tools", "REVOKE CREATE ON SCHEMA tools FROM mallory"},
		"public":    {"SELECT 1", "public", "REVOKE CREATE ON SCHEMA public FROM PUBLIC"},
		"a table":   {`ALTER TABLE tools.operations OWNER TO mallory`, "tools", "has tables of mallory in it"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHousehold(t)
			if tt.schema == "tools" {
				h.serve(h.tools, "a")
			}
			h.do(h.root, tt.before)
			address := pgtest.With(h.service, "search_path", tt.schema)
			_, err := Open(ctx, address, nil)
			h.refused(err, tt.says)
			_, err = Migrate(ctx, address, nil)
			h.refused(err, tt.says)
			_, err = Open(ctx, h.service, &Options{Schema: tt.schema})
			h.refused(err, tt.says)
			var there bool
			if err := h.root.QueryRow("SELECT to_regclass('public.operations') IS NOT NULL").Scan(&there); err != nil || there {
				t.Errorf("a ledger was made: %v", err)
			}
		})
	}
}

// TestOwnerMayCreate: who owns the tables may create beside them, as the role must that
// migrates in a schema of somebody else, and an administrator may look at the ledger.
func TestOwnerMayCreate(t *testing.T) {
	h := newHousehold(t)
	h.do(h.root, "REVOKE CREATE ON SCHEMA public FROM PUBLIC", "GRANT CREATE ON SCHEMA public TO service")
	h.serve(h.service, "a")
	h.serve(h.admin, "b")
}

// TestWhereItStands: a ledger is found where it stands, and none is made beside it.
func TestWhereItStands(t *testing.T) {
	ctx := context.Background()
	h := newHousehold(t)
	h.serve(h.tools, "a")
	h.do(h.root, "CREATE SCHEMA host", "GRANT ALL ON SCHEMA host TO service", `CREATE SCHEMA "Odd; one" AUTHORIZATION service`)

	h.serve(pgtest.With(h.service, "search_path", "host, tools, public"), "a") // not the first, and yet
	_, err := Open(ctx, pgtest.With(h.service, "search_path", "host, tools"), &Options{Schema: "host", Migrate: true})
	h.refused(err, `a ledger in the schema "tools", and none in "host"`)
	_, err = Migrate(ctx, pgtest.With(h.service, "search_path", "host, tools"), &Options{Schema: "new"})
	h.refused(err, `a ledger in the schema "tools", and none in "new"`)

	// One that is asked for by name is made, and then there are two.
	odd := pgtest.With(h.service, "search_path", `"Odd; one"`)
	h.serve(odd, "b")
	both := pgtest.With(h.service, "search_path", `tools, "Odd; one"`)
	_, err = Open(ctx, both, nil)
	h.refused(err, `"Odd; one" and "tools"`)
	for schema, key := range map[string]string{"tools": "a", "Odd; one": "b"} {
		store, err := Open(ctx, both, &Options{Schema: schema})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		if n, err := newRuntime(t, store).Counts(ctx); err != nil || n.Operations != 1 {
			t.Errorf("%s: %+v, %v", key, n, err)
		}
	}
	_, err = Open(ctx, pgtest.With(h.service, "search_path", "nowhere"), &Options{Migrate: true})
	h.refused(err, "no schema on the search_path")
}

// TestSquatter: whoever makes a schema that is named like the role of the service
// does not get its calls, with a ledger in it or without, before the service has one
// and after.
func TestSquatter(t *testing.T) {
	ctx := context.Background()
	for name, tt := range map[string]struct {
		ledger, first bool
		says          string
	}{
		"an empty schema":        {false, true, "named like this role"},
		"a ledger":               {true, true, "named like this role"},
		"a ledger beside it":     {true, false, "several ledgers"},
		"an empty one beside it": {false, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHousehold(t)
			h.do(h.root, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
			if !tt.first {
				h.do(h.root, "GRANT CREATE ON SCHEMA public TO service")
				h.serve(h.service, "a")
			}
			mallory := pgtest.Open(t, h.mallory)
			h.do(mallory, "CREATE SCHEMA service", "GRANT USAGE ON SCHEMA service TO PUBLIC")
			if tt.ledger {
				if _, err := Migrate(ctx, pgtest.With(h.mallory, "search_path", h.names.Replace("service")), nil); err != nil {
					t.Fatal(err)
				}
				h.do(mallory, "GRANT ALL ON ALL TABLES IN SCHEMA service TO PUBLIC", "GRANT ALL ON ALL SEQUENCES IN SCHEMA service TO PUBLIC")
			} else {
				h.do(mallory, "GRANT ALL ON SCHEMA service TO service")
			}
			if tt.says == "" {
				h.serve(h.service, "a")
				return
			}
			_, err := Open(ctx, h.service, &Options{Migrate: true})
			h.refused(err, tt.says)
			_, err = Migrate(ctx, h.service, nil)
			h.refused(err, tt.says)
		})
	}
}

// traps are functions and operators that fit what the ledger calls better than the
// server's own, or just as well; each fails when it is called.
const traps = `
DO $do$
DECLARE f record; made int := 0; op text; a text; b text;
BEGIN
	CREATE FUNCTION tools.trap(a text, b name) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped'; END $$;
	CREATE FUNCTION tools.trap(a text, b "char") RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped'; END $$;
	CREATE FUNCTION tools.trap(a text, b regclass) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped'; END $$;
	CREATE FUNCTION tools.trap(a text, b text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped'; END $$;
	CREATE FUNCTION tools.trap(a bigint, b bigint) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped'; END $$;
	CREATE OPERATOR tools.|| (leftarg = text, rightarg = name, function = tools.trap);
	CREATE OPERATOR tools.|| (leftarg = text, rightarg = "char", function = tools.trap);
	CREATE OPERATOR tools.|| (leftarg = text, rightarg = regclass, function = tools.trap);
	CREATE OPERATOR tools.|| (leftarg = text, rightarg = text, function = tools.trap);
	CREATE OPERATOR tools.= (leftarg = bigint, rightarg = bigint, function = tools.trap);
	CREATE OPERATOR tools.<= (leftarg = bigint, rightarg = bigint, function = tools.trap);
	FOR f IN SELECT p.proname, array_agg(CASE t WHEN 'text'::regtype THEN v.text WHEN 'name'::regtype THEN v.name
			WHEN 'bigint'::regtype THEN v.bigint WHEN 'regclass'::regtype THEN 'text' WHEN 'xid8'::regtype THEN 'text'
			WHEN 'oid'::regtype THEN v.oid WHEN '"any"'::regtype THEN v.text ELSE format_type(t, NULL) END ORDER BY n) AS args
		FROM pg_proc p LEFT JOIN LATERAL unnest(p.proargtypes) WITH ORDINALITY AS a(t, n) ON true,
			(VALUES ('name', 'text', 'integer', 'regclass'), ('text', 'text', 'integer', 'oid'), ('varchar', 'name', 'bigint', 'text'), ('text', 'name', 'integer', 'oid')) v(text, name, bigint, oid)
		WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proname IN ('nextval', 'setval', 'generate_series', 'quote_ident', 'to_regclass',
			'current_setting', 'set_config', 'pg_get_serial_sequence', 'pg_xact_status', 'pg_logical_emit_message', 'hashtextextended', 'format',
			'pg_advisory_xact_lock', 'substr', 'length', 'concat', 'pg_backend_pid', 'pg_current_xact_id', 'pg_walfile_name', 'pg_has_role',
			'has_schema_privilege', 'has_function_privilege', 'cardinality', 'unnest', 'current_schemas', 'current_database', 'now')
		GROUP BY p.oid, p.proname, v
	LOOP
		BEGIN
			EXECUTE format('CREATE FUNCTION tools.%I(%s) RETURNS bigint LANGUAGE plpgsql AS $f$ BEGIN RAISE EXCEPTION %L; END $f$',
				f.proname, array_to_string(f.args, ', '), 'trapped by ' || f.proname);
			made := made + 1;
		EXCEPTION WHEN OTHERS THEN NULL; -- the same twice, or a type that no function takes
		END;
	END LOOP;
	FOREACH op IN ARRAY ARRAY['text', 'bigint', 'bytea', 'regclass', 'boolean', 'name', 'xid8'] LOOP
		EXECUTE format('CREATE DOMAIN tools.%I AS integer', op);
	END LOOP;
	CREATE TABLE tools.pg_class (a int);
	CREATE TABLE tools.pg_settings (a int);
	IF made < 40 THEN RAISE EXCEPTION 'only % traps', made; END IF;
END $do$`

// TestTraps: what somebody has left in the schema, when he still could, is not what
// the ledger calls: not in a call, not in an audit or a migration, whoever runs it.
func TestTraps(t *testing.T) {
	h := newHousehold(t)
	h.serve(h.tools, "a")
	h.do(h.root, "GRANT ALL ON SCHEMA tools TO mallory")
	h.do(pgtest.Open(t, h.mallory), traps)
	h.do(h.root, "REVOKE ALL ON SCHEMA tools FROM mallory", "DELETE FROM tools.goose_db_version WHERE version_id = 4")
	h.serve(h.tools, "b")
	h.serve(pgtest.With(h.admin, "search_path", "tools"), "c")
	e, err := open(context.Background(), h.tools, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var tx transaction
	err = e.with(context.Background(), func(conn *sql.Conn) (err error) {
		defer rollback(context.Background(), conn)
		tx, err = e.begin(context.Background(), conn, "")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.ask(&lostAnswer{tx: tx}); !errors.Is(err, engine.ErrUnavailable) || errors.Is(err, engine.ErrCommitUnknown) {
		t.Errorf("a transaction that was rolled back: %v", err)
	}
	if m := verbtest.Commit(mustReserve(t, e, "z", "call-z")); e.Move(context.Background(), m) != nil || m.Answer != engine.Stored {
		t.Errorf("a move: %q", m.Answer)
	}
}

// TestTemporary: a temporary table of the ledger's name, which every role may make,
// does not hide it.
func TestTemporary(t *testing.T) {
	e, _ := newEngine(t, Options{MaxConns: 1})
	if _, err := e.db.Exec("CREATE TEMP TABLE operations (a int); CREATE TEMP TABLE runtime_metadata (a int)"); err != nil {
		t.Fatal(err)
	}
	mustReserve(t, e, "a", "call-a")
	if !hasMetadata(t, e, "schema_version") {
		t.Error("the ledger is hidden")
	}
}
