package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/internal/canonjson"
	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// A tool is an example tool as a memory runs it: the contract is the example's,
// the effects are the case's own and numbered.
type tool struct {
	spec *toolresult.Spec
	rule func(b *toolresult.Bound) (bool, error) // of a write
	run  func(b *toolresult.Bound, now int64) (toolresult.Evidence, error)
}

func exampleSpecs() (map[string]*toolresult.Spec, error) {
	specs := map[string]*toolresult.Spec{}
	for _, registration := range refunds.NewOrders().Tools() {
		spec, err := toolruntime.SpecOf(registration)
		if err != nil {
			return nil, fmt.Errorf("scenario: %w", err)
		}
		specs[spec.Contract().Name] = spec
	}
	return specs, nil
}

func (m *memory) handlers(specs map[string]*toolresult.Spec) map[string]tool {
	return map[string]tool{
		"get_order": {spec: specs["get_order"], run: m.getOrder},
		writeTool:   {spec: specs[writeTool], rule: m.paid, run: m.createRefundDraft},
	}
}

// arguments has what the two tools take.
type arguments struct {
	OrderRef string `json:"order_ref"`
	Reason   string `json:"reason"`
}

var errArguments = errors.New("the arguments do not fit the tool")

func argumentsOf(b *toolresult.Bound) (arguments, error) {
	var in arguments
	if json.Unmarshal([]byte(b.Arguments()), &in) != nil {
		return in, errArguments
	}
	return in, nil
}

// paid is the desk's business rule: only a paid order can be refunded.
func (m *memory) paid(b *toolresult.Bound) (bool, error) {
	in, err := argumentsOf(b)
	if err != nil {
		return false, err
	}
	order, ok := m.orders.Get(in.OrderRef)
	return ok && order.Status == "paid", nil
}

var errNoOrder = errors.New("the order is gone")

func (m *memory) getOrder(b *toolresult.Bound, now int64) (toolresult.Evidence, error) {
	in, err := argumentsOf(b)
	if err != nil {
		return toolresult.Evidence{}, err
	}
	order, ok := m.orders.Get(in.OrderRef)
	if !ok {
		return toolresult.Evidence{}, errNoOrder
	}
	data, err := canonjson.Marshal(map[string]any{"order_ref": in.OrderRef, "status": order.Status})
	return toolresult.Evidence{
		Data:             string(data),
		ProducerRevision: b.Contract().Producer,
		ObservedAt:       contract.FormatTime(now),
	}, err
}

func (m *memory) createRefundDraft(b *toolresult.Bound, now int64) (toolresult.Evidence, error) {
	in, err := argumentsOf(b)
	if err != nil {
		return toolresult.Evidence{}, err
	}
	m.effects++
	draft := fmt.Sprintf("DRAFT-%d", m.effects)
	data, err := canonjson.Marshal(map[string]any{"draft_id": draft, "order_ref": in.OrderRef, "reason": in.Reason})
	return toolresult.Evidence{
		ReceiptID:        fmt.Sprintf("refund-receipt-%d", m.effects),
		RequestID:        fmt.Sprintf("refund-request-%d", m.effects),
		Data:             string(data),
		ProducerRevision: b.Contract().Producer,
		ResourceRevision: strings.ToLower(draft) + "-r1",
		ObservedAt:       contract.FormatTime(now),
	}, err
}
