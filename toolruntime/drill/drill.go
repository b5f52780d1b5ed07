// Package drill stops a call at a point as if its process had died there, to
// practise what comes after: the repetition, the worker, the person.
//
//	ctx = drill.StopAt(ctx, drill.AfterClaim)
//	pkg, err := rt.Dispatch(ctx, principal, call, opts) // OUTCOME_UNKNOWN, and the lease runs
//
// It is for tests and drills. What has been committed before the point is in the
// ledger for good, and nothing after it is done.
//
//   - A dispatch stops at each of the points, and answers what its caller would hear
//     of a repetition: OUTCOME_UNKNOWN.
//   - Runtime.Process has claimed before there is an intent to stop after, so it
//     stops at [AfterClaim], with the outcome CrashedAfterClaim, and at
//     [AfterDownstreamCommit], with OutcomeUnknown.
//   - Runtime.Submit and Runtime.Work have no points: a worker that stops at every
//     operation would leave a ledger of lost attempts. They refuse such a context
//     before they do anything.
//   - All else, and a call that ends before it comes to the point, goes on as ever.
//
// Where a call cannot stop at the point that its context names, it fails with a
// *toolresult.InputError and has done nothing; only that a transactional tool has no
// moment between effect and receipt is found when the operation is claimed. The point
// is for one call: the handler and the other callbacks get a context without it.
package drill

import (
	"context"

	"github.com/toolruntime/toolruntime-go/internal/failpoint"
)

// A Point is where a call stops.
type Point string

// The points.
const (
	// AfterIntentCommit: the intent is reserved and not claimed. Whoever processes it
	// next carries it out.
	AfterIntentCommit Point = failpoint.AfterIntentCommit
	// AfterClaim: it is claimed, and the effect has not begun. Until the lease has run
	// out it is nobody else's; then it is a lost attempt.
	AfterClaim Point = failpoint.AfterClaim
	// AfterDownstreamCommit: the effect has happened and its receipt was observed, and
	// is not accepted.
	AfterDownstreamCommit Point = failpoint.AfterDownstreamCommit
)

// StopAt returns a context in which a call stops at p. Of two points the last one
// counts. Any text is taken here, and refused by the call.
func StopAt(ctx context.Context, p Point) context.Context { return failpoint.With(ctx, string(p)) }
