package toolruntimetest

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"sync"

	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// A Downstream is what lies behind a tool: it has effects, counts them by the key
// under which it was asked, and remembers each key with its answer, as APIs do that
// take an idempotency key. Told nothing it behaves well. It is safe for concurrent
// use, and the zero value is ready.
//
// It is used through [Do] and [Find]: in a tool's Run and Find, or in the client or
// the server that they call.
type Downstream struct {
	// Forgetful says that no key is remembered: every request has its effect, as at
	// an API that takes no key. It is set before the first request.
	Forgetful bool

	mu      sync.Mutex
	next    []Fault
	always  Fault
	answers map[string]any
	effects map[string]int
}

// A Fault is what happens to one request, or to one question. The zero value is none.
// Those of this package have names; others are made with the errors that the client
// of a tool returns.
type Fault struct {
	// Before is what the caller hears of a request that was not carried out.
	Before error
	// After is what the caller hears of one that was, instead of the answer.
	After error
	// Repeated says that the request arrives twice, and the second answer is heard.
	Repeated bool
}

// What a caller hears by the faults of this package, wrapped in what a tool's Run
// says by it.
var (
	ErrLost    = errors.New("the connection was lost")
	ErrRefused = errors.New("the request was refused")
	ErrDown    = errors.New("the connection was refused")
	// ErrHang is not heard: the caller waits until its context ends, and hears the
	// context's error.
	ErrHang = errors.New("no answer")
)

// The faults.
var (
	None = Fault{}
	// AnswerLost: it was carried out, and nobody is told.
	AnswerLost = Fault{After: ErrLost}
	// RequestLost: it was not carried out, which looks the same.
	RequestLost = Fault{Before: ErrLost}
	// Refused: for certain nothing was done, and another attempt would not either.
	Refused = Fault{Before: toolruntime.GiveUp(ErrRefused)}
	// Down: for certain nothing was done, because nothing could be sent.
	Down = Fault{Before: toolruntime.RetryLater(0, ErrDown)}
	// Hanging and AnswerHangs: nothing is heard of it until the caller has enough. By
	// the second it was carried out.
	Hanging     = Fault{Before: ErrHang}
	AnswerHangs = Fault{After: ErrHang}
	// Repeated: something on the way sends it twice. That is one effect where keys
	// are remembered, and two where not.
	Repeated = Fault{Repeated: true}
)

// Next says what happens to the next requests and questions, one fault each, in this
// order.
func (d *Downstream) Next(faults ...Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next = append(d.next, faults...)
}

// Always says what happens from now on to those of which Next has said nothing.
func (d *Downstream) Always(f Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.always = f
}

// Forget makes the downstream forget all keys, as APIs do after a time. What has
// happened stays counted.
func (d *Downstream) Forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers = nil
}

// Effects returns how many effects each key has had.
func (d *Downstream) Effects() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.effects)
}

// Do is a request to have an effect under a key; effect makes its answer. A key that
// is remembered has no second effect and gets the first answer. Nobody else is served
// while effect runs, so it must not use the downstream.
func Do[T any](ctx context.Context, d *Downstream, key string, effect func() T) (T, error) {
	var none T
	f := d.begin()
	if f.Before != nil {
		return none, heard(ctx, f.Before)
	}
	answer, err := carryOut(d, key, effect)
	if f.Repeated && err == nil {
		answer, err = carryOut(d, key, effect)
	}
	if err == nil && f.After != nil {
		return none, heard(ctx, f.After)
	}
	return answer, err
}

// Find asks what became of a key, and causes nothing. It returns false if the key is
// not known: then it had no effect, or the downstream has forgotten it.
func Find[T any](ctx context.Context, d *Downstream, key string) (T, bool, error) {
	var none T
	f := d.begin()
	if err := cmp.Or(f.Before, f.After); err != nil {
		return none, false, heard(ctx, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return recall[T](d, key)
}

// begin is what happens to a request or a question that has come now.
func (d *Downstream) begin() Fault {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.next) == 0 {
		return d.always
	}
	f := d.next[0]
	d.next = d.next[1:]
	return f
}

func carryOut[T any](d *Downstream, key string, effect func() T) (T, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if answer, known, err := recall[T](d, key); known || err != nil {
		return answer, err
	}
	answer := effect()
	if d.effects == nil {
		d.effects = map[string]int{}
	}
	d.effects[key]++
	if !d.Forgetful {
		if d.answers == nil {
			d.answers = map[string]any{}
		}
		d.answers[key] = [1]T{answer} // which has a type even where T is an interface
	}
	return answer, nil
}

// errKeyReused is what real APIs answer as well.
var errKeyReused = errors.New("toolruntimetest: the key was used for an answer of another type")

// recall looks a key up, under the lock.
func recall[T any](d *Downstream, key string) (answer T, known bool, err error) {
	remembered, known := d.answers[key]
	if !known {
		return answer, false, nil
	}
	of, ok := remembered.([1]T)
	if !ok {
		return answer, false, errKeyReused
	}
	return of[0], true, nil
}

// heard is what the caller hears instead of an answer.
func heard(ctx context.Context, err error) error {
	if errors.Is(err, ErrHang) {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}
