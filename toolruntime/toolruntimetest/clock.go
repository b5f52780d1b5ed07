package toolruntimetest

import (
	"math"
	"sync"
	"time"
)

// A Clock stands still until it is moved. Its method Now is for Options.Now, of every
// runtime over the ledger. The zero value shows noon of the first day of 2026, UTC.
// It is safe for concurrent use.
//
// Whoever moves it past the end of a lease takes the operation from an attempt that
// still runs, as a stopped process would lose it.
type Clock struct {
	mu     sync.Mutex
	passed time.Duration
}

// Now is the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC).Add(c.passed)
}

// Advance moves the clock; back, if d is negative. It goes no further than 292 years
// from where it began.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch passed := c.passed + d; {
	case d > 0 && passed < c.passed:
		c.passed = math.MaxInt64
	case d < 0 && passed > c.passed:
		c.passed = math.MinInt64
	default:
		c.passed = passed
	}
}
