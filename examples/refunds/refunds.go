// Package refunds is a small support desk with two tools, written as any
// service author would write them: get_order reads an order, and
// create_refund_draft asks a refund system for a draft.
//
// Orders belong to a tenant and a user. The owner of an order, and whoever has
// the role support_admin in its tenant, may use it; a refund needs the order to
// be paid and the approval of human-reviewer-1.
package refunds

import (
	"context"
	"fmt"
	"sync"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// ApproverID is the one person who may approve a refund draft.
const ApproverID = "human-reviewer-1"

// RoleSupportAdmin may use every order of its tenant.
const RoleSupportAdmin = "support_admin"

// An Order is what the desk knows about an order.
type Order struct {
	TenantID string
	OwnerID  string
	Status   string // paid, pending or refunded
}

// Orders are the desk's business data, in memory. They are safe for concurrent
// use.
type Orders struct {
	mu     sync.RWMutex
	orders map[string]Order
}

// NewOrders returns the three orders of the example, all paid.
func NewOrders() *Orders {
	return &Orders{orders: map[string]Order{
		"ORDER-7": {"tenant-a", "user-1", "paid"},
		"ORDER-8": {"tenant-a", "user-2", "paid"},
		"ORDER-9": {"tenant-b", "user-1", "paid"},
	}}
}

// Get returns an order.
func (o *Orders) Get(orderRef string) (Order, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	order, ok := o.orders[orderRef]
	return order, ok
}

// SetStatus changes the status of an order that there is.
func (o *Orders) SetStatus(orderRef, status string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if order, ok := o.orders[orderRef]; ok {
		order.Status = status
		o.orders[orderRef] = order
	}
}

// Authorize is the desk's [toolruntime.Authorizer]: the owner or a support
// admin of the same tenant. An order that does not exist is nobody's.
func (o *Orders) Authorize(_ context.Context, p toolresult.Principal, _, orderRef string) (bool, error) {
	order, ok := o.Get(orderRef)
	return ok && order.TenantID == p.TenantID &&
		(order.OwnerID == p.SubjectID || p.HasRole(RoleSupportAdmin)), nil
}

// Approvers is the desk's [toolruntime.Approvers].
func Approvers(_ context.Context, _ toolresult.Principal, _, approverID string) (bool, error) {
	return approverID == ApproverID, nil
}

// Tools returns the desk's tools.
func (o *Orders) Tools() []toolruntime.Registration {
	return []toolruntime.Registration{o.GetOrder(), o.CreateRefundDraft()}
}

// errNoOrder can only be seen when an order vanishes between the authorization
// and the handler.
func errNoOrder() error { return fmt.Errorf("refunds: the order is gone") }
