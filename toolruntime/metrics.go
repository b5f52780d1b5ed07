package toolruntime

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/ledger"
)

// How an attempt can end beside the outcomes of [Runtime.Process].
const (
	// LeaseLost: somebody else has claimed the operation meanwhile, and what the
	// attempt came to changed nothing.
	LeaseLost Outcome = "lease_lost"
	// Erred: a callback of the host, the stored state or the database has failed.
	Erred Outcome = "error"
)

// An AttemptCount is how many attempts of a tool have ended in a way.
type AttemptCount struct {
	Tool    string
	Outcome Outcome
	Count   int64
}

// Metrics are what a runtime has done since it was made: numbers that only grow,
// as metric systems want them, but for LogBytes. They have no series per tenant, key or call, and
// cost nothing. Those of other processes are theirs; see [Runtime.Stats] for what
// all of them share.
type Metrics struct {
	Attempts []AttemptCount // by tool and outcome
	// LogBytes is the size of the SQLite ledger's write-ahead log, as of the last look
	// at it. It stays below 100 MB unless a reader stays for seconds; see the
	// documentation of package sqlitestore. It is 0 on PostgreSQL.
	LogBytes int64
	// ClockSkew is how far the host's clock was ahead of the ledger's when they were
	// last held against each other; negative where it was behind. It is no counter.
	ClockSkew time.Duration
	// ClockSteps is how often a worker has seen that the ledger's clock was set, by
	// two seconds or more.
	ClockSteps int64
	// FailedSweeps is how often workers could not look for work, or not claim it,
	// because the database did not answer or refused.
	FailedSweeps int64
}

// Metrics returns the numbers of this runtime.
func (rt *Runtime) Metrics() Metrics {
	m := Metrics{LogBytes: rt.ledger.LogBytes(), ClockSkew: rt.ledger.Skew(), ClockSteps: rt.clocks.steps.Load(),
		FailedSweeps: rt.failedSweeps.Load()}
	rt.ended.mu.Lock()
	defer rt.ended.mu.Unlock()
	for k, n := range rt.ended.counts {
		m.Attempts = append(m.Attempts, AttemptCount{k.tool, k.outcome, n})
	}
	slices.SortFunc(m.Attempts, func(a, b AttemptCount) int {
		return cmp.Or(cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Outcome, b.Outcome))
	})
	return m
}

type toolOutcome struct {
	tool    string
	outcome Outcome
}

// A tally counts attempts that have ended.
type tally struct {
	mu     sync.Mutex
	counts map[toolOutcome]int64
}

func (t *tally) add(tool string, how Outcome, err error) {
	switch {
	case errors.Is(err, ledger.ErrLeaseLost):
		how = LeaseLost
	case err != nil, how == "": // the latter after a panic
		how = Erred
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[toolOutcome]int64{}
	}
	t.counts[toolOutcome{tool, how}]++
}
