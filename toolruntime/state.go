package toolruntime

// A State is where an operation stands.
type State string

// The states of an operation.
const (
	StatePending    State = "pending"    // reserved; no attempt is running
	StateProcessing State = "processing" // claimed under a lease
	StateSucceeded  State = "succeeded"  // the receipt is accepted; final
	StateFailed     State = "failed"     // nothing was done and nothing will be, or nobody will find out; final
	StateInReview   State = "in_review"  // nobody knows, or the answer was bad; waits for a person
)

// The states, as this package calls them.
const (
	pending    = StatePending
	processing = StateProcessing
	succeeded  = StateSucceeded
	failed     = StateFailed
	inReview   = StateInReview
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
var transitions = map[State][]State{
	pending:    {processing, succeeded, failed},
	processing: {pending, processing, succeeded, failed, inReview},
	succeeded:  {},
	failed:     {},
	inReview:   {pending, succeeded, failed},
}

// eventOf is the state of the event that goes with a state of its operation.
var eventOf = map[State]eventState{
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
