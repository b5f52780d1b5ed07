package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/toolruntime/toolruntime-go/toolresult"
)

// storm dispatches new calls among duplicates: one call in twenty has an identity of
// its own and wants a scope that is taken. Only the new ones count, for what is asked
// is what the duplicates do to them.
func (l *ledger) storm() load {
	var n atomic.Int64
	n.Store(stored)
	return load{do: func(ctx context.Context, _ int) error {
		i := n.Add(1)
		kind := stormKind(i)
		pkg, err := l.dispatch(ctx, l.stormCall(i, kind))
		if err != nil {
			return err
		}
		if err := kind.accepts(pkg, stormKind(i+1) == ofRunning); err != nil {
			return err
		}
		if kind != newCall {
			return errAside
		}
		return nil
	}}
}

// A duplication is what a call of a storm repeats.
type duplication string

const (
	newCall   duplication = "new call"
	ofEnded   duplication = "duplicate of a call that has ended"
	ofOther   duplication = "duplicate with another intent"
	ofRunning duplication = "duplicate of a call that has just begun"
)

func stormKind(i int64) duplication {
	if i%20 != 0 {
		return newCall
	}
	return []duplication{ofEnded, ofOther, ofRunning}[i/20%3]
}

func (l *ledger) stormCall(i int64, kind duplication) toolresult.Call {
	c := call(i)
	switch kind {
	case ofEnded, ofOther:
		c.IdempotencyKey = call(i%stored + 1).IdempotencyKey
	case ofRunning:
		c.IdempotencyKey = call(i - 1).IdempotencyKey
	}
	if kind == ofOther {
		c.Proposal.Arguments = []byte(`{"order_ref":"ORDER-7","reason":"damaged"}`)
	}
	return c
}

// accepts says whether an answer is the right one. Of two that want the same scope
// at the same time (repeated says so of a new call) either may be the first, and the
// other is told the result, or that there is none yet.
func (d duplication) accepts(pkg *toolresult.Package, repeated bool) error {
	code, delivery := pkg.Code(), pkg.Delivery()
	right := false
	switch {
	case d == ofRunning, d == newCall && repeated:
		right = code == toolresult.OK || code == toolresult.OutcomeUnknown
	case d == newCall:
		right = code == toolresult.OK && delivery == toolresult.Fresh
	case d == ofEnded:
		right = code == toolresult.OK && delivery == toolresult.LocalReplay
	case d == ofOther:
		right = code == toolresult.IdempotencyConflict
	}
	if !right {
		return fmt.Errorf("%s: answered %v, %v", d, code, delivery)
	}
	return nil
}
