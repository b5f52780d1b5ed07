package toolruntime

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/ledger"
	"github.com/toolruntime/toolruntime-go/internal/limits"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A Decision is a person's answer to "did it happen?": a word.
type Decision = ledger.Decision

// The decisions.
const (
	// ConfirmedDone: the effect has happened. The receipt is the evidence, and the
	// answer from now on.
	ConfirmedDone Decision = ledger.ConfirmedDone
	// ConfirmedNotDone: nothing has happened, and nothing shall: it fails for good.
	ConfirmedNotDone Decision = ledger.ConfirmedNotDone
	// TryAgain: nothing has happened, and it shall be attempted again.
	TryAgain Decision = ledger.TryAgain
	// Abandoned: nobody will find out. It stays unknown for good.
	Abandoned Decision = ledger.Abandoned
)

// A Resolution ends the review of an operation. It is stored forever, beyond the
// pruning of its operation, and it is final: another one is refused.
type Resolution struct {
	StatusRef string
	Decision  ledger.Decision
	Actor     string // who has decided: an identifier
	Reason    string // why: at most 1,000 code points
	// Receipt is the evidence of ConfirmedDone, as the downstream shows it.
	Receipt *Receipt[json.RawMessage]
}

// ErrNotInReview says that an operation does not wait for a person: it never
// did, or it was resolved already, and otherwise.
var ErrNotInReview = ledger.ErrNotInReview

const maxReason = 1000

// Resolve records what a person has found out about an operation in review, and
// does it. Repeating a resolution changes nothing; a different one is refused
// with [ErrNotInReview].
func (rt *Runtime) Resolve(ctx context.Context, v Resolution) error {
	if err := v.check(rt); err != nil {
		return err
	}
	rec, err := rt.ledger.ByRef(ctx, v.StatusRef, ledger.Anybodys)
	if err != nil {
		return err
	}
	if rec == nil {
		return &toolresult.InputError{Field: "status_ref", Rule: "is not known"}
	}
	s := ledger.Settlement{Operation: rec, Decision: v.Decision, Actor: v.Actor, Reason: v.Reason, Now: rt.now()}
	if err := limits.Time("now", s.Now); err != nil {
		return err
	}
	if v.Decision == ledger.ConfirmedDone {
		e, err := rt.confirmed(rec, v.Receipt)
		if err != nil {
			return err
		}
		s.Evidence = &e
	}
	if v.Decision == ledger.TryAgain {
		if err := rt.mayTryAgain(ctx, rec); err != nil {
			return err
		}
	}
	if err := rt.ledger.Resolve(ctx, s); err != nil {
		return fmt.Errorf("toolruntime: resolve %s: %w", v.StatusRef, err)
	}
	rt.signal()
	return nil
}

func (v Resolution) check(rt *Runtime) error {
	switch v.Decision {
	case ledger.ConfirmedDone, ledger.ConfirmedNotDone, ledger.TryAgain, ledger.Abandoned:
	default:
		return &toolresult.InputError{Field: "decision", Rule: "must be confirmed_done, confirmed_not_done, try_again or abandoned"}
	}
	if err := limits.StatusRef(v.StatusRef); err != nil {
		return err
	}
	if (v.Receipt != nil) != (v.Decision == ledger.ConfirmedDone) {
		return &toolresult.InputError{Field: "receipt", Rule: "goes with confirmed_done, and with nothing else"}
	}
	return rt.checkActor(v.Actor, v.Reason)
}

func (rt *Runtime) checkActor(actor, reason string) error {
	if err := limits.Identifier("actor", actor); err != nil {
		return err
	}
	if err := limits.Text("reason", reason, maxReason); err != nil {
		return err
	}
	return rt.ledger.Holds("actor", actor, "reason", reason)
}

// confirmed turns a person's receipt into evidence, under the same contract as a
// handler's.
func (rt *Runtime) confirmed(rec *ledger.Operation, r *Receipt[json.RawMessage]) (toolresult.Evidence, error) {
	t := rt.known(rec.Contract())
	switch {
	case t == nil && rt.tools[rec.ToolName()] == nil:
		return toolresult.Evidence{}, &toolresult.InputError{Field: "tool", Rule: "is not registered here, so its output contract cannot be checked"}
	case t == nil:
		return toolresult.Evidence{}, &ledger.ContractError{StatusRef: rec.StatusRef(), Rule: "the tool is not registered here under its revisions"}
	}
	b, err := toolresult.Bind(rec.Owner(), rec.FirstCall(), t.spec.Contract())
	if err != nil {
		return toolresult.Evidence{}, &ledger.ContractError{StatusRef: rec.StatusRef(), Rule: "request/contract evidence: the stored arguments are not the tool's"}
	}
	o := observed{receiptID: r.ID, requestID: r.RequestID, resourceRevision: r.ResourceRevision, at: r.ObservedAt}
	text, err := canonjson.Canonicalize(r.Data)
	o.result, o.malformed = string(text), err
	e := rt.evidence(t, o, rec.StatusRef())
	a := attempt{rt: rt, tool: t, clearance: clearance{bound: b}}
	if violation := a.violation(o, e); violation != "" {
		return e, &toolresult.InputError{Field: "receipt", Rule: "breaks the output contract: " + violation}
	}
	return e, nil
}

// An Item is an operation that waits for a person. Times are UTC in whole seconds.
type Item struct {
	StatusRef string
	Tool      string
	Reason    toolresult.Code
	Attempts  int64
	CreatedAt time.Time // when it was accepted
	Since     time.Time // when it went into review
}

// Review lists operations in review, the oldest first, at most limit after the
// operation that after names ("" for the first).
func (rt *Runtime) Review(ctx context.Context, after string, limit int) ([]Item, error) {
	if err := limits.Page.Check("limit", limit); err != nil {
		return nil, err
	}
	rows, err := rt.ledger.Review(ctx, after, limit)
	if err != nil {
		return nil, err
	}
	items := make([]Item, len(rows))
	for i, v := range rows {
		items[i] = Item{v.StatusRef, v.Tool, v.Reason, v.Attempts, contract.At(v.CreatedAt), contract.At(v.Since)}
	}
	return items, nil
}

// RedriveOptions of [Runtime.Redrive]. Actor and Reason are required.
type RedriveOptions struct {
	Tool    string        // "" means every tool
	Limit   int           // 0 means 100
	Stagger time.Duration // between one and the next; 0 means 1 s
	Actor   string
	Reason  string
}

// Redrive lets operations be attempted again of which it is certain that nothing
// was done: those that went into review with TOOL_ERROR. One whose outcome is
// unknown must be resolved first. Key, operation and history stay. It returns the
// operations that were redriven.
func (rt *Runtime) Redrive(ctx context.Context, opts *RedriveOptions) ([]string, error) {
	o := given(opts)
	if err := rt.checkActor(o.Actor, o.Reason); err != nil {
		return nil, err
	}
	o.Limit, o.Stagger = or(o.Limit, 100), or(o.Stagger, time.Second)
	if err := cmp.Or(limits.Page.Check("limit", o.Limit), limits.Optional.Check("stagger", o.Stagger)); err != nil {
		return nil, err
	}
	refs := []string{}
	for after := ""; len(refs) < o.Limit; {
		page, err := rt.Review(ctx, after, ledger.AuditPage)
		if err != nil {
			return refs, err
		}
		for _, item := range page {
			after = item.StatusRef
			if item.Reason != toolresult.ToolError || o.Tool != "" && o.Tool != item.Tool || len(refs) == o.Limit {
				continue
			}
			rec, err := rt.ledger.ByRef(ctx, item.StatusRef, ledger.Anybodys)
			if err != nil {
				return refs, err
			}
			now := rt.now()
			if err := limits.Time("now", now); err != nil {
				return refs, err
			}
			err = rt.ledger.Resolve(ctx, ledger.Settlement{Operation: rec, Decision: ledger.TryAgain, Actor: o.Actor, Reason: o.Reason,
				Now: now, NotBefore: limits.After(now, limits.Times(int64(len(refs)), o.Stagger))})
			switch {
			case errors.Is(err, ledger.ErrNotInReview): // somebody else was faster
			case err != nil:
				return refs, fmt.Errorf("toolruntime: redrive %s: %w", item.StatusRef, err)
			default:
				refs = append(refs, item.StatusRef)
			}
		}
		if len(page) < ledger.AuditPage {
			break
		}
	}
	rt.signal()
	return refs, nil
}
