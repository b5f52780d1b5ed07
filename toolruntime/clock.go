package toolruntime

import (
	"context"
	"sync/atomic"
	"time"
)

// now is the time by the clock of the ledger, or by the one that the host gave.
func (rt *Runtime) now() int64 { return rt.clock().Unix() }

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
	skew := rt.ledger.Skew()
	switch apart := skew.Abs() > maxSkew; {
	case rt.clocks.skewed.Swap(apart) == apart:
	case apart:
		rt.log.WarnContext(ctx, "the host's clock differs from the ledger's", "ahead", skew)
	default:
		rt.log.InfoContext(ctx, "the host's clock is the ledger's again", "ahead", skew)
	}
}
