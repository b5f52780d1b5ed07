package httpeffect_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/httpeffect"
)

type RefundArgs struct{ Order string }

type Refund struct{ ID string }

// What an API's answers prove, its author says: by default no status proves that
// nothing was done.
func ExampleStatuses() {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer api.Close()
	newRefund := func(ctx context.Context, _ toolruntime.Effect, _ RefundArgs) (*http.Request, error) {
		return http.NewRequestWithContext(ctx, http.MethodPost, api.URL, http.NoBody)
	}
	refund := func(a httpeffect.Answer) (r toolruntime.Receipt[Refund], err error) { return r, a.Decode(&r.Data) }
	problemType := func(a httpeffect.Answer) string {
		var problem struct {
			Type string `json:"type"`
		}
		if a.Decode(&problem) != nil {
			return ""
		}
		return problem.Type
	}

	refunds := httpeffect.Client[RefundArgs, Refund]{
		Request: newRefund, Receipt: refund,
		// There is nothing between us and this API, and it answers these before it does anything.
		Classify: httpeffect.Statuses{400: httpeffect.Refused, 429: httpeffect.NotDone}.Classify,
		// For Find: only this API knows this problem type.
		Absent: func(a httpeffect.Answer) bool { return problemType(a) == "https://api.example/no-such-key" },
	}
	_, err := refunds.Run(context.Background(), toolruntime.Effect{Identity: "5e7b1d0c", Attempt: 1}, RefundArgs{"ORDER-7"})
	fmt.Println(err)
	// Output: nothing was done, and nothing will be: httpeffect: status 400: refused
}
