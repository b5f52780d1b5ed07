package toolruntime

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// What is known of an attempt is written again and again until it is stored: a
// receipt that the downstream has given must not be forgotten because the database
// is away, and nor must it that an attempt did nothing. Repeating is always right,
// because every write names the fence of its claim: while nobody else has claimed
// the operation it holds, whatever the lease says, and afterwards it changes
// nothing, and the receipt is kept as late evidence.

// The pauses between the tries grow, and end when keepTrying is over.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = 2 * time.Second
	keepTrying = time.Hour
)

// passes reports whether a write that has failed so may be stored when it is
// repeated. What the database has refused, it will refuse again, and a store whose
// file was replaced never comes back.
func passes(err error) bool {
	switch {
	case errors.Is(err, ErrDetached):
		return errors.Is(err, ErrUnavailable)
	case errors.Is(err, ErrCommitUnknown):
		return true
	case errors.Is(err, ErrConstraint), errors.Is(err, ErrCorrupt):
		return false
	}
	return errors.Is(err, ErrDatabase)
}

// A recording makes the writes that record something, each by try. It is begun anew
// when one was not stored, and may end after the function that made it.
type recording func(try) error

// A try makes a write, once or until it is stored or refused.
type try func(write func() error) error

// insist makes a recording, and waits for it until wait ends: then it goes on
// without the caller, who hears ErrNotRecorded.
func (rt *Runtime) insist(wait func() (context.Context, context.CancelFunc), what, statusRef string, do recording) error {
	err := do(func(write func() error) error { return write() })
	if passes(err) {
		ctx, cancel := wait()
		defer cancel()
		err = rt.goOn(ctx, what, statusRef, do, err)
	}
	if err != nil {
		return fmt.Errorf("toolruntime: %s %s: %w", what, statusRef, err)
	}
	return nil
}

func (rt *Runtime) goOn(ctx context.Context, what, statusRef string, do recording, cause error) error {
	log := rt.log.With("status_ref", statusRef, "what", what)
	log.WarnContext(ctx, "not recorded yet", "error", cause)
	ended := make(chan error, 1)
	var alone atomic.Bool // nobody waits any more
	going := rt.store.recorders.start(func(closing <-chan struct{}) {
		err := do(func(write func() error) error { return repeat(write, closing) })
		ended <- err
		switch {
		case !alone.Load():
		case err == nil:
			log.InfoContext(ctx, "recorded after all")
		default:
			log.ErrorContext(ctx, "not recorded", "error", err)
		}
	})
	if !going {
		return cause
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	alone.Store(true)
	select {
	case err := <-ended:
		return err
	default:
		return fmt.Errorf("%w: %w", ErrNotRecorded, cause)
	}
}

// repeat repeats a write until it is stored or refused, for the last time when the
// store closes.
func repeat(write func() error, closing <-chan struct{}) error {
	begun, pause := time.Now(), time.NewTimer(0)
	defer pause.Stop()
	for next := firstPause; ; next = min(2*next, lastPause) {
		pause.Reset(next/2 + rand.N(next/2))
		last := time.Since(begun) >= keepTrying
		select {
		case <-pause.C:
		case <-closing:
			last = true
		}
		if err := write(); last || !passes(err) {
			return err
		}
	}
}

// recorders are the recordings of a store that go on by themselves.
type recorders struct {
	mu      sync.Mutex
	running sync.WaitGroup
	closing chan struct{}
	shut    bool
}

func newRecorders() *recorders { return &recorders{closing: make(chan struct{})} }

// start reports false when the store closes.
func (r *recorders) start(run func(closing <-chan struct{})) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shut {
		return false
	}
	r.running.Go(func() { run(r.closing) })
	return true
}

// close lets each try once more.
func (r *recorders) close() {
	r.mu.Lock()
	if !r.shut {
		r.shut = true
		close(r.closing)
	}
	r.mu.Unlock()
	r.running.Wait()
}
