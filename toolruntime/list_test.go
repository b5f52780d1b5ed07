package toolruntime_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
)

// listed is a ledger with operations in every state, each accepted ten seconds after the
// one before, and their status_refs by key.
func listed(t *testing.T, open func(*testing.T) (*toolruntime.Store, error)) (*toolruntime.Runtime, map[string]string) {
	t.Helper()
	store, err := open(t)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	allow := func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil }
	now := int64(1_784_419_200)
	tool := func(name string) toolruntime.Registration {
		return toolruntime.Tool[payArgs, payment]{Name: name, Effect: toolruntime.Once, Resource: func(payArgs) string { return "account" },
			Run: func(_ context.Context, e toolruntime.Effect, _ payArgs) (toolruntime.Receipt[payment], error) {
				switch e.IdempotencyKey {
				case "failed":
					return toolruntime.Receipt[payment]{}, toolruntime.GiveUp(errors.New("no such account"))
				case "in_review":
					return toolruntime.Receipt[payment]{}, errors.New("cut off")
				}
				return paid(e)
			}}
	}
	rt, err := toolruntime.New(store, &toolruntime.Options{Authorizer: allow, Approvers: allow,
		Now: func() time.Time { return time.Unix(now, 0) }}, tool("pay"), tool("other"))
	if err != nil {
		t.Fatal(err)
	}
	refs := map[string]string{}
	for _, key := range []string{"pending", "processing", "succeeded", "failed", "in_review", "other", "tenant"} {
		p, c := payer, shopCall("pay", key)
		switch key {
		case "other":
			c = shopCall("other", key)
		case "tenant":
			p.TenantID = "another"
		}
		b, err := rt.Bind(p, c)
		if err != nil {
			t.Fatal(err)
		}
		pkg, err := rt.Submit(context.Background(), p, c, toolresult.NewApproval(b, "a", "reviewer", time.Unix(now+60, 0)))
		if err != nil {
			t.Fatal(err)
		}
		refs[key] = pkg.StatusRef()
		switch key {
		case "pending":
		case "processing":
			_, err = rt.Process(drill.StopAt(context.Background(), drill.AfterClaim), refs[key], "worker", nil)
		default:
			_, err = rt.Process(context.Background(), refs[key], "worker", nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		now += 10
	}
	return rt, refs
}

// TestList: each filter, both orders, and pages of any size, also of few that are looked
// at.
func TestList(t *testing.T) {
	const began = 1_784_419_200
	at := func(s int64) time.Time { return time.Unix(began+s, 0) }
	all := []string{"pending", "processing", "succeeded", "failed", "in_review", "other", "tenant"}
	tests := []struct {
		name string
		o    toolruntime.ListOptions
		want []string
	}{
		{"all", toolruntime.ListOptions{}, all},
		{"pending", toolruntime.ListOptions{State: toolruntime.StatePending}, all[:1]},
		{"processing", toolruntime.ListOptions{State: toolruntime.StateProcessing}, all[1:2]},
		{"failed", toolruntime.ListOptions{State: toolruntime.StateFailed}, all[3:4]},
		{"in review", toolruntime.ListOptions{State: toolruntime.StateInReview}, all[4:5]},
		{"of a tool", toolruntime.ListOptions{Tool: "other"}, all[5:6]},
		{"of no tool", toolruntime.ListOptions{Tool: "Other"}, nil},
		{"of a tenant", toolruntime.ListOptions{Tenant: "another"}, all[6:]},
		{"of a tool and a tenant", toolruntime.ListOptions{Tool: "other", Tenant: "another"}, nil},
		{"since", toolruntime.ListOptions{Since: at(20)}, all[2:]},
		{"since a moment later", toolruntime.ListOptions{Since: at(20).Add(1)}, all[3:]},
		{"until", toolruntime.ListOptions{Until: at(20)}, all[:2]},
		{"between", toolruntime.ListOptions{Since: at(20), Until: at(40).Add(1)}, all[2:5]},
		{"succeeded, between", toolruntime.ListOptions{State: toolruntime.StateSucceeded, Since: at(30), Until: at(60)}, all[5:6]},
		{"since the beginning", toolruntime.ListOptions{Since: time.Unix(math.MinInt64/2, 0), Until: time.Unix(math.MaxInt64/2, 0)}, all},
	}
	onBothEngines(t, func(t *testing.T, open func(*testing.T) (*toolruntime.Store, error)) {
		rt, refs := listed(t, open)
		keys := map[string]string{}
		for key, ref := range refs {
			keys[ref] = key
		}
		for _, tt := range tests {
			for _, oldest := range []bool{true, false} {
				for _, limit := range []int{0, 1, 2, 3, 7, 1000} {
					for name, list := range map[string]func(context.Context, *toolruntime.ListOptions) (*toolruntime.ListPage, error){
						"": rt.List, ", few at once": rt.TestingOnlyListInParts} {
						t.Run(fmt.Sprintf("%s/oldest=%v/by %d%s", tt.name, oldest, limit, name), func(t *testing.T) {
							o := tt.o
							o.Oldest, o.Limit = oldest, limit
							var got []string
							for pages := 1; ; pages++ {
								page, err := list(context.Background(), &o)
								if err != nil {
									t.Fatal(err)
								}
								if limit > 0 && len(page.Operations) > limit || pages > 9 {
									t.Fatalf("page %d has %d operations", pages, len(page.Operations))
								}
								for _, v := range page.Operations {
									got = append(got, keys[v.StatusRef])
								}
								if o.After = page.Next; o.After == "" {
									break
								}
							}
							if !oldest {
								slices.Reverse(got)
							}
							if diff := cmp.Diff(tt.want, got); diff != "" {
								t.Errorf("(-want +got):\n%s", diff)
							}
						})
					}
				}
			}
		}
	})
}

// TestListShows: what a list says of an operation.
func TestListShows(t *testing.T) {
	const began = 1_784_419_200
	at := func(s int64) time.Time { return time.Unix(began+s, 0) }
	onBothEngines(t, func(t *testing.T, open func(*testing.T) (*toolruntime.Store, error)) {
		rt, refs := listed(t, open)
		page, err := rt.List(context.Background(), &toolruntime.ListOptions{Oldest: true, Limit: 5})
		if err != nil || page.Next == "" {
			t.Fatalf("%+v, %v", page, err)
		}
		want := []toolruntime.Operation{
			{StatusRef: refs["pending"], Tool: "pay", State: toolruntime.StatePending, AcceptedAt: at(0), ChangedAt: at(0), DueAt: at(0)},
			{StatusRef: refs["processing"], Tool: "pay", State: toolruntime.StateProcessing, Attempts: 1, AcceptedAt: at(10), ChangedAt: at(10), Worker: "worker", DueAt: at(40)},
			{StatusRef: refs["succeeded"], Tool: "pay", State: toolruntime.StateSucceeded, Attempts: 1, AcceptedAt: at(20), ChangedAt: at(20), EndedAt: at(20)},
			{StatusRef: refs["failed"], Tool: "pay", State: toolruntime.StateFailed, Reason: toolresult.ToolError, Attempts: 1, AcceptedAt: at(30), ChangedAt: at(30), EndedAt: at(30)},
			{StatusRef: refs["in_review"], Tool: "pay", State: toolruntime.StateInReview, Reason: toolresult.OutcomeUnknown, Attempts: 1, AcceptedAt: at(40), ChangedAt: at(40)},
		}
		if diff := cmp.Diff(want, page.Operations); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestListRefuses: what nothing can fit, and cursors that are none, or of something else.
func TestListRefuses(t *testing.T) {
	onBothEngines(t, func(t *testing.T, open func(*testing.T) (*toolruntime.Store, error)) {
		rt, _ := listed(t, open)
		page, err := rt.List(context.Background(), &toolruntime.ListOptions{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		next := page.Next
		now := time.Unix(1, 0)
		for _, tt := range []struct {
			name, field string
			o           toolruntime.ListOptions
		}{
			{"state", "state", toolruntime.ListOptions{State: "done"}},
			{"tool", "tool", toolruntime.ListOptions{Tool: " "}},
			{"tenant", "tenant", toolruntime.ListOptions{Tenant: "\t"}},
			{"a negative limit", "limit", toolruntime.ListOptions{Limit: -1}},
			{"a large limit", "limit", toolruntime.ListOptions{Limit: 1001}},
			{"no time", "until", toolruntime.ListOptions{Since: now, Until: now}},
			{"another order", "after", toolruntime.ListOptions{After: next, Oldest: true}},
			{"no cursor", "after", toolruntime.ListOptions{After: "status_0123456789abcdef0123456789abcdef"}},
			{"cut off", "after", toolruntime.ListOptions{After: next[:len(next)-1]}},
			{"longer", "after", toolruntime.ListOptions{After: next + "A"}},
			{"mistyped", "after", toolruntime.ListOptions{After: "V" + next[1:]}},
			{"mistyped, in the middle", "after", toolruntime.ListOptions{After: next[:2] + "_" + next[3:]}},
		} {
			t.Run(tt.name, func(t *testing.T) {
				var input *toolresult.InputError
				if page, err := rt.List(context.Background(), &tt.o); !errors.As(err, &input) || input.Field != tt.field {
					t.Errorf("%+v, %v", page, err)
				}
			})
		}
	})
}
