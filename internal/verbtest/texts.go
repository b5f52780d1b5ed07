package verbtest

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/tables"
)

// Hostile are texts that mean something to some database, in some form of a value.
var Hostile = []string{"", " ", "NULL", "null", `"`, `""`, `'`, `\`, `\\`, `\"`, `"\`, `\x00`, `\N`, "{", "}", "{}", `{"a","b"}`, ",", "a,b",
	"\n", "\r\n", "\t", "\v\f\b\x01\x7f", "$1", "?1", "@a", "%s", "--", "/*", "';--", `E'\n'`, "é", "e\u0301", "日本", "\U0001f600", "\u2028\u00a0\ufeff",
	" lead", "trail ", `end\`, `a"b\c{d}e,f` + "\n'g", "\u0085"}

// constrained are the columns that hold no free text.
var constrained = map[string]bool{"status_ref": true, "request_sha256": true, "approval_digest": true, "state": true, "reason": true,
	"effect_kind": true, "fingerprint_sha256": true, "outcome": true}

// fill makes every free text of a row s, and those of keys s with a mark.
func fill[R any](table *tables.Table[R], row *R, s, mark string, keys ...string) {
	v := reflect.ValueOf(row).Elem()
	for i, c := range table.Columns {
		text := s
		for _, key := range keys {
			if key == c.Name {
				text = mark + s
			}
		}
		switch f := v.Field(i).Addr().Interface().(type) {
		case *string:
			if !constrained[c.Name] {
				*f = text
			}
		case *sql.NullString:
			if f.Valid {
				f.String = text
			}
		}
	}
	table.Seal(row)
}

// testTexts: whatever a text is, it is stored byte for byte, alone and among others.
func testTexts(t *testing.T, l Ledger) {
	made := func(mark, s string) *engine.Reservation {
		r := Reservation(mark, mark)
		fill(tables.CallBindings, &r.Binding, s, mark, "call_id")
		inner := r.Make
		r.Make = func(pk int64) (dbgen.Operation, dbgen.Outbox) {
			o, e := inner(pk)
			fill(tables.Operations, &o, s, mark, "idempotency_key")
			fill(tables.Outbox, &e, s, mark, "event_id")
			return o, e
		}
		return r
	}
	ended := func(r *engine.Reservation, mark, s string) *engine.Motion {
		m := Commit(r)
		fill(tables.Attempts, m.Attempt, s, "")
		d := m.Observed
		scope := [4]string{d.TenantID, d.SubjectID, d.ToolName, d.IdempotencyKey}
		fill(tables.DownstreamReceipts, d, s, mark, "receipt_id", "downstream_request_id")
		d.TenantID, d.SubjectID, d.ToolName, d.IdempotencyKey = scope[0], scope[1], scope[2], scope[3]
		accept(m)
		return m
	}
	check := func(rs []*engine.Reservation, ms []*engine.Motion) {
		t.Helper()
		for i, m := range ms {
			if rs[i].Answer != engine.Stored || m.Answer != engine.Stored {
				t.Errorf("%q: %q, then %q", Hostile[i%len(Hostile)], rs[i].Answer, m.Answer)
				continue
			}
			l.holds(t, &engine.Reservation{Operation: m.Operation, Event: m.Event, Binding: rs[i].Binding})
			l.attempted(t, m.Attempt)
			l.write(t, func(ctx context.Context, q engine.Querier) error {
				accepted, err := q.GetLocalReceipt(ctx, m.Operation.OperationPK)
				if diff := cmp.Diff(*m.Accepted, accepted); diff != "" {
					t.Errorf("accepted (-want +got):\n%s", diff)
				}
				return err
			})
			var receipts int
			if err := l.DB.QueryRowContext(context.Background(), "SELECT count(*) FROM downstream_receipts WHERE row_digest = $1 AND receipt_id = $2 AND result_json = $3",
				m.Observed.RowDigest, m.Observed.ReceiptID, m.Observed.ResultJSON).Scan(&receipts); err != nil || receipts != 1 {
				t.Errorf("%d receipts, %v", receipts, err)
			}
		}
	}
	var rs []*engine.Reservation
	var ms []*engine.Motion
	for i, s := range Hostile { // alone
		rs = append(rs, l.reserved(t, made(fmt.Sprint("alone ", i), s)))
		ms = append(ms, ended(rs[i], fmt.Sprint("alone ", i), s))
		if err := l.Engine.Move(context.Background(), ms[i]); err != nil {
			t.Fatal(err)
		}
	}
	check(rs, ms)
	rs, ms = nil, nil
	for i, s := range Hostile {
		rs = append(rs, made(fmt.Sprint("together ", i), s))
	}
	if err := l.Engine.Reserve(context.Background(), rs...); err != nil {
		t.Fatal(err)
	}
	for i, s := range Hostile {
		ms = append(ms, ended(rs[i], fmt.Sprint("together ", i), s))
	}
	if err := l.Engine.Move(context.Background(), ms...); err != nil {
		t.Fatal(err)
	}
	check(rs, ms)
}
