package httpeffect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"
	"time"

	"github.com/toolruntime/toolruntime-go/toolruntime"
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

// An AnswerError is an answer that is no receipt. One that means [Conflict] is
// [toolruntime.ErrNeedsReview].
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

// AskAfter is RetryAfter: the runtime waits at least so long before it asks or
// repeats.
func (e *AnswerError) AskAfter() time.Duration { return e.RetryAfter }

// Is reports that a conflict is for a person.
func (e *AnswerError) Is(target error) bool {
	return target == toolruntime.ErrNeedsReview && e.Meaning == Conflict
}

// The problems of a body.
var (
	// ErrBodyTooLarge: the body is over Client.MaxBody.
	ErrBodyTooLarge = errors.New("the body is too large")
	// ErrBodyNotStrict: the body is not one JSON text, or repeats a key.
	ErrBodyNotStrict = errors.New("the body is not strict JSON")
)

// ErrSentAgain: the RoundTripper of the Client has begun to send the request a
// second time. The attempt was ended, and nothing is known of it.
var ErrSentAgain = errors.New("the transport was about to send it again")

// A TransportError says that there was no answer.
type TransportError struct {
	// Sent is false where there was no connection yet on which the request could
	// have been written.
	Sent bool
	// Err is the kind of failure: [ErrSentAgain], [context.DeadlineExceeded],
	// [context.Canceled], a [syscall.Errno], [io.ErrUnexpectedEOF], [io.EOF], or an
	// error without detail, since those of net/http quote addresses and answers.
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
	errName    = errors.New("the host name was not resolved")
	errBroken  = errors.New("the exchange broke")
	errAddress = errors.New("the address is not a URL")
)

// withoutURL returns what is left of an error that quotes an address, which can
// hold secrets: also the reason why it could not be read quotes parts of it.
func withoutURL(ctx context.Context, err error) error {
	var (
		quoting *url.Error
		known   *toolruntime.NotDoneError
	)
	if !errors.As(err, &quoting) {
		return err
	}
	left := errAddress
	if quoting.Op != "parse" {
		left = plain(ctx, quoting)
	}
	if errors.As(err, &known) {
		return &toolruntime.NotDoneError{Cause: left, After: known.After, Final: known.Final}
	}
	return left
}

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
