package toolruntime_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

// fill stores n operations that have ended, as plain rows: what a batch must
// find its way past.
const fill = `
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
INSERT INTO operations
SELECT i, 'tenant', 'subject', 'pay', printf('done-%%d', i), printf('%%064x', i), '{"amount":5}', 'i', 'o', 'e', 'h', 'p', 'r',
	'a', 'reviewer', printf('%%064x', i), 1784419260, 1784419200, 'o', 'c', 'r', 'openai', 'responses', 'openai-responses-v1',
	printf('status_%%032x', i), 'succeeded', 1784419200, 1784419200, 1784419200, '', x'' FROM n;
INSERT INTO outbox
SELECT operation_pk, printf('outbox_%%032x', operation_pk), '{}', 'delivered', NULL, NULL, 1, 1784419200, 1784419200, x'', 0, 'pay' || char(10) || 'tenant'
FROM operations;`

// BenchmarkClaimBatch claims 32 of 1,000 pending operations beside so many that
// have ended: what it costs must not grow with them.
func BenchmarkClaimBatch(b *testing.B) {
	for _, ended := range []int{0, 1_000_000} {
		b.Run(fmt.Sprintf("ended=%d", ended), func(b *testing.B) {
			store, err := sqlitestore.Open(context.Background(), b.TempDir()+"/ledger.sqlite3", nil)
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			var e engine.Engine
			toolruntime.TestingOnlyWrapEngine(store, func(inner engine.Engine) engine.Engine { e = inner; return inner })
			allow := func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil }
			rt, err := toolruntime.New(store, &toolruntime.Options{Authorizer: allow, Approvers: allow}, toolruntime.Tool[payArgs, payment]{
				Name: "pay", Resource: func(payArgs) string { return "account" },
				Run: func(context.Context, toolruntime.Effect, payArgs) (toolruntime.Receipt[payment], error) {
					return toolruntime.Receipt[payment]{}, nil
				}})
			if err != nil {
				b.Fatal(err)
			}
			if ended > 0 {
				if err := e.WriteWith(context.Background(), func(ctx context.Context, _ dbgen.Querier, tx dbgen.DBTX) error {
					_, err := tx.ExecContext(ctx, fmt.Sprintf(fill, ended))
					return err
				}); err != nil {
					b.Fatal(err)
				}
			}
			for i := range 1000 {
				c := shopCall("pay", fmt.Sprint(i))
				bound, err := rt.Bind(payer, c)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := rt.Submit(context.Background(), payer, c, toolresult.NewApproval(bound, "a", "reviewer", toolresult.MaxTime)); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if n, err := rt.TestingOnlyClaimBatch(context.Background(), 32); err != nil || n != 32 {
					b.Fatal(n, err)
				}
			}
		})
	}
}
