package toolruntime

import (
	"context"
	"errors"
	"sync"

	"github.com/toolruntime/toolruntime-go/internal/engine"
)

// TestingOnlyWrapEngine puts something between a store and its database.
func TestingOnlyWrapEngine(s *Store, wrap func(engine.Engine) engine.Engine) {
	*s = *newStore(wrap(s.engine))
}

// TestingOnlyNewStore is a store on an engine.
func TestingOnlyNewStore(e engine.Engine) *Store { return newStore(e) }

// TestingOnlyStore is the runtime's ledger.
func (rt *Runtime) TestingOnlyStore() *Store { return rt.store }

// TestingOnlyTransitions is the table of allowed changes of state.
func TestingOnlyTransitions() map[string][]string {
	m := map[string][]string{}
	for from, all := range transitions {
		m[string(from)] = []string{}
		for _, to := range all {
			m[string(from)] = append(m[string(from)], string(to))
		}
	}
	return m
}

// TestingOnlyClaimBatch claims up to n due operations as a worker does. giveBack
// undoes it.
func (rt *Runtime) TestingOnlyClaimBatch(ctx context.Context, n int) (claimed int, giveBack func() error, err error) {
	now := rt.now()
	u, err := rt.store.due(ctx, demand{now: now, limit: n, room: func(string) int { return n }, known: rt.knows})
	if err != nil {
		return 0, nil, err
	}
	b, err := rt.store.claimDue(ctx, u.shares, claiming{"bench", term{now, now + 30, rt.own}, rt.carries}, nil, &sight{})
	return len(b.claims), func() error {
		errs := make([]error, len(b.claims))
		var all sync.WaitGroup
		for i, c := range b.claims {
			all.Go(func() { errs[i] = rt.store.release(ctx, c.record, endInterrupted, now, now) })
		}
		all.Wait()
		return errors.Join(errs...)
	}, err
}

// TestingOnlyAuditInParts audits in the way of a large ledger, in parts so small
// that a small ledger has many.
func (rt *Runtime) TestingOnlyAuditInParts(ctx context.Context, opts *AuditOptions) (*AuditReport, error) {
	return rt.audit(ctx, opts, sizes{snapshot: 6, span: 5, keys: 2, page: 2})
}

// TestingOnlyWatch waits as [Runtime.Wait] does, with another look at the ledger.
func (rt *Runtime) TestingOnlyWatch(ctx context.Context, statusRef string, goesOn func() (bool, error)) error {
	return rt.watch(ctx, statusRef, goesOn)
}

// TestingOnlyRings is what wakes who waits for an operation in this process.
func TestingOnlyRings(statusRef string) (<-chan struct{}, func()) { return endings.expect(statusRef) }

// TestingOnlyRing says that an operation has ended.
func TestingOnlyRing(statusRef string) { endings.ring(statusRef) }

// TestingOnlyListInParts lists as [Runtime.List] does, but looks at hardly anything for
// a page.
func (rt *Runtime) TestingOnlyListInParts(ctx context.Context, opts *ListOptions) (*ListPage, error) {
	return rt.list(ctx, opts, listSizes{examined: 3, rows: 2})
}

// TestingOnlyRingsForAll is what wakes who waits for any end in this process.
func TestingOnlyRingsForAll() (<-chan struct{}, func()) { return endings.expectAny() }

// TestingOnlyFeedPage makes [Runtime.Completions] read so few ends at once until it is
// called with what it returns.
func TestingOnlyFeedPage(n int64) (was int64) {
	was, feedPage = feedPage, n
	return was
}
