package httpeffect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

// An InFlightError says that the downstream is at work on the same key, by this
// or an earlier request. It proves nothing: ask again, by Find or with the same
// key.
type InFlightError struct {
	Status     int
	RetryAfter time.Duration // as the downstream has asked for, or 0
}

// AskAfter is RetryAfter: the runtime waits at least so long before it asks.
func (e *InFlightError) AskAfter() time.Duration { return e.RetryAfter }

func (e *InFlightError) Error() string {
	if e.RetryAfter > 0 {
		return fmt.Sprintf("httpeffect: status %d: in flight, ask again after %v", e.Status, e.RetryAfter)
	}
	return fmt.Sprintf("httpeffect: status %d: in flight, ask again", e.Status)
}

// An AnswerError is an answer that is no receipt.
type AnswerError struct {
	Status  int
	Meaning Meaning
	// RetryAfter is what the downstream has asked for, or 0.
	RetryAfter time.Duration
	// Err is why an answer that should be a receipt is none, or nil.
	Err error
}

func (e *AnswerError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("httpeffect: status %d: %v: %v", e.Status, e.Meaning, e.Err)
	}
	return fmt.Sprintf("httpeffect: status %d: %v", e.Status, e.Meaning)
}

func (e *AnswerError) Unwrap() error { return e.Err }

// The problems of a body.
var (
	// ErrBodyTooLarge: the body is over Client.MaxBody.
	ErrBodyTooLarge = errors.New("the body is too large")
	// ErrBodyNotStrict: the body is not one JSON text, or repeats a key.
	ErrBodyNotStrict = errors.New("the body is not strict JSON")
)

// A TransportError says that there was no answer.
type TransportError struct {
	// Sent is false where there was no connection yet on which the request could
	// have been written.
	Sent bool
	// Err is the kind of failure: [context.DeadlineExceeded], [context.Canceled],
	// a [syscall.Errno], [io.ErrUnexpectedEOF], [io.EOF], or an error without
	// detail, since those of net/http quote addresses and answers.
	Err error
}

func (e *TransportError) Error() string {
	if e.Sent {
		return fmt.Sprintf("httpeffect: no answer, the request may have arrived: %v", e.Err)
	}
	return fmt.Sprintf("httpeffect: no connection, nothing was sent: %v", e.Err)
}

func (e *TransportError) Unwrap() error { return e.Err }

var (
	errName   = errors.New("the host name was not resolved")
	errBroken = errors.New("the exchange broke")
)

// plain returns an error that can be logged for one that cannot.
func plain(ctx context.Context, err error) error {
	var (
		errno  syscall.Errno
		name   *net.DNSError
		timing net.Error
	)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &name):
		return errName
	case errors.As(err, &errno):
		return errno
	case errors.Is(err, io.ErrUnexpectedEOF):
		return io.ErrUnexpectedEOF
	case errors.Is(err, io.EOF):
		return io.EOF
	case errors.As(err, &timing) && timing.Timeout():
		return context.DeadlineExceeded
	}
	return errBroken
}
