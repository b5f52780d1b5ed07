package toolruntime

import "github.com/toolruntime/toolruntime-go/internal/ledger"

// A State is where an operation stands: a word.
type State = ledger.State

// The states of an operation.
const (
	StatePending    State = ledger.Pending    // reserved; no attempt is running
	StateProcessing State = ledger.Processing // claimed under a lease
	StateSucceeded  State = ledger.Succeeded  // the receipt is accepted; final
	StateFailed     State = ledger.Failed     // nothing was done and nothing will be, or nobody will find out; final
	StateInReview   State = ledger.InReview   // nobody knows, or the answer was bad; waits for a person
)
