package toolruntime

import (
	"context"
	"errors"
	"sync"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/ledger"
)

// TestingOnlyWrapEngine puts something between a store and its database.
func TestingOnlyWrapEngine(s *Store, wrap func(engine.Engine) engine.Engine) {
	*s.ledger = *ledger.New(wrap(s.ledger.Engine()))
}

// TestingOnlyNewStore is a store on an engine; on none it is one that was not opened.
func TestingOnlyNewStore(e engine.Engine) *Store {
	if e == nil {
		return newStore(nil)
	}
	return newStore(ledger.New(e))
}

// TestingOnlyStore is the runtime's ledger.
func (rt *Runtime) TestingOnlyStore() *Store { return rt.store }

// TestingOnlyTransitions is the table of allowed changes of state.
func TestingOnlyTransitions() map[string][]string {
	m := map[string][]string{}
	for from, all := range ledger.Transitions {
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
	u, err := rt.ledger.Due(ctx, ledger.Demand{Now: now, Limit: n, Room: func(string) int { return n }, Known: rt.knows})
	if err != nil {
		return 0, nil, err
	}
	b, err := rt.ledger.ClaimDue(ctx, u.Shares, ledger.Claiming{Worker: "bench", Term: ledger.Term{Now: now, Until: now + 30, Own: rt.own}, Knows: rt.carries, Alive: new(sight).alive}, nil)
	return len(b.Claims), func() error {
		errs := make([]error, len(b.Claims))
		var all sync.WaitGroup
		for i, c := range b.Claims {
			all.Go(func() { _, errs[i] = rt.ledger.Release(ctx, c.Operation, ledger.EndInterrupted, now, now) })
		}
		all.Wait()
		return errors.Join(errs...)
	}, err
}

// TestingOnlyAuditInParts audits in the way of a large ledger, in parts so small
// that a small ledger has many.
func (rt *Runtime) TestingOnlyAuditInParts(ctx context.Context, opts *AuditOptions) (*AuditReport, error) {
	return rt.audit(ctx, opts, ledger.Sizes{Snapshot: 6, Span: 5, Keys: 2, Page: 2})
}

// TestingOnlyWatch waits as [Runtime.Wait] does, with another look at the ledger.
func (rt *Runtime) TestingOnlyWatch(ctx context.Context, statusRef string, goesOn func() (bool, error)) error {
	return rt.watch(ctx, statusRef, goesOn)
}

// TestingOnlyRings is what wakes who waits for an operation in this process.
func TestingOnlyRings(statusRef string) (<-chan struct{}, func()) {
	return ledger.Endings.Expect(statusRef)
}

// TestingOnlyRing says that an operation has ended.
func TestingOnlyRing(statusRef string) { ledger.Endings.Ring(statusRef) }

// TestingOnlyListInParts lists as [Runtime.List] does, but looks at hardly anything for
// a page.
func (rt *Runtime) TestingOnlyListInParts(ctx context.Context, opts *ListOptions) (*ListPage, error) {
	return rt.list(ctx, opts, 3, 2)
}

// TestingOnlyRingsForAll is what wakes who waits for any end in this process.
func TestingOnlyRingsForAll() (<-chan struct{}, func()) { return ledger.Endings.ExpectAny() }

// TestingOnlyFeedPage makes [Runtime.Completions] read so few ends at once until it is
// called with what it returns.
func TestingOnlyFeedPage(n int64) (was int64) {
	was, ledger.FeedPage = ledger.FeedPage, n
	return was
}
