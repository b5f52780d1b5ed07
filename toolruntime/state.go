package toolruntime

// A state of an operation.
type state string

const (
	pending    state = "pending"    // reserved; no attempt is running
	processing state = "processing" // claimed under a lease
	succeeded  state = "succeeded"  // the receipt is accepted; final
	failed     state = "failed"     // nothing was done and nothing will be; final
	inReview   state = "in_review"  // nobody knows, or the answer was bad; waits for a person
)

// A state of an outbox event.
type eventState string

const (
	eventPending    eventState = "pending"
	eventProcessing eventState = "processing"
	eventDelivered  eventState = "delivered"
	eventParked     eventState = "parked"
)

// transitions lists every change of state that the runtime makes. A claim of an
// expired lease goes from processing to processing, and an attempt that did
// nothing goes back to pending.
var transitions = map[state][]state{
	pending:    {processing, succeeded, failed},
	processing: {pending, processing, succeeded, failed, inReview},
	succeeded:  {},
	failed:     {},
	inReview:   {pending, succeeded, failed},
}

// eventOf is the state of the event that goes with a state of its operation.
var eventOf = map[state]eventState{
	pending:    eventPending,
	processing: eventProcessing,
	succeeded:  eventDelivered,
	failed:     eventParked,
	inReview:   eventParked,
}

// How an attempt has ended, as its row says.
type ending string

const (
	endSucceeded   ending = "succeeded"   // its receipt was accepted
	endReconciled  ending = "reconciled"  // a receipt was found after it
	endNotDone     ending = "not_done"    // nothing was done; a later attempt may
	endGivenUp     ending = "given_up"    // nothing was done, and nothing will be
	endDenied      ending = "denied"      // authorisation or the business rule; the handler did not run
	endUnknown     ending = "unknown"     // nobody knows
	endRejected    ending = "rejected"    // the answer broke the output contract
	endInterrupted ending = "interrupted" // the worker was stopped; nobody knows
	endLost        ending = "lost"        // the lease ran out without a word
)
