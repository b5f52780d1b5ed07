package toolruntime

import (
	"context"
	"fmt"
	"time"

	"github.com/toolruntime/toolruntime-go/toolresult"
)

// PruneOptions of [Runtime.Prune].
type PruneOptions struct {
	// OlderThan is how long ago an operation must have ended: at least
	// [MinPruneAge]. Choose it longer than any caller may repeat a call.
	OlderThan time.Duration
	// States are those to prune, "succeeded" or "failed"; none means both. What
	// has not ended, or waits for a person, is never pruned.
	States []string
	// Tool prunes the operations of one tool only; "" means of every tool.
	Tool string
	// Limit is how many operations are pruned at most; 0 means all.
	Limit int
	// BatchSize is how many are pruned in one transaction; 0 means 100. Writers
	// wait for a batch, and not for the whole.
	BatchSize int
	// DryRun counts and changes nothing.
	DryRun bool
}

// MinPruneAge keeps what has just ended out of reach: a worker that stood still
// meanwhile, or a host whose clock is wrong, must not meet a ledger that forgets.
const MinPruneAge = time.Hour

// A PruneReport says what [Runtime.Prune] has done.
type PruneReport struct {
	Pruned  int64 `json:"pruned"` // in a dry run: that would be
	Batches int64 `json:"batches"`
	// Damaged are operations whose stored evidence does not hold together, by
	// status_ref, at most 100. They stay: see what the audit says of them.
	Damaged []string `json:"damaged"`
}

const maxDamaged = 100

// Prune removes operations that ended long ago, with all that belongs to them,
// the oldest first. What remains of each is a tombstone: its key is refused with
// IDEMPOTENCY_KEY_EXPIRED for good, whatever the request, and never causes
// another effect. The newest operation of the ledger always stays.
//
// Every batch is a transaction: an error leaves the batches before it pruned, as
// the report says, and calling Prune again goes on. It may run beside anything.
func (rt *Runtime) Prune(ctx context.Context, o PruneOptions) (PruneReport, error) {
	report := PruneReport{Damaged: []string{}}
	p := pruning{tool: o.Tool, states: o.States, now: rt.now()}
	if err := p.check(&o); err != nil {
		return report, err
	}
	if err := rt.prune(ctx, o, p, &report); err != nil {
		return report, fmt.Errorf("toolruntime: prune: %w", err)
	}
	return report, nil
}

// check completes the options and p.
func (p *pruning) check(o *PruneOptions) error {
	if err := toolresult.CheckTime("now", p.now); err != nil {
		return err
	}
	if o.OlderThan < MinPruneAge {
		return &toolresult.InputError{Field: "older than", Rule: fmt.Sprintf("must be at least %v", MinPruneAge)}
	}
	if o.Limit < 0 || o.BatchSize < 0 || o.BatchSize > maxPruneBatch {
		return &toolresult.InputError{Field: "limit and batch size", Rule: fmt.Sprintf("must not be negative, and a batch has at most %d operations", maxPruneBatch)}
	}
	o.BatchSize = or(o.BatchSize, 100)
	if len(p.states) == 0 {
		p.states = []string{string(succeeded), string(failed)}
	}
	for _, s := range p.states {
		if s != string(succeeded) && s != string(failed) {
			return &toolresult.InputError{Field: "states", Rule: "may be succeeded and failed"}
		}
	}
	p.before = p.now - int64((o.OlderThan+time.Second-1)/time.Second)
	return nil
}

const maxPruneBatch = 1000

// prune goes through the ledger in the order in which operations were accepted.
func (rt *Runtime) prune(ctx context.Context, o PruneOptions, p pruning, report *PruneReport) error {
	var batch []int64
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		buried, damaged, err := rt.store.bury(ctx, batch, p)
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
		var err error
		if found, after, more, err = rt.store.prunable(ctx, after, p); err != nil {
			return err
		}
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
