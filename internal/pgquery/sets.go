package pgquery

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/dbgen/postgres"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/tables"
)

// A Set is a statement that stores many operations, and how its answer is read.
type Set struct {
	Query string
	Args  []any
	Read  func(Rows) error
}

// Statement is the set to be sent with others.
func (s Set) Statement() Statement {
	return Statement{query: s.Query, args: s.Args, read: func(rows pgx.Rows) error { return s.Read(rows) }}
}

// Rows are those of the driver, or of package database/sql.
type Rows interface {
	Next() bool
	Scan(...any) error
	Err() error
}

// A kind of sets are two generated statements: for many calls, and for one.
type kind[T any] struct {
	groups    []group[T]
	many, one generated
}

// A generated statement, of which the text is used, and where its parameters are: the
// groups' columns in their order, the number of calls and the search_path.
type generated struct {
	query  string
	places []int
}

// A group are parameters that are columns of a table.
type group[T any] struct {
	names  []string
	arrays func([]*T) []string // for many calls
	texts  func(*T) []any      // for one
}

// columnsOf are those of a table that are wanted, under a prefix, of a row of each call.
func columnsOf[T, R any](prefix string, t *tables.Table[R], wanted func(string) bool, row func(*T) *R) group[T] {
	g := group[T]{
		arrays: func(all []*T) []string {
			rows := make([]*R, len(all))
			for i, v := range all {
				rows[i] = row(v)
			}
			return t.Arrays(rows, wanted)
		},
		texts: func(v *T) []any { return t.Texts(row(v), wanted) },
	}
	for _, c := range t.Columns {
		if wanted == nil || wanted(c.Name) {
			g.names = append(g.names, prefix+c.Name)
		}
	}
	return g
}

// integers are a parameter that is no column.
func integers[T any](name string, of func(*T) int64) group[T] {
	return group[T]{names: []string{name},
		arrays: func(all []*T) []string {
			values := make([]int64, len(all))
			for i, v := range all {
				values[i] = of(v)
			}
			return []string{tables.Integers(values)}
		},
		texts: func(v *T) []any { return []any{strconv.FormatInt(of(v), 10)} },
	}
}

// newKind finds out where the parameters of the two generated queries are: each is run with
// a value in each field of its parameters that says which one it is.
func newKind[T, M, O any](many func(*postgres.Queries, context.Context, M) error, one func(*postgres.Queries, context.Context, O) error,
	groups ...group[T]) *kind[T] {
	var names []string
	for _, g := range groups {
		names = append(names, g.names...)
	}
	return &kind[T]{groups, find(many, names), find(one, names)}
}

func find[P any](run func(*postgres.Queries, context.Context, P) error, names []string) (g generated) {
	var p P
	fields := reflect.ValueOf(&p).Elem()
	for i := range fields.NumField() {
		if f := fields.Field(i); f.Kind() == reflect.String {
			f.SetString(strings.ToLower(fields.Type().Field(i).Name))
		}
	}
	s := recorded(func(ctx context.Context, q *postgres.Queries) error { return run(q, ctx, p) })
	g.query = s.query
	names = append(slices.Clone(names), "calls", "search_path")
	for _, name := range names {
		want := any(strings.ReplaceAll(name, "_", ""))
		if name == "calls" {
			want = int64(0) // the only integer
		}
		place := slices.Index(s.args, want)
		if place < 0 || len(s.args) != len(names) {
			panic("pgquery: a generated query has other parameters than the tables have columns: " + name)
		}
		g.places = append(g.places, place)
	}
	return g
}

// set is the statement for calls.
func (k *kind[T]) set(path string, all []*T, read func(Rows) error) Set {
	g := &k.many
	if len(all) == 1 {
		g = &k.one
	}
	args, i := make([]any, len(g.places)), 0
	put := func(v any) {
		args[g.places[i]] = v
		i++
	}
	for _, group := range k.groups {
		if len(all) == 1 {
			for _, v := range group.texts(all[0]) {
				put(v)
			}
			continue
		}
		for _, v := range group.arrays(all) {
			put(v)
		}
	}
	put(int64(len(all)))
	put(path)
	return Set{g.query, args, read}
}

var reservations = newKind((*postgres.Queries).ReserveMany, (*postgres.Queries).ReserveOne,
	columnsOf("o_", tables.Operations, nil, func(r *engine.Reservation) *dbgen.Operation { return &r.Operation }),
	columnsOf("e_", tables.Outbox, nil, func(r *engine.Reservation) *dbgen.Outbox { return &r.Event }),
	columnsOf("b_", tables.CallBindings, nil, func(r *engine.Reservation) *dbgen.CallBinding { return &r.Binding }),
	integers("valid_from", func(r *engine.Reservation) int64 { return r.From }),
	integers("valid_until", func(r *engine.Reservation) int64 { return r.Until }))

// ReserveMany reserves what was made. None has the scope or the call identity of another.
// next gets a key for each.
func ReserveMany(path string, all []*engine.Reservation, next func(key int64)) Set {
	return reservations.set(path, all, func(rows Rows) error {
		var place, key int64
		var why string
		var stored bool
		return read(rows, len(all), []any{&place, &why, &stored, &key}, &place, func(i int64) {
			next(key)
			switch {
			case stored:
				all[i].Answer = engine.Stored
			case why == "": // somebody was faster
				all[i].Answer = engine.Taken
			default:
				all[i].Answer = engine.Answer(why)
			}
		})
	})
}

var motions = newKind((*postgres.Queries).MoveMany, (*postgres.Queries).MoveOne,
	columnsOf("f_", tables.Operations, nil, func(m *engine.Motion) *dbgen.Operation { return &m.FromOperation }),
	columnsOf("g_", tables.Outbox, nil, func(m *engine.Motion) *dbgen.Outbox { return &m.FromEvent }),
	columnsOf("o_", tables.Operations, tables.ChangedOperation, func(m *engine.Motion) *dbgen.Operation { return &m.Operation }),
	columnsOf("e_", tables.Outbox, tables.ChangedEvent, func(m *engine.Motion) *dbgen.Outbox { return &m.Event }),
	columnsOf("a_", tables.Attempts, nil, func(m *engine.Motion) *dbgen.Attempt { return m.Attempt }),
	columnsOf("d_", tables.DownstreamReceipts, tables.Given, func(m *engine.Motion) *dbgen.DownstreamReceipt { return m.Observed }),
	columnsOf("l_", tables.LocalReceipts, nil, func(m *engine.Motion) *dbgen.LocalReceipt { return m.Accepted }),
	columnsOf("n_", tables.Endings, tables.Given, func(m *engine.Motion) *dbgen.Ending { return m.Ending }))

// MoveMany moves operations. None is another's.
func MoveMany(path string, all []*engine.Motion) Set {
	return motions.set(path, all, func(rows Rows) error {
		var place int64
		var stored bool
		return read(rows, len(all), []any{&place, &stored}, &place, func(i int64) {
			if all[i].Answer = engine.Lost; stored {
				all[i].Answer = engine.Stored
			}
		})
	})
}

// ClaimedMany reads operations with their events.
func ClaimedMany(ctx context.Context, db postgres.DBTX, pks []int64) ([]dbgen.GetClaimedRow, error) {
	rows, err := postgres.New(db).GetClaimedMany(ctx, tables.Integers(pks))
	all := make([]dbgen.GetClaimedRow, len(rows))
	for i, row := range rows {
		all[i] = dbgen.GetClaimedRow{Operation: dbgen.Operation(row.Operation), Outbox: dbgen.Outbox(row.Outbox)}
	}
	return all, err
}

// read reads a row for each of n calls, in any order.
func read(rows Rows, n int, to []any, place *int64, take func(i int64)) error {
	seen := 0
	for ; rows.Next(); seen++ {
		if err := rows.Scan(to...); err != nil {
			return err
		}
		if *place < 1 || *place > int64(n) {
			return errors.New("pgquery: an answer is nobody's")
		}
		take(*place - 1)
	}
	switch {
	case rows.Err() != nil:
		return rows.Err()
	case seen == 0:
		return ErrElsewhere
	case seen != n:
		return errors.New("pgquery: an answer is missing")
	}
	return nil
}

// Apart divides calls into groups of which each can be one set: in none do two have a key
// in common. They keep their order.
func Apart[T any](all []*T, keys func(*T) []any) (groups [][]*T) {
	var used []map[any]bool
	for _, v := range all {
		k := keys(v)
		g := 0
		for i := range used { // behind the last that has one of its keys
			if slices.ContainsFunc(k, func(key any) bool { return used[i][key] }) {
				g = i + 1
			}
		}
		if g == len(groups) {
			groups, used = append(groups, nil), append(used, map[any]bool{})
		}
		groups[g] = append(groups[g], v)
		for _, key := range k {
			used[g][key] = true
		}
	}
	return groups
}

// ReservationKeys are what no two of a set may have in common.
func ReservationKeys(r *engine.Reservation) []any {
	o, b := &r.Operation, &r.Binding
	return []any{
		[4]string{o.TenantID, o.SubjectID, o.ToolName, o.IdempotencyKey},
		[6]string{b.TenantID, b.SubjectID, b.Provider, b.APIFamily, b.ResponseID, b.CallID},
	}
}

// MotionKeys are what no two of a set may have in common.
func MotionKeys(m *engine.Motion) []any {
	keys := []any{m.FromOperation.OperationPK}
	if d := m.Observed; d != nil {
		keys = append(keys, [3]string{"receipt " + d.TenantID, d.ToolName, d.ReceiptID},
			[3]string{"request " + d.TenantID, d.ToolName, d.DownstreamRequestID})
	}
	return keys
}
