package httpeffect

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
)

// An Answer is what the downstream has said.
type Answer struct {
	Status int
	Header http.Header
	// Body is one JSON text without repeated keys, invalid UTF-8 or lone
	// surrogates. It is nil if there is none: an empty body, or one that was cut,
	// over the limit or not strict.
	Body json.RawMessage

	broken     error // why there is a body and yet no Body
	retryAfter time.Duration
}

var (
	errNoBody = errors.New("there is no JSON body")
	errShape  = errors.New("the body does not fit the Go type")
)

// Decode reads the body into v. Names are matched exactly, members that v does
// not have are dropped. Its errors quote nothing.
//
// Use it and not encoding/json, which takes "Amount" for "amount".
func (a Answer) Decode(v any) error {
	if a.Body == nil {
		return errNoBody
	}
	if jsonv2.Unmarshal(a.Body, v) != nil {
		return errShape
	}
	return nil
}

// A Meaning is what an answer proves. The zero value is that it proves nothing.
type Meaning int

// The meanings.
const (
	// Unknown: the effect may have happened or not.
	Unknown Meaning = iota
	// Done: the effect has happened, and the answer is its receipt.
	Done
	// InFlight: the downstream is at work on this key. It proves neither.
	InFlight
	// NotDone: nothing was done, and a later attempt may succeed.
	NotDone
	// Refused: nothing was done, and trying again would not help.
	Refused
	// Conflict: nothing was done, because the key was used with another request.
	Conflict
)

func (m Meaning) String() string {
	switch m {
	case Unknown:
		return "unknown"
	case Done:
		return "done"
	case InFlight:
		return "in flight"
	case NotDone:
		return "nothing done"
	case Refused:
		return "refused"
	case Conflict:
		return "conflict with an earlier request of the same key"
	}
	return "Meaning(" + strconv.Itoa(int(m)) + ")"
}

// Classify says what an answer means by the semantics of HTTP and the
// Idempotency-Key draft of the IETF. It claims that nothing was done only for
// statuses that cannot mean anything else, and takes 409 for "in flight". An API
// that uses 409 for a mismatch, or has more to say in the body, needs a function
// of its own, which can end in this one:
//
//	func(a httpeffect.Answer) httpeffect.Meaning {
//		var problem struct{ Type string `json:"type"` }
//		if a.Status == http.StatusConflict && a.Decode(&problem) == nil && problem.Type == "https://api.example/key-mismatch" {
//			return httpeffect.Conflict
//		}
//		return httpeffect.Classify(a)
//	}
func Classify(a Answer) Meaning {
	switch a.Status {
	case http.StatusOK, http.StatusCreated, http.StatusNonAuthoritativeInfo, http.StatusNoContent:
		return Done
	case http.StatusAccepted, http.StatusConflict:
		return InFlight
	case http.StatusUnprocessableEntity:
		return Conflict
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound,
		http.StatusMethodNotAllowed, http.StatusGone, http.StatusLengthRequired, http.StatusRequestEntityTooLarge,
		http.StatusRequestURITooLong, http.StatusUnsupportedMediaType, http.StatusRequestHeaderFieldsTooLarge:
		return Refused
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return NotDone
	case http.StatusServiceUnavailable:
		// Who asks to come back later has turned the request away. Without that it
		// may come from a proxy whose upstream has died at work.
		if _, asked := readRetryAfter(a.Header, time.Time{}); asked {
			return NotDone
		}
	}
	return Unknown
}

// readRetryAfter returns how long to wait from now, at most MaxRetryAfter, and
// whether the downstream has said so.
func readRetryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	values := h.Values("Retry-After")
	if len(values) != 1 {
		return 0, false
	}
	text := values[0]
	if isDigits(text) {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil || seconds > int64(MaxRetryAfter/time.Second) {
			return MaxRetryAfter, true // ParseInt fails only by range here
		}
		return time.Duration(seconds) * time.Second, true
	}
	date, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	return min(max(date.Sub(now), 0), MaxRetryAfter), true
}

func isDigits(s string) bool {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != ""
}
