// Package limits says what the options may be, and computes with durations and
// times so that a value at the end of its type stays there: it never comes out at
// the other end.
package limits

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A Range is what an option may be, both ends included.
type Range[T cmp.Ordered] struct{ Least, Most T }

const longest = time.Duration(math.MaxInt64)

// LeastPruneAge is how long ago an operation must have ended to be pruned.
const LeastPruneAge = time.Hour

// The options. What is a time to wait may be as long as a duration can be, unless a
// database counts it in milliseconds of 32 bits.
var (
	Lease         = Range[time.Duration]{time.Second, longest}
	Wait          = Range[time.Duration]{1, longest}             // poll, drain, age
	Optional      = Range[time.Duration]{0, longest}             // 0 means a default, or none
	Concurrency   = Range[int]{1, 65_536}                        // of a worker
	Most          = Range[int]{0, math.MaxInt}                   // a number of things, 0 being all
	Attempts      = Range[int64]{1, math.MaxInt64}               // of an operation
	PerSecond     = Range[float64]{0, 1e9}                       // 0 is no limit
	PruneAge      = Range[time.Duration]{LeastPruneAge, longest} // since the end
	PruneBatch    = Range[int]{1, 1000}                          // operations in a transaction
	Page          = Range[int]{1, 1_000_000}                     // rows in memory
	List          = Range[int]{1, 1000}                          // operations on a page
	ServerTimeout = Range[time.Duration]{time.Millisecond, math.MaxInt32 * time.Millisecond}
	Connections   = Range[int]{1, 65_536}
)

// Check reports a value out of range as an input error. NaN is in no range.
func (r Range[T]) Check(field string, v T) error {
	if v >= r.Least && v <= r.Most {
		return nil
	}
	return &toolresult.InputError{Field: field, Rule: fmt.Sprintf("must be from %v to %v, not %v", r.Least, r.Most, v)}
}

// WholeLease checks a lease, whoever takes it: it is of whole seconds, at least one.
func WholeLease(lease time.Duration) error {
	if err := Lease.Check("lease", lease); err != nil {
		return err
	}
	if lease%time.Second != 0 {
		return &toolresult.InputError{Field: "lease", Rule: fmt.Sprintf("must be of whole seconds, not %v", lease)}
	}
	return nil
}

// LeaseFrom checks a lease that begins at now, in Unix seconds: its end must be a
// portable time as now is.
func LeaseFrom(now int64, lease time.Duration) error {
	err := cmp.Or(Time("now", now), WholeLease(lease))
	switch {
	case err != nil:
		return err
	case Seconds(lease) > contract.MaxTime-now:
		return &toolresult.InputError{Field: "now + lease_seconds", Rule: "must not pass 9999-12-31T23:59:59Z"}
	}
	return nil
}

// Seconds is a duration in whole seconds, rounded up.
func Seconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}

// After is the Unix time at which d from now has passed, at most the last that can
// be stored.
func After(now int64, d time.Duration) int64 {
	s := Seconds(d)
	if s > contract.MaxTime-now {
		return contract.MaxTime
	}
	return now + s
}

// Duration is so many seconds.
func Duration(seconds int64) time.Duration { return Times(seconds, time.Second) }

// Times is n times d, or the longest duration of its sign.
func Times(n int64, d time.Duration) time.Duration {
	switch p := time.Duration(n) * d; {
	case n == 0 || d == 0:
		return 0
	case p/d == time.Duration(n) && (p < 0) == ((n < 0) != (d < 0)):
		return p
	case (n < 0) != (d < 0):
		return -longest
	}
	return longest
}

// Plus is the sum of two durations that are not negative.
func Plus(a, b time.Duration) time.Duration {
	if a > longest-b {
		return longest
	}
	return a + b
}

// Interval is the time between two of so many a second.
func Interval(perSecond float64) time.Duration {
	if d := float64(time.Second) / perSecond; d < float64(longest) {
		return time.Duration(d)
	}
	return longest
}
