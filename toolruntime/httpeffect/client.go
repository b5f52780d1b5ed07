package httpeffect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// The defaults of a [Client].
const (
	DefaultKeyHeader = "Idempotency-Key"
	DefaultMaxBody   = 64 << 10
)

// MaxRetryAfter bounds what a downstream can ask for by Retry-After.
const MaxRetryAfter = 24 * time.Hour

// A Client has the effects of one kind of request to an HTTP API. Its methods
// fit [toolruntime.Tool] and are safe for concurrent use if its functions are.
type Client[In, Out any] struct {
	// HTTP sends the requests; nil means a client with [http.DefaultTransport].
	// Its CheckRedirect is not used. A RoundTripper of its own must not send a
	// request again; see the package's documentation.
	HTTP *http.Client
	// Request makes the request that has the effect. Its context and its key
	// header are set by Run. An error means that nothing was sent: a later attempt
	// makes the request again, unless the error is [toolruntime.GiveUp]. Equal
	// arguments must make equal requests: one with the current time in it is a
	// mismatch to an API that has seen the key. Required.
	Request func(context.Context, toolruntime.Effect, In) (*http.Request, error)
	// Lookup makes the request that asks for the effect by its key, a GET as a
	// rule. Required for Find.
	Lookup func(context.Context, toolruntime.Effect, In) (*http.Request, error)
	// Receipt reads the answer of either. An error means that the answer proves
	// nothing, unless it is [toolruntime.GiveUp] or [toolruntime.RetryLater]: that
	// is for an API that answers 200 and says "declined" in the body. Required.
	Receipt func(Answer) (toolruntime.Receipt[Out], error)
	// Classify says what an answer to Request means; nil means [Classify], by which
	// no status proves that nothing was done. Name what this API proves here, by
	// status ([Statuses]) or by what its body says.
	Classify func(Answer) Meaning
	// Absent says whether an answer of 404 to Lookup comes from the API itself and
	// is about this key, and not about a wrong path or from a proxy. It is the
	// answer after which the effect may be had again, so look at something that
	// only the API says. nil means that no 404 does.
	Absent func(Answer) bool

	KeyHeader string           // "" means DefaultKeyHeader
	MaxBody   int64            // bytes of a body that are read; 0 means DefaultMaxBody
	Now       func() time.Time // to read a Retry-After that is a date; nil means time.Now
}

var (
	errIncomplete = errors.New("httpeffect: the Client lacks Request, Lookup or Receipt")
	errIdentity   = errors.New("httpeffect: the effect has no identity")
	errRequest    = errors.New("httpeffect: no request with an http or https address")
)

// Run has the effect. It fits [toolruntime.Tool].Run, and its errors say by
// [toolruntime.NotDoneError] where nothing was done.
func (c Client[In, Out]) Run(ctx context.Context, e toolruntime.Effect, in In) (toolruntime.Receipt[Out], error) {
	var none toolruntime.Receipt[Out]
	if c.Request == nil || c.Receipt == nil {
		return none, toolruntime.GiveUp(errIncomplete)
	}
	if e.Identity == "" {
		return none, toolruntime.GiveUp(errIdentity) // without a key a repetition is a second effect
	}
	req, err := prepare(ctx, c.Request, e, in)
	if err != nil {
		return none, notSent(err)
	}
	c.setKey(req, e.Identity)
	a, sent, err := c.sendOnce(req)
	switch {
	case err != nil && !sent:
		return none, toolruntime.RetryLater(0, err)
	case err != nil:
		return none, err
	}
	classify := c.Classify
	if classify == nil {
		classify = Classify
	}
	return c.sort(a, classify(a))
}

// sort turns the meaning of an answer into what the runtime understands.
func (c Client[In, Out]) sort(a Answer, m Meaning) (toolruntime.Receipt[Out], error) {
	var none toolruntime.Receipt[Out]
	refusal := &AnswerError{Status: a.Status, Meaning: m, RetryAfter: a.retryAfter}
	switch m {
	case Done:
		return c.receipt(a)
	case InFlight:
		return none, &InFlightError{Status: a.Status, RetryAfter: a.retryAfter}
	case NotDone:
		return none, toolruntime.RetryLater(a.retryAfter, refusal)
	case Refused:
		return none, toolruntime.GiveUp(refusal)
	case Conflict:
		return none, refusal
	}
	refusal.Meaning = Unknown
	return none, refusal
}

// receipt reads the receipt of an effect that has happened. Whatever is wrong
// with it, the effect stays: only the author's Receipt may say otherwise.
func (c Client[In, Out]) receipt(a Answer) (toolruntime.Receipt[Out], error) {
	err := a.broken
	if err == nil {
		var r toolruntime.Receipt[Out]
		if r, err = c.Receipt(a); err == nil {
			return r, nil
		}
	}
	var none toolruntime.Receipt[Out]
	return none, &AnswerError{Status: a.Status, Meaning: Unknown, Err: err}
}

// Find asks for the effect by its key and fits [toolruntime.Tool].Find. It
// answers false only where the downstream says so.
func (c Client[In, Out]) Find(ctx context.Context, e toolruntime.Effect, in In) (toolruntime.Receipt[Out], bool, error) {
	var none toolruntime.Receipt[Out]
	if c.Lookup == nil || c.Receipt == nil {
		return none, false, errIncomplete
	}
	if e.Identity == "" {
		return none, false, errIdentity
	}
	req, err := prepare(ctx, c.Lookup, e, in)
	var notDone *toolruntime.NotDoneError
	switch {
	case errors.As(err, &notDone):
		return none, false, notDone.Cause // it speaks of the question, not of the effect
	case err != nil:
		return none, false, err
	}
	a, _, err := c.send(req, new(tracker))
	if err != nil {
		return none, false, err
	}
	switch a.Status {
	case http.StatusOK, http.StatusNonAuthoritativeInfo:
		return c.found(a)
	case http.StatusNotFound:
		if c.Absent != nil && c.Absent(a) {
			return none, false, nil
		}
	case http.StatusAccepted, http.StatusConflict:
		return none, false, &InFlightError{Status: a.Status, RetryAfter: a.retryAfter}
	}
	return none, false, &AnswerError{Status: a.Status, RetryAfter: a.retryAfter}
}

func (c Client[In, Out]) found(a Answer) (toolruntime.Receipt[Out], bool, error) {
	r, err := c.receipt(a)
	var notDone *toolruntime.NotDoneError
	if errors.As(err, &notDone) {
		return r, false, nil // the downstream has kept that it did nothing
	}
	return r, err == nil, err
}

// prepare makes a request and binds it to the attempt.
func prepare[In any](ctx context.Context, build func(context.Context, toolruntime.Effect, In) (*http.Request, error), e toolruntime.Effect, in In) (*http.Request, error) {
	req, err := build(ctx, e, in)
	switch {
	case err != nil:
		return nil, fmt.Errorf("httpeffect: request: %w", withoutURL(ctx, err))
	case req == nil || req.URL == nil || req.URL.Host == "" || req.URL.Scheme != "http" && req.URL.Scheme != "https":
		return nil, errRequest
	}
	req = req.WithContext(ctx)
	req.Header = req.Header.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	return req, nil
}

// notSent is the answer for a request that could not be made. Its author can
// say in the error that trying again is no use.
func notSent(err error) error {
	var known *toolruntime.NotDoneError
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, errRequest):
		return toolruntime.GiveUp(err)
	}
	return toolruntime.RetryLater(0, err)
}

func (c Client[In, Out]) keyName() string {
	if c.KeyHeader != "" {
		return c.KeyHeader
	}
	return DefaultKeyHeader
}

// setKey sets the key, and hides it and its like from the transport, which would
// take them for leave to send the request again.
func (c Client[In, Out]) setKey(req *http.Request, identity string) {
	name := c.keyName()
	for have, values := range req.Header {
		switch lower := strings.ToLower(have); {
		case strings.EqualFold(have, name):
			delete(req.Header, have)
		case lower == "idempotency-key" || lower == "x-idempotency-key":
			delete(req.Header, have)
			req.Header[lower] = values
		}
	}
	req.Header[strings.ToLower(name)] = []string{identity}
}
