package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/pgtest"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// secret must not be in any error's text.
const secret = "s3cret"

// newEngine is an engine over a fresh ledger, and its URL.
func newEngine(t testing.TB, opts Options) (*pgEngine, string) {
	t.Helper()
	address := pgtest.Schema(t)
	opts.Migrate = true
	e, err := open(context.Background(), address, &opts, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e, address
}

// TestClassify makes a live server give each error.
func TestClassify(t *testing.T) {
	ctx := context.Background()
	e, address := newEngine(t, Options{StatementTimeout: 300 * time.Millisecond, LockTimeout: 100 * time.Millisecond})
	holdRow(t, address)
	raise := func(code string) string {
		return "DO $$ BEGIN RAISE EXCEPTION '" + secret + "' USING ERRCODE = '" + code + "'; END $$"
	}
	tests := []struct {
		code, statement string
		kind            error
	}{
		{"23505", "INSERT INTO runtime_metadata VALUES ('schema_version', 's3cret')", engine.ErrConstraint},
		{"23502", "INSERT INTO runtime_metadata VALUES ('s3cret2', NULL)", engine.ErrConstraint},
		{"23514", "INSERT INTO call_bindings VALUES ('a','b','c','d','e','f','s3cret',1,'','')", engine.ErrConstraint},
		{"23503", "INSERT INTO local_receipts VALUES (99,'a','b',repeat('a',64),'{}','p','r','o','e',1,'')", engine.ErrConstraint},
		{"P0001", "INSERT INTO rejected_receipts VALUES (1,1,'a','b','c','d','e','f','g',1,'')", engine.ErrConstraint},
		{"22021", "SELECT convert_from('\\x00'::bytea, 'UTF8')", engine.ErrConstraint},
		{"54000", "INSERT INTO runtime_metadata SELECT string_agg(md5(i::text), ''), 'x' FROM generate_series(1, 300) i", engine.ErrConstraint},
		{"55P03", "UPDATE runtime_metadata SET metadata_value = 'z' WHERE metadata_key = 's3cret'", engine.ErrBusy},
		{"57014", "SELECT pg_sleep(5)", engine.ErrBusy},
		{"25006", "SET TRANSACTION READ ONLY; CREATE TABLE s3cret (a int)", engine.ErrReadOnly},
		{"42501", "SET LOCAL ROLE pg_monitor; SELECT * FROM pg_authid", engine.ErrCannotOpen},
		{"42P01", "SELECT * FROM s3cret", engine.ErrDatabase},
		// These cannot be provoked without filling a disk or breaking a file: the
		// server is told to raise them.
		{"53100", raise("53100"), engine.ErrFull},
		{"53200", raise("53200"), engine.ErrDatabase},
		{"53300", raise("53300"), engine.ErrUnavailable},
		{"53400", raise("53400"), engine.ErrDatabase},
		{"55006", raise("55006"), engine.ErrBusy},
		{"58030", raise("58030"), engine.ErrDatabase},
		{"57P03", raise("57P03"), engine.ErrUnavailable},
		{"40001", raise("40001"), engine.ErrBusy},
		{"XX001", raise("XX001"), engine.ErrCorrupt},
		{"XX002", raise("XX002"), engine.ErrCorrupt},
	}
	for _, test := range tests {
		t.Run(test.code, func(t *testing.T) {
			err := e.with(ctx, func(conn *sql.Conn) error {
				_, err := run(ctx, conn, "BEGIN;"+test.statement+";COMMIT")
				rollback(ctx, conn)
				return ended(ctx, err)
			})
			expectKind(t, err, test.kind, "postgres "+test.code)
		})
	}
	t.Run("57P01", func(t *testing.T) {
		err := e.with(ctx, func(conn *sql.Conn) error {
			_, err := run(ctx, conn, "SELECT pg_terminate_backend(pg_backend_pid())")
			return ended(ctx, err)
		})
		expectKind(t, err, engine.ErrUnavailable, "postgres 57P01")
		if err := e.with(ctx, func(*sql.Conn) error { return nil }); err != nil {
			t.Errorf("the pool kept the dead connection: %v", err)
		}
	})
}

// holdRow makes a row that another session holds, and a table that refuses rows.
func holdRow(t *testing.T, address string) {
	t.Helper()
	tx, err := pgtest.Open(t, address).Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tx.Rollback() })
	for _, statement := range []string{
		"INSERT INTO runtime_metadata VALUES ('" + secret + "', 'x')",
		"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '" + secret + "'; END $$",
		"CREATE TRIGGER refuse BEFORE INSERT ON rejected_receipts FOR EACH ROW EXECUTE FUNCTION refuse()",
		"COMMIT", "BEGIN",
		"UPDATE runtime_metadata SET metadata_value = 'y' WHERE metadata_key = '" + secret + "'",
	} {
		if _, err := tx.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
}

// expectKind holds an error against its kind, and its text against leaks.
func expectKind(t *testing.T, err, kind error, code string) {
	t.Helper()
	var known *engine.Error
	if !errors.As(err, &known) || known.Kind != kind || !errors.Is(err, engine.ErrDatabase) || known.Code != code {
		t.Fatalf("got %v, want %v (%s)", err, kind, code)
	}
	if strings.Contains(err.Error(), secret) {
		t.Errorf("the text tells a value: %v", err)
	}
}

// TestOpenErrors: a server that cannot be used, and a URL that cannot be read.
func TestOpenErrors(t *testing.T) {
	ctx := context.Background()
	server := pgtest.URL(t)
	admin := pgtest.Open(t, server)
	role := fmt.Sprintf("limited_%d", time.Now().UnixNano())
	if _, err := admin.Exec("CREATE ROLE " + role + " LOGIN CONNECTION LIMIT 0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Exec("DROP ROLE " + role) })
	soon := &Options{RetryTimeout: 50 * time.Millisecond}
	tests := []struct {
		name, address string
		opts          *Options
		kind          error
	}{
		{"no such database", strings.Replace(server, "/postgres?", "/"+secret+"?", 1), soon, engine.ErrCannotOpen},
		{"no such role", pgtest.With(server, "user", secret), soon, engine.ErrCannotOpen},
		{"too many connections", pgtest.With(server, "user", role), soon, engine.ErrUnavailable},
		{"nobody listens", "postgres://user:" + secret + "@127.0.0.1:1/" + secret, soon, engine.ErrUnavailable},
		{"no such host", "postgres://user:" + secret + "@" + secret + ".invalid/db", soon, engine.ErrUnavailable},
		{"not an address", secret, soon, toolresult.ErrInvalidInput},
		{"words, and nobody listens", "host=127.0.0.1 port=1 dbname=" + secret + " password=" + secret, soon, engine.ErrUnavailable},
		{"words that cannot be understood", "host=127.0.0.1 sslmode=" + secret, soon, toolresult.ErrInvalidInput},
		{"bad URL", "postgres://user:" + secret + "@host:port:" + secret + "/", soon, toolresult.ErrInvalidInput},
		{"bad parameter", "postgres://user:" + secret + "@host/db?sslmode=" + secret, soon, toolresult.ErrInvalidInput},
		{"schema name too long", server, &Options{Schema: strings.Repeat("x", 64)}, toolresult.ErrInvalidInput},
		{"no connections", server, &Options{MaxConns: -1}, toolresult.ErrInvalidInput},
		{"timeout too short", server, &Options{LockTimeout: time.Microsecond}, toolresult.ErrInvalidInput},
		{"not migrated", pgtest.Schema(t), nil, engine.ErrContract},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Open(ctx, test.address, test.opts)
			if !errors.Is(err, test.kind) || strings.Contains(err.Error(), secret) {
				t.Errorf("got %v, want %v", err, test.kind)
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := Open(ctx, server, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// countMetadata and putMetadata are units for tests.
func putMetadata(key string) engine.Unit {
	return func(ctx context.Context, q engine.Querier) error {
		_, err := q.InsertMetadata(ctx, dbgen.InsertMetadataParams{MetadataKey: key, MetadataValue: "x"})
		return err
	}
}

func hasMetadata(t *testing.T, e *pgEngine, key string) (has bool) {
	t.Helper()
	err := e.Read(context.Background(), func(ctx context.Context, q engine.Querier) error {
		rows, err := q.ListMetadata(ctx)
		has = false
		for _, m := range rows {
			has = has || m.MetadataKey == key
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return has
}
