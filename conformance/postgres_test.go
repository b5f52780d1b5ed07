package conformance

import (
	"context"
	"database/sql"
	"os"
	"strconv"
	"testing"

	"github.com/toolruntime/toolruntime-go/internal/pgtest"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/pgstore"
)

// postgres is a schema of its own per test, on a private cluster that the first
// such test starts, or on the server that TOOLRUNTIME_TEST_POSTGRES names.
var postgres = engine{
	name:   "postgres",
	create: func(t testing.TB) string { return pgtest.Schema(t) },
	open: func(ctx context.Context, url string) (*toolruntime.Store, error) {
		return pgstore.Open(ctx, url, &pgstore.Options{Migrate: true})
	},
	plain:         func(t testing.TB, url string) *sql.DB { return pgtest.Open(t, url) },
	noForeignKeys: "SET session_replication_role = replica",
	placeholder:   func(n int) string { return "$" + strconv.Itoa(n) },
}

func TestMain(m *testing.M) {
	code := pgtest.Main(m)
	if os.Getenv(childEnv) == "" && os.Getenv(serviceEnv) == "" {
		ran.report()
	}
	os.Exit(code)
}
