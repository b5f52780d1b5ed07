package toolruntime

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/limits"
)

// WorkOptions of [Runtime.Work]. The zero value is safe.
type WorkOptions struct {
	// WorkerID names the worker in the ledger; "" means the host's name and the
	// process id. A random part is added to it, because two workers that could be
	// taken for each other would carry out each other's claims.
	WorkerID string
	// Concurrency is how many handlers run at once; 0 means 8.
	Concurrency int
	// Lease is how long an operation stays a dead worker's, in whole seconds; a living
	// one renews it three times as often. 0 means [DefaultLease].
	Lease time.Duration
	// Poll is how long an idle worker waits at most before it looks for work that
	// another process has submitted; 0 means 2 s.
	Poll time.Duration
	// Drain is how long handlers may go on after the context has ended; then
	// theirs ends too. 0 means 30 s.
	Drain time.Duration
	// MaxAttempts is after how many attempts an operation waits for a person; 0
	// means 20. One that was interrupted by a drain does not count.
	MaxAttempts int64
	// MaxAge is for how long an operation is attempted after it was accepted; 0
	// means 24 h.
	MaxAge time.Duration
}

// maxWorkerName leaves room for the random part of a worker's id.
const maxWorkerName = 128 - len("-00000000")

func (o *WorkOptions) complete() (*WorkOptions, error) {
	c := given(o)
	if c.WorkerID == "" {
		host, _ := os.Hostname()
		c.WorkerID = bounded(fmt.Sprintf("%.64s-%d", host, os.Getpid()), maxWorkerName)
	}
	c.Concurrency = or(c.Concurrency, 8)
	c.Lease = or(c.Lease, DefaultLease)
	c.Poll = or(c.Poll, 2*time.Second)
	c.Drain = or(c.Drain, 30*time.Second)
	c.MaxAttempts = or(c.MaxAttempts, 20)
	c.MaxAge = or(c.MaxAge, 24*time.Hour)
	if err := limits.Text("worker_id", c.WorkerID, maxWorkerName); err != nil {
		return nil, err
	}
	c.WorkerID = fmt.Sprintf("%s-%08x", c.WorkerID, rand.Uint32())
	return &c, cmp.Or(limits.Concurrency.Check("concurrency", c.Concurrency), limits.WholeLease(c.Lease),
		limits.Wait.Check("poll", c.Poll), limits.Wait.Check("drain", c.Drain),
		limits.Attempts.Check("max attempts", c.MaxAttempts), limits.Wait.Check("max age", c.MaxAge))
}
