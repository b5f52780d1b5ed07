package httpeffect_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/toolruntime/httpeffect"
)

func TestRetryAfter(t *testing.T) {
	tests := map[string]struct {
		values []string
		after  time.Duration
		asked  bool // by a 503
	}{
		"seconds":         {[]string{"90"}, 90 * time.Second, true},
		"zero":            {[]string{"0"}, 0, true},
		"a day":           {[]string{"86400"}, 24 * time.Hour, true},
		"over a day":      {[]string{"86401"}, 24 * time.Hour, true},
		"over int64":      {[]string{"99999999999999999999"}, 24 * time.Hour, true},
		"overflow in ns":  {[]string{"9223372036854775807"}, 24 * time.Hour, true},
		"date":            {[]string{noon.Add(time.Minute).Format(http.TimeFormat)}, time.Minute, true},
		"date of RFC 850": {[]string{noon.Add(time.Minute).Format(time.RFC850)}, time.Minute, true},
		"past date":       {[]string{noon.Add(-time.Hour).Format(http.TimeFormat)}, 0, true},
		"far date":        {[]string{"Fri, 31 Dec 9999 23:59:59 GMT"}, 24 * time.Hour, true},
		"negative":        {[]string{"-5"}, 0, false},
		"fraction":        {[]string{"1.5"}, 0, false},
		"words":           {[]string{"soon"}, 0, false},
		"empty":           {[]string{""}, 0, false},
		"twice":           {[]string{"1", "2"}, 0, false},
		"none":            {nil, 0, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			headers := make([]string, len(tt.values))
			for i, v := range tt.values {
				headers[i] = "Retry-After: " + v
			}
			_, err := serve(t, say(429, "", headers...)).Run(t.Context(), effect, order{})
			if diff := cmp.Diff(verdict{"retry later", tt.after}, judge(err)); diff != "" {
				t.Errorf("429 (-want +got):\n%s", diff)
			}
			want := httpeffect.Unknown
			if tt.asked {
				want = httpeffect.NotDone
			}
			if got := httpeffect.Classify(httpeffect.Answer{Status: 503, Header: http.Header{"Retry-After": tt.values}}); got != want {
				t.Errorf("503: %v, want %v", got, want)
			}
		})
	}
}
