package limits

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

func TestArithmetic(t *testing.T) {
	const shortest = time.Duration(math.MinInt64)
	for _, test := range []struct {
		name      string
		got, want int64
	}{
		{"no time", Seconds(0), 0},
		{"less than a second", Seconds(1), 1},
		{"one", Seconds(time.Second), 1},
		{"more than one", Seconds(time.Second + 1), 2},
		{"the longest", Seconds(longest), 9_223_372_037},
		{"the shortest", Seconds(shortest), -9_223_372_036},
		{"after a while", After(10, 1500*time.Millisecond), 12},
		{"after the end of time", After(contract.MaxTime-1, longest), contract.MaxTime},
		{"after the longest", After(1_000_000_000, longest), 10_223_372_037},
		{"a minute", int64(Duration(60)), int64(time.Minute)},
		{"all seconds", int64(Duration(math.MaxInt64)), math.MaxInt64},
		{"a wrap to something small", int64(Duration(18_446_744_074)), math.MaxInt64},
		{"the first that is too long", int64(Duration(9_223_372_037)), math.MaxInt64},
		{"the last that is not", int64(Duration(9_223_372_036)), 9_223_372_036e9},
		{"long ago", int64(Duration(math.MinInt64)), -math.MaxInt64},
		{"none of the longest", int64(Times(0, longest)), 0},
		{"one of the longest", int64(Times(1, longest)), math.MaxInt64},
		{"two of the longest", int64(Times(2, longest)), math.MaxInt64},
		{"many of nothing", int64(Times(math.MaxInt64, 0)), 0},
		{"minus one of the shortest", int64(Times(-1, shortest)), math.MaxInt64},
		{"a sum", int64(Plus(1, 2)), 3},
		{"a sum that is too long", int64(Plus(longest, 1)), math.MaxInt64},
		{"two a second", int64(Interval(2)), int64(time.Second / 2)},
		{"one in 300 years", int64(Interval(1e-10)), math.MaxInt64},
		{"the rarest", int64(Interval(5e-324)), math.MaxInt64},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.got != test.want {
				t.Errorf("%d, want %d", test.got, test.want)
			}
		})
	}
}

func TestRanges(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		ok   bool
	}{
		{"the least", Lease.Check("x", time.Second), true},
		{"less", Lease.Check("x", time.Second-1), false},
		{"the most", Lease.Check("x", math.MaxInt64), true},
		{"more", ServerTimeout.Check("x", (math.MaxInt32+1)*time.Millisecond), false},
		{"no rate", PerSecond.Check("x", 0), true},
		{"a negative rate", PerSecond.Check("x", -1), false},
		{"less than nothing", PerSecond.Check("x", math.Inf(-1)), false},
		{"an infinite rate", PerSecond.Check("x", math.Inf(1)), false},
		{"no number", PerSecond.Check("x", math.NaN()), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.ok != (test.err == nil) || !test.ok && !errors.Is(test.err, toolresult.ErrInvalidInput) {
				t.Error(test.err)
			}
		})
	}
}

// TestValues: whoever has given a wrong value is told which.
func TestValues(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{WholeLease(1500 * time.Millisecond), "lease must be of whole seconds, not 1.5s"},
		{WholeLease(-time.Second), "lease must be from 1s to 2562047h47m16.854775807s, not -1s"},
		{PerSecond.Check("max per second", math.NaN()), "max per second must be from 0 to 1e+09, not NaN"},
		{List.Check("limit", 1001), "limit must be from 1 to 1000, not 1001"},
	} {
		if test.err == nil || test.err.Error() != test.want {
			t.Errorf("%v, want %s", test.err, test.want)
		}
	}
}

func TestLease(t *testing.T) {
	const end = contract.MaxTime
	for _, test := range []struct {
		now   int64
		lease time.Duration
		field string // what is wrong, or ""
	}{
		{0, time.Second, ""}, {end - 1, time.Second, ""}, {0, 9_223_372_036 * time.Second, ""},
		{-1, time.Second, "now"}, {end + 1, time.Second, "now"}, {math.MinInt64, time.Second, "now"},
		{0, 0, "lease"}, {0, -time.Second, "lease"}, {0, time.Second - 1, "lease"}, {0, time.Second + 1, "lease"}, {0, longest, "lease"},
		{end, time.Second, "now + lease_seconds"}, {end - 1, 2 * time.Second, "now + lease_seconds"},
	} {
		var refused *toolresult.InputError
		field := ""
		if err := LeaseFrom(test.now, test.lease); errors.As(err, &refused) {
			field = refused.Field
		}
		if field != test.field {
			t.Errorf("%v from %d: %q, want %q", test.lease, test.now, field, test.field)
		}
	}
}
