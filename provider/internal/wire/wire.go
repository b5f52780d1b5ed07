// Package wire holds what the provider packages share: the strict reading of a
// response that came from outside, the making of calls from it, the reading of
// streams, and the check of packages before anything of them leaves.
package wire

import (
	"strings"

	"github.com/toolruntime/toolruntime-go/toolresult"
)

// The limits of a response.
const (
	MaxResponseBytes = 16 << 20
	MaxStreamBytes   = 64 << 20 // of the stream that a response came in
	MaxCalls         = 128
)

// A Reason says why a response that can be read is not taken as a turn.
type Reason string

// The reasons. None is that of a response that cannot be read.
const (
	CutOff    Reason = "cut off"     // at a limit, or because the stream broke off
	Refused   Reason = "refused"     // the model declined
	Filtered  Reason = "filtered"    // the provider withheld some or all of it
	Paused    Reason = "paused"      // the provider wants to be asked to go on
	Stopped   Reason = "stopped"     // at a text that the request gave
	Failed    Reason = "failed"      // an error of the provider or the model
	Cancelled Reason = "cancelled"   // somebody ended it
	Running   Reason = "in progress" // it is not at its end yet
	Unstated  Reason = "not stated"  // it does not say how it ended
	Unknown   Reason = "not known"   // it says so in words that nobody here knows
)

// A ResponseError says why a provider's response is refused: no call of it may
// be carried out. It names the place and the rule, never a value.
type ResponseError struct {
	Path   string // for example "output[2].type"
	Rule   string
	Reason Reason // why it is no whole turn; "" if it cannot be read at all
	Cause  error  // or nil
}

func (e *ResponseError) Error() string { return "provider response: " + e.Path + " " + e.Rule }

func (e *ResponseError) Unwrap() error { return e.Cause }

// An OutputError says why packages are not given to a provider: nothing that is
// not proven leaves.
type OutputError struct {
	Problems []toolresult.Problem
}

func (e *OutputError) Error() string {
	list := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		list[i] = p.String()
	}
	return "provider output: " + strings.Join(list, "; ")
}

// A Host supplies what the model must not: the operation id of a call, and the
// idempotency key of its intent ("" where there is none). The call that it is
// given is complete but for these two; one that will be refused has a Fault. It
// runs after the whole response has been read and found in order, once for each
// call, in the response's order.
type Host func(c toolresult.Call) (operationID, idempotencyKey string, err error)
