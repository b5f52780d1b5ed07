package conformance

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/pgtest"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
	"github.com/toolruntime/toolruntime-go/toolruntime/pgstore"
)

// TestPostgresFailover: a primary with a synchronous standby is killed under
// load, and the standby promoted. Clients that know both servers go on, and
// nothing that was acknowledged is lost.
func TestPostgresFailover(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	ctx := context.Background()
	primary, err := pgtest.NewCluster()
	if err != nil {
		pgtest.Missing(t, err)
	}
	defer primary.Remove()
	standby, err := pgtest.CloneOf(primary, "standby")
	if err != nil {
		t.Fatal(err)
	}
	defer standby.Remove()
	synchronous(t, primary)
	if _, err := pgstore.Migrate(ctx, primary.URL(), nil); err != nil {
		t.Fatal(err)
	}
	both := pgtest.With(primary.URL(), "host", primary.Folder()+","+standby.Folder())
	downstream := newCounter(t)
	rt := counterRuntime(t, both, downstream.Addr().String())

	// Each worker reserves one operation and carries out another, again and again.
	const workers, each = 4, 40
	var mu sync.Mutex
	reserved, received := map[string]string{}, map[string]string{} // acknowledged: the key by the status_ref
	half := make(chan struct{})
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := range each {
				if w == 0 && i == each/2 {
					close(half)
				}
				key := fmt.Sprintf("key-%d-%d", w, i)
				ref := reserve(t, rt, "reserved-"+key)
				finish(t, rt, key, fmt.Sprintf("worker-%d", w))
				mu.Lock()
				received[key] = key
				if ref != "" {
					reserved[ref] = key
				}
				mu.Unlock()
			}
		})
	}
	<-half
	primary.Kill()
	if err := standby.Promote(); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	t.Logf("%d reservations and %d receipts acknowledged, %d effects",
		len(reserved), len(received), len(downstream.effects))
	expectAcknowledged(t, standby.URL(), reserved, received)
	if len(received) != workers*each || len(downstream.effects) != workers*each {
		t.Errorf("%d receipts, %d effects", len(received), len(downstream.effects))
	}
	if r, err := rt.Audit(ctx, nil); err != nil || !r.Passed {
		t.Errorf("audit %+v, %v", r, err)
	}
}

// synchronous makes the primary wait for the standby, and waits until it does.
func synchronous(t *testing.T, primary *pgtest.Cluster) {
	t.Helper()
	admin := pgtest.Open(t, primary.URL())
	for _, s := range []string{"ALTER SYSTEM SET synchronous_standby_names = 'standby'", "SELECT pg_reload_conf()"} {
		if _, err := admin.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	for limit := time.Now().Add(30 * time.Second); time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
		var n int
		err := admin.QueryRow("SELECT COUNT(*) FROM pg_stat_replication WHERE sync_state = 'sync'").Scan(&n)
		if err == nil && n == 1 {
			return
		}
	}
	t.Fatal("the standby is not synchronous")
}

// reserve makes an operation that nobody carries out, and returns its status_ref
// if that was acknowledged.
func reserve(t *testing.T, rt *toolruntime.Runtime, key string) string {
	t.Helper()
	p, c := user("user-1"), callOf("count", key, `{"text":"x"}`)
	b, err := rt.Bind(p, c)
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := rt.Dispatch(drill.StopAt(context.Background(), drill.AfterIntentCommit), p, c, &toolruntime.DispatchOptions{
		Approvals: []toolresult.Approval{toolresult.NewApproval(b, "approval-"+key, "somebody", time.Now().Add(time.Minute))}})
	if err != nil {
		t.Logf("%s: %v", key, err)
		return ""
	}
	return pkg.StatusRef()
}

func expectAcknowledged(t *testing.T, url string, reserved, received map[string]string) {
	t.Helper()
	db := pgtest.Open(t, url)
	for ref, key := range reserved {
		var state string
		if err := db.QueryRow("SELECT state FROM operations WHERE status_ref = $1", ref).Scan(&state); err != nil {
			t.Errorf("the reservation %s is lost: %v", key, err)
		}
	}
	for key := range received {
		var n int
		err := db.QueryRow(`SELECT COUNT(*) FROM operations JOIN local_receipts USING (operation_pk)
			WHERE idempotency_key = $1 AND state = 'succeeded'`, key).Scan(&n)
		if err != nil || n != 1 {
			t.Errorf("the receipt of %s is lost: %v", key, err)
		}
	}
}
