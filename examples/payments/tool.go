package payments

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/httpeffect"
)

// PayArgs are the arguments of create_payment.
type PayArgs struct {
	Account     string `json:"account" schema:"maxLength=64,pattern=^[A-Za-z0-9_-]+$"`
	AmountCents int64  `json:"amount_cents" schema:"minimum=1,maximum=100000000"`
	Currency    string `json:"currency" schema:"pattern=^[A-Z]{3}$"`
}

// Paid is the result of create_payment.
type Paid struct {
	PaymentID   string `json:"payment_id" schema:"maxLength=64,pattern=^pay_[1-9][0-9]*$"`
	Account     string `json:"account" schema:"maxLength=64"`
	AmountCents int64  `json:"amount_cents" schema:"minimum=1,maximum=100000000"`
	Currency    string `json:"currency" schema:"pattern=^[A-Z]{3}$"`
}

// Tool pays through the payment server at baseURL. client may be nil. Kind says
// what the service relies on: the server's deduplication for Idempotent, its GET
// by key for Queryable, and nothing for Once. A service that has several gives
// each its own Name.
func Tool(baseURL string, client *http.Client, kind toolruntime.EffectKind) toolruntime.Tool[PayArgs, Paid] {
	payments := httpeffect.Client[PayArgs, Paid]{
		HTTP: client,
		Request: func(ctx context.Context, _ toolruntime.Effect, a PayArgs) (*http.Request, error) {
			// All that is sent follows from the arguments: a repetition is the same
			// payment to the server, byte for byte.
			body, err := json.Marshal(Payment(a))
			if err != nil {
				return nil, toolruntime.GiveUp(err)
			}
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, baseURL+"/payments", bytes.NewReader(body))
			if err != nil {
				return nil, err
			}
			req.Header.Set("Content-Type", "application/json")
			return req, nil
		},
		Lookup: func(ctx context.Context, e toolruntime.Effect, _ PayArgs) (*http.Request, error) {
			return http.NewRequestWithContext(ctx, http.MethodGet, baseURL+"/payments/"+url.PathEscape(e.Identity), nil)
		},
		Receipt:  paid,
		Classify: proof,
		Absent:   noSuchKey,
	}
	tool := toolruntime.Tool[PayArgs, Paid]{
		Name:        "create_payment",
		Description: "Pays an amount from an account.",
		Effect:      kind,
		Source:      "payments",
		Equal:       map[string]string{"account": "account", "amount_cents": "amount_cents", "currency": "currency"},
		Timeout:     5 * time.Second,
		Resource:    func(a PayArgs) string { return a.Account },
		Run:         payments.Run,
	}
	if kind != toolruntime.Once {
		tool.Find = payments.Find
	}
	return tool
}

func paid(a httpeffect.Answer) (toolruntime.Receipt[Paid], error) {
	var r Receipt
	if err := a.Decode(&r); err != nil {
		return toolruntime.Receipt[Paid]{}, err
	}
	return toolruntime.Receipt[Paid]{
		ID:        r.PaymentID,
		RequestID: r.RequestID,
		Data:      Paid{r.PaymentID, r.Account, r.AmountCents, r.Currency},
	}, nil
}

// proof says what the server's answers prove. That nothing was done is believed
// only by the types of its own problems: anything may stand between, and answer
// 429 or 503 for a payment that has gone through.
func proof(a httpeffect.Answer) httpeffect.Meaning {
	switch problemOf(a) {
	case ProblemBadRequest:
		return httpeffect.Refused
	case ProblemTooMany:
		return httpeffect.NotDone
	case ProblemUnavailable:
		if a.Header.Get("Retry-After") != "" { // which it says where it has turned a payment away
			return httpeffect.NotDone
		}
	}
	return httpeffect.Classify(a)
}

// noSuchKey keeps a 404 for a wrong address, or from a proxy, from being taken
// for "not paid".
func noSuchKey(a httpeffect.Answer) bool { return problemOf(a) == ProblemNoSuchKey }

// problemOf is the type of a problem of the server, or "".
func problemOf(a httpeffect.Answer) string {
	var problem struct {
		Type   string `json:"type"`
		Status int    `json:"status"`
	}
	if a.Decode(&problem) != nil || problem.Status != a.Status {
		return ""
	}
	return problem.Type
}
