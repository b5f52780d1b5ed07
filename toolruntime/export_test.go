package toolruntime

import (
	"context"

	"github.com/toolruntime/toolruntime-go/internal/engine"
)

// TestingOnlyWrapEngine puts something between a store and its database.
func TestingOnlyWrapEngine(s *Store, wrap func(engine.Engine) engine.Engine) {
	s.engine = wrap(s.engine)
}

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

// TestingOnlyClaimBatch claims up to n due operations as a worker does, and gives
// them back.
func (rt *Runtime) TestingOnlyClaimBatch(ctx context.Context, n int) (int, error) {
	now := rt.now()
	due, err := rt.store.due(ctx, "", now, n, func(string) bool { return false })
	if err != nil {
		return 0, err
	}
	for _, c := range due {
		got, err := rt.store.claimDue(ctx, c.pk, "bench", now, now+30)
		if err == nil && got.claimed {
			err = rt.store.release(ctx, got.record, endInterrupted, now, now)
		}
		if err != nil {
			return 0, err
		}
	}
	return len(due), nil
}
