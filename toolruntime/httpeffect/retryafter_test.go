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
	}{
		"seconds":         {[]string{"90"}, 90 * time.Second},
		"zero":            {[]string{"0"}, 0},
		"a day":           {[]string{"86400"}, 24 * time.Hour},
		"over a day":      {[]string{"86401"}, 24 * time.Hour},
		"over int64":      {[]string{"99999999999999999999"}, 24 * time.Hour},
		"overflow in ns":  {[]string{"9223372036854775807"}, 24 * time.Hour},
		"date":            {[]string{noon.Add(time.Minute).Format(http.TimeFormat)}, time.Minute},
		"date of RFC 850": {[]string{noon.Add(time.Minute).Format(time.RFC850)}, time.Minute},
		"past date":       {[]string{noon.Add(-time.Hour).Format(http.TimeFormat)}, 0},
		"far date":        {[]string{"Fri, 31 Dec 9999 23:59:59 GMT"}, 24 * time.Hour},
		"negative":        {[]string{"-5"}, 0},
		"fraction":        {[]string{"1.5"}, 0},
		"words":           {[]string{"soon"}, 0},
		"empty":           {[]string{""}, 0},
		"twice":           {[]string{"1", "2"}, 0},
		"none":            {nil, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			headers := make([]string, len(tt.values))
			for i, v := range tt.values {
				headers[i] = "Retry-After: " + v
			}
			c := serve(t, say(429, "", headers...))
			_, err := c.Run(t.Context(), effect, order{})
			if diff := cmp.Diff(verdict{"unknown", tt.after}, judge(err)); diff != "" {
				t.Errorf("unknown (-want +got):\n%s", diff)
			}
			c.Classify = httpeffect.Statuses{429: httpeffect.NotDone}.Classify
			_, err = c.Run(t.Context(), effect, order{})
			if diff := cmp.Diff(verdict{"retry later", tt.after}, judge(err)); diff != "" {
				t.Errorf("nothing done (-want +got):\n%s", diff)
			}
		})
	}
}
