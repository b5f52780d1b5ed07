package toolruntime_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
)

func (f *fixture) dispatchKey(key string) toolresult.Code {
	f.t.Helper()
	c := payCall()
	c.IdempotencyKey, c.CallID, c.ResponseID = key, "call-"+key, "response-"+key
	b, err := f.Bind(payer, c)
	if err != nil {
		f.t.Fatal(err)
	}
	pkg, err := f.Dispatch(context.Background(), payer, c, &toolruntime.DispatchOptions{
		Approvals: []toolresult.Approval{toolresult.NewApproval(b, "a", "reviewer", time.Unix(f.time()+60, 0))}})
	if err != nil {
		f.t.Fatal(err)
	}
	return pkg.Code()
}

func (f *fixture) wantAudit() {
	f.t.Helper()
	if r, err := f.Audit(context.Background(), nil); err != nil || !r.Passed {
		f.t.Errorf("audit: %+v, %v", r, err)
	}
}

// TestPruneFaults lets each batch fail, once without and once with being stored.
// The ledger stays whole, calling Prune again ends it, and no key runs again.
func TestPruneFaults(t *testing.T) {
	const operations, batch = 7, 2
	options := &toolruntime.PruneOptions{OlderThan: time.Hour, BatchSize: batch}
	for write := 1; write <= operations/batch; write++ {
		for _, persist := range []bool{false, true} {
			t.Run(fmt.Sprintf("batch %d/persisted=%v", write, persist), func(t *testing.T) {
				f := newFixture(t, toolruntime.Idempotent)
				for i := range operations {
					f.dispatchKey(fmt.Sprint("key-", i))
				}
				f.pass(3600)
				f.fault.arm(write, persist)
				r, err := f.Prune(context.Background(), options)
				if !errors.Is(err, toolruntime.ErrCommitUnknown) || r.Pruned != int64((write-1)*batch) {
					t.Errorf("%+v, %v", r, err)
				}
				f.wantAudit()
				stored := write - 1
				if persist {
					stored++
				}
				f.fault.arm(0, false)
				r, err = f.Prune(context.Background(), options)
				if err != nil || r.Pruned != int64(operations-1-stored*batch) || len(r.Damaged) != 0 {
					t.Errorf("again: %+v, %v", r, err)
				}
				for i := range operations - 1 {
					if code := f.dispatchKey(fmt.Sprint("key-", i)); code != toolresult.IdempotencyKeyExpired {
						t.Errorf("key-%d: %s", i, code)
					}
				}
				if f.bank.calls != operations {
					t.Errorf("%d effects of %d operations", f.bank.calls, operations)
				}
				f.wantAudit()
			})
		}
	}
}

// TestPruneCallFaults lets each batch of call identities fail, once without and
// once with being stored. Calling Prune again ends it, and those of the operation
// that stays are there.
func TestPruneCallFaults(t *testing.T) {
	const refused, batch = 5, 2
	options := &toolruntime.PruneOptions{OlderThan: time.Hour, BatchSize: batch}
	for write := 1; write <= 1+refused/batch; write++ {
		for _, persist := range []bool{false, true} {
			t.Run(fmt.Sprintf("batch %d/persisted=%v", write, persist), func(t *testing.T) {
				f := newFixture(t, toolruntime.Idempotent)
				f.must(f.dispatch(alive))
				for i := range refused {
					c := shopCall("pay", fmt.Sprint("refused-", i))
					if pkg, err := f.Dispatch(context.Background(), payer, c, nil); err != nil || pkg.Code() != toolresult.ApprovalRequired {
						t.Fatal(pkg, err)
					}
				}
				f.pass(3600)
				f.fault.arm(write, persist)
				r, err := f.Prune(context.Background(), options)
				if !errors.Is(err, toolruntime.ErrCommitUnknown) || r.CallIdentities != int64((write-1)*batch) {
					t.Errorf("%+v, %v", r, err)
				}
				f.wantAudit()
				f.fault.arm(0, false)
				if _, err := f.Prune(context.Background(), options); err != nil {
					t.Error(err)
				}
				if c, err := f.Counts(context.Background()); err != nil || c.CallBindings != 1 {
					t.Errorf("in the end: %+v, %v", c, err)
				}
				f.wantAudit()
			})
		}
	}
}

// TestPruneUnderStalledWorker: a worker that stood still until its operation was
// ended by another and pruned writes nothing.
func TestPruneUnderStalledWorker(t *testing.T) {
	f := newFixture(t, toolruntime.Idempotent)
	f.must(f.dispatch(drill.AfterIntentCommit))
	entered, leave, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	f.bank.hold = func() {
		f.bank.hold = nil
		close(entered)
		f.bank.mu.Unlock()
		<-leave
		f.bank.mu.Lock()
	}
	go func() { _, err := f.process(); done <- err }()
	<-entered
	f.pass(defaultLease)
	if outcome, err := f.process(); err != nil || outcome != toolruntime.Succeeded {
		t.Fatal(outcome, err)
	}
	f.dispatchKey("newest")
	f.pass(3600)
	if r, err := f.Prune(context.Background(), &toolruntime.PruneOptions{OlderThan: time.Hour}); err != nil || r.Pruned != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	close(leave)
	if err := <-done; !errors.Is(err, toolruntime.ErrLeaseLost) {
		t.Errorf("the stalled worker: %v, want lease lost", err)
	}
	f.wantAudit()
}
