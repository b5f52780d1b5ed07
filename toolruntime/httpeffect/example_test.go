package httpeffect_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/httpeffect"
)

type invoiceArgs struct {
	Customer string `json:"customer" schema:"minLength=1,maxLength=64"`
}

type invoice struct {
	Number string `json:"number"`
}

func Example() {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"number":"INV-1","request_id":"req-7"}`)
	}))
	defer api.Close()

	invoices := httpeffect.Client[invoiceArgs, invoice]{
		Request: func(ctx context.Context, _ toolruntime.Effect, a invoiceArgs) (*http.Request, error) {
			body, err := json.Marshal(a)
			if err != nil {
				return nil, toolruntime.GiveUp(err)
			}
			return http.NewRequestWithContext(ctx, http.MethodPost, api.URL+"/invoices", bytes.NewReader(body))
		},
		Receipt: func(a httpeffect.Answer) (toolruntime.Receipt[invoice], error) {
			var body struct {
				Number    string `json:"number"`
				RequestID string `json:"request_id"`
			}
			if err := a.Decode(&body); err != nil {
				return toolruntime.Receipt[invoice]{}, err
			}
			return toolruntime.Receipt[invoice]{ID: body.Number, RequestID: body.RequestID, Data: invoice{body.Number}}, nil
		},
		// Nothing stands before this API, and it looks at the arguments first.
		Classify: httpeffect.Statuses{http.StatusBadRequest: httpeffect.Refused}.Classify,
	}
	tool := toolruntime.Tool[invoiceArgs, invoice]{
		Name:     "create_invoice",
		Effect:   toolruntime.Idempotent,
		Resource: func(a invoiceArgs) string { return a.Customer },
		Run:      invoices.Run,
	}

	// The runtime calls Run. By hand it is:
	receipt, err := tool.Run(context.Background(), toolruntime.Effect{Identity: "5e7b1d0c", Attempt: 1}, invoiceArgs{"C-1"})
	fmt.Println(receipt.ID, receipt.Data.Number, err)
	// Output: INV-1 INV-1 <nil>
}
