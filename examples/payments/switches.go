package payments

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// A Fault is a way to misbehave.
type Fault string

// The faults, in the order in which a payment meets them. Up to [Latency] they
// come before the effect, and all but Latency leave it out; from [FailAfter] on
// the effect has happened. The last one is met by GET only.
const (
	TooMany     Fault = "too_many"    // answers 429, with Retry-After if it is set
	Unavailable Fault = "unavailable" // answers 503, with Retry-After if it is set
	InFlight    Fault = "in_flight"   // answers 409 although nobody is at work
	FailBefore  Fault = "fail_before" // answers 500
	DropBefore  Fault = "drop_before" // resets the connection
	// Latency waits for the delay. The key is in flight meanwhile, and the effect
	// comes also if the client has gone.
	Latency Fault = "latency"

	FailAfter     Fault = "fail_after"     // answers 500
	DropAfter     Fault = "drop_after"     // resets the connection
	WrongAmount   Fault = "wrong_amount"   // answers with one cent more than was paid
	Garbage       Fault = "garbage"        // answers with HTML
	DuplicateKeys Fault = "duplicate_keys" // answers with two amounts
	Oversize      Fault = "oversize"       // answers with 1 MiB
	Truncate      Fault = "truncate"       // ends the connection in the middle of the body
	SlowBody      Fault = "slow_body"      // waits for the delay in the middle of the body

	LookupFails Fault = "lookup_fails" // answers 500 to GET
)

var faults = []Fault{TooMany, Unavailable, InFlight, FailBefore, DropBefore, Latency, FailAfter, DropAfter,
	WrongAmount, Garbage, DuplicateKeys, Oversize, Truncate, SlowBody, LookupFails}

// A Switch says how often a fault occurs: the next Count times, or for a share
// of the requests that is decided by the seed.
type Switch struct {
	Count       int     `json:"count,omitzero"`
	Probability float64 `json:"probability,omitzero"`
	DelayMS     int64   `json:"delay_ms,omitzero"`    // of Latency and SlowBody
	RetryAfter  *int64  `json:"retry_after,omitzero"` // seconds, of TooMany, Unavailable and InFlight
}

func (s Switch) delay() time.Duration { return time.Duration(s.DelayMS) * time.Millisecond }

// Switches are all that is wrong with a server. The zero value is a good one.
type Switches struct {
	// Dedup "off" ignores the key: every payment has an effect. "" is "on".
	Dedup  string           `json:"dedup,omitzero"`
	Seed   uint64           `json:"seed,omitzero"`
	Faults map[Fault]Switch `json:"faults,omitzero"`
}

func (s Switches) check() error {
	if s.Dedup != "" && s.Dedup != "on" && s.Dedup != "off" {
		return fmt.Errorf("payments: dedup is on or off")
	}
	for fault, sw := range s.Faults {
		switch {
		case !slices.Contains(faults, fault):
			return fmt.Errorf("payments: there is no fault %q", fault)
		case sw.Count < 0, sw.DelayMS < 0, sw.DelayMS > time.Hour.Milliseconds(), sw.RetryAfter != nil && *sw.RetryAfter < 0,
			!(sw.Probability >= 0 && sw.Probability <= 1):
			return fmt.Errorf("payments: a value of %s is out of range", fault)
		}
	}
	return nil
}

// A board is the switches in use.
type board struct {
	mu  sync.Mutex
	set Switches
	// One source for each fault: what happens to one does not move the others.
	random map[Fault]*rand.Rand
}

func (b *board) use(s Switches) error {
	if err := s.check(); err != nil {
		return err
	}
	s.Faults = maps.Clone(s.Faults)
	random := map[Fault]*rand.Rand{}
	for fault := range s.Faults {
		h := fnv.New64a()
		h.Write([]byte(fault))
		random[fault] = rand.New(rand.NewPCG(s.Seed, h.Sum64()))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set, b.random = s, random
	return nil
}

// current returns the switches with the counts that are left.
func (b *board) current() Switches {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.set
	s.Faults = maps.Clone(s.Faults)
	return s
}

func (b *board) dedup() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.set.Dedup != "off"
}

// occurs decides whether a fault occurs now.
func (b *board) occurs(f Fault) (Switch, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	sw, ok := b.set.Faults[f]
	switch {
	case !ok:
		return sw, false
	case sw.Count > 0:
		left := sw
		left.Count--
		b.set.Faults[f] = left
		return sw, true
	}
	return sw, b.random[f].Float64() < sw.Probability
}
