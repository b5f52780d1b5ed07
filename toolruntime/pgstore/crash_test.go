package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"syscall"
	"testing"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/pgtest"
)

// TestAskAfterCrash: a server that has crashed gives the id of a transaction that
// was lost to another one, which commits. That is no answer to whether the first
// has.
func TestAskAfterCrash(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	crashes := map[string]func(*testing.T, *pgtest.Cluster, int){
		"of the server": func(t *testing.T, c *pgtest.Cluster, _ int) {
			c.Kill()
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
		},
		"of one of its processes": func(t *testing.T, c *pgtest.Cluster, pid int) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			// It takes all others with it: this one ends when it does.
			if _, err := pgtest.Open(t, c.URL()).Exec("SELECT pg_sleep(60)"); err == nil {
				t.Fatal("the server has not crashed")
			}
		},
	}
	for name, crash := range crashes {
		t.Run(name, func(t *testing.T) {
			cluster, err := pgtest.NewCluster()
			if err != nil {
				pgtest.Missing(t, err)
			}
			defer cluster.Remove()
			ctx := context.Background()
			e, err := open(ctx, cluster.URL(), &Options{Migrate: true}, false)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			var lost transaction
			var pid int
			err = e.with(ctx, func(conn *sql.Conn) (err error) {
				if lost, err = e.begin(ctx, conn, ""); err != nil {
					return err
				}
				return conn.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&pid)
			})
			if err != nil {
				t.Fatal(err)
			}
			crash(t, cluster, pid)
			again := false
			for range 20 {
				err := e.WriteWith(ctx, func(ctx context.Context, _ engine.Querier, tx dbgen.DBTX) error {
					var id string
					err := tx.QueryRowContext(ctx, "SELECT pg_current_xact_id()::text").Scan(&id)
					again = again || id == lost.id
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			if !again {
				t.Skip("the server has not given the id again")
			}
			if err := e.ask(&lostAnswer{tx: lost}); !errors.Is(err, engine.ErrCommitUnknown) {
				t.Errorf("asked after a crash: %v", err)
			}
		})
	}
}
