package httpeffect_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/httpeffect"
)

// TestFindStatuses proves that only 404 lets an effect be had again.
func TestFindStatuses(t *testing.T) {
	for status := 200; status < 600; status++ {
		if http.StatusText(status) == "" {
			continue
		}
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			body := paid
			if status == 204 || status == 304 {
				body = ""
			}
			c := serve(t, say(status, body, "Location: /elsewhere"))
			if _, found, err := c.Find(t.Context(), effect, order{500}); !found && err == nil {
				t.Error("it is absent, and nobody has said how this API says that")
			}
			c.Absent = func(httpeffect.Answer) bool { return true }
			got, found, err := c.Find(t.Context(), effect, order{500})
			checkText(t, err)
			switch status {
			case 200, 203:
				if diff := cmp.Diff(wantReceipt, got); diff != "" || !found || err != nil {
					t.Errorf("found %v, error %v, receipt (-want +got):\n%s", found, err, diff)
				}
			case 404:
				if found || err != nil {
					t.Errorf("found %v, error %v, want false", found, err)
				}
			default:
				if found || judge(err).Kind != "unknown" {
					t.Errorf("found %v, error %v, want an error that is no NotDoneError", found, err)
				}
			}
		})
	}
}

func TestFindErrors(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	tests := map[string]struct {
		handler http.HandlerFunc
		change  func(*client)
		ctx     context.Context
		want    any // pointer to an error type, or an error
	}{
		"in flight":         {say(409, "", "Retry-After: 2"), nil, nil, new(*httpeffect.InFlightError)},
		"garbage":           {say(200, "SECRET"), nil, nil, httpeffect.ErrBodyNotStrict},
		"repeated key":      {say(200, `{"payment_id":"a","payment_id":"b"}`), nil, nil, httpeffect.ErrBodyNotStrict},
		"cut":               {raw("HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{"), nil, nil, new(*httpeffect.AnswerError)},
		"no receipt in it":  {say(200, "{}"), nil, nil, errNoReceipt},
		"reset":             {raw(""), nil, nil, new(*httpeffect.TransportError)},
		"ended":             {say(200, paid), nil, ended, context.Canceled},
		"404 of a proxy":    {say(404, "<html>"), nil, nil, new(*httpeffect.AnswerError)},
		"404, cut":          {raw("HTTP/1.1 404 Not Found\r\nContent-Length: 900\r\n\r\n{"), nil, nil, new(*httpeffect.AnswerError)},
		"no Lookup":         {say(200, paid), func(c *client) { c.Lookup = nil }, nil, nil},
		"lookup gives up":   {say(200, paid), lookupFails(toolruntime.GiveUp(errNoReceipt)), nil, errNoReceipt},
		"lookup not made":   {say(200, paid), lookupFails(errNoReceipt), nil, errNoReceipt},
		"redirect of a GET": {say(302, "", "Location: /x"), nil, nil, new(*httpeffect.AnswerError)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := serve(t, tt.handler)
			c.Absent = ofTheAPI
			if tt.change != nil {
				tt.change(&c)
			}
			if tt.ctx == nil {
				tt.ctx = t.Context()
			}
			_, found, err := c.Find(tt.ctx, effect, order{})
			checkText(t, err)
			if found || judge(err).Kind != "unknown" {
				t.Fatalf("found %v, error %v, want an error that is no NotDoneError", found, err)
			}
			switch want := tt.want.(type) {
			case nil:
			case error:
				if !errors.Is(err, want) {
					t.Errorf("got %v, want %v", err, want)
				}
			default:
				if !errors.As(err, want) {
					t.Errorf("got %v, want a %T", err, want)
				}
			}
		})
	}
}

func lookupFails(err error) func(*client) {
	return func(c *client) {
		c.Lookup = func(context.Context, toolruntime.Effect, order) (*http.Request, error) { return nil, err }
	}
}

func ofTheAPI(a httpeffect.Answer) bool {
	var problem struct {
		Type string `json:"type"`
	}
	return a.Decode(&problem) == nil && problem.Type == "/no-such-key"
}

func TestFindAbsent(t *testing.T) {
	c := serve(t, say(404, `{"type":"/no-such-key"}`))
	c.Absent = ofTheAPI
	if _, found, err := c.Find(t.Context(), effect, order{}); found || err != nil {
		t.Errorf("found %v, error %v, want false", found, err)
	}
}

// TestInFlightThenFound is the client of stripe-ruby #431: what is in flight is
// asked for until it is there.
func TestInFlightThenFound(t *testing.T) {
	answers := []http.HandlerFunc{say(409, "", "Retry-After: 1"), say(409, ""), say(200, paid)}
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		next := answers[0]
		answers = answers[1:]
		next(w, r)
	})
	var inFlight *httpeffect.InFlightError
	if _, err := c.Run(t.Context(), effect, order{}); !errors.As(err, &inFlight) || inFlight.RetryAfter != time.Second {
		t.Fatalf("first: %v", err)
	}
	if _, found, err := c.Find(t.Context(), effect, order{}); found || !errors.As(err, &inFlight) {
		t.Fatalf("second: %v %v", found, err)
	}
	got, found, err := c.Find(t.Context(), effect, order{})
	if diff := cmp.Diff(wantReceipt, got); diff != "" || !found || err != nil {
		t.Errorf("third: %v %v (-want +got):\n%s", found, err, diff)
	}
}
