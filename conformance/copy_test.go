package conformance

import (
	"context"
	"testing"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/pgstore"
)

// TestCopyKeepsAll moves a ledger from SQLite to PostgreSQL: what was attempted,
// decided, paused and pruned is known there, too. It needs both engines at once.
func TestCopyKeepsAll(t *testing.T) {
	ctx := context.Background()
	d := mixedLedger(t, engines[0])
	d.addTombstone()
	p := user("user-1")
	resolved := d.bind(p, callOf("bad_note", "secret-bad-1", `{"text":"hello"}`)).StatusRef()
	if err := d.Resolve(ctx, toolruntime.Resolution{StatusRef: resolved, Decision: toolruntime.Abandoned, Actor: "dana", Reason: "nobody knows"}); err != nil {
		t.Fatal(err)
	}
	if err := d.Pause(ctx, "lost_note", "dana", "the bank has called"); err != nil {
		t.Fatal(err)
	}
	d.addPastPause()
	d.mustSQL("CREATE TABLE app_orders (number INTEGER)") // the host's, which stays where it is
	to := &desk{t: t, engine: postgres, address: postgres.create(t), orders: d.orders, now: d.time()}
	if _, err := pgstore.Copy(ctx, d.store, to.address, &pgstore.Options{Migrate: true}, nil); err != nil {
		t.Fatal(err)
	}
	to.reopen()
	to.wantAudit()
	for _, table := range []string{"attempts", "resolutions", "paused_tools", "past_pauses", "endings", "tombstones", "tombstone_resolutions", "rejected_receipts"} {
		var want, got int64
		d.scan("SELECT COUNT(*) FROM "+table, &want)
		to.scan("SELECT COUNT(*) FROM "+table, &got)
		if want != got || want == 0 {
			t.Errorf("%s: %d rows copied of %d", table, got, want)
		}
	}
	var there int64
	to.scan("SELECT COUNT(*) FROM pg_catalog.pg_class WHERE relname = 'app_orders' AND relnamespace = CAST(current_schema AS regnamespace)", &there)
	wantEqual(t, "the host's tables", int64(0), there)
	wantEqual(t, "code", toolresult.IdempotencyKeyExpired, to.send(p, refundCall("secret-pruned"), alive).Code())
	want, err := d.History(ctx, resolved)
	if err != nil {
		t.Fatal(err)
	}
	got, err := to.History(ctx, resolved)
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "history", want, got)
}
