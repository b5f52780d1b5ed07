// Package hostclock is the host's clock, in one place, so that a test can set it
// wrong: a ledger must keep its promises on hosts whose clocks differ or jump.
package hostclock

import (
	"sync/atomic"
	"time"
)

var wrong atomic.Int64

// Now is the host's time, without the reading of its monotonic clock: that is
// [time.Now]'s, which nobody can set.
func Now() time.Time { return time.Now().Add(time.Duration(wrong.Load())).Round(0) }

// Set sets the clock of this process wrong by d, ahead or behind. It is for tests.
func Set(d time.Duration) { wrong.Store(int64(d)) }
