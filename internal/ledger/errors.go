package ledger

import (
	"errors"
	"fmt"

	"github.com/toolruntime/toolruntime-go/internal/engine"
)

// ErrPaused says that a person has paused the tool of an operation, so that it was
// not claimed. Nothing was changed.
var ErrPaused = errors.New("the tool is paused")

// ErrBegun says that an operation cannot be cancelled any more: an attempt of it has
// begun, and may have had its effect, or it has ended.
var ErrBegun = errors.New("an attempt of the operation has begun, or it has ended")

// ErrNotInReview says that an operation does not wait for a person: it never
// did, or it was resolved already, and otherwise.
var ErrNotInReview = errors.New("the operation is not in review")

// ErrLeaseLost says that a write came under a claim that no longer holds: the
// lease ran out and somebody else has claimed the operation, or it has ended.
// The write changed nothing.
var ErrLeaseLost = errors.New("lease lost")

// A ContractError says which stored evidence of which operation breaks its
// contract. It names no tenant, subject, key or value.
type ContractError struct {
	StatusRef string // the operation, or "" when the fault is not one operation's
	Rule      string // what does not hold
}

func (e *ContractError) Error() string {
	if e.StatusRef == "" {
		return "toolruntime: stored state: " + e.Rule
	}
	return fmt.Sprintf("toolruntime: stored state of %s: %s", e.StatusRef, e.Rule)
}

// Is reports that every ContractError is [engine.ErrContract].
func (e *ContractError) Is(target error) bool { return target == engine.ErrContract }
