package toolruntime_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// TestBadArguments: whatever a model sends as arguments ends in a package, the same
// one for the same bytes. Nothing of it is kept, so the corrected call is free to go.
func TestBadArguments(t *testing.T) {
	ctx := context.Background()
	for _, tt := range []struct{ name, arguments, problem string }{
		{"nothing", "", "/amount: is missing"},
		{"blank", " \n", "/amount: is missing"},
		{"null", "null", "/amount: is missing"},
		{"an empty string", `""`, "/amount: is missing"},
		{"a float", `{"amount":5.0}`, "/amount: must be an integer: write it without a fraction or an exponent"},
		{"text", `{"amount":"5"}`, "/amount: must be an integer, not a string"},
		{"the object as text", `"{\"amount\":5}"`, "/: must be an object, not a string"},
		{"cut", `{"amount":5`, "/: is not whole JSON: cut off or malformed"},
		{"a repeated key", `{"amount":5,"amount":5}`, "/amount: stands there twice: send each field once"},
		{"beyond 2^53", `{"amount":9007199254740992}`, "/amount: integer beyond 2^53, send it as a string"},
		{"too deep", strings.Repeat("[", 99), "/: nested deeper than 31 levels"},
		{"too large", `{"amount":"` + strings.Repeat("5", 70_000) + `"}`, "/: more than 65536 bytes"},
		{"not UTF-8", "{\"amount\":\"\xff\"}", "/: is not valid UTF-8"},
		{"half a surrogate", `{"amount":"\ud800"}`, "/amount: has half of a surrogate pair"},
		{"infinite", `{"amount":1e999}`, "/amount: is no finite number"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, toolruntime.Idempotent)
			bad := payCall()
			bad.CallID, bad.Arguments = "bad", []byte(tt.arguments)
			ref := f.bound().StatusRef()
			var first *toolresult.Package
			for name, answer := range map[string]func() (*toolresult.Package, error){
				"dispatch": func() (*toolresult.Package, error) { return f.Dispatch(ctx, payer, bad, nil) },
				"again":    func() (*toolresult.Package, error) { return f.Dispatch(ctx, payer, bad, nil) },
				"submit":   func() (*toolresult.Package, error) { return f.Submit(ctx, payer, bad) },
				"query":    func() (*toolresult.Package, error) { return f.QueryStatus(ctx, payer, bad, ref, nil) },
			} {
				pkg, err := answer()
				if err != nil || pkg.Code() != toolresult.InvalidArguments {
					t.Fatalf("%s: %v, %v", name, pkg, err)
				}
				if first == nil {
					first = pkg
				}
				if diff := cmp.Diff(first, pkg); diff != "" {
					t.Errorf("%s: another package: %s", name, diff)
				}
			}
			if diff := cmp.Diff(tt.problem, first.Problems[0].String()); diff != "" {
				t.Error(diff)
			}
			expected, err := f.Expect(payer, bad)
			if err != nil {
				t.Fatal(err)
			}
			if problems := toolresult.Validate(expected.Bound, expected.Spec, first); problems != nil {
				t.Errorf("not valid: %v", problems)
			}
			text, err := json.Marshal(first)
			if err != nil || strings.Contains(string(text), "roblems") {
				t.Errorf("the problems are in a projection: %s, %v", text, err)
			}
			if c, err := f.Counts(ctx); err != nil || c != (toolruntime.Counts{}) {
				t.Errorf("something is kept: %+v, %v", c, err)
			}
			if pkg, err := f.dispatch(alive); err != nil || pkg.Code() != toolresult.OK || pkg.Problems != nil {
				t.Errorf("corrected: %v, %v", pkg, err)
			}
		})
	}
}

// TestRefusedCall: a call that an adapter has refused is not carried out, although
// everything else about it is right.
func TestRefusedCall(t *testing.T) {
	f := newFixture(t, toolruntime.Idempotent)
	refused := payCall().Refuse(toolresult.Problem{Path: "call id", Rule: "is that of two calls"})
	b, err := f.Bind(payer, refused)
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := f.Dispatch(context.Background(), payer, refused, &toolruntime.DispatchOptions{
		Approvals: []toolresult.Approval{toolresult.NewApproval(b, "a", "reviewer", time.Unix(f.time()+60, 0))}})
	if err != nil || pkg.Code() != toolresult.InvalidArguments || f.bank.calls != 0 {
		t.Fatalf("%v, %v, %d effects", pkg, err, f.bank.calls)
	}
	if diff := cmp.Diff([]toolresult.Problem{{Path: "call id", Rule: "is that of two calls"}}, pkg.Problems); diff != "" {
		t.Error(diff)
	}
	refused.Name = "other"
	if pkg, err := f.Dispatch(context.Background(), payer, refused, nil); err != nil || pkg.Code() != toolresult.UnknownTool {
		t.Errorf("of no tool: %v, %v", pkg, err)
	}
}
