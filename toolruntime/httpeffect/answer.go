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
	// Conflict: the key was used with another request, which may have had an
	// effect. Neither repeating nor asking tells: a person has to find out.
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

// Classify says what an answer means whoever may have given it: the API, or
// something in front of it. So it takes no status for proof that nothing was done.
// 409 it takes for "in flight" and 422 for a conflict, as the Idempotency-Key draft
// of the IETF has them; an API that answers 422 to what it does not like has to be
// named.
func Classify(a Answer) Meaning {
	switch a.Status {
	case http.StatusOK, http.StatusCreated, http.StatusNonAuthoritativeInfo, http.StatusNoContent:
		return Done
	case http.StatusAccepted, http.StatusConflict:
		return InFlight
	case http.StatusUnprocessableEntity:
		return Conflict
	}
	return Unknown
}

// Statuses name what the statuses of one API mean. Name one as [NotDone] or
// [Refused] only if nothing between you and the API answers with it too: gateways
// like to say 401, 403, 408, 413, 429, 502, 503 and 504. Where something may, look
// at what only the API says, with a function of your own that can end in [Classify].
type Statuses map[int]Meaning

// Classify is for [Client].Classify: what is named, and otherwise [Classify].
func (s Statuses) Classify(a Answer) Meaning {
	if m, named := s[a.Status]; named {
		return m
	}
	return Classify(a)
}

// readRetryAfter returns how long the downstream has asked to wait from now, at
// most MaxRetryAfter.
func readRetryAfter(h http.Header, now time.Time) time.Duration {
	values := h.Values("Retry-After")
	if len(values) != 1 {
		return 0
	}
	text := values[0]
	if isDigits(text) {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil || seconds > int64(MaxRetryAfter/time.Second) {
			return MaxRetryAfter // ParseInt fails only by range here
		}
		return time.Duration(seconds) * time.Second
	}
	date, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(date.Sub(now), 0), MaxRetryAfter)
}

func isDigits(s string) bool {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != ""
}
