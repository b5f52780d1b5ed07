package toolruntime_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// TestWorkPassesBlockedLanes: more tenants of a paused tool than a worker looks at
// in one go do not hide the work behind them.
func TestWorkPassesBlockedLanes(t *testing.T) {
	s := newShop(t, toolruntime.Idempotent, func(_ context.Context, e toolruntime.Effect, _ int) (toolruntime.Receipt[payment], error) {
		return paid(e)
	}, "blocked")
	ctx := context.Background()
	if err := s.Pause(ctx, "blocked", "dana", "the bank has called"); err != nil {
		t.Fatal(err)
	}
	for i := range 150 {
		p := toolresult.Principal{TenantID: fmt.Sprintf("tenant-%03d", i), SubjectID: "user-1"}
		c := shopCall("blocked", fmt.Sprint("blocked-", i))
		b, err := s.Bind(p, c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Submit(ctx, p, c, toolresult.NewApproval(b, "a", "reviewer", time.Unix(s.time()+60, 0))); err != nil {
			t.Fatal(err)
		}
	}
	ref := s.submit("pay", "k")
	s.work(toolruntime.WorkOptions{})
	s.wait(ref)
	if s.ran("k") != 1 || s.ran("blocked-0") != 0 {
		t.Errorf("ran %d and %d times", s.ran("k"), s.ran("blocked-0"))
	}
}

// query reads one value past the runtime.
func (s *shop) query(query string, to any) {
	s.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+s.path+"?_busy_timeout=5000")
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(query).Scan(to); err != nil {
		s.t.Errorf("%s: %v", query, err)
	}
}

// TestWorkersOfOneName: two workers that were given one name are two in the
// ledger, or each could take the other's claims for its own.
func TestWorkersOfOneName(t *testing.T) {
	s := newShop(t, toolruntime.Once, func(_ context.Context, e toolruntime.Effect, _ int) (toolruntime.Receipt[payment], error) {
		return paid(e)
	})
	for _, key := range []string{"a", "b"} {
		ref := s.submit("pay", key)
		stop := s.work(toolruntime.WorkOptions{WorkerID: "refunds"})
		s.wait(ref)
		stop()
	}
	var names string
	s.query("SELECT group_concat(DISTINCT worker_id) FROM attempts", &names)
	if all := strings.Split(names, ","); len(all) != 2 || !strings.HasPrefix(all[0], "refunds-") || !strings.HasPrefix(all[1], "refunds-") {
		t.Errorf("workers %q", all)
	}
	err := s.Work(context.Background(), &toolruntime.WorkOptions{WorkerID: strings.Repeat("w", 120)})
	if !errors.Is(err, toolresult.ErrInvalidInput) {
		t.Errorf("a name without room for the random part: %v", err)
	}
}

// A slowEngine lets time pass while a transaction commits.
type slowEngine struct {
	engine.Engine
	passes func()
}

func (e slowEngine) Write(ctx context.Context, unit engine.Unit) error {
	err := e.Engine.Write(ctx, unit)
	e.passes()
	return err
}

// TestWorkRenewsAnOldClaim: a handler never begins with a lease that has nearly run
// out while its claim was made.
func TestWorkRenewsAnOldClaim(t *testing.T) {
	var armed atomic.Bool
	s := &shop{t: t, path: filepath.Join(t.TempDir(), "ledger.sqlite3"), now: 1_784_419_200, runs: map[string]int{}}
	s.wrap = func(e engine.Engine) engine.Engine {
		return slowEngine{e, func() {
			if armed.CompareAndSwap(true, false) {
				s.pass(25)
			}
		}}
	}
	left := make(chan int64, 1)
	s.Runtime = s.open(toolruntime.Once, func(_ context.Context, e toolruntime.Effect, _ int) (toolruntime.Receipt[payment], error) {
		var until int64
		s.query("SELECT lease_until FROM outbox", &until)
		left <- until - s.time()
		return paid(e)
	})
	ref := s.submit("pay", "k")
	armed.Store(true)
	s.work(toolruntime.WorkOptions{Lease: 30 * time.Second})
	s.wait(ref)
	if got := <-left; got < 30 {
		t.Errorf("%d s of the lease were left", got)
	}
}
