package toolruntime

import (
	"context"
	"database/sql"
	"errors"

	"github.com/toolruntime/toolruntime-go/internal/bridge"
	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/toolresult"
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
	engine   engine.Engine
	shortcut engine.Shortcut // or nil
	// recorders are what goes on after the call that began it.
	recorders *recorders
}

// What the packages of this module that open a database may do with a store, and
// nobody else.
func init() {
	bridge.NewStore = func(e engine.Engine) any { return newStore(e) }
	bridge.Copy = func(ctx context.Context, from, to any, progress func(done, total int64)) (any, error) {
		return from.(*Store).copyTo(ctx, to.(*Store), progress)
	}
}

func newStore(e engine.Engine) *Store {
	s := &Store{engine: e, recorders: newRecorders()}
	s.shortcut, _ = e.(engine.Shortcut)
	return s
}

// Close ends the store after the transactions that are running. What an attempt has
// come to and could not be recorded yet ([ErrNotRecorded]) is tried once more.
func (s *Store) Close() error {
	s.recorders.close()
	return s.engine.Close()
}

// Counts are the numbers of rows in the five tables of the contract.
type Counts struct {
	CallBindings       int64 `json:"call_bindings"`
	Operations         int64 `json:"operations"`
	Outbox             int64 `json:"outbox"`
	DownstreamReceipts int64 `json:"downstream_receipts"`
	LocalReceipts      int64 `json:"local_receipts"`
}

// counts counts the rows of the ledger. It reads every table's index: it is for
// tests and audits, not for a metric.
func (s *Store) counts(ctx context.Context) (c Counts, err error) {
	err = s.engine.Read(ctx, func(ctx context.Context, q dbgen.Querier) error {
		row, err := q.CountRows(ctx)
		c = Counts(row)
		return err
	})
	return c, err
}

// A record is an operation with its event and its receipts, as far as they were
// read. It is the runtime's view of one intent.
type record struct {
	operation  dbgen.Operation
	event      dbgen.Outbox
	local      *dbgen.LocalReceipt
	downstream *dbgen.DownstreamReceipt
	// cause is why the attempt that is running ends; it is stored with how.
	cause cause
}

func (r *record) statusRef() string { return r.operation.StatusRef }
func (r *record) fence() int64      { return r.event.AttemptCount }
func (r *record) state() State      { return State(r.operation.State) }
func (r *record) arguments() string { return r.operation.ArgumentsJSON }

// reason is the code with which an operation failed or went into review.
func (r *record) reason() toolresult.Code { return toolresult.Code(r.operation.Reason) }

// ended is when and how an operation that has ended did.
func (r *record) ended() toolresult.Ending {
	return toolresult.Ending{At: at(r.operation.CompletedAt.Int64), Attempt: r.fence()}
}

// owner is the principal whose operation it is, without roles.
func (r *record) owner() toolresult.Principal {
	return toolresult.Principal{TenantID: r.operation.TenantID, SubjectID: r.operation.SubjectID}
}

// firstCall is the call that created the operation.
func (r *record) firstCall() toolresult.Call {
	o := &r.operation
	return toolresult.Call{
		Proposal: toolresult.Proposal{Name: o.ToolName, Arguments: []byte(o.ArgumentsJSON)},
		ExecutionContext: toolresult.ExecutionContext{
			Provider: o.FirstProvider, APIFamily: o.FirstAPIFamily, ResponseID: o.FirstResponseID,
			CallID: o.FirstCallID, OperationID: o.FirstOperationID, IdempotencyKey: o.IdempotencyKey,
			AdapterRevision: o.FirstAdapterRevision,
		},
	}
}

// kind is the effect kind with which the operation was accepted, or "" where that
// was not kept yet.
func (r *record) kind() string { return r.operation.EffectKind }

// contract is the tool contract under which the operation was accepted.
func (r *record) contract() toolresult.Contract { return contractOf(&r.operation) }

func contractOf(o *dbgen.Operation) toolresult.Contract {
	return toolresult.Contract{Name: o.ToolName, Revisions: toolresult.Revisions{
		InputSchema: o.InputSchemaRevision, OutputSchema: o.OutputSchemaRevision, Effect: o.EffectRevision,
		Handler: o.HandlerRevision, Producer: o.ProducerRevision, Policy: o.PolicyRevision,
	}}
}

func scopeOf(b *toolresult.Bound) dbgen.GetOperationByScopeParams {
	p, c := b.Principal(), b.Call()
	return dbgen.GetOperationByScopeParams{
		TenantID: p.TenantID, SubjectID: p.SubjectID, ToolName: c.Name, IdempotencyKey: c.IdempotencyKey,
	}
}

func lookupOf(b *toolresult.Bound) dbgen.LookupParams {
	p, c := b.Principal(), b.Call()
	return dbgen.LookupParams{
		TenantID: p.TenantID, SubjectID: p.SubjectID, ToolName: c.Name, IdempotencyKey: c.IdempotencyKey,
		Provider: c.Provider, APIFamily: c.APIFamily, ResponseID: c.ResponseID, CallID: c.CallID,
	}
}

// found turns "no rows" into false.
func found(err error) (bool, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// A lookup is what the ledger knows about a call before anything is written.
type lookup struct {
	bound   bool // the call identity is bound
	same    bool // … to this very call
	current *record
	pruned  bool // the scope has a tombstone
}

// lookup reads whether a call identity is bound, and the operation that holds
// the call's scope with the receipt that answers it: of its event, the record has
// the number of attempts alone.
func (s *Store) lookup(ctx context.Context, b *toolresult.Bound, purpose toolresult.Purpose) (l lookup, err error) {
	key := lookupOf(b)
	if err := s.holdsScope(&key); err != nil {
		return l, err
	}
	var fingerprint string
	err = s.engine.Peek(ctx, func(ctx context.Context, q dbgen.Querier) (err error) {
		l, fingerprint, err = look(ctx, q, key)
		return err
	})
	l.bound = fingerprint != ""
	l.same = l.bound && fingerprint == b.Fingerprint(purpose)
	return l, err
}

// look reads what lookup returns, but for what a call identity is bound to: that is
// the fingerprint, or "".
func look(ctx context.Context, q dbgen.Querier, key dbgen.LookupParams) (l lookup, fingerprint string, err error) {
	row, err := q.Lookup(ctx, key)
	taken, err := found(err)
	if err != nil {
		return l, "", err
	}
	if taken {
		l.current = lookedUp(&row)
		return l, row.Fingerprint, nil
	}
	// In this order: what is pruned between the two reads has its tombstone.
	free, err := q.LookupFree(ctx, dbgen.LookupFreeParams(key))
	l.pruned = free.Tombstones > 0
	return l, free.Fingerprint, err
}

func lookedUp(row *dbgen.LookupRow) *record {
	r := &record{operation: row.Operation, event: dbgen.Outbox{AttemptCount: row.Attempts}}
	if row.ReceiptOf.Valid {
		r.local = &dbgen.LocalReceipt{
			OperationPK: row.ReceiptOf.Int64, ReceiptID: row.ReceiptID.String,
			DownstreamRequestID: row.DownstreamRequestID.String, RequestSha256: row.ReceiptRequest.String,
			ResultJSON: row.ResultJSON.String, ProducerRevision: row.ReceiptProducer.String,
			ResourceRevision: row.ResourceRevision.String, ObservedAt: row.ObservedAt.String,
			EffectRevision: row.ReceiptEffect.String, ReconciledAt: row.ReconciledAt.Int64, RowDigest: row.ReceiptDigest,
		}
	}
	return r
}

// byRef reads an operation, its event and both receipts; nil when there is none,
// or when mine says that it is somebody else's: nothing of it is looked at then.
func (s *Store) byRef(ctx context.Context, statusRef string, mine func(*record) bool) (r *record, err error) {
	err = s.engine.Read(ctx, func(ctx context.Context, q dbgen.Querier) error {
		r = nil
		o, err := q.GetOperationByRef(ctx, statusRef)
		if ok, err := found(err); !ok {
			return err
		}
		if !mine(&record{operation: o}) {
			return nil
		}
		r = &record{operation: o}
		err = r.readRest(ctx, q)
		if err == nil && (r.local != nil || State(o.State) != succeeded) {
			return nil
		}
		if gone, goneErr := vanished(ctx, q, &o); gone || goneErr != nil {
			r, err = nil, goneErr
		}
		return err
	})
	return r, err
}

// byScope reads the operation that holds a call's scope, and nothing else of it;
// nil when there is none.
func (s *Store) byScope(ctx context.Context, b *toolresult.Bound) (r *record, err error) {
	err = s.engine.Peek(ctx, func(ctx context.Context, q dbgen.Querier) error {
		r = nil
		o, err := q.GetOperationByScope(ctx, scopeOf(b))
		if ok, err := found(err); !ok {
			return err
		}
		r = &record{operation: o}
		return nil
	})
	return r, err
}

// vanished reports whether an operation has been pruned since it was read: then
// what belongs to it is missing without a fault.
func vanished(ctx context.Context, q dbgen.Querier, o *dbgen.Operation) (bool, error) {
	_, err := q.GetOperation(ctx, o.OperationPK)
	there, err := found(err)
	return !there && err == nil, err
}

// claimed reads the operation of a claim again, with its event. One that has been
// pruned ended long ago, under another claim.
func claimed(ctx context.Context, q dbgen.Querier, c *record) (*record, error) {
	row, err := q.GetClaimed(ctx, c.operation.OperationPK)
	there, err := found(err)
	if err != nil {
		return nil, err
	}
	if there {
		return &record{operation: row.Operation, event: row.Outbox, cause: c.cause}, nil
	}
	o, err := q.GetOperation(ctx, c.operation.OperationPK)
	if there, err := found(err); err != nil {
		return nil, err
	} else if !there {
		return nil, ErrLeaseLost
	}
	r := &record{operation: o, cause: c.cause}
	return r, r.readEvent(ctx, q)
}

func anybodys(*record) bool { return true }

// readRest reads the event and the receipts of r's operation.
func (r *record) readRest(ctx context.Context, q dbgen.Querier) error {
	if err := r.readEvent(ctx, q); err != nil {
		return err
	}
	return r.readReceipts(ctx, q)
}

func (r *record) readReceipts(ctx context.Context, q dbgen.Querier) error {
	if err := r.readDownstream(ctx, q); err != nil {
		return err
	}
	return r.readLocal(ctx, q)
}

func (r *record) readEvent(ctx context.Context, q dbgen.Querier) error {
	e, err := q.GetEvent(ctx, r.operation.OperationPK)
	if ok, err := found(err); err != nil {
		return err
	} else if !ok {
		return &ContractError{r.statusRef(), "the outbox has no event for it"}
	}
	r.event = e
	return nil
}

func (r *record) readDownstream(ctx context.Context, q dbgen.Querier) error {
	o := &r.operation
	d, err := q.GetDownstreamReceipt(ctx, dbgen.GetDownstreamReceiptParams{
		TenantID: o.TenantID, SubjectID: o.SubjectID, ToolName: o.ToolName, IdempotencyKey: o.IdempotencyKey,
	})
	if ok, err := found(err); !ok {
		return err
	}
	r.downstream = &d
	return nil
}

func (r *record) readLocal(ctx context.Context, q dbgen.Querier) error {
	l, err := q.GetLocalReceipt(ctx, r.operation.OperationPK)
	if ok, err := found(err); !ok {
		return err
	}
	r.local = &l
	return nil
}
