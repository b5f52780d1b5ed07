package pgstore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/pgtest"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// counted counts the units, and how often they were run.
type counted struct {
	engine.Engine
	units, runs *atomic.Int64
}

func (c counted) Write(ctx context.Context, unit engine.Unit) error {
	c.units.Add(1)
	return c.Engine.Write(ctx, func(ctx context.Context, q engine.Querier) error {
		c.runs.Add(1)
		return unit(ctx, q)
	})
}

type paid struct {
	Amount int64 `json:"amount"`
}

// TestWorkTogether: workers of several processes share out one lane. Each
// operation is carried out once, and they hardly ever run into each other.
func TestWorkTogether(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	const workers, operations = 4, 500
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	address := pgtest.Schema(t)
	var units, runs atomic.Int64
	var mu sync.Mutex
	effects := map[string]int{}
	open := func() *toolruntime.Runtime {
		e, err := open(ctx, address, &Options{Migrate: true}, false)
		if err != nil {
			t.Fatal(err)
		}
		store := newStore(counted{e, &units, &runs})
		t.Cleanup(func() { store.Close() })
		allow := func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil }
		rt, err := toolruntime.New(store, &toolruntime.Options{Authorizer: allow, Approvers: allow}, toolruntime.Tool[paid, paid]{
			Name: "pay", Effect: toolruntime.Once, Resource: func(paid) string { return "account" },
			Run: func(_ context.Context, e toolruntime.Effect, a paid) (toolruntime.Receipt[paid], error) {
				mu.Lock()
				defer mu.Unlock()
				effects[e.IdempotencyKey]++
				return toolruntime.Receipt[paid]{ID: e.Identity, RequestID: e.Identity, Data: a}, nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		return rt
	}
	rt := open()
	want := map[string]int{}
	var refs []string
	for i := range operations {
		key := fmt.Sprint("key-", i)
		want[key] = 1
		p, c := refund(key)
		c.Name, c.Arguments = "pay", []byte(`{"amount":5}`)
		b, err := rt.Bind(p, c)
		if err != nil {
			t.Fatal(err)
		}
		pkg, err := rt.Submit(ctx, p, c, toolresult.NewApproval(b, "approval", "reviewer", time.Unix(contract.MaxTime, 0)))
		if err != nil || pkg.Code() != toolresult.Accepted {
			t.Fatal(pkg, err)
		}
		refs = append(refs, pkg.StatusRef())
	}
	units.Store(0)
	runs.Store(0)
	var all sync.WaitGroup
	for range workers {
		rt := open()
		all.Go(func() {
			if err := rt.Work(ctx, &toolruntime.WorkOptions{Poll: 20 * time.Millisecond}); err != nil {
				t.Error(err)
			}
		})
	}
	for _, ref := range refs {
		if err := rt.Wait(ctx, ref); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	all.Wait()
	if diff := cmp.Diff(want, effects); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
	again := runs.Load() - units.Load()
	t.Logf("%d transactions for %d operations, %d of them run again", units.Load(), operations, again)
	if again > operations/4 {
		t.Errorf("%d transactions had to run again", again)
	}
	if r, err := rt.Audit(context.Background(), nil); err != nil || len(r.SemanticErrors) > 0 {
		t.Errorf("audit: %+v, %v", r, err)
	}
}
