package verbtest

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/tables"
)

// A Ledger is an engine, and its database past it: nobody uses the one while he uses the
// other.
type Ledger struct {
	Engine engine.Engine
	DB     dbgen.DBTX
}

// written are the tables that the verbs write.
var written = []string{"call_bindings", "operations", "outbox", "attempts", "downstream_receipts", "local_receipts", "endings"}

// content is what the tables hold, row by row. What the database assigns itself is left
// out, but for the keys of operations.
func (l Ledger) content(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, table := range written {
		rows, err := l.DB.QueryContext(context.Background(), "SELECT * FROM "+table+" ORDER BY row_digest")
		if err != nil {
			t.Fatal(err)
		}
		names, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			values, to := make([]any, len(names)), make([]any, len(names))
			for i := range values {
				to[i] = &values[i]
			}
			if err := rows.Scan(to...); err != nil {
				t.Fatal(err)
			}
			var row []string
			for i, name := range names {
				if name != "downstream_pk" && name != "ending_pk" {
					row = append(row, fmt.Sprintf("%s=%v", name, values[i]))
				}
			}
			all[table] = append(all[table], strings.Join(row, " "))
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		rows.Close()
	}
	return all
}

func (l Ledger) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	if _, err := l.DB.ExecContext(context.Background(), query, args...); err != nil {
		t.Fatal(err)
	}
}

// write does something of the ledger's own before a test.
func (l Ledger) write(t *testing.T, unit func(ctx context.Context, q engine.Querier) error) {
	t.Helper()
	if err := l.Engine.Write(context.Background(), unit); err != nil {
		t.Fatal(err)
	}
}

func (l Ledger) reserved(t *testing.T, r *engine.Reservation) *engine.Reservation {
	t.Helper()
	if err := l.Engine.Reserve(context.Background(), r); err != nil || r.Answer != engine.Stored {
		t.Fatalf("reserve: %q, %v", r.Answer, err)
	}
	return r
}

// A way is how a verb is called.
type way struct {
	name    string
	reserve func(l Ledger, all ...*engine.Reservation) error
	move    func(l Ledger, all ...*engine.Motion) error
}

// ways are the verb of the engine, and that of a unit, which has a transaction of its own.
var ways = []way{
	{"engine",
		func(l Ledger, all ...*engine.Reservation) error {
			return l.Engine.Reserve(context.Background(), all...)
		},
		func(l Ledger, all ...*engine.Motion) error { return l.Engine.Move(context.Background(), all...) }},
	{"unit",
		func(l Ledger, all ...*engine.Reservation) error {
			return engine.Whole(l.Engine.Write(context.Background(), func(ctx context.Context, q engine.Querier) error { return q.Reserve(ctx, all...) }))
		},
		func(l Ledger, all ...*engine.Motion) error {
			return engine.Whole(l.Engine.Write(context.Background(), func(ctx context.Context, q engine.Querier) error { return q.Move(ctx, all...) }))
		}},
}

// Test runs every test of the verbs.
func Test(t *testing.T, open func(*testing.T) Ledger) {
	for name, test := range map[string]func(*testing.T, Ledger){
		"reserve": testReserve, "reserve many": testReserveMany, "reserve one scope": testReserveOneScope,
		"move": testMove, "move from other rows": testMoveFromOtherRows, "move many": testMoveMany,
		"claimed": testClaimed, "stored": testStored, "texts": testTexts,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// A reserving is what is to be reserved, by a key and a call of its own.
type reserving struct {
	name   string
	before func(t *testing.T, l Ledger, key string)
	make   func(l Ledger, key string) *engine.Reservation
	want   engine.Answer
}

func plain(_ Ledger, key string) *engine.Reservation { return Reservation(key, "call-"+key) }

// of is a reservation for a tool, and for a time of the ledger's clock.
func of(tool string, from, until int64, pending bool) func(Ledger, string) *engine.Reservation {
	return func(l Ledger, key string) *engine.Reservation {
		r, now := plain(l, key), l.Engine.Now().Unix()
		if r.From, r.Until = now+from, now+until; pending {
			r = Pending(r)
		}
		return changed(r, func(o *dbgen.Operation, _ *dbgen.Outbox) { o.ToolName = tool })
	}
}

func pauses(t *testing.T, l Ledger, _ string) {
	l.write(t, func(ctx context.Context, q engine.Querier) error {
		_, err := q.PauseTool(ctx, dbgen.PauseToolParams{ToolName: "paused", Actor: "a", Reason: "r", PausedAt: 1, RowDigest: []byte{}})
		return err
	})
}

// binds binds the call of a key with a fingerprint.
func binds(digit string) func(*testing.T, Ledger, string) {
	return func(t *testing.T, l Ledger, key string) {
		b := plain(l, key).Binding
		b.FingerprintSha256, b.CreatedAt = strings.Repeat(digit, 64), 0
		tables.CallBindings.Seal(&b)
		l.write(t, func(ctx context.Context, q engine.Querier) error {
			_, err := q.InsertCallBinding(ctx, dbgen.InsertCallBindingParams(b))
			return err
		})
	}
}

func takes(t *testing.T, l Ledger, key string) { l.reserved(t, Reservation(key, "first call-"+key)) }

func buries(t *testing.T, l Ledger, key string) {
	o, _ := plain(l, key).Make(0)
	l.write(t, func(ctx context.Context, q engine.Querier) error {
		_, err := q.InsertTombstone(ctx, dbgen.InsertTombstoneParams{TenantID: o.TenantID, SubjectID: o.SubjectID, ToolName: o.ToolName,
			IdempotencyKey: key, StatusRef: o.StatusRef, State: "failed", RequestSha256: o.RequestSha256, CreatedAt: 1, CompletedAt: 1,
			PrunedAt: 1, RowDigest: []byte{}})
		return err
	})
}

var reservings = []reserving{
	{"a new scope", nil, plain, engine.Stored},
	{"one that waits for a worker", nil, of("tool", -5, 60, true), engine.Stored},
	{"a scope that has an operation", takes, plain, engine.Taken},
	{"a scope that has a tombstone", buries, plain, engine.Taken},
	{"a call that is bound to something else", binds("b"), plain, engine.Bound},
	{"a call that is bound to the same", binds("a"), plain, engine.Stored},
	{"a tool that is paused", pauses, of("paused", -5, 60, false), engine.Paused},
	{"a tool that is paused, for a worker", pauses, of("paused", -5, 60, true), engine.Stored},
	{"another tool than the one that is paused", pauses, of("other", -5, 60, false), engine.Stored},
	{"a time that has not come", nil, of("tool", 60, 120, false), engine.Late},
	{"a time that has passed", nil, of("tool", -60, -1, false), engine.Late},
	{"a time that ends now", nil, of("tool", -60, 0, false), engine.Late},
	{"a time without an end", nil, func(l Ledger, key string) *engine.Reservation { return plain(l, key) }, engine.Stored},
}

// testReserve: each answer, and nothing of what is not stored.
func testReserve(t *testing.T, l Ledger) {
	for _, way := range ways {
		for _, tt := range reservings {
			t.Run(way.name+"/"+tt.name, func(t *testing.T) {
				key := way.name + " " + tt.name
				if tt.before != nil {
					tt.before(t, l, key)
				}
				r, before := tt.make(l, key), l.content(t)
				if err := way.reserve(l, r); err != nil || r.Answer != tt.want {
					t.Fatalf("got %q, %v, want %q", r.Answer, err, tt.want)
				}
				if tt.want == engine.Stored {
					l.holds(t, r)
				} else if diff := cmp.Diff(before, l.content(t)); diff != "" {
					t.Errorf("something was stored (-before +after):\n%s", diff)
				}
			})
		}
	}
}

// holds finds what a reservation says that it has stored.
func (l Ledger) holds(t *testing.T, r *engine.Reservation) {
	t.Helper()
	l.write(t, func(ctx context.Context, q engine.Querier) error {
		rows, err := q.Claimed(ctx, []int64{r.Operation.OperationPK})
		if diff := cmp.Diff([]dbgen.GetClaimedRow{{Operation: r.Operation, Outbox: r.Event}}, rows); diff != "" {
			t.Errorf("the ledger has other rows (-want +got):\n%s", diff)
		}
		return err
	})
	var calls int
	err := l.DB.QueryRowContext(context.Background(), "SELECT count(*) FROM call_bindings WHERE call_id = $1 AND fingerprint_sha256 = $2",
		r.Binding.CallID, r.Binding.FingerprintSha256).Scan(&calls)
	if err != nil || calls != 1 {
		t.Errorf("%d call identities, %v", calls, err)
	}
}

// testReserveMany: one that cannot be stored harms no neighbour, wherever it stands.
func testReserveMany(t *testing.T, l Ledger) {
	pauses(t, l, "")
	var all []*engine.Reservation
	var want []engine.Answer
	for i, tt := range reservings {
		key := fmt.Sprint("many ", i)
		if tt.before != nil && tt.want != engine.Paused {
			tt.before(t, l, key)
		}
		all = append(all, tt.make(l, key), Reservation(fmt.Sprint("good ", i), fmt.Sprint("good call ", i)))
		want = append(want, tt.want, engine.Stored)
	}
	if err := l.Engine.Reserve(context.Background(), all...); err != nil {
		t.Fatal(err)
	}
	var got []engine.Answer
	for _, r := range all {
		if got = append(got, r.Answer); r.Answer == engine.Stored {
			l.holds(t, r)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

// testReserveOneScope: of those of one scope one is stored, and of those of one call.
func testReserveOneScope(t *testing.T, l Ledger) {
	answers := func(all ...*engine.Reservation) map[engine.Answer]int {
		n := map[engine.Answer]int{}
		for _, r := range all {
			if n[r.Answer]++; r.Answer == engine.Stored {
				l.holds(t, r)
			}
		}
		return n
	}
	for _, way := range ways {
		scope := []*engine.Reservation{Reservation(way.name, way.name+" call 1"), Reservation(way.name+" other", way.name+" call 2"), Reservation(way.name, way.name+" call 3")}
		if err := way.reserve(l, scope...); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[engine.Answer]int{engine.Stored: 2, engine.Taken: 1}, answers(scope...)); diff != "" {
			t.Errorf("%s: two of one scope:\n%s", way.name, diff)
		}
		call := []*engine.Reservation{Reservation(way.name+" a", way.name+" call"), Reservation(way.name+" b", way.name+" call"), Reservation(way.name+" c", way.name+" call 4")}
		other := &call[1].Binding
		other.FingerprintSha256 = strings.Repeat("b", 64)
		tables.CallBindings.Seal(other)
		if err := way.reserve(l, call...); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[engine.Answer]int{engine.Stored: 2, engine.Bound: 1}, answers(call...)); diff != "" {
			t.Errorf("%s: two of one call:\n%s", way.name, diff)
		}
	}
	crowd := make([]*engine.Reservation, 64)
	var callers sync.WaitGroup
	for i := range crowd {
		crowd[i] = Reservation("crowd", fmt.Sprint("crowd ", i))
		callers.Go(func() {
			if err := l.Engine.Reserve(context.Background(), crowd[i]); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	if diff := cmp.Diff(map[engine.Answer]int{engine.Stored: 1, engine.Taken: 63}, answers(crowd...)); diff != "" {
		t.Errorf("64 callers of one scope:\n%s", diff)
	}
}

var moves = map[string]func(*engine.Reservation) *engine.Motion{"commit": Commit, "stay": Stay, "renew": renew, "release": release, "fail": fail}

// testMove: what a move stores, and that it does so once.
func testMove(t *testing.T, l Ledger) {
	for _, way := range ways {
		for name, make := range moves {
			t.Run(way.name+"/"+name, func(t *testing.T) {
				r := l.reserved(t, plain(l, way.name+" "+name))
				m := make(r)
				before := l.counts(t)
				if err := way.move(l, m); err != nil || m.Answer != engine.Stored {
					t.Fatalf("got %q, %v", m.Answer, err)
				}
				r.Operation, r.Event = m.Operation, m.Event
				l.holds(t, r)
				want := before
				for i, there := range []bool{m.Attempt != nil, m.Observed != nil, m.Accepted != nil, m.Ending != nil} {
					if there {
						want[3+i]++
					}
				}
				if got := l.counts(t); got != want {
					t.Errorf("rows %v, want %v", got, want)
				}
				if m.Attempt != nil {
					l.attempted(t, m.Attempt)
				}
				after := l.content(t)
				again := make(&engine.Reservation{Operation: m.FromOperation, Event: m.FromEvent})
				again.Answer = "none"
				wantAgain := engine.Lost
				if name == "stay" {
					wantAgain = engine.Stored
				}
				if err := way.move(l, again); err != nil || again.Answer != wantAgain {
					t.Errorf("again: %q, %v", again.Answer, err)
				}
				if diff := cmp.Diff(after, l.content(t)); diff != "" {
					t.Errorf("again (-before +after):\n%s", diff)
				}
			})
		}
		t.Run(way.name+"/an attempt that is known", func(t *testing.T) {
			r := l.reserved(t, plain(l, way.name+" known"))
			known := attempt(r, "unknown")
			l.write(t, func(ctx context.Context, q engine.Querier) error {
				_, err := q.InsertAttempt(ctx, dbgen.InsertAttemptParams(*known))
				return err
			})
			m := Commit(r)
			if err := way.move(l, m); err != nil || m.Answer != engine.Stored {
				t.Fatalf("got %q, %v", m.Answer, err)
			}
			l.attempted(t, known)
		})
		// A receipt that the ledger has already, in one of its keys.
		for name, change := range map[string]func(*engine.Motion){
			"its scope":      func(m *engine.Motion) { m.Observed.ReceiptID += "!"; m.Observed.DownstreamRequestID += "!" },
			"its receipt id": func(m *engine.Motion) { m.Observed.IdempotencyKey += "!"; m.Observed.DownstreamRequestID += "!" },
			"its request id": func(m *engine.Motion) { m.Observed.IdempotencyKey += "!"; m.Observed.ReceiptID += "!" },
		} {
			t.Run(way.name+"/"+name, func(t *testing.T) {
				m := Commit(l.reserved(t, plain(l, way.name+name)))
				there := Commit(&engine.Reservation{Operation: m.FromOperation, Event: m.FromEvent})
				change(there)
				l.write(t, func(ctx context.Context, q engine.Querier) error { return insertReceipt(ctx, q, there.Observed) })
				l.lost(t, way, m)
			})
		}
		t.Run(way.name+"/a receipt that is accepted", func(t *testing.T) {
			m := Commit(l.reserved(t, plain(l, way.name+" accepted")))
			l.write(t, func(ctx context.Context, q engine.Querier) error {
				_, err := q.InsertLocalReceipt(ctx, dbgen.InsertLocalReceiptParams(*m.Accepted))
				return err
			})
			l.lost(t, way, m)
		})
		t.Run(way.name+"/what is not there", func(t *testing.T) {
			r := plain(l, way.name+" nothing")
			r.Operation, r.Event = r.Make(1 << 40)
			l.lost(t, way, Commit(r))
		})
	}
}

func insertReceipt(ctx context.Context, q engine.Querier, d *dbgen.DownstreamReceipt) error {
	_, err := q.InsertDownstreamReceipt(ctx, dbgen.InsertDownstreamReceiptParams{TenantID: d.TenantID, SubjectID: d.SubjectID,
		ToolName: d.ToolName, IdempotencyKey: d.IdempotencyKey, RequestSha256: d.RequestSha256, ReceiptID: d.ReceiptID,
		DownstreamRequestID: d.DownstreamRequestID, ResultJSON: d.ResultJSON, ProducerRevision: d.ProducerRevision,
		ResourceRevision: d.ResourceRevision, ObservedAt: d.ObservedAt, EffectRevision: d.EffectRevision,
		CommittedAt: d.CommittedAt, RowDigest: d.RowDigest})
	return err
}

// counts are the numbers of rows of the tables that the verbs write.
func (l Ledger) counts(t *testing.T) (n [7]int) {
	t.Helper()
	all := l.content(t)
	for i, table := range written {
		n[i] = len(all[table])
	}
	return n
}

// attempted finds how an attempt has ended.
func (l Ledger) attempted(t *testing.T, a *dbgen.Attempt) {
	t.Helper()
	l.write(t, func(ctx context.Context, q engine.Querier) error {
		rows, err := q.ListAttempts(ctx, a.OperationPK)
		if diff := cmp.Diff([]dbgen.Attempt{*a}, rows); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
		return err
	})
}

// lost makes a move that must leave everything as it is.
func (l Ledger) lost(t *testing.T, way way, m *engine.Motion) {
	t.Helper()
	before := l.content(t)
	if err := way.move(l, m); err != nil || m.Answer != engine.Lost {
		t.Errorf("got %q, %v", m.Answer, err)
	}
	if diff := cmp.Diff(before, l.content(t)); diff != "" {
		t.Errorf("something was stored (-before +after):\n%s", diff)
	}
}

// other is a value that a column may have and no reservation has.
func other(table, column string, kind tables.Kind) any {
	switch name := table + "." + column; {
	case column == "status_ref":
		return "status_" + strings.Repeat("f", 32)
	case column == "request_sha256", column == "approval_digest":
		return strings.Repeat("f", 64)
	case column == "row_digest":
		return make([]byte, 32)
	case name == "operations.state":
		return "pending"
	case name == "outbox.state":
		return "parked"
	case column == "effect_kind":
		return "once"
	case column == "created_at":
		return int64(0)
	case kind == tables.Integer, kind == tables.NullInteger:
		return int64(99)
	}
	return "changed"
}

// testMoveFromOtherRows: whatever column of either row is not as it was read, the move
// leaves every table as it is, and be it one that leaves the operation alone.
func testMoveFromOtherRows(t *testing.T, l Ledger) {
	n := 0
	for _, table := range []string{"operations", "outbox"} {
		for _, c := range tables.All[table] {
			if c.Name == "operation_pk" {
				continue
			}
			r := plain(l, table+" "+c.Name)
			switch table + "." + c.Name { // as the schema wants those beside it
			case "operations.reason":
				changed(r, func(o *dbgen.Operation, _ *dbgen.Outbox) { o.State, o.Reason = "in_review", "REASON" })
			case "outbox.state":
				changed(r, func(_ *dbgen.Operation, e *dbgen.Outbox) {
					e.State, e.LeaseOwner, e.LeaseUntil = "delivered", sql.NullString{}, sql.NullInt64{}
				})
			}
			pk := l.reserved(t, r).Operation.OperationPK
			l.exec(t, fmt.Sprintf("UPDATE %s SET %s = $1 WHERE operation_pk = $2", table, c.Name), other(table, c.Name, c.Kind), pk)
			n++
			for name, make := range moves {
				for _, way := range ways {
					t.Run(table+"."+c.Name+"/"+name+"/"+way.name, func(t *testing.T) { l.lost(t, way, make(r)) })
				}
			}
			l.exec(t, "DELETE FROM outbox WHERE operation_pk = $1", pk)
			l.exec(t, "DELETE FROM operations WHERE operation_pk = $1", pk)
		}
	}
	if want := len(tables.All["operations"]) + len(tables.All["outbox"]) - 2; n != want {
		t.Errorf("%d columns of %d", n, want)
	}
}

// testMoveMany: one that is lost harms no neighbour; of two moves of one operation one is
// made, and of two receipts with one id.
func testMoveMany(t *testing.T, l Ledger) {
	var rs []*engine.Reservation
	for i := range 8 {
		rs = append(rs, l.reserved(t, plain(l, fmt.Sprint("many ", i))))
	}
	tampered := func(table string, r *engine.Reservation) *engine.Motion {
		l.exec(t, "UPDATE "+table+" SET updated_at = 99 WHERE operation_pk = $1", r.Operation.OperationPK)
		return Commit(r)
	}
	again := Commit(rs[7])
	again.Observed.ReceiptID, again.Observed.DownstreamRequestID = "receipt-many 6", "another"
	accept(again)
	all := []*engine.Motion{Commit(rs[0]), tampered("operations", rs[1]), fail(rs[2]), tampered("outbox", rs[3]), release(rs[4]),
		Commit(rs[5]), Commit(rs[5]), Commit(rs[6]), again}
	before := l.counts(t)
	if err := l.Engine.Move(context.Background(), all...); err != nil {
		t.Fatal(err)
	}
	var got []engine.Answer
	for i, m := range all {
		if got = append(got, m.Answer); m.Answer == engine.Stored {
			l.holds(t, &engine.Reservation{Operation: m.Operation, Event: m.Event, Binding: plain(l, m.Operation.IdempotencyKey).Binding})
		} else if i == 8 {
			l.holds(t, rs[7])
		}
	}
	want := []engine.Answer{engine.Stored, engine.Lost, engine.Stored, engine.Lost, engine.Stored, engine.Stored, engine.Lost, engine.Stored, engine.Lost}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	before[3] += 5
	before[4] += 3
	before[5] += 3
	before[6]++
	if after := l.counts(t); after != before {
		t.Errorf("rows %v, want %v", after, before)
	}
}

// testClaimed: what is there is read, and nothing else.
func testClaimed(t *testing.T, l Ledger) {
	a, b := l.reserved(t, plain(l, "a")), l.reserved(t, plain(l, "b"))
	c := l.reserved(t, plain(l, "c")).Operation.OperationPK
	l.exec(t, "DELETE FROM outbox WHERE operation_pk = $1", c)
	for _, pks := range [][]int64{nil, {1 << 40}, {b.Operation.OperationPK, 1 << 40, c, a.Operation.OperationPK}} {
		l.write(t, func(ctx context.Context, q engine.Querier) error {
			rows, err := q.Claimed(ctx, pks)
			got := map[int64]dbgen.GetClaimedRow{}
			for _, row := range rows {
				got[row.Operation.OperationPK] = row
			}
			want := map[int64]dbgen.GetClaimedRow{}
			if len(pks) > 1 {
				want[a.Operation.OperationPK] = dbgen.GetClaimedRow{Operation: a.Operation, Outbox: a.Event}
				want[b.Operation.OperationPK] = dbgen.GetClaimedRow{Operation: b.Operation, Outbox: b.Event}
			}
			if diff := cmp.Diff(want, got); diff != "" || len(rows) != len(want) {
				t.Errorf("%d rows of %v (-want +got):\n%s", len(rows), pks, diff)
			}
			return err
		})
	}
}

// testStored: what has been stored is found, and nothing else: the key may be somebody
// else's since.
func testStored(t *testing.T, l Ledger) {
	mine, others := l.reserved(t, plain(l, "mine")), l.reserved(t, plain(l, "others"))
	stored := func(r *engine.Reservation) (there bool) {
		l.write(t, func(ctx context.Context, q engine.Querier) (err error) {
			there, err = r.Stored(ctx, q)
			return err
		})
		return there
	}
	before := l.content(t)
	mine.Answer = ""
	if !stored(mine) || mine.Answer != engine.Stored {
		t.Errorf("what is stored is not found: %q", mine.Answer)
	}
	lost := plain(l, "lost")
	if stored(lost) {
		t.Error("what was never sent is found")
	}
	lost.Operation, lost.Event = lost.Make(others.Operation.OperationPK)
	if stored(lost) {
		t.Error("a key that another has is taken for one's own")
	}
	same := *others
	_, same.Event = plain(l, "others").Make(mine.Operation.OperationPK)
	if stored(&same) {
		t.Error("another event is taken for one's own")
	}
	if diff := cmp.Diff(before, l.content(t)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	if m := release(mine); l.Engine.Move(context.Background(), m) != nil || m.Answer != engine.Stored || stored(mine) {
		t.Error("what has moved on since is found")
	}
}
