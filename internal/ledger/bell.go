package ledger

import "sync"

// Endings wake who waits in this process for what this process ends. A process may
// have a ledger open more than once.
var Endings bell

// A bell rings for operations, by status_ref.
type bell struct {
	mu      sync.Mutex
	waiting map[string]map[chan struct{}]bool
	any     map[chan struct{}]bool // rung for every operation
}

// ExpectAny returns what is sent to when any operation has ended.
func (b *bell) ExpectAny() (rings <-chan struct{}, leave func()) {
	c := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.any == nil {
		b.any = map[chan struct{}]bool{}
	}
	b.any[c] = true
	return c, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.any, c)
	}
}

// Expect returns what is sent to when the operation has ended. One ring is kept for
// who does not listen just then.
func (b *bell) Expect(statusRef string) (rings <-chan struct{}, leave func()) {
	c := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		b.waiting = map[string]map[chan struct{}]bool{}
	}
	if b.waiting[statusRef] == nil {
		b.waiting[statusRef] = map[chan struct{}]bool{}
	}
	b.waiting[statusRef][c] = true
	return c, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if delete(b.waiting[statusRef], c); len(b.waiting[statusRef]) == 0 {
			delete(b.waiting, statusRef)
		}
	}
}

// Ring wakes who waits for an operation. One that has not ended, because a commit
// has failed, they find so.
func (b *bell) Ring(statusRef string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, waiting := range [...]map[chan struct{}]bool{b.waiting[statusRef], b.any} {
		for c := range waiting {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}
}
