package httpeffect_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/httpeffect"
)

// TestRunStatuses holds every status against what Run says of it: none is proof
// that nothing was done, since nobody knows who has said it.
func TestRunStatuses(t *testing.T) {
	want := map[int]string{
		200: "done", 201: "done", 203: "done",
		204: "unknown", // no body, and this API's receipt is in the body
		422: "review",
	}
	for status := 200; status < 600; status++ {
		if http.StatusText(status) == "" {
			continue
		}
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			body := paid
			if status == 204 || status == 304 {
				body = ""
			}
			c := serve(t, say(status, body, "Location: /elsewhere", "Retry-After: 3"))
			got, err := c.Run(t.Context(), effect, order{500})
			checkText(t, err)
			kind := want[status]
			if kind == "" {
				kind = "unknown"
			}
			want := verdict{Kind: kind}
			if kind == "unknown" && status != 204 {
				want.After = 3 * time.Second
			}
			if diff := cmp.Diff(want, judge(err)); diff != "" {
				t.Errorf("verdict (-want +got), error %v:\n%s", err, diff)
			}
			if kind == "done" {
				if diff := cmp.Diff(wantReceipt, got); diff != "" {
					t.Errorf("receipt (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestRunErrorTypes(t *testing.T) {
	tests := map[string]struct {
		handler http.HandlerFunc
		verdict verdict
		want    error // compared as a type with its fields
	}{
		"in flight":            {say(409, "", "Retry-After: 3"), verdict{"unknown", 3 * time.Second}, &httpeffect.InFlightError{Status: 409, RetryAfter: 3 * time.Second}},
		"in flight, no time":   {say(409, `{"SECRET":1}`), verdict{Kind: "unknown"}, &httpeffect.InFlightError{Status: 409}},
		"accepted":             {say(202, paid), verdict{Kind: "unknown"}, &httpeffect.InFlightError{Status: 202}},
		"mismatch":             {say(422, `{"SECRET":1}`), verdict{Kind: "review"}, &httpeffect.AnswerError{Status: 422, Meaning: httpeffect.Conflict}},
		"bad request":          {say(400, `SECRET`), verdict{Kind: "unknown"}, &httpeffect.AnswerError{Status: 400}},
		"too many":             {say(429, "", "Retry-After: 7"), verdict{"unknown", 7 * time.Second}, &httpeffect.AnswerError{Status: 429, RetryAfter: 7 * time.Second}},
		"too many, no time":    {say(429, ""), verdict{Kind: "unknown"}, &httpeffect.AnswerError{Status: 429}},
		"away for a while":     {say(503, "", "Retry-After: 120"), verdict{"unknown", 2 * time.Minute}, &httpeffect.AnswerError{Status: 503, RetryAfter: 2 * time.Minute}},
		"away at once":         {say(503, "", "Retry-After: 0"), verdict{Kind: "unknown"}, &httpeffect.AnswerError{Status: 503}},
		"away":                 {say(503, ""), verdict{Kind: "unknown"}, &httpeffect.AnswerError{Status: 503}},
		"away, odd time":       {say(503, "", "Retry-After: SECRET"), verdict{Kind: "unknown"}, &httpeffect.AnswerError{Status: 503}},
		"internal, with time":  {say(500, "", "Retry-After: 9"), verdict{"unknown", 9 * time.Second}, &httpeffect.AnswerError{Status: 500, RetryAfter: 9 * time.Second}},
		"gateway timeout":      {say(504, ""), verdict{Kind: "unknown"}, &httpeffect.AnswerError{Status: 504}},
		"redirect keeping":     {say(307, "", "Location: /x"), verdict{Kind: "unknown"}, &httpeffect.AnswerError{Status: 307}},
		"redirect to a GET":    {say(303, "", "Location: /x"), verdict{Kind: "unknown"}, &httpeffect.AnswerError{Status: 303}},
		"no status of HTTP":    {say(799, ""), verdict{Kind: "unknown"}, &httpeffect.AnswerError{Status: 799}},
		"refusal that is cut":  {raw("HTTP/1.1 400 SECRET\r\nContent-Length: 900\r\n\r\n{"), verdict{Kind: "unknown"}, &httpeffect.AnswerError{Status: 400}},
		"in flight, oversized": {say(409, strings.Repeat(" ", 70_000)), verdict{Kind: "unknown"}, &httpeffect.InFlightError{Status: 409}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := serve(t, tt.handler).Run(t.Context(), effect, order{500})
			checkText(t, err)
			if diff := cmp.Diff(tt.verdict, judge(err)); diff != "" {
				t.Errorf("verdict (-want +got), error %v:\n%s", err, diff)
			}
			var got error
			var inFlight *httpeffect.InFlightError
			var answer *httpeffect.AnswerError
			if errors.As(err, &inFlight) {
				got = inFlight
			} else if errors.As(err, &answer) {
				got = answer
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRunBadReceipt has answers that say done and cannot be believed in full.
// Nothing about them is ever "not done".
func TestRunBadReceipt(t *testing.T) {
	zipped := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		io.WriteString(z, `{"pad":"`+strings.Repeat("a", 1<<20)+`"}`)
	}
	tests := map[string]struct {
		handler http.HandlerFunc
		want    error
	}{
		"empty":               {say(201, ""), nil},
		"garbage":             {say(201, "<html>SECRET"), httpeffect.ErrBodyNotStrict},
		"two texts":           {say(201, paid+paid), httpeffect.ErrBodyNotStrict},
		"repeated key":        {say(201, `{"payment_id":"pay_1","payment_id":"SECRET"}`), httpeffect.ErrBodyNotStrict},
		"escaped repetition":  {say(201, `{"payment_id":"pay_1","payment\u005fid":"SECRET"}`), httpeffect.ErrBodyNotStrict},
		"deep repetition":     {say(201, `{"payment_id":"pay_1","list":[{"a":{"SECRET":1,"SECRET":2}}]}`), httpeffect.ErrBodyNotStrict},
		"bad UTF-8":           {say(201, "{\"payment_id\":\"pay_\xff\"}"), httpeffect.ErrBodyNotStrict},
		"half a surrogate":    {say(201, `{"payment_id":"\ud800"}`), httpeffect.ErrBodyNotStrict},
		"byte-order mark":     {say(201, "\ufeff"+paid), httpeffect.ErrBodyNotStrict},
		"NaN":                 {say(201, `{"payment_id":"pay_1","cents":NaN}`), httpeffect.ErrBodyNotStrict},
		"nested without end":  {say(201, strings.Repeat("[", 60_000)), httpeffect.ErrBodyNotStrict},
		"oversize":            {say(201, paid+strings.Repeat(" ", httpeffect.DefaultMaxBody)), httpeffect.ErrBodyTooLarge},
		"oversize when open":  {zipped, httpeffect.ErrBodyTooLarge},
		"cut by length":       {raw("HTTP/1.1 201 Created\r\nContent-Length: 900\r\n\r\n" + paid), io.ErrUnexpectedEOF},
		"cut chunk":           {raw("HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n" + paid), io.ErrUnexpectedEOF},
		"cut without length":  {raw("HTTP/1.0 201 Created\r\n\r\n" + paid[:20]), httpeffect.ErrBodyNotStrict},
		"wrong type":          {say(201, `{"payment_id":"pay_1","cents":"SECRET"}`), nil},
		"fraction":            {say(201, `{"payment_id":"pay_1","cents":1.5}`), nil},
		"over int64":          {say(201, `{"payment_id":"pay_1","cents":9223372036854775808}`), nil},
		"other case":          {say(201, `{"Payment_ID":"SECRET"}`), errNoReceipt},
		"no receipt, says it": {say(200, `{}`), errNoReceipt},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := serve(t, tt.handler).Run(t.Context(), effect, order{500})
			checkText(t, err)
			var answer *httpeffect.AnswerError
			if !errors.As(err, &answer) || answer.Meaning != httpeffect.Unknown || judge(err).Kind != "unknown" {
				t.Fatalf("got %v, want an unknown AnswerError", err)
			}
			if tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// TestRunBodyLimit proves that the limit is on the bytes, exactly, and that
// numbers beyond a float64 reach the receipt.
func TestRunBodyLimit(t *testing.T) {
	const body = `{"payment_id":"pay_1","request_id":"req_1","cents":616581622363398142}`
	for extra, want := range map[int64]string{-1: "unknown", 0: "done", 1: "done"} {
		c := serve(t, say(200, body))
		c.MaxBody = int64(len(body)) + extra
		got, err := c.Run(t.Context(), effect, order{})
		if judge(err).Kind != want {
			t.Errorf("limit %+d: %v, want %s", extra, err, want)
		}
		if err == nil && got.Data.Cents != 616581622363398142 {
			t.Errorf("cents: %d", got.Data.Cents)
		}
	}
}

// TestRunNamed: what the author of a tool names is proof, and nothing else.
func TestRunNamed(t *testing.T) {
	named := httpeffect.Statuses{400: httpeffect.Refused, 409: httpeffect.Conflict, 418: 99, 422: httpeffect.Refused, 429: httpeffect.NotDone}
	tests := map[string]struct {
		handler http.HandlerFunc
		want    verdict
	}{
		"refused":         {say(400, "SECRET"), verdict{Kind: "give up"}},
		"refused and cut": {raw("HTTP/1.1 400 SECRET\r\nContent-Length: 900\r\n\r\n{"), verdict{Kind: "give up"}},
		"not done":        {say(429, "", "Retry-After: 7"), verdict{"retry later", 7 * time.Second}},
		"conflict":        {say(409, "", "Retry-After: 7"), verdict{Kind: "review"}},
		"validation":      {say(422, ""), verdict{Kind: "give up"}},
		"no such meaning": {say(418, ""), verdict{Kind: "unknown"}},
		"not named":       {say(503, "", "Retry-After: 7"), verdict{"unknown", 7 * time.Second}},
		"done":            {say(201, paid), verdict{Kind: "done"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := serve(t, tt.handler)
			c.Classify = named.Classify
			_, err := c.Run(t.Context(), effect, order{500})
			checkText(t, err)
			if diff := cmp.Diff(tt.want, judge(err)); diff != "" {
				t.Errorf("verdict (-want +got), error %v:\n%s", err, diff)
			}
		})
	}
}

// TestRunSays has APIs that say more in the body than in the status.
func TestRunSays(t *testing.T) {
	c := serve(t, say(409, `{"type":"/key-mismatch"}`))
	c.Classify = func(a httpeffect.Answer) httpeffect.Meaning {
		var problem struct {
			Type string `json:"type"`
		}
		if a.Status == 409 && a.Decode(&problem) == nil && problem.Type == "/key-mismatch" {
			return httpeffect.Conflict
		}
		return httpeffect.Classify(a)
	}
	_, err := c.Run(t.Context(), effect, order{})
	var answer *httpeffect.AnswerError
	if !errors.As(err, &answer) || answer.Meaning != httpeffect.Conflict || judge(err).Kind != "review" {
		t.Errorf("409 by problem type: %v", err)
	}

	c = serve(t, say(200, `{"status":"declined"}`))
	c.Receipt = func(httpeffect.Answer) (toolruntime.Receipt[payment], error) {
		return toolruntime.Receipt[payment]{}, toolruntime.GiveUp(errors.New("declined"))
	}
	if _, err := c.Run(t.Context(), effect, order{}); judge(err).Kind != "give up" {
		t.Errorf("declined in a 200: %v", err)
	}
	if _, found, err := c.Find(t.Context(), effect, order{}); found || err != nil {
		t.Errorf("find of a declined one: %v %v, want false", found, err)
	}

	c = serve(t, say(200, paid))
	c.Classify = func(httpeffect.Answer) httpeffect.Meaning { return 99 }
	if _, err := c.Run(t.Context(), effect, order{}); judge(err).Kind != "unknown" {
		t.Errorf("a meaning that there is not: %v", err)
	}
}

// TestRunRequest looks at what arrives.
func TestRunRequest(t *testing.T) {
	type arrived struct {
		Method, Path, Key, Other, Body string
		Keys                           int
	}
	tests := map[string]struct {
		keyHeader string
		preset    http.Header
		want      arrived
	}{
		"default":       {"", nil, arrived{Key: identity, Keys: 1}},
		"other name":    {"X-Request-Key", nil, arrived{Other: identity}},
		"set by author": {"", http.Header{"Idempotency-Key": {"mine"}, "idempotency-KEY": {"mine too"}}, arrived{Key: identity, Keys: 1}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got arrived
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				got = arrived{r.Method, r.URL.Path, r.Header.Get("Idempotency-Key"), r.Header.Get("X-Request-Key"), string(body), len(r.Header.Values("Idempotency-Key"))}
				say(201, paid)(w, r)
			})
			c.KeyHeader = tt.keyHeader
			plain := c.Request
			c.Request = func(ctx context.Context, e toolruntime.Effect, in order) (*http.Request, error) {
				req, err := plain(context.Background(), e, in)
				req.Header = tt.preset
				return req, err
			}
			if _, err := c.Run(t.Context(), effect, order{500}); err != nil {
				t.Fatal(err)
			}
			tt.want.Method, tt.want.Path, tt.want.Body = "POST", "/payments", `{"cents":500}`
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("arrived (-want +got):\n%s", diff)
			}
			if v := tt.preset.Get("Idempotency-Key"); v != "" && v != "mine" {
				t.Error("the author's header map was changed")
			}
		})
	}
}

func TestRunNothingToSend(t *testing.T) {
	request := func(address string, err error) func(context.Context, toolruntime.Effect, order) (*http.Request, error) {
		return func(ctx context.Context, _ toolruntime.Effect, _ order) (*http.Request, error) {
			if err != nil {
				return nil, err
			}
			req, err := http.NewRequestWithContext(ctx, "POST", address, nil)
			if err != nil {
				return nil, toolruntime.GiveUp(err)
			}
			return req, nil
		}
	}
	nowhere := func(c *client) { c.Request = request("", errors.New("no credential")) }
	tests := map[string]struct {
		change func(*client)
		effect toolruntime.Effect
		want   verdict
	}{
		"no Request":       {func(c *client) { c.Request = nil }, effect, verdict{Kind: "give up"}},
		"no Receipt":       {func(c *client) { c.Receipt = nil }, effect, verdict{Kind: "give up"}},
		"no identity":      {func(*client) {}, toolruntime.Effect{}, verdict{Kind: "give up"}},
		"request fails":    {nowhere, effect, verdict{Kind: "retry later"}},
		"request gives up": {func(c *client) { c.Request = request("", toolruntime.GiveUp(errors.New("bad"))) }, effect, verdict{Kind: "give up"}},
		"retry by request": {func(c *client) { c.Request = request("", toolruntime.RetryLater(time.Minute, errors.New("closed"))) }, effect, verdict{"retry later", time.Minute}},
		"bad address":      {func(c *client) { c.Request = request("http://user:SECRET@host:x/", nil) }, effect, verdict{Kind: "give up"}},
		"password cut":     {func(c *client) { c.Request = request("http://user:SECRET/1@host/", nil) }, effect, verdict{Kind: "give up"}},
		"token not there": {func(c *client) {
			c.Request = request("", &url.Error{Op: "Post", URL: "http://SECRET", Err: errors.New("SECRET")})
		}, effect, verdict{Kind: "retry later"}},
		"no host":      {func(c *client) { c.Request = request("/payments", nil) }, effect, verdict{Kind: "give up"}},
		"other scheme": {func(c *client) { c.Request = request("ftp://SECRET/", nil) }, effect, verdict{Kind: "give up"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("something was sent") })
			tt.change(&c)
			_, err := c.Run(t.Context(), tt.effect, order{})
			checkText(t, err)
			if diff := cmp.Diff(tt.want, judge(err)); diff != "" {
				t.Errorf("verdict (-want +got), error %v:\n%s", err, diff)
			}
		})
	}
}
