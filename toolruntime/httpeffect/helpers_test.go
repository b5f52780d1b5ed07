package httpeffect_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/httpeffect"
)

const identity = "5e7b1d0c5e7b1d0c5e7b1d0c5e7b1d0c5e7b1d0c5e7b1d0c5e7b1d0c5e7b1d0c"

var effect = toolruntime.Effect{Identity: identity, Tool: "pay", Attempt: 1}

// noon is the clock of the tests.
var noon = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

type order struct{ Cents int64 }

type payment struct {
	PaymentID string `json:"payment_id"`
	RequestID string `json:"request_id"`
	Cents     int64  `json:"cents"`
}

const paid = `{"payment_id":"pay_1","request_id":"req_1","cents":500,"new_in_2027":true}`

var wantReceipt = toolruntime.Receipt[payment]{ID: "pay_1", RequestID: "req_1", Data: payment{"pay_1", "req_1", 500}}

var errNoReceipt = errors.New("no payment_id")

func receipt(a httpeffect.Answer) (toolruntime.Receipt[payment], error) {
	var p payment
	if err := a.Decode(&p); err != nil {
		return toolruntime.Receipt[payment]{}, err
	}
	if p.PaymentID == "" {
		return toolruntime.Receipt[payment]{}, errNoReceipt
	}
	return toolruntime.Receipt[payment]{ID: p.PaymentID, RequestID: p.RequestID, Data: p}, nil
}

type client = httpeffect.Client[order, payment]

// clientOf has secrets wherever an address can hold them.
func clientOf(base string) client {
	base = strings.Replace(base, "://", "://user:SECRET@", 1)
	return client{
		Request: func(ctx context.Context, _ toolruntime.Effect, _ order) (*http.Request, error) {
			return http.NewRequestWithContext(ctx, http.MethodPost, base+"/payments?token=SECRET", strings.NewReader(`{"cents":500}`))
		},
		Lookup: func(ctx context.Context, e toolruntime.Effect, _ order) (*http.Request, error) {
			return http.NewRequestWithContext(ctx, http.MethodGet, base+"/payments/"+e.Identity+"?token=SECRET", nil)
		},
		Receipt: receipt,
		Now:     func() time.Time { return noon },
	}
}

func serve(t *testing.T, h http.HandlerFunc) client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	c := clientOf(server.URL)
	c.HTTP = server.Client()
	return c
}

// say answers with a status, headers as "Name: value", and a body.
func say(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			w.Header().Add(name, value)
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// raw reads the whole request, writes text and ends the connection, with a
// reset if there is no text.
func raw(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		if text == "" {
			conn.(*net.TCPConn).SetLinger(0)
		}
		io.WriteString(conn, text)
	}
}

// verdict is what the runtime makes of an error.
type verdict struct {
	Kind  string // done, retry later, give up, unknown, review
	After time.Duration
}

func judge(err error) verdict {
	var e *toolruntime.NotDoneError
	switch {
	case err == nil:
		return verdict{Kind: "done"}
	case errors.Is(err, toolruntime.ErrNeedsReview):
		return verdict{Kind: "review"}
	case !errors.As(err, &e):
		var hint interface{ AskAfter() time.Duration }
		if errors.As(err, &hint) {
			return verdict{Kind: "unknown", After: hint.AskAfter()}
		}
		return verdict{Kind: "unknown"}
	case e.Final:
		return verdict{Kind: "give up", After: e.After}
	}
	return verdict{Kind: "retry later", After: e.After}
}

// checkText fails for an error that quotes what must not be in a log.
func checkText(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	for _, secret := range []string{"SECRET", "user:", "/payments", "token", identity, "127.0.0.1"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("error text has %q: %s", secret, err)
		}
	}
}
