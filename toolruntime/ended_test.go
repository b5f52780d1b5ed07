package toolruntime_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// TestAnswersSayWhenTheyEnded: a replay, and a status query, say when and in which
// attempt their operation ended, whenever they are asked.
func TestAnswersSayWhenTheyEnded(t *testing.T) {
	for _, c := range []struct {
		name string
		last error // of the second attempt
		code toolresult.Code
	}{
		{"succeeded", nil, toolresult.OK},
		{"failed", toolruntime.GiveUp(errors.New("no such account")), toolresult.ToolError},
	} {
		t.Run(c.name, func(t *testing.T) {
			first := int64(1) // the attempt that comes too early
			s := newShop(t, toolruntime.Idempotent, func(_ context.Context, e toolruntime.Effect, _ int) (toolruntime.Receipt[payment], error) {
				if e.Attempt == first {
					return toolruntime.Receipt[payment]{}, toolruntime.RetryLater(0, errors.New("not now"))
				}
				if c.last != nil {
					return toolruntime.Receipt[payment]{}, c.last
				}
				return paid(e)
			})
			ctx := context.Background()
			call := shopCall("pay", "at once")
			b, err := s.Bind(payer, call)
			if err != nil {
				t.Fatal(err)
			}
			first = 0
			fresh, err := s.Dispatch(ctx, payer, call, &toolruntime.DispatchOptions{
				Approvals: []toolresult.Approval{toolresult.NewApproval(b, "a", "reviewer", time.Unix(s.time()+60, 0))}})
			if diff := cmp.Diff(toolresult.Ending{At: utc(s.time()), Attempt: 1}, fresh.Ended); err != nil || diff != "" {
				t.Errorf("at once: %v (-want +got):\n%s", err, diff)
			}
			first = 1
			ref := s.submit("pay", "k")
			if _, err := s.Process(ctx, ref, "first", nil); err != nil {
				t.Fatal(err)
			}
			if got := s.answer("pay", "k").Ended; got != (toolresult.Ending{}) {
				t.Errorf("before its end: %+v", got)
			}
			s.pass(10)
			if _, err := s.Process(ctx, ref, "second", nil); err != nil {
				t.Fatal(err)
			}
			want := toolresult.Ending{At: utc(s.time()), Attempt: 2}
			s.pass(1000)
			replay := s.answer("pay", "k")
			call = shopCall("pay", "k")
			status, err := s.QueryStatus(ctx, payer, call.StatusQuery(ref), ref, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, pkg := range []*toolresult.Package{replay, status} {
				if pkg.Code() != c.code {
					t.Errorf("code %s, want %s", pkg.Code(), c.code)
				}
				if diff := cmp.Diff(want, pkg.Ended); diff != "" {
					t.Errorf("%s (-want +got):\n%s", pkg.Delivery(), diff)
				}
			}
		})
	}
}
