package toolruntime

import (
	"sync"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/ledger"
)

// stepped is by how much the ledger's clock has to differ from what has passed by
// the monotonic one, which nobody can set, to count as set: more than a clock is
// adjusted by while it runs, and more than an answer of a server takes.
const stepped = 2 * time.Second

// A sight is what a worker knows of the time besides what the ledger's clock says.
// Whether a lease has run out must not be believed at once where that clock was set
// forward, or is not the one by which the lease was given: somebody would have the
// effect a second time beside who has it.
type sight struct {
	mu     sync.Mutex
	ledger time.Time // what the ledger's clock has shown last
	at     time.Time // and when, by the monotonic clock
	// Up to doubt leases were given before the clock was set forward: they run out by
	// steady, which is what the clock would have shown at since.
	doubt, steady, since time.Time
}

// look holds the ledger's clock against the monotonic one, and returns by how much
// it was set since the last look, if it was.
func (s *sight) look(ledger time.Time) (step time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.at.IsZero() {
		expected := s.ledger.Add(now.Sub(s.at))
		step = ledger.Sub(expected)
		switch {
		case step >= stepped:
			if s.doubt.IsZero() || !s.would(now).Before(s.doubt) {
				s.steady, s.since = expected, now
			}
			s.doubt = ledger
		case step > -stepped:
			step = 0
		}
	}
	s.ledger, s.at = ledger, now
	return step
}

// would is what the clock would show if it had not been set.
func (s *sight) would(now time.Time) time.Time { return s.steady.Add(now.Sub(s.since)) }

// alive reports whether an attempt may still run although its lease has run out by
// the ledger's clock.
func (s *sight) alive(r *ledger.Operation) bool {
	if inHand.has(r) {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	end := time.Unix(r.LeaseUntil(), 0)
	return !s.doubt.IsZero() && !end.After(s.doubt) && s.would(time.Now()).Before(end)
}

// inHand are the attempts of this process: by which clock ever, their leases have
// not run out while by the monotonic one they hold. A process may have a ledger open
// more than once, and only this knows what all of its workers and callers run.
var inHand hand

type hand struct {
	mu    sync.Mutex
	until map[heldKey]time.Time
}

// heldKey is an attempt, in whatever ledger.
type heldKey struct {
	statusRef, worker string
	attempt, created  int64
}

func keyOf(r *ledger.Operation) heldKey {
	return heldKey{r.StatusRef(), r.LeaseOwner(), r.Fence(), r.CreatedAt()}
}

// take keeps an attempt for as long as its lease holds.
func (h *hand) take(k heldKey, left time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.until == nil {
		h.until = map[heldKey]time.Time{}
	}
	h.until[k] = time.Now().Add(left)
}

// extend keeps an attempt that is there for as long as its new lease holds.
func (h *hand) extend(k heldKey, left time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if until := time.Now().Add(left); h.until[k].Before(until) && !h.until[k].IsZero() {
		h.until[k] = until
	}
}

func (h *hand) leave(k heldKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.until, k)
}

func (h *hand) has(r *ledger.Operation) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Now().Before(h.until[keyOf(r)])
}
