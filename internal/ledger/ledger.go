package ledger

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A Ledger is the operations of a database and all that belongs to them. Each step of a
// call is one transaction; an audit, a pruning and a copy take many. A step that returns
// nil has been committed and is durable; one that returns an error matching
// [engine.ErrCommitUnknown] may be repeated with equal arguments and then gives the answer
// that it would have given. It is safe for concurrent use.
type Ledger struct {
	engine engine.Engine
}

// New is the ledger that stands behind an engine, which it closes.
func New(e engine.Engine) *Ledger { return &Ledger{engine: e} }

// Engine is what it stands on.
func (s *Ledger) Engine() engine.Engine { return s.engine }

// Close ends it after the transactions that are running.
func (s *Ledger) Close() error { return s.engine.Close() }

// Now is the ledger's clock.
func (s *Ledger) Now() time.Time { return s.engine.Now() }

// Skew is by how much the host's clock was ahead of it at the last look.
func (s *Ledger) Skew() time.Duration { return s.engine.Skew() }

// LogBytes is the size of the write-ahead log, where it is ours to watch.
func (s *Ledger) LogBytes() int64 { return s.engine.LogBytes() }

// Counts counts the rows of the ledger. It reads every table's index: it is for
// tests and audits, not for a metric.
func (s *Ledger) Counts(ctx context.Context) (c Counts, err error) {
	err = s.engine.Read(ctx, func(ctx context.Context, q engine.Querier) error {
		row, err := q.CountRows(ctx)
		c = Counts(row)
		return err
	})
	return c, err
}

// Counts are the numbers of rows in the five tables of the contract.
type Counts struct{ CallBindings, Operations, Outbox, DownstreamReceipts, LocalReceipts int64 }

// An Operation is the runtime's view of one intent: with its event and its receipts, as
// far as they were read.
type Operation struct {
	operation  dbgen.Operation
	event      dbgen.Outbox
	local      *dbgen.LocalReceipt
	downstream *dbgen.DownstreamReceipt
	// cause is why the attempt that is running ends; it is stored with how.
	cause Cause
}

func (r *Operation) StatusRef() string      { return r.operation.StatusRef }
func (r *Operation) Fence() int64           { return r.event.AttemptCount }
func (r *Operation) State() State           { return State(r.operation.State) }
func (r *Operation) Arguments() string      { return r.operation.ArgumentsJSON }
func (r *Operation) RequestSHA256() string  { return r.operation.RequestSha256 }
func (r *Operation) ToolName() string       { return r.operation.ToolName }
func (r *Operation) IdempotencyKey() string { return r.operation.IdempotencyKey }
func (r *Operation) ApproverID() string     { return r.operation.ApproverID }
func (r *Operation) CreatedAt() int64       { return r.operation.CreatedAt }
func (r *Operation) LeaseOwner() string     { return r.event.LeaseOwner.String }
func (r *Operation) LeaseUntil() int64      { return r.event.LeaseUntil.Int64 }

// PK names the operation in the ledger that it was read from, and nowhere else.
func (r *Operation) PK() int64 { return r.operation.OperationPK }

// Observed reports whether a receipt of the downstream was read with it.
func (r *Operation) Observed() bool { return r.downstream != nil }

// Because says why the attempt that is running is about to end.
func (r *Operation) Because(why Cause) { r.cause = why }

// Open reports whether it goes on without a person.
func (r *Operation) Open() bool { s := r.State(); return s == Pending || s == Processing }

// Conflicts reports whether an operation that holds b's scope is another intent
// than b's, or was accepted under another contract or for another provider.
func (r *Operation) Conflicts(b *toolresult.Bound) bool {
	return r.RequestSHA256() != b.RequestSHA256() || r.Contract() != b.Contract() ||
		r.FirstCall().Profile() != b.Call().Profile()
}

// Reason is the code with which an operation failed or went into review.
func (r *Operation) Reason() toolresult.Code { return toolresult.Code(r.operation.Reason) }

// Ended is when and how an operation that has ended did.
func (r *Operation) Ended() toolresult.Ending {
	return toolresult.Ending{At: contract.At(r.operation.CompletedAt.Int64), Attempt: r.Fence()}
}

// Owner is the principal whose operation it is, without roles.
func (r *Operation) Owner() toolresult.Principal {
	return toolresult.Principal{TenantID: r.operation.TenantID, SubjectID: r.operation.SubjectID}
}

// FirstCall is the call that created the operation.
func (r *Operation) FirstCall() toolresult.Call {
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

// Kind is the effect kind with which the operation was accepted, or "" where that
// was not kept yet.
func (r *Operation) Kind() string { return r.operation.EffectKind }

// Contract is the tool contract under which the operation was accepted.
func (r *Operation) Contract() toolresult.Contract { return contractOf(&r.operation) }

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

// A Known is what the ledger knows about a call before anything is written.
type Known struct {
	Bound   bool // the call identity is bound
	Same    bool // … to this very call
	Current *Operation
	Pruned  bool // the scope has a tombstone
}

// Lookup reads whether a call identity is bound, and the operation that holds
// the call's scope with the receipt that answers it: of its event, the
// operation has the number of attempts alone.
func (s *Ledger) Lookup(ctx context.Context, b *toolresult.Bound, purpose toolresult.Purpose) (l Known, err error) {
	key := lookupOf(b)
	if err := s.holdsScope(&key); err != nil {
		return l, err
	}
	var fingerprint string
	err = s.engine.Peek(ctx, func(ctx context.Context, q engine.Querier) (err error) {
		l, fingerprint, err = look(ctx, q, key)
		return err
	})
	l.Bound = fingerprint != ""
	l.Same = l.Bound && fingerprint == b.Fingerprint(purpose)
	return l, err
}

// look reads what lookup returns, but for what a call identity is bound to: that is
// the fingerprint, or "".
func look(ctx context.Context, q dbgen.Querier, key dbgen.LookupParams) (l Known, fingerprint string, err error) {
	row, err := q.Lookup(ctx, key)
	taken, err := found(err)
	if err != nil {
		return l, "", err
	}
	if taken {
		l.Current = lookedUp(&row)
		return l, row.Fingerprint, nil
	}
	// In this order: what is pruned between the two reads has its tombstone.
	free, err := q.LookupFree(ctx, dbgen.LookupFreeParams(key))
	l.Pruned = free.Tombstones > 0
	return l, free.Fingerprint, err
}

func lookedUp(row *dbgen.LookupRow) *Operation {
	r := &Operation{operation: row.Operation, event: dbgen.Outbox{AttemptCount: row.Attempts}}
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

// ByRef reads an operation, its event and both receipts; nil when there is none,
// or when mine says that it is somebody else's: nothing of it is looked at then.
func (s *Ledger) ByRef(ctx context.Context, statusRef string, mine func(*Operation) bool) (r *Operation, err error) {
	err = s.engine.Read(ctx, func(ctx context.Context, q engine.Querier) error {
		r = nil
		o, err := q.GetOperationByRef(ctx, statusRef)
		if ok, err := found(err); !ok {
			return err
		}
		if !mine(&Operation{operation: o}) {
			return nil
		}
		r = &Operation{operation: o}
		err = r.readRest(ctx, q)
		if err == nil && (r.local != nil || State(o.State) != Succeeded) {
			return nil
		}
		if gone, goneErr := vanished(ctx, q, &o); gone || goneErr != nil {
			r, err = nil, goneErr
		}
		return err
	})
	return r, err
}

// ByScope reads the operation that holds a call's scope, and nothing else of it;
// nil when there is none.
func (s *Ledger) ByScope(ctx context.Context, b *toolresult.Bound) (r *Operation, err error) {
	err = s.engine.Peek(ctx, func(ctx context.Context, q engine.Querier) error {
		r = nil
		o, err := q.GetOperationByScope(ctx, scopeOf(b))
		if ok, err := found(err); !ok {
			return err
		}
		r = &Operation{operation: o}
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
func claimed(ctx context.Context, q engine.Querier, c *Operation) (*Operation, error) {
	rows, err := q.Claimed(ctx, []int64{c.operation.OperationPK})
	if err != nil {
		return nil, err
	}
	if len(rows) == 1 {
		return &Operation{operation: rows[0].Operation, event: rows[0].Outbox, cause: c.cause}, nil
	}
	o, err := q.GetOperation(ctx, c.operation.OperationPK)
	if there, err := found(err); err != nil {
		return nil, err
	} else if !there {
		return nil, ErrLeaseLost
	}
	r := &Operation{operation: o, cause: c.cause}
	return r, r.readEvent(ctx, q)
}

// Anybodys is for who looks at everybody's operations.
func Anybodys(*Operation) bool { return true }

// readRest reads the event and the receipts of r's operation.
func (r *Operation) readRest(ctx context.Context, q dbgen.Querier) error {
	if err := r.readEvent(ctx, q); err != nil {
		return err
	}
	return r.readReceipts(ctx, q)
}

func (r *Operation) readReceipts(ctx context.Context, q dbgen.Querier) error {
	if err := r.readDownstream(ctx, q); err != nil {
		return err
	}
	return r.readLocal(ctx, q)
}

func (r *Operation) readEvent(ctx context.Context, q dbgen.Querier) error {
	e, err := q.GetEvent(ctx, r.operation.OperationPK)
	if ok, err := found(err); err != nil {
		return err
	} else if !ok {
		return &ContractError{r.StatusRef(), "the outbox has no event for it"}
	}
	r.event = e
	return nil
}

func (r *Operation) readDownstream(ctx context.Context, q dbgen.Querier) error {
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

func (r *Operation) readLocal(ctx context.Context, q dbgen.Querier) error {
	l, err := q.GetLocalReceipt(ctx, r.operation.OperationPK)
	if ok, err := found(err); !ok {
		return err
	}
	r.local = &l
	return nil
}
