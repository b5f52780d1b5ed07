package httpeffect_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/httpeffect"
)

// shapes are requests that have an effect, of each kind that a transport treats
// in its own way.
var shapes = map[string]func() *http.Request{
	"POST":            func() *http.Request { return httptest.NewRequest("POST", "/", bytes.NewReader([]byte("{}"))) },
	"POST, no body":   func() *http.Request { return httptest.NewRequest("POST", "/", nil) },
	"DELETE, no body": func() *http.Request { return httptest.NewRequest("DELETE", "/", nil) },
	"GET":             func() *http.Request { return httptest.NewRequest("GET", "/", nil) },
}

// shaped makes c send such a request to the address that it has.
func shaped(c client, shape func() *http.Request) client {
	plain := c.Request
	c.Request = func(ctx context.Context, e toolruntime.Effect, in order) (*http.Request, error) {
		req, err := plain(ctx, e, in)
		if err != nil {
			return nil, err
		}
		want := shape()
		var body io.Reader
		if want.ContentLength > 0 {
			body = bytes.NewReader([]byte(`{"cents":500}`))
		}
		return http.NewRequestWithContext(ctx, want.Method, req.URL.String(), body)
	}
	return c
}

// TestRunOnceHTTP2 counts the requests of an attempt at the server, on the wire,
// for each way in which HTTP/2 lets a client believe that it may repeat.
func TestRunOnceHTTP2(t *testing.T) {
	none, this := func(uint32) uint32 { return 0 }, func(stream uint32) uint32 { return stream }
	answers := map[string]h2answer{
		"nothing was looked at":     goAway(0, none, false),
		"nothing, and ends":         goAway(0, none, true),
		"nothing, by an error":      goAway(11, none, true),
		"goes away after this":      goAway(0, this, true),
		"ends":                      func(_ io.Writer, _ uint32, whole bool) bool { return whole },
		"ends when the header came": func(io.Writer, uint32, bool) bool { return true },
	}
	for code := range uint32(14) {
		answers[fmt.Sprintf("reset %d", code)] = reset(code, false)
		answers[fmt.Sprintf("reset %d, early", code)] = reset(code, true)
	}
	for _, status := range []int{307, 408, 421, 425, 503} {
		answers[fmt.Sprint(status)] = sayFrame(status)
	}
	for name, answer := range answers {
		for shape, request := range shapes {
			for _, warm := range []int64{0, 1} {
				t.Run(fmt.Sprintf("%s/%s/%d before", name, shape, warm), func(t *testing.T) {
					t.Parallel()
					c, requests := serveFrames(t, warm, answer)
					c = shaped(c, request)
					for range warm {
						if _, err := c.Run(t.Context(), effect, order{500}); judge(err).Kind != "unknown" || requests.Load() != 1 {
							t.Fatalf("the first: %v", err)
						}
					}
					_, err := c.Run(t.Context(), effect, order{500})
					checkText(t, err)
					if judge(err).Kind != "unknown" {
						t.Errorf("got %v, want unknown", err)
					}
					if errors.Is(err, httpeffect.ErrSentAgain) && shape != "POST, no body" && shape != "DELETE, no body" {
						t.Error("the transport had what it needs to repeat this")
					}
					if n := requests.Load(); n != warm+1 {
						t.Errorf("%d requests arrived, want %d", n, warm+1)
					}
				})
			}
		}
	}
}

// TestRunOnceCleartext is HTTP/2 without TLS, which has a way of its own through
// the transport.
func TestRunOnceCleartext(t *testing.T) {
	answers := map[string]h2answer{
		"nothing was looked at": goAway(0, func(uint32) uint32 { return 0 }, false),
		"protocol error":        reset(1, false),
		"refused":               reset(7, true),
	}
	for name, answer := range answers {
		for shape, request := range shapes {
			t.Run(name+"/"+shape, func(t *testing.T) {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { l.Close() })
				var requests atomic.Int64
				go func() {
					for {
						conn, err := l.Accept()
						if err != nil {
							return
						}
						go frames(conn, &requests, 0, answer)
					}
				}()
				transport := &http.Transport{Protocols: new(http.Protocols)}
				transport.Protocols.SetUnencryptedHTTP2(true)
				t.Cleanup(transport.CloseIdleConnections)
				c := shaped(clientOf("http://"+l.Addr().String()), request)
				c.HTTP = &http.Client{Transport: transport}
				_, err = c.Run(t.Context(), effect, order{500})
				checkText(t, err)
				if n := requests.Load(); judge(err).Kind != "unknown" || n != 1 {
					t.Errorf("%d requests arrived, want 1; %v", n, err)
				}
			})
		}
	}
}

// TestRunOnceHTTP1 does so for HTTP/1, where a connection that was used before
// makes a transport repeat.
func TestRunOnceHTTP1(t *testing.T) {
	answers := map[string]http.HandlerFunc{
		"reset":         raw(""),
		"ends":          func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"half a status": raw("HTTP/1.1 20"),
		"408 and ends":  raw("HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
	}
	for _, status := range []int{307, 308, 401, 407, 408, 417, 421, 425, 429, 502, 503} {
		answers[fmt.Sprint(status)] = say(status, "", "Location: /payments", "Retry-After: 0", "WWW-Authenticate: Basic")
	}
	for name, answer := range answers {
		for shape, request := range shapes {
			for _, key := range []string{"", "X-Idempotency-Key", "Request-Id"} {
				t.Run(name+"/"+shape+"/"+key, func(t *testing.T) {
					t.Parallel()
					var requests atomic.Int64
					c := serve(t, func(w http.ResponseWriter, r *http.Request) {
						if requests.Add(1) == 1 {
							say(201, paid)(w, r)
							return
						}
						answer(w, r)
					})
					c = shaped(c, request)
					c.KeyHeader = key
					if _, err := c.Run(t.Context(), effect, order{500}); err != nil {
						t.Fatal(err)
					}
					_, err := c.Run(t.Context(), effect, order{500})
					checkText(t, err)
					if judge(err).Kind != "unknown" || errors.Is(err, httpeffect.ErrSentAgain) {
						t.Errorf("got %v, want unknown, and nothing to repeat it with", err)
					}
					if n := requests.Load(); n != 2 {
						t.Errorf("%d requests arrived, want 2", n)
					}
				})
			}
		}
	}
}

// TestRunBodyless looks at what a request without a body is on the wire: what
// keeps it from being repeated must not show.
func TestRunBodyless(t *testing.T) {
	for shape, request := range shapes {
		var encoding []string
		var length int64
		c := shaped(serve(t, func(w http.ResponseWriter, r *http.Request) {
			encoding, length = r.TransferEncoding, r.ContentLength
			say(201, paid)(w, r)
		}), request)
		if _, err := c.Run(t.Context(), effect, order{500}); err != nil {
			t.Fatal(err)
		}
		want := int64(0)
		if shape == "POST" {
			want = 13
		}
		if encoding != nil || length != want {
			t.Errorf("%s: encoding %v, length %d", shape, encoding, length)
		}
	}
}

// stubborn is a RoundTripper that keeps the body, and sends a request again
// whatever its answer is.
type stubborn struct{ http.RoundTripper }

func (s stubborn) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	var body []byte
	if r.Body != nil {
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	for range 3 {
		again := r.Clone(r.Context())
		if body != nil {
			again.Body = io.NopCloser(bytes.NewReader(body))
		}
		if resp, err = s.RoundTripper.RoundTrip(again); err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}
	return resp, err
}

// TestRunSentAgain: a RoundTripper that repeats is seen, whatever the last answer
// was. Over HTTP/2 nothing of the repetition leaves.
func TestRunSentAgain(t *testing.T) {
	check := func(t *testing.T, c client) {
		c.HTTP = &http.Client{Transport: stubborn{c.HTTP.Transport}}
		c.Classify = httpeffect.Statuses{400: httpeffect.Refused}.Classify
		_, err := c.Run(t.Context(), effect, order{500})
		checkText(t, err)
		if !errors.Is(err, httpeffect.ErrSentAgain) || judge(err).Kind != "unknown" {
			t.Errorf("got %v, want ErrSentAgain", err)
		}
	}
	for shape, request := range shapes {
		t.Run("HTTP/1/"+shape, func(t *testing.T) { check(t, shaped(serve(t, say(400, "")), request)) })
		t.Run("HTTP/2/"+shape, func(t *testing.T) {
			c, requests := serveFrames(t, 0, sayFrame(400))
			check(t, shaped(c, request))
			if n := requests.Load(); n != 1 {
				t.Errorf("%d requests arrived, want 1", n)
			}
		})
	}
}

// TestRunFetchesFirst: a RoundTripper may send other requests before this one,
// in the same context.
func TestRunFetchesFirst(t *testing.T) {
	var tokens, payments atomic.Int64
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			tokens.Add(1)
			return
		}
		payments.Add(1)
		say(201, paid)(w, r)
	})
	next := c.HTTP.Transport
	c.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		ask, err := http.NewRequestWithContext(r.Context(), "GET", "http://"+r.URL.Host+"/token", nil)
		if err != nil {
			return nil, err
		}
		resp, err := next.RoundTrip(ask)
		if err != nil {
			return nil, err
		}
		resp.Body.Close()
		return next.RoundTrip(r)
	})}
	if _, err := c.Run(t.Context(), effect, order{500}); err != nil || tokens.Load() != 1 || payments.Load() != 1 {
		t.Errorf("%d tokens, %d payments, %v", tokens.Load(), payments.Load(), err)
	}
}

// TestFindIsRepeated: what only asks may be sent again.
func TestFindIsRepeated(t *testing.T) {
	var requests atomic.Int64
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 2 {
			raw("")(w, r)
			return
		}
		say(200, paid)(w, r)
	})
	for range 2 {
		if _, found, err := c.Find(t.Context(), effect, order{500}); !found || err != nil {
			t.Errorf("found %v, error %v", found, err)
		}
	}
}

// TestRunNoRedirect proves that the key and the money stay with the address that
// was configured, whatever the client's own rule is.
func TestRunNoRedirect(t *testing.T) {
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	for status := 300; status < 309; status++ {
		for _, to := range []string{"/payments", other.URL} {
			var hits atomic.Int64
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				hits.Add(1)
				say(status, "", "Location: "+to)(w, r)
			})
			c.HTTP.CheckRedirect = func(*http.Request, []*http.Request) error { return nil }
			if _, err := c.Run(t.Context(), effect, order{}); judge(err).Kind != "unknown" {
				t.Errorf("%d: run: %v", status, err)
			}
			if _, found, err := c.Find(t.Context(), effect, order{}); found || err == nil {
				t.Errorf("%d: find: %v %v", status, found, err)
			}
			if hits.Load() != 2 || elsewhere.Load() != 0 {
				t.Errorf("%d: %d requests, and %d elsewhere; want 2 and none", status, hits.Load(), elsewhere.Load())
			}
			if c.HTTP.CheckRedirect(nil, nil) != nil {
				t.Error("the caller's client was changed")
			}
		}
	}
}

// TestRunInformational: what comes before the answer is not the answer.
func TestRunInformational(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusProcessing)
		w.WriteHeader(http.StatusEarlyHints)
		say(201, paid)(w, r)
	})
	if _, err := c.Run(t.Context(), effect, order{}); err != nil {
		t.Error(err)
	}
}
