package toolruntime_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

// TestStatusBesideAWorker: an operation that goes into review while its status is
// asked for is answered as it stands then, although the downstream has its receipt.
func TestStatusBesideAWorker(t *testing.T) {
	ctx := context.Background()
	store, err := sqlitestore.Open(ctx, filepath.Join(t.TempDir(), "ledger.sqlite3"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	now := int64(1_784_419_200)
	allow := func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil }
	var rt *toolruntime.Runtime
	rt, err = toolruntime.New(store, &toolruntime.Options{Authorizer: allow, Approvers: allow,
		Now: func() time.Time { return time.Unix(now, 0) }}, toolruntime.Tool[payArgs, payment]{
		Name: "pay", Effect: toolruntime.Idempotent, Resource: func(payArgs) string { return "account" },
		Run: func(context.Context, toolruntime.Effect, payArgs) (toolruntime.Receipt[payment], error) {
			return toolruntime.Receipt[payment]{}, nil // without the ids that a receipt needs
		},
		Find: func(ctx context.Context, e toolruntime.Effect, _ payArgs) (toolruntime.Receipt[payment], bool, error) {
			now += 60
			if _, err := rt.Process(ctx, e.StatusRef, "worker", nil); err != nil {
				t.Error(err)
			}
			r, err := paid(e)
			return r, true, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	call := shopCall("pay", "k")
	b, err := rt.Bind(payer, call)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Dispatch(drill.StopAt(ctx, drill.AfterClaim), payer, call, &toolruntime.DispatchOptions{
		Approvals: []toolresult.Approval{toolresult.NewApproval(b, "a", "reviewer", time.Unix(now+60, 0))}}); err != nil {
		t.Fatal(err)
	}
	pkg, err := rt.QueryStatus(ctx, payer, call.StatusQuery(b.StatusRef()), b.StatusRef(), nil)
	if err != nil || pkg.Code() != toolresult.OutputContractViolation {
		t.Errorf("%v, %v", pkg, err)
	}
}
