package httpeffect

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// sendOnce sends a request that has an effect, and sees to it that it is not sent
// again.
func (c Client[In, Out]) sendOnce(req *http.Request) (Answer, bool, error) {
	ctx, abort := context.WithCancel(req.Context())
	defer abort()
	req = unrepeatable(req.WithContext(ctx))
	t := tracker{key: c.keyName(), abort: abort}
	a, sent, err := c.send(req, &t)
	if t.repeated.Load() {
		// Whatever came is the answer to one request of several.
		return Answer{}, true, &TransportError{Sent: true, Err: ErrSentAgain}
	}
	return a, sent, err
}

// unrepeatable takes from a request what http.Transport needs to send it again.
func unrepeatable(req *http.Request) *http.Request {
	req.GetBody = nil
	if req.Body == nil || req.Body == http.NoBody {
		switch req.Method {
		case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
			// These it takes for safe to repeat, unless they have a body. An empty
			// one does not show.
			req.Body = io.NopCloser(strings.NewReader(""))
		}
	}
	return req
}

// send sends a request and reads the answer. Where there is an error, sent says
// whether the request may have left us.
func (c Client[In, Out]) send(req *http.Request, t *tracker) (a Answer, sent bool, err error) {
	ctx := req.Context()
	if err := ctx.Err(); err != nil {
		return Answer{}, false, &TransportError{Err: err}
	}
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
	a.retryAfter = readRetryAfter(resp.Header, now())
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

// A tracker finds out whether a request may have been written, and whether it is
// about to be written again.
//
// That it was not written wants proof from the transport: it looked for a
// connection and never got one. A RoundTripper that does not report to httptrace
// proves nothing, and one that tries several times has to have failed so each
// time.
//
// It is about to be written again when there is a connection for something else
// after the key was written to one. HTTP/2 reports its connection before it looks
// at the context, and writes after that, so what abort ends is never written.
type tracker struct {
	key   string // the name of the key's header; "" where repeating does no harm
	abort func()

	looked, got, written, repeated atomic.Bool
}

func (t *tracker) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) {
			t.looked.Store(true)
			t.next()
		},
		GotConn: func(httptrace.GotConnInfo) {
			t.got.Store(true)
			t.next()
		},
		WroteHeaderField: func(name string, _ []string) {
			if t.key != "" && strings.EqualFold(name, t.key) {
				t.next()
				t.written.Store(true)
			}
		},
	}
}

// next is called before anything is written.
func (t *tracker) next() {
	if t.written.Load() {
		t.repeated.Store(true)
		t.abort()
	}
}

func (t *tracker) maySend() bool { return t.got.Load() || !t.looked.Load() }
