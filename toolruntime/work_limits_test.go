package toolruntime_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// TestWorkFair: a tool with a long backlog does not keep another one waiting.
func TestWorkFair(t *testing.T) {
	var mu sync.Mutex
	var order []string
	s := newShop(t, toolruntime.Once, func(_ context.Context, e toolruntime.Effect, _ int) (toolruntime.Receipt[payment], error) {
		mu.Lock()
		order = append(order, e.Tool)
		mu.Unlock()
		return paid(e)
	}, "busy")
	for i := range 200 {
		s.submit("busy", fmt.Sprint("busy-", i))
	}
	var refs []string
	for i := range 20 {
		refs = append(refs, s.submit("pay", fmt.Sprint("pay-", i)))
	}
	s.work(toolruntime.WorkOptions{Concurrency: 2})
	for _, ref := range refs {
		s.wait(ref)
	}
	mu.Lock()
	defer mu.Unlock()
	last := 0
	for i, tool := range order {
		if tool == "pay" {
			last = i + 1
		}
	}
	if last > 60 {
		t.Errorf("20 operations of a tool were done after %d in all", last)
	}
}

// TestWorkLimits: a tool never runs more handlers than it allows, whatever the
// worker has room for.
func TestWorkLimits(t *testing.T) {
	var mu sync.Mutex
	running, most := 0, 0
	handle := func(_ context.Context, e toolruntime.Effect, _ int) (toolruntime.Receipt[payment], error) {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		defer func() { mu.Lock(); running--; mu.Unlock() }()
		return paid(e)
	}
	s := newShop(t, toolruntime.Once, handle)
	s.concurrent = 2
	s.Runtime = s.open(toolruntime.Once, handle)
	s.work(toolruntime.WorkOptions{Concurrency: 16})
	var refs []string
	for i := range 60 {
		refs = append(refs, s.submit("pay", fmt.Sprint(i)))
	}
	for _, ref := range refs {
		s.wait(ref)
	}
	mu.Lock()
	defer mu.Unlock()
	if most > 2 {
		t.Errorf("%d handlers ran at once", most)
	}
	s.audit()
}

// TestWorkRate: a tool with a rate starts no more in a second than it allows.
func TestWorkRate(t *testing.T) {
	handle := func(_ context.Context, e toolruntime.Effect, _ int) (toolruntime.Receipt[payment], error) {
		return paid(e)
	}
	s := newShop(t, toolruntime.Once, handle)
	s.perSecond = 1
	s.Runtime = s.open(toolruntime.Once, handle)
	var refs []string
	for i := range 3 {
		refs = append(refs, s.submit("pay", fmt.Sprint(i)))
	}
	s.work(toolruntime.WorkOptions{})
	for i, ref := range refs {
		s.wait(ref)
		for _, later := range refs[i+1:] {
			if state := s.state(later); state != "pending" {
				t.Errorf("after %d operations, in the same second, another is %s", i+1, state)
			}
		}
		s.pass(1)
	}
}
