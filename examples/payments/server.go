package payments

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// The types of the problems that the server answers, as in RFC 9457.
const (
	ProblemBadRequest  = "/problems/bad-request"
	ProblemNoSuchKey   = "/problems/no-such-key"
	ProblemInFlight    = "/problems/in-flight"
	ProblemMismatch    = "/problems/key-mismatch"
	ProblemUnavailable = "/problems/unavailable"
	ProblemTooMany     = "/problems/too-many-requests"
	ProblemInternal    = "/problems/internal"
)

// A Server is a payment server, an [http.Handler]. It is safe for concurrent
// use, and may be killed at any instant: a payment that it has answered is in
// its file, and one that it has not answered is there once or not at all.
type Server struct {
	ledger   *ledger
	switches board
	mux      *http.ServeMux

	mu       sync.Mutex
	working  map[string]bool // keys that are being worked on
	stopped  bool
	stopping chan struct{} // closed when stopped
	requests sync.WaitGroup
}

// Open opens the server with its file, which it creates.
func Open(path string) (*Server, error) {
	l, err := openLedger(path)
	if err != nil {
		return nil, fmt.Errorf("payments: open %s: %w", path, err)
	}
	s := &Server{ledger: l, mux: http.NewServeMux(), working: map[string]bool{}, stopping: make(chan struct{})}
	s.mux.HandleFunc("POST /payments", s.postPayment)
	s.mux.HandleFunc("GET /payments/{key}", s.getPayment)
	s.mux.HandleFunc("GET /stats", s.getStats)
	s.mux.HandleFunc("GET /switches", s.getSwitches)
	s.mux.HandleFunc("POST /switches", s.postSwitches)
	return s, nil
}

// Set changes all switches.
func (s *Server) Set(sw Switches) error { return s.switches.use(sw) }

// Effects returns how many effects each key has had, from the file.
func (s *Server) Effects(ctx context.Context) (map[string]int, error) { return s.ledger.effects(ctx) }

// Stop ends all delays and begins nothing new. A payment that waits before its
// effect is turned away, others end as they would.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.stopped = true
		close(s.stopping)
	}
}

// Close stops the server, waits for the requests that it is working on and
// closes the file.
func (s *Server) Close() error {
	s.Stop()
	s.requests.Wait()
	return s.ledger.close()
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		turnAway(w)
		return
	}
	s.requests.Add(1)
	s.mu.Unlock()
	defer s.requests.Done()
	s.mux.ServeHTTP(w, r)
}

func turnAway(w http.ResponseWriter) {
	retryAfter(w, new(int64(1)))
	problem(w, http.StatusServiceUnavailable, ProblemUnavailable)
}

// begin marks a key as being worked on; false means that it is already.
func (s *Server) begin(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.working[key] {
		return false
	}
	s.working[key] = true
	return true
}

func (s *Server) end(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.working, key)
}

func (s *Server) isWorking(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.working[key]
}

// wait waits, and reports false if the server stops before.
func (s *Server) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.stopping:
		return false
	}
}

// Stats are the answer of GET /stats.
type Stats struct {
	Total   int            `json:"total"`
	Effects map[string]int `json:"effects"`
}

func (s *Server) getStats(w http.ResponseWriter, r *http.Request) {
	effects, err := s.ledger.effects(r.Context())
	if err != nil {
		problem(w, http.StatusInternalServerError, ProblemInternal)
		return
	}
	stats := Stats{Effects: effects}
	for _, n := range effects {
		stats.Total += n
	}
	answer(w, http.StatusOK, encode(stats))
}

func (s *Server) getSwitches(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, encode(s.switches.current()))
}

func (s *Server) postSwitches(w http.ResponseWriter, r *http.Request) {
	var sw Switches
	if !read(r, &sw) || s.Set(sw) != nil {
		problem(w, http.StatusBadRequest, ProblemBadRequest)
		return
	}
	s.getSwitches(w, r)
}

// read reads a body strictly: no repeated and no unknown members.
func read(r *http.Request, v any) bool {
	const limit = 16 << 10
	body, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	return err == nil && len(body) <= limit && json.Unmarshal(body, v, json.RejectUnknownMembers(true)) == nil
}

func encode(v any) []byte {
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic(err) // only our own types come here
	}
	return text
}

func answer(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body)
}

func problem(w http.ResponseWriter, status int, kind string) {
	body := encode(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
	}{kind, http.StatusText(status), status})
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body)
}

func retryAfter(w http.ResponseWriter, seconds *int64) {
	if seconds != nil {
		w.Header().Set("Retry-After", strconv.FormatInt(*seconds, 10))
	}
}

// drainLimit is how long requests may take to end after a signal.
const drainLimit = 10 * time.Second

// ListenAndServe runs a server on its file until ctx ends, and then lets it
// finish what it is at. It writes "listening on http://ADDRESS" when it is ready.
func ListenAndServe(ctx context.Context, path, address string, sw Switches, out io.Writer) (err error) {
	s, err := Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Set(sw); err != nil {
		return err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	h := &http.Server{Handler: s, ReadHeaderTimeout: drainLimit}
	served := make(chan error, 1)
	go func() { served <- h.Serve(l) }()
	fmt.Fprintf(out, "listening on http://%s\n", l.Addr())
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	s.Stop()
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainLimit)
	defer cancel()
	if err = h.Shutdown(drain); err != nil {
		err = errors.Join(err, h.Close())
	}
	<-served
	return err
}
