package toolruntime

import (
	"github.com/toolruntime/toolruntime-go/internal/bridge"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/ledger"
)

// A Store is the ledger, the same on every database. Each step of a call is one
// transaction; an audit, a pruning and a copy take many. A step that returns nil has
// been committed and is durable; one that returns an error matching
// [ErrCommitUnknown] may be repeated with equal arguments and then gives the answer
// that it would have given. No callback of the host runs inside a transaction, and no
// tool's code does but RunTx, for which it is made; [Store.Update] is for code of the
// host's that wants one.
//
// Open one with package sqlitestore or pgstore. It is safe for concurrent use.
type Store struct {
	ledger *ledger.Ledger // nil in a store that was not opened
	// recorders are what goes on after the call that began it.
	recorders *recorders
}

// What the packages of this module that open a database may do with a store, and
// nobody else.
func init() {
	bridge.NewStore = func(e engine.Engine) any { return newStore(ledger.New(e)) }
	bridge.Ledger = func(s any) *ledger.Ledger { return s.(*Store).ledger }
}

func newStore(l *ledger.Ledger) *Store { return &Store{ledger: l, recorders: newRecorders()} }

// Close ends the store after the transactions that are running. What an attempt has
// come to and could not be recorded yet ([ErrNotRecorded]) is tried once more.
func (s *Store) Close() error {
	s.recorders.close()
	return s.ledger.Close()
}

// Counts are the numbers of rows in the five tables of the contract.
type Counts struct {
	CallBindings       int64 `json:"call_bindings"`
	Operations         int64 `json:"operations"`
	Outbox             int64 `json:"outbox"`
	DownstreamReceipts int64 `json:"downstream_receipts"`
	LocalReceipts      int64 `json:"local_receipts"`
}
