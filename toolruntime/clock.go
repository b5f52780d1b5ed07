package toolruntime

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/contract"
)

// now is the time by the clock of the ledger, or by the one that the host gave.
func (rt *Runtime) now() int64 { return rt.clock().Unix() }

// at is a stored time, in Unix seconds, as Go has it; 0 is none.
func at(unix int64) time.Time {
	if unix == 0 {
		return time.Time{}
	}
	return time.Unix(unix, 0).UTC()
}

// clocks is what a runtime has seen of the clocks.
type clocks struct {
	steps  atomic.Int64
	skewed atomic.Bool // it has been said that they differ
}

// maxSkew is by how much the host's clock may differ from the ledger's before it is
// said: it decides nothing, but whoever reads the host's logs beside the ledger, or
// sets the time until which an approval holds, is misled.
const maxSkew = time.Second

// tellSkew tells the operator once when the clocks differ, and once when they do so
// no more.
func (rt *Runtime) tellSkew(ctx context.Context) {
	skew := rt.store.engine.Skew()
	switch apart := skew.Abs() > maxSkew; {
	case rt.clocks.skewed.Swap(apart) == apart:
	case apart:
		rt.log.WarnContext(ctx, "the host's clock differs from the ledger's", "ahead", skew)
	default:
		rt.log.InfoContext(ctx, "the host's clock is the ledger's again", "ahead", skew)
	}
}

// A term is a time from now on: of a lease, or of a wait.
type term struct {
	now, until int64
	// own says that now is by the ledger's own clock. A transaction that decides by
	// it reads it again when its turn has come: the caller may have waited for that,
	// or slept. A clock that the host gave is a callback, and is not read there.
	own bool
}

// anew is t from the present moment on.
func (s *Store) anew(t term) term {
	if t.own {
		now := s.engine.Now().Unix()
		t.now, t.until = now, min(t.until+now-t.now, contract.MaxTime)
	}
	return t
}
