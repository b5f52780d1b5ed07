package httpeffect

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// send sends a request once and reads the answer. Where there is an error, sent
// says whether the request may have left us.
func (c Client[In, Out]) send(req *http.Request) (a Answer, sent bool, err error) {
	ctx := req.Context()
	if err := ctx.Err(); err != nil {
		return Answer{}, false, &TransportError{Err: err}
	}
	var t tracker
	req = req.WithContext(httptrace.WithClientTrace(ctx, t.trace()))
	resp, err := c.httpClient().Do(req)
	if err != nil {
		sent := t.maySend()
		return Answer{}, sent, &TransportError{Sent: sent, Err: plain(ctx, err)}
	}
	defer resp.Body.Close()
	now := time.Now
	if c.Now != nil {
		now = c.Now
	}
	a = Answer{Status: resp.StatusCode, Header: resp.Header}
	a.retryAfter, _ = readRetryAfter(resp.Header, now())
	a.Body, a.broken = c.readBody(ctx, resp.Body)
	return a, true, nil
}

// httpClient returns a copy that hands a redirect to the caller.
func (c Client[In, Out]) httpClient() *http.Client {
	var copied http.Client
	if c.HTTP != nil {
		copied = *c.HTTP
	}
	copied.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &copied
}

// readBody never fails the answer: a status is proof without its body, and what
// needs the body looks at the error.
func (c Client[In, Out]) readBody(ctx context.Context, from io.Reader) ([]byte, error) {
	limit := min(c.MaxBody, math.MaxInt64-1)
	if limit <= 0 {
		limit = DefaultMaxBody
	}
	body, err := io.ReadAll(io.LimitReader(from, limit+1))
	switch {
	case int64(len(body)) > limit:
		return nil, ErrBodyTooLarge
	case err != nil:
		return nil, fmt.Errorf("the body was cut: %w", plain(ctx, err))
	case len(body) == 0:
		return nil, nil
	case !jsontext.Value(body).IsValid():
		return nil, ErrBodyNotStrict
	}
	return body, nil
}

// A tracker finds out whether a request may have been written. It wants proof
// from the transport that it was not: it looked for a connection and never got
// one. A RoundTripper that does not report to httptrace proves nothing, and one
// that tries several times has to have failed so each time.
type tracker struct{ looked, got atomic.Bool }

func (t *tracker) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) { t.looked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { t.got.Store(true) },
	}
}

func (t *tracker) maySend() bool { return t.got.Load() || !t.looked.Load() }
