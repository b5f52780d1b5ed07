package sqlitestore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// TestLookup: the lookup past package database/sql reads what the generated one
// reads, into the same fields, whatever the texts are.
func TestLookup(t *testing.T) {
	k := newKeeper(t, t.TempDir())
	k.must("ended")
	b, err := k.rt.Bind(keepOwner, keepCall("open"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.rt.Submit(context.Background(), keepOwner, keepCall("open"), toolresult.NewApproval(b, "a", "reviewer", time.Unix(contract.MaxTime, 0))); err != nil {
		t.Fatal(err)
	}
	generated := k.engine.writer.queries.Queries
	for _, c := range []struct {
		name, key, call string
		found, ended    bool
		change          string // made before
	}{
		{name: "ended", key: "ended", call: "ended", found: true, ended: true},
		{name: "open", key: "open", call: "open", found: true},
		{name: "another call", key: "ended", call: "other", found: true, ended: true},
		{name: "none", key: "none", call: "none"},
		{name: "zero bytes", key: "ended", call: "ended", found: true, ended: true,
			change: "UPDATE local_receipts SET resource_revision = char(0) || 'a' || char(0)"},
		{name: "empty", key: "ended", call: "ended", found: true, ended: true,
			change: "UPDATE local_receipts SET resource_revision = '', observed_at = '', effect_revision = ''"},
		{name: "bytes that are no text", key: "ended", call: "ended", found: true, ended: true,
			change: "UPDATE local_receipts SET resource_revision = CAST(x'ff00fe' AS TEXT)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := k.engine.writer.conn.ExecContext(context.Background(), c.change); err != nil {
				t.Fatal(err)
			}
			scope, call := keepCall(c.key), keepCall(c.call)
			key := dbgen.LookupParams{TenantID: keepOwner.TenantID, SubjectID: keepOwner.SubjectID, ToolName: scope.Name,
				IdempotencyKey: scope.IdempotencyKey, Provider: call.Provider, APIFamily: call.APIFamily,
				ResponseID: call.ResponseID, CallID: call.CallID}
			want, wantErr := generated.Lookup(context.Background(), key)
			err := k.engine.Read(context.Background(), func(ctx context.Context, q engine.Querier) error {
				got, err := q.Lookup(ctx, key)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("generated -, read +\n%s", diff)
				}
				if c.found != (err == nil) || c.ended != got.ReceiptOf.Valid || (c.found && c.key == c.call) != (got.Fingerprint != "") {
					t.Errorf("%+v, %v", got, err)
				}
				return err
			})
			if !errors.Is(err, wantErr) {
				t.Errorf("%v, want %v", err, wantErr)
			}
		})
	}
}
