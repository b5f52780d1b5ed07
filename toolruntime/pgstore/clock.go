package pgstore

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/hostclock"
)

// serverTime is the server's clock, in microseconds of Unix time.
const serverTime = "CAST(EXTRACT(EPOCH FROM pg_catalog.clock_timestamp()) * 1000000 AS pg_catalog.int8)"

// A clock follows the server's without asking for it: it is what the server has
// said last, and what has passed since by the monotonic clock of this host, which
// nobody can set. It is never ahead of the server's, and behind by as long as the
// answer took. Every connection hears the time when it is made, and every
// transaction with its begin, so that one which decides by the time has it fresh,
// although the host was asleep or the server is another one since.
type clock struct{ last atomic.Pointer[reading] }

// A reading is what the server's clock has shown, and when that was heard.
type reading struct {
	server time.Time
	heard  time.Time // with the monotonic clock
	skew   time.Duration
}

// An answer that took longer than slow says little, and is believed only where
// nothing better was heard for a minute.
const (
	slow  = time.Second
	stale = time.Minute
)

// hear takes the server's answer to a question that was sent at some time.
func (c *clock) hear(micros []byte, sent time.Time) {
	n, err := strconv.ParseInt(string(micros), 10, 64)
	if err != nil {
		return // the server has answered with a number; nothing else is sent
	}
	r := &reading{server: time.UnixMicro(n), heard: time.Now()}
	took := r.heard.Sub(sent)
	if last := c.last.Load(); took > slow && last != nil && r.heard.Sub(last.heard) < stale {
		return
	}
	r.skew = hostclock.Now().Sub(r.server) - took/2
	c.last.Store(r)
}

func (c *clock) now() time.Time {
	r := c.last.Load()
	if r == nil {
		return hostclock.Now() // before the first connection
	}
	return r.server.Add(time.Since(r.heard))
}

// Now implements [engine.Engine].
func (e *pgEngine) Now() time.Time { return e.clock.now() }

// Skew implements [engine.Engine].
func (e *pgEngine) Skew() time.Duration {
	if r := e.clock.last.Load(); r != nil {
		return r.skew
	}
	return 0
}
