package sqlitestore

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/hostclock"

	"github.com/toolruntime/toolruntime-go/internal/verbtest"
)

// TestVerbs: the verbs are what they promise.
func TestVerbs(t *testing.T) {
	verbtest.Test(t, func(t *testing.T) verbtest.Ledger {
		e := newTestEngine(t)
		return verbtest.Ledger{Engine: e, DB: e.writer.conn}
	})
}

// TestReservationPartly: a reservation whose time passes while it is stored keeps nothing
// of itself, and takes nothing from those who share its commit: in one call, and in units
// that have come at the same moment.
func TestReservationPartly(t *testing.T) {
	e := newTestEngine(t)
	defer hostclock.Set(0)
	// late has its time pass between its first row and its last.
	late := func(key string) *engine.Reservation {
		r := verbtest.Reservation(key, "call-"+key)
		made := r.Make
		r.Make = func(pk int64) (dbgen.Operation, dbgen.Outbox) {
			if hostclock.Set(0); pk != 0 {
				hostclock.Set(time.Hour)
			}
			return made(pk)
		}
		r.Until = time.Now().Unix() + 60
		return r
	}
	inTime := func(key string) *engine.Reservation { return verbtest.Reservation(key, "call-"+key) }
	check := func(all ...*engine.Reservation) {
		t.Helper()
		var got []engine.Answer
		for _, r := range all {
			got = append(got, r.Answer)
		}
		if diff := cmp.Diff([]engine.Answer{engine.Stored, engine.Late, engine.Stored}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		keys, err := list(context.Background(), e.writer.conn, "SELECT idempotency_key FROM operations JOIN outbox USING (operation_pk) ORDER BY 1", scanText)
		if err != nil {
			t.Fatal(err)
		}
		calls, err := list(context.Background(), e.writer.conn, "SELECT substr(call_id, 6) FROM call_bindings ORDER BY 1", scanText)
		if err != nil || !slices.Equal(keys, calls) {
			t.Errorf("operations %v, call identities %v, %v", keys, calls, err)
		}
	}
	once := []*engine.Reservation{inTime("a"), late("b"), inTime("c")}
	if err := e.Reserve(context.Background(), once...); err != nil {
		t.Fatal(err)
	}
	check(once...)
	hostclock.Set(0)
	shared := []*engine.Reservation{inTime("d"), late("e"), inTime("f")}
	units := make([]engine.Unit, len(shared))
	for i, r := range shared {
		units[i] = func(ctx context.Context, q engine.Querier) error { return q.Reserve(ctx, r) }
	}
	for i, err := range e.batch(t, units...) {
		if engine.Whole(err) != nil || err != nil && i != 1 { // it may be run again, and is late from the beginning then
			t.Errorf("unit %d: %v", i, err)
		}
	}
	check(shared...)
	if n, err := list(context.Background(), e.writer.conn, "SELECT idempotency_key FROM operations ORDER BY 1", scanText); err != nil || !slices.Equal(n, []string{"a", "c", "d", "f"}) {
		t.Errorf("%v, %v", n, err)
	}
}
