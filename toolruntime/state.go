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
// expired lease goes from processing to processing.
var transitions = map[state][]state{
	pending:    {processing, succeeded},
	processing: {processing, succeeded, inReview},
	succeeded:  {},
	failed:     {},
	inReview:   {},
}

// eventOf is the state of the event that goes with a state of its operation.
var eventOf = map[state]eventState{
	pending:    eventPending,
	processing: eventProcessing,
	succeeded:  eventDelivered,
	failed:     eventParked,
	inReview:   eventParked,
}
