package payments

import (
	"context"
	"errors"
	"net"
	"net/http"
	"regexp"
	"strings"
)

// A Receipt is the answer to a payment.
type Receipt struct {
	PaymentID string `json:"payment_id"`
	RequestID string `json:"request_id"`
	Payment
}

var (
	accountForm  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	currencyForm = regexp.MustCompile(`^[A-Z]{3}$`)
	keyForm      = regexp.MustCompile(`^[!-~]{1,255}$`)
)

// maxCents is what one payment may amount to.
const maxCents = 100_000_000

func (p Payment) valid() bool {
	return accountForm.MatchString(p.Account) && currencyForm.MatchString(p.Currency) && p.AmountCents > 0 && p.AmountCents <= maxCents
}

func (s *Server) postPayment(w http.ResponseWriter, r *http.Request) {
	keys := r.Header.Values("Idempotency-Key")
	var p Payment
	if len(keys) != 1 || !keyForm.MatchString(keys[0]) || !read(r, &p) || !p.valid() {
		problem(w, http.StatusBadRequest, ProblemBadRequest)
		return
	}
	if s.before(w) {
		return
	}
	// A client that has gone does not stop a payment.
	e, replayed, err := s.pay(context.WithoutCancel(r.Context()), keys[0], p)
	switch {
	case err == nil:
		s.after(w, e, replayed)
	case errors.Is(err, errStopped):
		turnAway(w)
	case errors.Is(err, errWorking):
		retryAfter(w, new(int64(1)))
		problem(w, http.StatusConflict, ProblemInFlight)
	case errors.Is(err, errMismatch):
		problem(w, http.StatusUnprocessableEntity, ProblemMismatch)
	default:
		problem(w, http.StatusInternalServerError, ProblemInternal)
	}
}

var (
	errWorking = errors.New("payments: the key is in flight")
	errStopped = errors.New("payments: the server stops")
)

func (s *Server) pay(ctx context.Context, key string, p Payment) (entry, bool, error) {
	dedup := s.switches.dedup()
	if dedup {
		if !s.begin(key) {
			return entry{}, false, errWorking
		}
		defer s.end(key)
	}
	if sw, ok := s.switches.occurs(Latency); ok && !s.wait(sw.delay()) {
		return entry{}, false, errStopped
	}
	return s.ledger.pay(ctx, key, p, dedup)
}

// before has the faults that keep the effect from happening, and reports whether
// one has answered.
func (s *Server) before(w http.ResponseWriter) bool {
	for _, f := range []struct {
		fault   Fault
		status  int
		problem string
	}{
		{TooMany, http.StatusTooManyRequests, ProblemTooMany},
		{Unavailable, http.StatusServiceUnavailable, ProblemUnavailable},
		{InFlight, http.StatusConflict, ProblemInFlight},
		{FailBefore, http.StatusInternalServerError, ProblemInternal},
	} {
		if sw, ok := s.switches.occurs(f.fault); ok {
			retryAfter(w, sw.RetryAfter)
			problem(w, f.status, f.problem)
			return true
		}
	}
	if _, ok := s.switches.occurs(DropBefore); ok {
		drop(w)
		return true
	}
	return false
}

// after answers a payment that has happened, in a bad way if a switch says so.
func (s *Server) after(w http.ResponseWriter, e entry, replayed bool) {
	if _, ok := s.switches.occurs(FailAfter); ok {
		problem(w, http.StatusInternalServerError, ProblemInternal)
		return
	}
	if _, ok := s.switches.occurs(DropAfter); ok {
		drop(w)
		return
	}
	receipt := Receipt{e.paymentID(), e.requestID(), e.Payment}
	if _, ok := s.switches.occurs(WrongAmount); ok {
		receipt.AmountCents++
	}
	body := s.spoil(encode(receipt))
	status := http.StatusCreated
	if replayed {
		status = http.StatusOK
		w.Header().Set("Idempotent-Replayed", "true")
	}
	if _, ok := s.switches.occurs(Truncate); ok {
		w.Header().Set("Content-Length", "4096") // more than comes
		w.WriteHeader(status)
		w.Write(body)
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	if sw, ok := s.switches.occurs(SlowBody); ok {
		w.WriteHeader(status)
		w.Write(body[:len(body)/2])
		http.NewResponseController(w).Flush()
		s.wait(sw.delay())
		w.Write(body[len(body)/2:])
		return
	}
	answer(w, status, body)
}

func (s *Server) spoil(body []byte) []byte {
	if _, ok := s.switches.occurs(Garbage); ok {
		return []byte("<html><h1>It works!</h1></html>")
	}
	if _, ok := s.switches.occurs(DuplicateKeys); ok {
		return []byte(strings.Replace(string(body), "{", `{"amount_cents":1,`, 1))
	}
	if _, ok := s.switches.occurs(Oversize); ok {
		return []byte(strings.Replace(string(body), "{", `{"padding":"`+strings.Repeat("x", 1<<20)+`",`, 1))
	}
	return body
}

// drop resets the connection, as a crash or a firewall does.
func drop(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2 has a reset of its own
	}
	defer conn.Close()
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
}

func (s *Server) getPayment(w http.ResponseWriter, r *http.Request) {
	if _, ok := s.switches.occurs(LookupFails); ok {
		problem(w, http.StatusInternalServerError, ProblemInternal)
		return
	}
	key := r.PathValue("key")
	// Looked at before the ledger: a payment that ends in between is found there.
	working := s.isWorking(key)
	e, found, err := s.ledger.find(r.Context(), key)
	switch {
	case err != nil:
		problem(w, http.StatusInternalServerError, ProblemInternal)
	case found:
		answer(w, http.StatusOK, encode(Receipt{e.paymentID(), e.requestID(), e.Payment}))
	case working:
		retryAfter(w, new(int64(1)))
		problem(w, http.StatusConflict, ProblemInFlight)
	default:
		problem(w, http.StatusNotFound, ProblemNoSuchKey)
	}
}
