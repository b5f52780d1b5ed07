package toolruntime

import (
	"errors"
	"fmt"
	"time"
)

// A NotDoneError is a handler's certain knowledge that its effect has not
// happened and will not happen by itself. It is the only answer after which the
// runtime runs a handler again without asking anybody. Any other error means
// that the effect may have happened.
type NotDoneError struct {
	// Cause is for the log; it never reaches a model.
	Cause error
	// After is how long to wait before the next attempt, as the downstream has
	// asked for; 0 leaves it to the runtime's backoff.
	After time.Duration
	// Final says that there must be no further attempt: the operation fails.
	Final bool
}

func (e *NotDoneError) Error() string {
	switch {
	case e.Final:
		return fmt.Sprintf("nothing was done, and nothing will be: %v", e.Cause)
	case e.After > 0:
		return fmt.Sprintf("nothing was done, try again after %v: %v", e.After, e.Cause)
	}
	return fmt.Sprintf("nothing was done, try again later: %v", e.Cause)
}

// AskAfter is After, as the runtime reads it from any handler's error.
func (e *NotDoneError) AskAfter() time.Duration { return e.After }

func (e *NotDoneError) Unwrap() error { return e.Cause }

// RetryLater is a handler's answer that nothing was done, and that a later
// attempt may succeed. after is what the downstream asked for, or 0.
func RetryLater(after time.Duration, cause error) error {
	return &NotDoneError{Cause: cause, After: after}
}

// GiveUp is a handler's answer that nothing was done, and that trying again
// would not help: the operation fails for good. If an earlier attempt may have had
// the effect it goes in review.
func GiveUp(cause error) error { return &NotDoneError{Cause: cause, Final: true} }

// ErrNeedsReview in what a handler or Find answers says that the effect may have
// happened, and that neither repeating nor asking will tell: the operation goes in
// review at once.
var ErrNeedsReview = errors.New("a person has to find out")

// hopeless reports whether an answer says that a later attempt would know no more.
func hopeless(err error) bool {
	e, ok := notDone(err)
	return ok && e.Final || errors.Is(err, ErrNeedsReview)
}

// notDone returns what a handler knows, if it says that nothing was done.
func notDone(err error) (*NotDoneError, bool) {
	var e *NotDoneError
	ok := errors.As(err, &e)
	return e, ok
}
