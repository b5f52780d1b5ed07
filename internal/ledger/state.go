package ledger

// A State is where an operation stands.
type State string

// The states of an operation.
const (
	Pending    State = "pending"    // reserved; no attempt is running
	Processing State = "processing" // claimed under a lease
	Succeeded  State = "succeeded"  // the receipt is accepted; final
	Failed     State = "failed"     // nothing was done and nothing will be, or nobody will find out; final
	InReview   State = "in_review"  // nobody knows, or the answer was bad; waits for a person
)

// A state of an outbox event.
type eventState string

const (
	eventPending    eventState = "pending"
	eventProcessing eventState = "processing"
	eventDelivered  eventState = "delivered"
	eventParked     eventState = "parked"
)

// Transitions lists every change of state that the runtime makes. A claim of an
// expired lease goes from processing to processing, and an attempt that did
// nothing goes back to pending.
var Transitions = map[State][]State{
	Pending:    {Processing, Succeeded, Failed},
	Processing: {Pending, Processing, Succeeded, Failed, InReview},
	Succeeded:  {},
	Failed:     {},
	InReview:   {Pending, Succeeded, Failed},
}

// eventOf is the state of the event that goes with a state of its operation.
var eventOf = map[State]eventState{
	Pending:    eventPending,
	Processing: eventProcessing,
	Succeeded:  eventDelivered,
	Failed:     eventParked,
	InReview:   eventParked,
}

// How an attempt has ended, as its row says.
type Ending string

const (
	endSucceeded   Ending = "succeeded"   // its receipt was accepted
	endReconciled  Ending = "reconciled"  // a receipt was found after it
	EndNotDone     Ending = "not_done"    // nothing was done; a later attempt may
	endGivenUp     Ending = "given_up"    // nothing was done, and nothing will be
	EndDenied      Ending = "denied"      // authorisation or the business rule; the handler did not run
	EndUnknown     Ending = "unknown"     // nobody knows
	EndRejected    Ending = "rejected"    // the answer broke the output contract
	EndInterrupted Ending = "interrupted" // the worker was stopped; nobody knows
	endLost        Ending = "lost"        // the lease ran out without a word
)

// A Cause is why an attempt has ended as it did, where how it ended does not say it.
// It is a word of this list, and so holds nothing of a call.
type Cause string

const (
	CausePanic      Cause = "panicked"       // code of the host panicked or ended its goroutine
	CauseTimeout    Cause = "timed_out"      // it had not answered when its time was over
	CauseCancelled  Cause = "cancelled"      // the caller gave up
	CauseError      Cause = "error"          // it returned an error that proves nothing
	CauseReview     Cause = "needs_review"   // the tool wants a person to find out
	CauseForgotten  Cause = "key_forgotten"  // the downstream may have forgotten the key
	CauseNoRepeat   Cause = "not_repeatable" // an earlier attempt may have had the effect
	CauseExhausted  Cause = "exhausted"      // too many attempts, or for too long
	CauseNoTime     Cause = "no_time"        // the lease left no time to run in
	CauseNotAllowed Cause = "not_authorized" // the authorizer said no
	CauseRule       Cause = "business_rule"  // the tool's rule said no
	CauseEvidence   Cause = "evidence"       // what is stored is not what this runtime would accept
)
