// Package wire holds what the provider packages share: the strict reading of a
// response that came from outside, the making of calls from it, and the check of
// packages before anything of them leaves.
package wire

import (
	"strings"

	"github.com/toolruntime/toolruntime-go/toolresult"
)

// The limits of a response.
const (
	MaxResponseBytes = 16 << 20
	MaxCalls         = 128
)

// A ResponseError says why a provider's response is refused. No call of it may
// be carried out. It names the place and the rule, never a value.
type ResponseError struct {
	Path  string // for example "output[2].arguments"
	Rule  string
	Cause error // or nil
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
// given is complete but for these two. It runs after the whole response has been
// read and found in order, once for each call, in the response's order.
type Host func(c toolresult.Call) (operationID, idempotencyKey string, err error)
