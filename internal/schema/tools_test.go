package schema

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The two example tools of the contract.

type order struct {
	OrderRef string `json:"order_ref" schema:"minLength=1,maxLength=64"`
}

type orderStatus struct {
	OrderRef string `json:"order_ref" schema:"minLength=1,maxLength=64"`
	Status   string `json:"status" schema:"enum=paid|pending|refunded"`
}

type refund struct {
	OrderRef string `json:"order_ref" schema:"minLength=1,maxLength=64"`
	Reason   string `json:"reason" schema:"enum=duplicate|damaged|other"`
}

type refundDraft struct {
	DraftID  string `json:"draft_id" schema:"maxLength=64,pattern=^DRAFT-[1-9][0-9]*$"`
	OrderRef string `json:"order_ref" schema:"minLength=1,maxLength=64"`
	Reason   string `json:"reason" schema:"enum=duplicate|damaged|other"`
}

func mustInfer[T any](t testing.TB) *Schema {
	t.Helper()
	s, err := For[T]()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func orderInput(t testing.TB) *Schema   { return mustInfer[order](t) }
func orderOutput(t testing.TB) *Schema  { return mustInfer[orderStatus](t) }
func refundInput(t testing.TB) *Schema  { return mustInfer[refund](t) }
func refundOutput(t testing.TB) *Schema { return mustInfer[refundDraft](t) }

func TestRefundInput(t *testing.T) {
	s := refundInput(t)
	want := `{"type":"object","properties":{"order_ref":{"type":"string","minLength":1,"maxLength":64},` +
		`"reason":{"type":"string","enum":["duplicate","damaged","other"]}},"required":["order_ref","reason"],"additionalProperties":false}`
	if diff := cmp.Diff(want, string(s.JSON())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"order_ref", "reason"}, s.Fields()); diff != "" {
		t.Error(diff)
	}
	tests := []struct {
		ref, reason any
		want        []string
	}{
		{"ORDER-7", "damaged", nil},
		{"x", "other", nil},
		{strings.Repeat("é", 64), "duplicate", nil},
		{strings.Repeat("é", 65), "duplicate", []string{"$.order_ref: maxLength"}},
		{" " + strings.Repeat("x", 64), "duplicate", []string{"$.order_ref: maxLength"}},
		{"", "other", []string{"$.order_ref: minLength"}},
		{"   ", "other", []string{"$.order_ref: minLength"}},
		{"\x1c\u2003", "other", []string{"$.order_ref: minLength"}},
		{"\u200b", "other", nil},
		{nil, "other", []string{"$.order_ref: type"}},
		{int64(7), true, []string{"$.order_ref: type", "$.reason: type"}},
		{"x", "Other", []string{"$.reason: enum"}},
		{[]any{"x"}, "other ", []string{"$.order_ref: type", "$.reason: enum"}},
	}
	for _, tt := range tests {
		got := texts(s.ValidateInput(map[string]any{"order_ref": tt.ref, "reason": tt.reason}))
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%v, %v (-want +got):\n%s", tt.ref, tt.reason, diff)
		}
	}
	got := texts(s.ValidateInput(map[string]any{"order_ref": "x", "idempotency_key": "k"}))
	if diff := cmp.Diff([]string{"$.idempotency_key: unknown field", "$.reason: required"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRefundOutput(t *testing.T) {
	s := refundOutput(t)
	for id, want := range map[string][]string{
		"DRAFT-1":                          nil,
		"DRAFT-281474976710656":            nil,
		"DRAFT-" + strings.Repeat("9", 58): nil,
		"DRAFT-" + strings.Repeat("9", 59): {"$.draft_id: maxLength"},
		"DRAFT-0":                          {"$.draft_id: pattern"},
		"DRAFT-01":                         {"$.draft_id: pattern"},
		"DRAFT-1\n":                        {"$.draft_id: pattern"},
		"draft-1":                          {"$.draft_id: pattern"},
		"DRAFT-":                           {"$.draft_id: pattern"},
		"DRAFT-\u0661":                     {"$.draft_id: pattern"},
		" DRAFT-1":                         {"$.draft_id: pattern"},
	} {
		got := texts(s.ValidateOutput(map[string]any{"draft_id": id, "order_ref": " ", "reason": "other"}))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", id, diff)
		}
	}
}

func TestOrder(t *testing.T) {
	if got := orderInput(t).ValidateInput(map[string]any{"order_ref": "ORDER-7"}); got != nil {
		t.Error(got)
	}
	for status, want := range map[any][]string{"paid": nil, "pending": nil, "refunded": nil, "lost": {"$.status: enum"}, nil: {"$.status: type"}} {
		got := texts(orderOutput(t).ValidateOutput(map[string]any{"order_ref": "ORDER-7", "status": status}))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", status, diff)
		}
	}
}
