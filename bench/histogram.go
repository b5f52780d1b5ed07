package main

import (
	"math/bits"
	"time"
)

// A histogram counts latencies in buckets whose width is at most 1/64 of what
// they hold. Adding costs nothing that a measurement would see.
type histogram struct {
	buckets [57 * 64]uint64
	count   uint64
}

func (h *histogram) add(d time.Duration, times uint64) {
	h.buckets[bucket(uint64(max(d, 0)))] += times
	h.count += times
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other.buckets {
		h.buckets[i] += n
	}
	h.count += other.count
}

// quantile is the latency that a part q of the operations did not exceed, 0 where
// nothing was counted.
func (h *histogram) quantile(q float64) time.Duration {
	if h.count == 0 {
		return 0
	}
	rank := uint64(q*float64(h.count-1)) + 1
	for i, n := range h.buckets {
		if n >= rank {
			return time.Duration(lowest(i+1) - 1)
		}
		rank -= n
	}
	return 0
}

// bucket numbers the values below 64 one by one; above, each doubling has 64.
func bucket(v uint64) int {
	shift := max(bits.Len64(v)-7, 0)
	if v < 64 {
		return int(v)
	}
	return shift*64 + int(v>>shift)
}

// lowest is the smallest value of a bucket.
func lowest(i int) uint64 {
	if i < 128 {
		return uint64(i)
	}
	shift := i/64 - 1
	return uint64(64+i%64) << shift
}
