package pgstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/hostclock"
	"github.com/toolruntime/toolruntime-go/internal/pgtest"
	"github.com/toolruntime/toolruntime-go/internal/verbtest"
)

// TestClockIsTheServers: whatever the host's clock says, the ledger's is the
// server's, and the difference is known.
func TestClockIsTheServers(t *testing.T) {
	for _, wrong := range []time.Duration{0, 10 * time.Minute, -10 * time.Minute, 24 * 365 * time.Hour} {
		t.Run(fmt.Sprint(wrong), func(t *testing.T) {
			defer hostclock.Set(0)
			hostclock.Set(wrong)
			e, _ := newEngine(t, Options{MaxConns: 2})
			if off := time.Until(e.Now()).Abs(); off > time.Second { // one machine
				t.Errorf("the ledger's clock is off by %v", off)
			}
			if off := (e.Skew() - wrong).Abs(); off > time.Second {
				t.Errorf("the skew is %v, want %v", e.Skew(), wrong)
			}
		})
	}
}

// TestClockIsHeardAgain: a transaction that decides by the time has it from the
// server, although the engine has lost it: the host slept, or the server is another.
func TestClockIsHeardAgain(t *testing.T) {
	e, _ := newEngine(t, Options{MaxConns: 1})
	for _, lost := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		e.clock.last.Store(&reading{server: time.Now().Add(lost), heard: time.Now()})
		if r := at(e.Now().Unix(), "b"); e.Reserve(context.Background(), r) != nil || r.Answer != engine.Late {
			t.Errorf("a reservation at a time that is %v off: %q", lost, r.Answer)
		}
		var off time.Duration
		err := e.Write(context.Background(), func(context.Context, engine.Querier) error {
			off = time.Since(e.Now())
			return nil
		})
		if err != nil || off.Abs() > time.Second {
			t.Errorf("in the transaction the clock is off by %v, %v", off, err)
		}
	}
	if r := at(e.Now().Unix(), "b"); e.Reserve(context.Background(), r) != nil || r.Answer != engine.Stored {
		t.Errorf("with the time that was heard: %q", r.Answer)
	}
}

// at is a reservation that holds for two seconds.
func at(now int64, key string) *engine.Reservation {
	r := verbtest.Reservation(key, "call-"+key)
	r.From, r.Until = now-1, now+2
	return r
}

// TestSlowAnswer: one that took long is not believed where a better one was heard.
func TestSlowAnswer(t *testing.T) {
	var c clock
	now := time.Now()
	micros := func(d time.Duration) []byte { return fmt.Append(nil, now.Add(d).UnixMicro()) }
	heard := func() time.Duration { return time.Until(c.now()).Round(time.Minute) }
	c.hear(micros(-time.Hour), now.Add(-10*time.Second))
	if got := heard(); got != -time.Hour {
		t.Errorf("the first answer: %v", got)
	}
	c.hear(micros(0), now)
	c.hear(micros(-time.Hour), now.Add(-10*time.Second))
	if got := heard(); got != 0 {
		t.Errorf("a slow answer: %v", got)
	}
	c.last.Load().heard = now.Add(-2 * stale)
	c.hear(micros(-time.Hour), now.Add(-10*time.Second))
	if got := heard(); got != -time.Hour {
		t.Errorf("a slow answer after a long time: %v", got)
	}
}

// TestReservationHasItsTime: rows are stored only while the server's clock is in
// their time, which also may pass while the statement waits for somebody else.
func TestReservationHasItsTime(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	now := time.Now().Unix()
	for name, times := range map[string][2]int64{
		"passed":       {0, now},
		"not yet":      {now + 60, contract.MaxTime},
		"never":        {now, now},
		"passed later": {0, now + 1},
	} {
		t.Run(name, func(t *testing.T) {
			e, address := newEngine(t, Options{MaxConns: 1, LockTimeout: time.Minute, StatementTimeout: time.Minute})
			mustReserve(t, e, "a", "call-a")
			admin := pgtest.Open(t, address)
			other, err := admin.Begin()
			if err != nil {
				t.Fatal(err)
			}
			defer other.Rollback()
			before := rows(t, admin)
			if name == "passed later" {
				times[1] = time.Now().Unix() + 2
				if _, err := other.Exec(`INSERT INTO operations SELECT (jsonb_populate_record(o, jsonb_build_object('operation_pk', 999,
					'idempotency_key', 'b', 'status_ref', 'status_' || repeat('c', 32)))).* FROM operations AS o`); err != nil {
					t.Fatal(err)
				}
				go func() {
					for waiting := 0; waiting == 0 || time.Now().Unix() < times[1]; time.Sleep(10 * time.Millisecond) {
						_ = admin.QueryRow("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'").Scan(&waiting)
					}
					_ = other.Rollback()
				}()
			}
			r := verbtest.Reservation("b", "call-b")
			r.From, r.Until = times[0], times[1]
			if err := e.Reserve(context.Background(), r); err != nil || r.Answer != engine.Late {
				t.Errorf("got %q, %v", r.Answer, err)
			}
			if after := rows(t, admin); after != before {
				t.Errorf("rows %v, before %v", after, before)
			}
		})
	}
}
