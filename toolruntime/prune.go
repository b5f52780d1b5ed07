package toolruntime

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/ledger"
	"github.com/toolruntime/toolruntime-go/internal/limits"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// PruneOptions of [Runtime.Prune]. OlderThan is required.
type PruneOptions struct {
	// OlderThan is how long ago an operation must have ended: at least
	// [MinPruneAge]. Choose it longer than any caller may repeat a call.
	OlderThan time.Duration
	// States are those to prune, of [StateSucceeded] and [StateFailed]; none means both. What
	// has not ended, or waits for a person, is never pruned.
	States []ledger.State
	// Tool prunes the operations of one tool only; "" means of every tool.
	Tool string
	// Limit is how many operations are pruned at most, and how many call
	// identities; 0 means all.
	Limit int
	// BatchSize is how many are removed in one transaction; 0 means 100. Writers
	// wait for a batch, and not for the whole.
	BatchSize int
	// DryRun counts and changes nothing.
	DryRun bool
	// Progress is called from time to time with how many rows were looked at and
	// how many there are.
	Progress func(done, total int64)
}

// MinPruneAge keeps what has just ended out of reach: a worker that stood still
// meanwhile, or a host whose clock is wrong, must not meet a ledger that forgets.
const MinPruneAge = limits.LeastPruneAge

// A PruneReport says what [Runtime.Prune] has done.
type PruneReport struct {
	Pruned  int64 `json:"pruned"` // in a dry run: that would be
	Batches int64 `json:"batches"`
	// CallIdentities are those that were removed; in a dry run those that would be
	// without the operations that would be pruned.
	CallIdentities int64 `json:"call_identities"`
	// Damaged are operations whose stored evidence does not hold together, by
	// status_ref, at most 100. They stay: see what the audit says of them.
	Damaged []string `json:"damaged"`
}

const maxDamaged = 100

// Prune removes operations that ended long ago, with all that belongs to them but
// for what people have decided, the oldest first. What remains of each beside that
// is a tombstone: its key is refused with
// IDEMPOTENCY_KEY_EXPIRED for good, whatever the request, and never causes
// another effect. The newest operation of the ledger always stays, and the
// one with the newest receipt.
//
// Then it removes the call identities that were bound as long ago and whose
// operation is not there: those of what was pruned, and of calls that were
// refused. Those of operations that stay, stay. A call identity does not know its
// tool, so this is left out where Tool or States restrict the pruning.
//
// Every batch is a transaction: an error leaves the batches before it pruned, as
// the report says, and calling Prune again goes on. It may run beside anything.
func (rt *Runtime) Prune(ctx context.Context, opts *PruneOptions) (PruneReport, error) {
	o, report := given(opts), PruneReport{Damaged: []string{}}
	everything := o.Tool == "" && len(o.States) == 0
	p := ledger.Pruning{Tool: o.Tool, States: o.States, Now: rt.now()}
	if err := o.complete(&p); err != nil {
		return report, err
	}
	progress, err := rt.pruneProgress(ctx, o.Progress)
	if err == nil {
		err = rt.prune(ctx, o, p, &report, progress)
	}
	if err == nil && everything {
		err = rt.sweep(ctx, o, p.Before, &report, progress)
	}
	if err != nil {
		return report, fmt.Errorf("toolruntime: prune: %w", err)
	}
	return report, nil
}

// pruneProgress returns what tells the host of so many more rows.
func (rt *Runtime) pruneProgress(ctx context.Context, tell func(done, total int64)) (func(rows int), error) {
	if tell == nil {
		return func(int) {}, nil
	}
	c, err := rt.Counts(ctx)
	done, total := int64(0), c.Operations+c.CallBindings
	return func(rows int) {
		done = min(done+int64(rows), total)
		tell(done, total)
	}, err
}

// complete fills in the options, and what of p follows from them.
func (o *PruneOptions) complete(p *ledger.Pruning) error {
	if err := limits.Time("now", p.Now); err != nil {
		return err
	}
	o.BatchSize = or(o.BatchSize, 100)
	if err := cmp.Or(limits.PruneAge.Check("older than", o.OlderThan), limits.Most.Check("limit", o.Limit),
		limits.PruneBatch.Check("batch size", o.BatchSize)); err != nil {
		return err
	}
	if len(p.States) == 0 {
		p.States = []ledger.State{ledger.Succeeded, ledger.Failed}
	}
	for _, s := range p.States {
		if s != ledger.Succeeded && s != ledger.Failed {
			return &toolresult.InputError{Field: "states", Rule: "may be succeeded and failed"}
		}
	}
	p.Before = p.Now - limits.Seconds(o.OlderThan)
	return nil
}

// prune goes through the ledger in the order in which operations were accepted.
func (rt *Runtime) prune(ctx context.Context, o PruneOptions, p ledger.Pruning, report *PruneReport, progress func(rows int)) error {
	var batch []int64
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		buried, damaged, err := rt.ledger.Bury(ctx, batch, p)
		if err != nil {
			return err
		}
		batch = batch[:0]
		report.Batches++
		report.Pruned += buried
		report.Damaged = append(report.Damaged, damaged[:min(len(damaged), maxDamaged-len(report.Damaged))]...)
		return nil
	}
	for after, more := int64(0), true; more; {
		var found []int64
		var rows int
		var err error
		if found, after, rows, more, err = rt.ledger.Prunable(ctx, after, p); err != nil {
			return err
		}
		progress(rows)
		for _, pk := range found {
			if o.Limit > 0 && report.Pruned+int64(len(batch)) == int64(o.Limit) {
				more = false
				break
			}
			if o.DryRun {
				report.Pruned++
				continue
			}
			if batch = append(batch, pk); len(batch) == o.BatchSize {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	return flush()
}

// sweep goes through the call identities in the order of their keys, page by
// page.
func (rt *Runtime) sweep(ctx context.Context, o PruneOptions, before int64, report *PruneReport, progress func(rows int)) error {
	var page ledger.StrayPage
	for more := true; more; more = page.Rows == ledger.PrunePage {
		var err error
		if page, err = rt.ledger.Strays(ctx, page, before); err != nil {
			return err
		}
		progress(page.Rows)
		calls := page.Calls
		if o.Limit > 0 {
			calls = calls[:min(len(calls), o.Limit-int(report.CallIdentities))]
		}
		if o.DryRun {
			report.CallIdentities += int64(len(calls))
			continue
		}
		for batch := range slices.Chunk(calls, o.BatchSize) {
			n, err := rt.ledger.Unbind(ctx, batch)
			if err != nil {
				return err
			}
			report.CallIdentities += n
		}
		if o.Limit > 0 && report.CallIdentities == int64(o.Limit) {
			return nil
		}
	}
	return nil
}
