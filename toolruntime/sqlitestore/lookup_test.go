package sqlitestore

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// TestLookup: the lookup past package database/sql reads what the generated one
// reads, into the same fields.
func TestLookup(t *testing.T) {
	k := newKeeper(t, t.TempDir())
	k.must("ended")
	b, err := k.rt.Bind(keepOwner, keepCall("open"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.rt.Submit(context.Background(), keepOwner, keepCall("open"), toolresult.NewApproval(b, "a", "reviewer", toolresult.MaxTime)); err != nil {
		t.Fatal(err)
	}
	generated := k.engine.writer.queries.Queries
	for _, c := range []struct {
		name, key, call string
		found, ended    bool
	}{
		{name: "ended", key: "ended", call: "ended", found: true, ended: true},
		{name: "open", key: "open", call: "open", found: true},
		{name: "another call", key: "ended", call: "other", found: true, ended: true},
		{name: "none", key: "none", call: "none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			scope, call := keepCall(c.key), keepCall(c.call)
			key := dbgen.LookupParams{TenantID: keepOwner.TenantID, SubjectID: keepOwner.SubjectID, ToolName: scope.Name,
				IdempotencyKey: scope.IdempotencyKey, Provider: call.Provider, APIFamily: call.APIFamily,
				ResponseID: call.ResponseID, CallID: call.CallID}
			want, wantErr := generated.Lookup(context.Background(), key)
			err := k.engine.Read(context.Background(), func(ctx context.Context, q dbgen.Querier) error {
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
