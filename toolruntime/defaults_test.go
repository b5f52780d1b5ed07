package toolruntime

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/toolruntime/toolruntime-go/internal/ledger"
)

// TestDefaults: what is left out is what docs/workers.md, docs/effects.md and
// ARCHITECTURE.md say.
func TestDefaults(t *testing.T) {
	o, err := (*WorkOptions)(nil).complete()
	if err != nil {
		t.Fatal(err)
	}
	o.WorkerID = ""
	want := &WorkOptions{Concurrency: 8, Lease: 30 * time.Second, Poll: 2 * time.Second, Drain: 30 * time.Second,
		MaxAttempts: 20, MaxAge: 24 * time.Hour}
	if diff := cmp.Diff(want, o); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if defaultTimeout != 30*time.Second || ledger.MaxBatch != 64 || maxSkew != time.Second || stepped != 2*time.Second || lookThrough != time.Minute {
		t.Error("a number of the pages is another one")
	}
	for kind, want := range map[EffectKind]time.Duration{Once: 0, Queryable: Forever, Idempotent: 24 * time.Hour, Transactional: 0} {
		if got := (Tool[struct{}, struct{}]{Effect: kind}).memory(); got != want {
			t.Errorf("a key of %s is remembered for %v", kind, got)
		}
	}
}

// TestBackoff: waits double from a second to five minutes, less up to a half of it.
func TestBackoff(t *testing.T) {
	for n, most := range map[int64]time.Duration{0: time.Second, 1: time.Second, 2: 2 * time.Second, 9: 256 * time.Second, 10: 5 * time.Minute, 1 << 62: 5 * time.Minute} {
		least, longest := most, time.Duration(0)
		for range 1000 {
			d := backoff(n)
			least, longest = min(least, d), max(longest, d)
		}
		if least < most/2 || longest > most || longest-least < most/4 {
			t.Errorf("after %d attempts from %v to %v", n, least, longest)
		}
	}
}
