package pgstore

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/pgtest"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// TestHostPooler: a host's own sessions may come from a pooler that gives them away
// between transactions, and the next who gets one finds it as it was. How statements are
// prepared there is the host's affair.
func TestHostPooler(t *testing.T) {
	l := newLandlord(t, Options{})
	b := pgtest.NewBouncer(t, l.address, "pool_mode = transaction", "default_pool_size = 1", "ignore_startup_parameters = search_path")
	n := int64(0)
	for _, way := range []string{"sql, simple protocol", "pgx, described", "pgx, simple protocol"} {
		for _, commit := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/commit=%v", way, commit), func(t *testing.T) {
				key := fmt.Sprint(way, commit)
				g := guests[way](t, b.URL(), "")
				before, session := g.settings(), g.show("SELECT CAST(pg_catalog.pg_backend_pid() AS pg_catalog.text)")
				if pkg, stored, err := l.prepare(key).SubmitTx(context.Background(), g.tx); err != nil || !stored || pkg.Code() != toolresult.Accepted {
					t.Fatalf("%v, %v, %v", pkg, stored, err)
				}
				if err := g.end(commit); err != nil {
					t.Fatal(err)
				}
				if commit {
					n++
				}
				l.operations(n)
				next := guests[way](t, b.URL(), "")
				if got := next.show("SELECT CAST(pg_catalog.pg_backend_pid() AS pg_catalog.text)"); got != session {
					t.Errorf("it is session %s, not %s", got, session)
				}
				if diff := cmp.Diff(before, next.settings()); diff != "" {
					t.Errorf("settings (-before +after):\n%s", diff)
				}
				if got := next.show("SELECT pg_catalog.current_setting('synchronous_commit')"); got != "on" {
					t.Errorf("synchronous_commit is %s", got)
				}
				if err := next.end(false); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
