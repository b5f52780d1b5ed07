package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/pgquery"
)

// everyQuery calls a method of a Querier after the other, with texts of secret, and
// gives its name, what it takes and returns, and its error.
func everyQuery(t *testing.T, q func() dbgen.Querier, secret string, check func(name string, method reflect.Type, err error)) {
	t.Helper()
	all := reflect.TypeFor[dbgen.Querier]()
	for i := range all.NumMethod() {
		m := all.Method(i)
		if m.Name == "LookupTexts" {
			continue // SQLite's alone
		}
		args := []reflect.Value{reflect.ValueOf(context.Background())}
		for j := 1; j < m.Type.NumIn(); j++ {
			arg := reflect.New(m.Type.In(j)).Elem()
			setTexts(arg, secret)
			args = append(args, arg)
		}
		results := reflect.ValueOf(q()).MethodByName(m.Name).Call(args)
		err, _ := results[len(results)-1].Interface().(error)
		check(m.Name, m.Type, err)
	}
}

// setTexts makes every text of a parameter s.
func setTexts(v reflect.Value, s string) {
	switch {
	case v.Kind() == reflect.String:
		v.SetString(s)
	case v.Type() == reflect.TypeFor[sql.NullString]():
		v.Set(reflect.ValueOf(sql.NullString{String: s, Valid: true}))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			setTexts(v.Field(i), s)
		}
	}
}

// hasTexts reports whether a query has a parameter that is a text.
func hasTexts(method reflect.Type) bool {
	for j := 1; j < method.NumIn(); j++ {
		v := reflect.New(method.In(j)).Elem()
		setTexts(v, "text")
		if strings.Contains(fmt.Sprint(v.Interface()), "text") {
			return true
		}
	}
	return false
}

// ofKind says how an error is not of a kind: that of a database, which quotes nothing.
func ofKind(err, kind error, secret string) string {
	var e *engine.Error
	switch {
	case err == nil:
		return "no error"
	case secret != "" && strings.Contains(err.Error(), secret):
		return "it quotes: " + err.Error()
	case kind == engine.ErrMistyped && errors.Is(err, kind): // it has no cause, which would quote
		return ""
	case !errors.As(err, &e):
		return fmt.Sprintf("it has no kind: %v", err)
	case e.Kind != kind:
		return fmt.Sprintf("got %v, want %v", e, kind)
	}
	return ""
}

// TestEveryQueryFails: whichever query fails, and whenever, its error has its kind, at
// the latest where its unit ends.
func TestEveryQueryFails(t *testing.T) {
	ctx := context.Background()
	const secret = "5ecret"
	e, _ := newEngine(t, Options{})
	conn := func(t *testing.T, statements string) *sql.Conn {
		t.Helper()
		conn, err := e.db.Conn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			drop(conn)
			conn.Close()
		})
		_, _ = run(ctx, conn, statements)
		return conn
	}
	// Those that fail before there is a row fail with their kind where they are called.
	atOnce := []struct {
		name    string
		kind    error
		session string // what the session does first
		before  string // and before each query
	}{
		{name: "a connection that was given back", kind: engine.ErrUnavailable},
		{name: "a session that was ended", kind: engine.ErrUnavailable, before: "SELECT pg_catalog.pg_terminate_backend(pg_catalog.pg_backend_pid())"},
		{name: "a transaction that has failed", kind: engine.ErrDatabase, session: "BEGIN; SELECT 1/0"},
		{name: "a statement that takes too long", kind: engine.ErrBusy, session: "SET statement_timeout = 20"},
		{name: "a value that no column can hold", kind: engine.ErrConstraint},
		{name: "a server that cannot be written", kind: engine.ErrReadOnly, before: "ROLLBACK; BEGIN READ ONLY"},
	}
	for _, tt := range atOnce {
		t.Run(tt.name, func(t *testing.T) {
			if testing.Short() && (tt.kind == engine.ErrBusy || tt.kind == engine.ErrUnavailable && tt.before != "") {
				t.Skip("takes long; make test-long runs it")
			}
			text := secret
			if tt.kind == engine.ErrConstraint {
				text = "a\x00"
			}
			c := conn(t, tt.session)
			var db dbgen.DBTX = c
			switch {
			case tt.kind == engine.ErrBusy:
				db = replaced{c, func(func() int) string { return "SELECT pg_catalog.pg_sleep(10)" }}
			case tt.kind == engine.ErrUnavailable && tt.before == "":
				c.Close()
			}
			querier := func() dbgen.Querier {
				if tt.kind == engine.ErrUnavailable && tt.before != "" {
					drop(c)
					c.Close()
					c = conn(t, "")
					db = c
				}
				_, _ = run(ctx, c, tt.before)
				return pgquery.New(db, fromDriver)
			}
			everyQuery(t, querier, text, func(name string, method reflect.Type, err error) {
				switch {
				case tt.kind == engine.ErrConstraint && !hasTexts(method), tt.kind == engine.ErrReadOnly && !writes(name):
				default:
					if wrong := ofKind(err, tt.kind, text); wrong != "" {
						t.Errorf("%s: %s", name, wrong)
					}
				}
			})
		})
	}
	// What comes with a row has its kind where the unit ends.
	late := map[string]struct {
		kind error
		sql  func(columns int) string
	}{
		"a value of another type than its column": {engine.ErrMistyped, func(columns int) string {
			return "SELECT " + strings.TrimSuffix(strings.Repeat("'"+secret+"',", columns), ",")
		}},
		"an error after two rows": {engine.ErrConstraint, func(columns int) string {
			return "SELECT " + strings.TrimSuffix(strings.Repeat("v,", columns), ",") + " FROM (SELECT 6 / (3 - n) AS v FROM pg_catalog.generate_series(1, 3) AS n) AS rows"
		}},
	}
	for name, tt := range late {
		t.Run(name, func(t *testing.T) {
			db := replaced{conn(t, ""), func(columns func() int) string { return tt.sql(columns()) }}
			querier := func() dbgen.Querier { return pgquery.New(db, fromDriver) }
			everyQuery(t, querier, secret, func(name string, method reflect.Type, err error) {
				result := method.Out(0)
				many := result.Kind() == reflect.Slice
				if many {
					result = result.Elem()
				}
				if tt.kind == engine.ErrMistyped && (writes(name) || takesTexts(result)) || tt.kind == engine.ErrConstraint && !many {
					return
				}
				if wrong := ofKind(ended(ctx, err), tt.kind, secret); wrong != "" {
					t.Errorf("%s: %s", name, wrong)
				}
			})
		})
	}
}

// writes reports whether a query writes. One that is named otherwise fails the test.
func writes(name string) bool {
	for _, verb := range []string{"Add", "Copy", "Delete", "Hold", "Insert", "Lock", "Move", "Pause", "Resume"} {
		if strings.HasPrefix(name, verb) {
			return true
		}
	}
	return false
}

// takesTexts reports whether a result takes texts for all of its columns.
func takesTexts(result reflect.Type) bool {
	switch {
	case result.Kind() != reflect.Struct:
		return result.Kind() == reflect.String || result == reflect.TypeFor[[]byte]()
	case result == reflect.TypeFor[sql.NullString]():
		return true
	}
	for i := range result.NumField() {
		if !takesTexts(result.Field(i).Type) {
			return false
		}
	}
	return true
}

// replaced sends another statement for each, which may be made for as many columns.
type replaced struct {
	*sql.Conn
	by func(columns func() int) string
}

func (r replaced) statement(query string) string {
	return r.by(func() (columns int) {
		err := native(r.Conn, func(conn *pgx.Conn) error {
			described, err := conn.Prepare(context.Background(), query, query)
			if err == nil {
				columns = len(described.Fields)
			}
			return err
		})
		if err != nil {
			panic(err)
		}
		return columns
	})
}

func (r replaced) ExecContext(ctx context.Context, query string, _ ...any) (sql.Result, error) {
	return r.Conn.ExecContext(ctx, r.statement(query))
}

func (r replaced) QueryContext(ctx context.Context, query string, _ ...any) (*sql.Rows, error) {
	return r.Conn.QueryContext(ctx, r.statement(query))
}

func (r replaced) QueryRowContext(ctx context.Context, query string, _ ...any) *sql.Row {
	return r.Conn.QueryRowContext(ctx, r.statement(query))
}

// TestClaimsSkip: what one worker is claiming, another passes over, without waiting: no
// event is given to two.
func TestClaimsSkip(t *testing.T) {
	ctx := context.Background()
	e, _ := newEngine(t, Options{LockTimeout: 100 * time.Millisecond, RetryTimeout: time.Second})
	var events []int64
	for _, key := range []string{"a", "b"} {
		events = append(events, mustReserve(t, e, key, "call-"+key).Operation.OperationPK)
	}
	var claimed [][]int64
	// claim has another worker claim while it holds what it has claimed.
	var claim func(workers int) error
	claim = func(workers int) error {
		return e.Write(ctx, func(ctx context.Context, q engine.Querier) error {
			due, err := q.LockDueInLane(ctx, dbgen.LockDueInLaneParams{Lane: "lane", ToolName: "tool", Now: 100, Page: 1})
			if claimed = append(claimed, due); err != nil || workers == 1 {
				return err
			}
			return claim(workers - 1)
		})
	}
	if err := claim(3); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([][]int64{events[:1], events[1:], {}}, claimed); diff != "" {
		t.Errorf("claimed by three workers (-want +got):\n%s", diff)
	}
}
