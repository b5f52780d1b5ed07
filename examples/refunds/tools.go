package refunds

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// OrderArgs are the arguments of get_order.
type OrderArgs struct {
	OrderRef string `json:"order_ref" schema:"minLength=1,maxLength=64"`
}

// OrderStatus is the result of get_order.
type OrderStatus struct {
	OrderRef string `json:"order_ref" schema:"minLength=1,maxLength=64"`
	Status   string `json:"status" schema:"enum=paid|pending|refunded"`
}

// GetOrder reads an order.
func (o *Orders) GetOrder() toolruntime.Tool[OrderArgs, OrderStatus] {
	return toolruntime.Tool[OrderArgs, OrderStatus]{
		Name:        "get_order",
		Description: "Returns the status of an order.",
		Risk:        toolruntime.Read,
		Revisions: toolresult.Revisions{
			InputSchema: "get-order-input-v1", OutputSchema: "get-order-output-v2", Effect: "read-order-v1",
			Handler: "get-order-handler-v2", Producer: "orders-mock-v2", Policy: "get-order-policy-v1",
		},
		Source:         "orders",
		Equal:          map[string]string{"order_ref": "order_ref"},
		MaxOutputBytes: 256,
		MaxOutputDepth: 1,
		Timeout:        500 * time.Millisecond,
		Resource:       func(a OrderArgs) string { return a.OrderRef },
		Run: func(_ context.Context, _ toolruntime.Effect, a OrderArgs) (toolruntime.Receipt[OrderStatus], error) {
			order, ok := o.Get(a.OrderRef)
			if !ok {
				return toolruntime.Receipt[OrderStatus]{}, errNoOrder()
			}
			return toolruntime.Receipt[OrderStatus]{Data: OrderStatus{a.OrderRef, order.Status}}, nil
		},
	}
}

// RefundArgs are the arguments of create_refund_draft.
type RefundArgs struct {
	OrderRef string `json:"order_ref" schema:"minLength=1,maxLength=64"`
	Reason   string `json:"reason" schema:"enum=duplicate|damaged|other"`
}

// RefundDraft is the result of create_refund_draft.
type RefundDraft struct {
	DraftID  string `json:"draft_id" schema:"maxLength=64,pattern=^DRAFT-[1-9][0-9]*$"`
	OrderRef string `json:"order_ref" schema:"minLength=1,maxLength=64"`
	Reason   string `json:"reason" schema:"enum=duplicate|damaged|other"`
}

// CreateRefundDraft asks the refund system for a draft. The refund system
// recognises a repetition by the effect's identity, so the effect is
// idempotent.
func (o *Orders) CreateRefundDraft() toolruntime.Tool[RefundArgs, RefundDraft] {
	return toolruntime.Tool[RefundArgs, RefundDraft]{
		Name:        "create_refund_draft",
		Description: "Creates a draft of a refund for a paid order. A person sends it later.",
		Effect:      toolruntime.Idempotent,
		KeyMemory:   toolruntime.Forever,
		Revisions: toolresult.Revisions{
			InputSchema: "refund-draft-input-v1", OutputSchema: "refund-draft-output-v2", Effect: "create-refund-draft-v1",
			Handler: "refund-draft-handler-v2", Producer: "refunds-mock-v2", Policy: "refund-draft-policy-v1",
		},
		Source:         "refunds",
		Equal:          map[string]string{"order_ref": "order_ref", "reason": "reason"},
		MaxOutputBytes: 384,
		MaxOutputDepth: 1,
		Timeout:        800 * time.Millisecond,
		Resource:       func(a RefundArgs) string { return a.OrderRef },
		Rule: func(_ context.Context, _ toolresult.Principal, a RefundArgs) (bool, error) {
			order, ok := o.Get(a.OrderRef)
			return ok && order.Status == "paid", nil
		},
		Run: func(_ context.Context, e toolruntime.Effect, a RefundArgs) (toolruntime.Receipt[RefundDraft], error) {
			return draft(e.Identity, a)
		},
	}
}

// draft stands in for the refund system. Its answer follows from the effect's
// identity alone, so that asking it twice makes one draft, as a real one does
// that keeps the keys it has seen.
func draft(identity string, a RefundArgs) (toolruntime.Receipt[RefundDraft], error) {
	number, err := strconv.ParseInt(identity[:12], 16, 64)
	if err != nil {
		return toolruntime.Receipt[RefundDraft]{}, fmt.Errorf("refunds: identity: %w", err)
	}
	id := fmt.Sprintf("DRAFT-%d", number+1)
	return toolruntime.Receipt[RefundDraft]{
		ID:               "refund-receipt-" + identity[:24],
		RequestID:        "refund-request-" + identity[24:48],
		Data:             RefundDraft{DraftID: id, OrderRef: a.OrderRef, Reason: a.Reason},
		ResourceRevision: strings.ToLower(id) + "-r1",
	}, nil
}
