package toolresult_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

func anyone(string) bool { return true }

func TestApprovalCoversOneCall(t *testing.T) {
	b := bind(t, refundCall(), refundSpec(t).Contract())
	good := toolresult.NewApproval(b, "approval-1", "reviewer-1", time.Unix(now+60, 0))
	if !good.Covers(b, time.Unix(now, 0)) {
		t.Fatal("the approval of a call does not cover it")
	}
	fields := reflect.TypeOf(good)
	for i := range fields.NumField() {
		a := good
		name := fields.Field(i).Name
		switch f := reflect.ValueOf(&a).Elem().Field(i); name {
		case "ApprovalID", "ExpiresAt": // name the approval, not the call
			continue
		default:
			f.SetString(f.String() + "x")
		}
		if a.Covers(b, time.Unix(now, 0)) {
			t.Errorf("another %s is covered", name)
		}
	}
	for name, edit := range map[string]func(*toolresult.Principal, *toolresult.Call, *toolresult.Contract){
		"response": func(_ *toolresult.Principal, c *toolresult.Call, _ *toolresult.Contract) { c.ResponseID = "resp-2" },
		"tenant":   func(p *toolresult.Principal, _ *toolresult.Call, _ *toolresult.Contract) { p.TenantID = "tenant-b" },
		"effect":   func(_ *toolresult.Principal, _ *toolresult.Call, t *toolresult.Contract) { t.Effect += "x" },
		"output":   func(_ *toolresult.Principal, _ *toolresult.Call, t *toolresult.Contract) { t.OutputSchema += "x" },
		"amount":   func(_ *toolresult.Principal, c *toolresult.Call, _ *toolresult.Contract) { c.Arguments = []byte(`{}`) },
	} {
		p, c, contract := owner, refundCall(), refundSpec(t).Contract()
		edit(&p, &c, &contract)
		other, err := toolresult.Bind(p, c, contract)
		if err != nil {
			t.Fatal(err)
		}
		if good.Covers(other, time.Unix(now, 0)) {
			t.Errorf("a call with another %s is covered", name)
		}
	}
}

// TestApprovalBindsNotWhoHandles: who carries a call out is no part of what a person has
// said yes to.
func TestApprovalBindsNotWhoHandles(t *testing.T) {
	spec := refundSpec(t).Contract()
	good := toolresult.NewApproval(bind(t, refundCall(), spec), "approval-1", "reviewer-1", time.Unix(now+60, 0))
	spec.Handler += "x"
	spec.Producer += "x"
	if !good.Covers(bind(t, refundCall(), spec), time.Unix(now, 0)) {
		t.Error("another handler needs another approval")
	}
}

func TestApprovalLimits(t *testing.T) {
	b := bind(t, refundCall(), refundSpec(t).Contract())
	for _, tt := range []struct {
		id, approver  string
		expires, when int64
		want          bool
	}{
		{"a", "r", now, now - 1, true}, {"a", "r", now, now, false}, {"a", "r", now, now + 1, false},
		{"a", "r", contract.MaxTime, now, true}, {"a", "r", contract.MaxTime + 1, now, false},
		{"", "r", now, 0, false}, {"\u001c", "r", now, 0, false}, {"\u200b", "r", now, 0, true}, {strings.Repeat("a", 256), "r", now, 0, false},
		{"a", "", now, 0, false}, {"a", strings.Repeat("é", 255), now, 0, true}, {"a", strings.Repeat("é", 256), now, 0, false}, {"\xff", "r", now, 0, false},
	} {
		if got := toolresult.NewApproval(b, tt.id, tt.approver, time.Unix(tt.expires, 0)).Covers(b, time.Unix(tt.when, 0)); got != tt.want {
			t.Errorf("%+v: got %t", tt, got)
		}
	}
}

func TestSelectApproval(t *testing.T) {
	b := bind(t, refundCall(), refundSpec(t).Contract())
	approval := func(id, approver string, expires int64) toolresult.Approval {
		return toolresult.NewApproval(b, id, approver, time.Unix(expires, 0))
	}
	forged := approval("a", "r", now+9)
	forged.ApprovalDigest = strings.Repeat("0", 64)
	want := approval("b", "r", now+5)
	all := []toolresult.Approval{
		approval("c", "r", now+1), approval("b", "r", now+9), want, approval("a", "r", now), approval("a", "intern", now+9), forged,
	}
	eligible := func(id string) bool { return id == "r" }
	for range all {
		all = append(all[1:], all[0])
		if got, ok := toolresult.SelectApproval(b, all, time.Unix(now, 0), eligible); !ok || got != want {
			t.Errorf("got %+v", got)
		}
	}
	// By code point, not by UTF-16 unit.
	low, high := approval("\ufb33", "r", now+1), approval("\U0001f600", "r", now+1)
	if got, _ := toolresult.SelectApproval(b, []toolresult.Approval{high, low}, time.Unix(now, 0), anyone); got != low {
		t.Errorf("got %q", got.ApprovalID)
	}
	invalid := slices.DeleteFunc(all, func(a toolresult.Approval) bool { return a.Covers(b, time.Unix(now, 0)) && eligible(a.ApproverID) })
	if _, ok := toolresult.SelectApproval(b, invalid, time.Unix(now, 0), eligible); ok {
		t.Error("an invalid approval was selected")
	}
}
