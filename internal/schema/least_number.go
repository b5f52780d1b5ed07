package schema

import (
	"math/big"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func leastNumber(list []*jsonschema.Schema, kind kinds) answer {
	var all interval
	for _, s := range list {
		all = all.with(s)
	}
	if all.empty() {
		return none(all.from, "", "has no number between its bounds and those that apply with it")
	}
	if kind == kindInt {
		for _, s := range list {
			if !all.hasInteger(s.MultipleOf) {
				return none(s, "", "has no integer between its bounds and those that apply with it")
			}
		}
		return answer{size: 1}
	}
	return answer{size: len("0.0")}
}

// An interval is of numbers; a nil end has no bound.
type interval struct {
	low, high         *big.Rat
	lowOpen, highOpen bool
	from              *jsonschema.Schema
}

func (i interval) with(s *jsonschema.Schema) interval {
	for _, b := range []struct {
		at   *big.Rat
		open bool
	}{{s.Minimum, false}, {s.ExclusiveMinimum, true}} {
		if b.at != nil && (i.low == nil || b.at.Cmp(i.low) > 0 || b.at.Cmp(i.low) == 0 && b.open) {
			i.low, i.lowOpen, i.from = b.at, b.open, s
		}
	}
	for _, b := range []struct {
		at   *big.Rat
		open bool
	}{{s.Maximum, false}, {s.ExclusiveMaximum, true}} {
		if b.at != nil && (i.high == nil || b.at.Cmp(i.high) < 0 || b.at.Cmp(i.high) == 0 && b.open) {
			i.high, i.highOpen, i.from = b.at, b.open, s
		}
	}
	return i
}

func (i interval) empty() bool {
	if i.low == nil || i.high == nil {
		return false
	}
	c := i.low.Cmp(i.high)
	return c > 0 || c == 0 && (i.lowOpen || i.highOpen)
}

func (i interval) contains(n *big.Rat) bool {
	return (i.low == nil || i.low.Cmp(n) < 0 || !i.lowOpen && i.low.Cmp(n) == 0) &&
		(i.high == nil || n.Cmp(i.high) < 0 || !i.highOpen && i.high.Cmp(n) == 0)
}

// hasInteger looks among the integers of the domain that are multiples of a
// number, nil being 1.
func (i interval) hasInteger(multiple *big.Rat) bool {
	step := big.NewInt(1)
	if multiple != nil && multiple.Sign() > 0 {
		step = multiple.Num() // an integer is a multiple of p/q only if of p
	}
	low, high := big.NewRat(-maxInt, 1), big.NewRat(maxInt, 1)
	if i.low != nil && i.low.Cmp(low) > 0 {
		low = i.low
	}
	if i.high != nil && i.high.Cmp(high) < 0 {
		high = i.high
	}
	// The first multiple that is not below low.
	n := new(big.Int).Mul(low.Denom(), step)
	q, rest := new(big.Int).DivMod(low.Num(), n, new(big.Int))
	if rest.Sign() != 0 {
		q.Add(q, big.NewInt(1))
	}
	first := new(big.Rat).SetInt(q.Mul(q, step))
	if i.low != nil && i.lowOpen && first.Cmp(i.low) == 0 {
		first.Add(first, new(big.Rat).SetInt(step))
	}
	c := first.Cmp(high)
	return c < 0 || c == 0 && !(i.high != nil && i.highOpen && first.Cmp(i.high) == 0)
}
