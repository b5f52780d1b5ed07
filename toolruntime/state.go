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

// A cause is why an attempt has ended as it did, where how it ended does not say it.
// It is a word of this list, and so holds nothing of a call.
type cause string

const (
	causePanic      cause = "panicked"       // code of the host panicked or ended its goroutine
	causeTimeout    cause = "timed_out"      // it had not answered when its time was over
	causeCancelled  cause = "cancelled"      // the caller gave up
	causeError      cause = "error"          // it returned an error that proves nothing
	causeReview     cause = "needs_review"   // the tool wants a person to find out
	causeForgotten  cause = "key_forgotten"  // the downstream may have forgotten the key
	causeNoRepeat   cause = "not_repeatable" // an earlier attempt may have had the effect
	causeExhausted  cause = "exhausted"      // too many attempts, or for too long
	causeNoTime     cause = "no_time"        // the lease left no time to run in
	causeNotAllowed cause = "not_authorized" // the authorizer said no
	causeRule       cause = "business_rule"  // the tool's rule said no
	causeEvidence   cause = "evidence"       // what is stored is not what this runtime would accept
)
