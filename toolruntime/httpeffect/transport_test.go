package httpeffect_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/toolruntime/httpeffect"
)

// roundTrip is a RoundTripper that says nothing to httptrace.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestRunNoAnswer has every way to get none.
func TestRunNoAnswer(t *testing.T) {
	dialing := func(err error) *http.Client {
		return &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: err}
		}}}
	}
	failing := func(err error) *http.Client {
		return &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) { return nil, err })}
	}
	dial := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	tests := map[string]struct {
		handler http.HandlerFunc
		client  *http.Client // nil means the server's
		want    string
		cause   error
	}{
		"reset":                 {raw(""), nil, "unknown", syscall.ECONNRESET},
		"end instead of answer": {func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, nil, "unknown", io.EOF},
		"half a status line":    {raw("HTTP/1.1 20"), nil, "unknown", nil},
		"no HTTP":               {raw("SECRET SECRET\r\n\r\n"), nil, "unknown", nil},
		"endless header":        {raw("HTTP/1.1 200 OK\r\nX: " + string(make([]byte, 1<<17))), nil, "unknown", nil},
		"refused":               {nil, dialing(syscall.ECONNREFUSED), "retry later", syscall.ECONNREFUSED},
		"unreachable":           {nil, dialing(syscall.ENETUNREACH), "retry later", syscall.ENETUNREACH},
		"no such host":          {nil, dialing(&net.DNSError{Err: "no such host", Name: "SECRET", IsNotFound: true}), "retry later", nil},
		"dial timeout":          {nil, dialing(context.DeadlineExceeded), "retry later", context.DeadlineExceeded},
		"no TLS":                {say(200, paid), httpsOnly(t), "retry later", nil},
		// A dial error is no proof by itself: a transport that tries twice may have
		// had its effect before.
		"dial error of who knows what": {nil, failing(dial), "unknown", syscall.ECONNREFUSED},
		"any error of who knows what":  {nil, failing(errors.New("SECRET")), "unknown", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := serve(t, tt.handler)
			if tt.client != nil {
				c.HTTP = tt.client
			}
			_, err := c.Run(t.Context(), effect, order{})
			checkText(t, err)
			var transport *httpeffect.TransportError
			if !errors.As(err, &transport) || transport.Sent != (tt.want == "unknown") {
				t.Fatalf("got %#v, want a TransportError with Sent %v", err, tt.want == "unknown")
			}
			if diff := cmp.Diff(verdict{Kind: tt.want}, judge(err)); diff != "" {
				t.Errorf("verdict (-want +got), error %v:\n%s", err, diff)
			}
			if tt.cause != nil && !errors.Is(err, tt.cause) {
				t.Errorf("got %v, want %v", err, tt.cause)
			}
		})
	}
}

// httpsOnly is a client that speaks TLS to a server that does not.
func httpsOnly(t *testing.T) *http.Client {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		r.URL.Scheme, r.URL.Host = "https", server.Listener.Addr().String()
		return transport.RoundTrip(r)
	})}
}

// TestRunNotListening is the refusal of a real port.
func TestRunNotListening(t *testing.T) {
	server := httptest.NewServer(nil)
	c := clientOf(server.URL)
	c.HTTP = server.Client()
	server.Close()
	_, err := c.Run(t.Context(), effect, order{})
	checkText(t, err)
	if judge(err).Kind != "retry later" || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v", err)
	}
}

// TestRunEnds ends the context at each stage.
func TestRunEnds(t *testing.T) {
	t.Run("before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		c := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("something was sent") })
		if _, err := c.Run(ctx, effect, order{}); judge(err).Kind != "retry later" || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("while connecting", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := clientOf("http://downstream.example")
		c.HTTP = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			cancel()
			<-ctx.Done()
			return nil, ctx.Err()
		}}}
		if _, err := c.Run(ctx, effect, order{}); judge(err).Kind != "retry later" || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("while it works", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			cancel()
			<-r.Context().Done()
		})
		_, err := c.Run(ctx, effect, order{})
		checkText(t, err)
		if judge(err).Kind != "unknown" || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("in the body", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			say(201, paid[:10])(w, r)
			http.NewResponseController(w).Flush()
			cancel()
			<-r.Context().Done()
		})
		_, err := c.Run(ctx, effect, order{})
		checkText(t, err)
		if judge(err).Kind != "unknown" || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("by the client's own timeout", func(t *testing.T) {
		c := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		})
		limited := *c.HTTP
		limited.Timeout = 50 * time.Millisecond
		c.HTTP = &limited
		_, err := c.Run(t.Context(), effect, order{})
		checkText(t, err)
		if judge(err).Kind != "unknown" || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestRunHTTP2(t *testing.T) {
	answers := []http.HandlerFunc{say(201, paid), func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }}
	var protocols []string
	var keys []string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protocols, keys = append(protocols, r.Proto), append(keys, r.Header.Get("Idempotency-Key"))
		answers[len(keys)-1](w, r)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	c := clientOf(server.URL)
	c.HTTP = server.Client()
	if _, err := c.Run(t.Context(), effect, order{}); err != nil {
		t.Fatal(err)
	}
	_, err := c.Run(t.Context(), effect, order{})
	checkText(t, err)
	if judge(err).Kind != "unknown" {
		t.Errorf("stream reset: %v, want unknown", err)
	}
	if diff := cmp.Diff([]string{"HTTP/2.0", "HTTP/2.0"}, protocols); diff != "" {
		t.Errorf("protocols (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{identity, identity}, keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}
