package scenario

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

func readCase(data []byte) error {
	_, err := ReadCase(data)
	return err
}

func TestReadCase(t *testing.T) {
	got, err := ReadCase(readFile(t, "refund.case.json"))
	if err != nil {
		t.Fatal(err)
	}
	want := &Case{
		Principal: toolresult.Principal{TenantID: "tenant-a", SubjectID: "user-1", Roles: []string{}},
		Call: toolresult.NewCall(
			toolresult.Proposal{Name: "create_refund_draft", Arguments: []byte(`{"order_ref":"ORDER-7","reason":"duplicate"}`)},
			toolresult.ExecutionContext{Provider: "openai", APIFamily: "responses", ResponseID: "response-1", CallID: "call-1",
				OperationID: "operation-1", IdempotencyKey: "refund-order-7", AdapterRevision: "openai-responses-v1"}),
		ApprovalMode: "valid",
		Now:          1_784_419_200,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadCaseDocument(t *testing.T) {
	documentTests(t, readFile(t, "refund.case.json"), readCase)
}

func TestReadCaseRejects(t *testing.T) {
	const (
		object  = "must be an object"
		str     = "must be a string"
		blank   = "must not be blank"
		integer = "must be an integer"
		between = "must be between 0 and 253402300769"
		modes   = "must be one of none, valid, expired, mismatched"
		roles   = "principal.roles: must be sorted and unique"
		profile = "execution_context: provider profile is not registered, or its adapter_revision is not the registered one"
	)
	table := []rejection{
		{"", []any{}, "root: " + object},
		{"", nil, "root: " + object},
		{"extra", true, "root fields: 1 are not in the contract"},
		{"schema_version", "persistent-tool-case-v2", "schema_version: must be persistent-tool-case-v1"},
		{"schema_version", int64(1), "schema_version: " + str},
		{"principal", nil, "principal: " + object},
		{"principal.extra", nil, "principal fields: 1 are not in the contract"},
		{"principal.roles", "admin", "principal.roles: must be an array"},
		{"principal.roles", []any{"a", true}, "principal.roles[1]: " + str},
		{"principal.roles", []any{"\u2003"}, "principal.roles[0]: " + blank},
		{"principal.roles", []any{"z", "a"}, roles},
		{"principal.roles", []any{"a", "a"}, roles},
		{"principal.roles", []any{"\U00010000", "\uffff"}, roles},
		{"proposal", []any{}, "proposal: " + object},
		{"proposal.extra", int64(1), "proposal fields: 1 are not in the contract"},
		{"proposal.name", "get_order", "proposal.name: must be create_refund_draft"},
		{"proposal.name", nil, "proposal.name: " + str},
		{"proposal.arguments", []any{}, "proposal.arguments: " + object},
		{"proposal.arguments", nil, "proposal.arguments: " + object},
		{"execution_context", "x", "execution_context: " + object},
		{"execution_context.extra", "x", "execution_context fields: 1 are not in the contract"},
		{"execution_context.idempotency_key", nil, "execution_context.idempotency_key: " + str},
		{"execution_context.idempotency_key", "", "execution_context.idempotency_key: must have 1 to 255 code points"},
		{"execution_context.idempotency_key", strings.Repeat("é", 256), "execution_context.idempotency_key: must have 1 to 255 code points"},
		{"execution_context.adapter_revision", "invented", profile},
		{"execution_context.provider", "anthropic", profile},
		{"execution_context.api_family", "messages", profile},
		{"approval_mode", "Valid", "approval_mode: " + modes},
		{"approval_mode", nil, "approval_mode: " + str},
		{"now", true, "now: " + integer},
		{"now", 1784419200.0, "now: " + integer},
		{"now", "1784419200", "now: " + integer},
		{"now", nil, "now: " + integer},
		{"now", int64(-1), "now: " + between},
		{"now", contract.MaxTime, "now: " + between},
		{"now", contract.MaxTime - 29, "now: " + between},
	}
	rejectionTests(t, readFile(t, "refund.case.json"), readCase, table)
}

func TestReadCaseRejectsFields(t *testing.T) {
	var table []rejection
	for _, f := range []string{"principal.tenant_id", "principal.subject_id", "execution_context.provider",
		"execution_context.api_family", "execution_context.response_id", "execution_context.call_id",
		"execution_context.operation_id", "execution_context.adapter_revision"} {
		table = append(table, rejection{f, " \u001f", f + ": must not be blank"}, rejection{f, int64(1), f + ": " + notString})
	}
	for _, f := range []string{"schema_version", "principal", "proposal", "execution_context", "approval_mode", "now"} {
		table = append(table, rejection{f, removed{}, "root fields: " + f + " is missing"})
	}
	for place, fields := range map[string][]string{
		"principal": {"tenant_id", "subject_id", "roles"},
		"proposal":  {"name", "arguments"},
		"execution_context": {"provider", "api_family", "response_id", "call_id", "operation_id",
			"idempotency_key", "adapter_revision"},
	} {
		for _, f := range fields {
			table = append(table, rejection{place + "." + f, removed{}, place + " fields: " + f + " is missing"})
		}
	}
	rejectionTests(t, readFile(t, "refund.case.json"), readCase, table)
}

func TestReadCaseReportsEveryProblem(t *testing.T) {
	data := edited(t, readFile(t, "refund.case.json"), "now", false)
	data = edited(t, data, "principal.roles", []any{"z", "", "a"})
	data = edited(t, data, "execution_context.call_id", "")
	data = edited(t, data, "extra", "x")
	want := []string{
		"root fields: 1 are not in the contract",
		"principal.roles[1]: must not be blank",
		"principal.roles: must be sorted and unique",
		"execution_context.call_id: must not be blank",
		"now: must be an integer",
	}
	if diff := cmp.Diff(want, problemsOf(t, readCase(data))); diff != "" {
		t.Error(diff)
	}
}

// The file is good, and the values in it are the runtime's to refuse: with an
// InputError, whatever made them.
func TestReadCaseLeavesLimitsToTheRuntime(t *testing.T) {
	long := strings.Repeat("x", 256)
	many := make([]any, 33)
	for i := range many {
		many[i] = string(rune('a'+i/26)) + string(rune('a'+i%26))
	}
	for _, tt := range []struct {
		path  string
		value any
	}{
		{"principal.tenant_id", long},
		{"principal.subject_id", long},
		{"principal.roles", []any{long}},
		{"principal.roles", many},
		{"execution_context.response_id", long},
		{"execution_context.call_id", long},
		{"execution_context.operation_id", long},
		{"execution_context.idempotency_key", " "},
	} {
		t.Run(tt.path, func(t *testing.T) {
			c, err := ReadCase(edited(t, readFile(t, "refund.case.json"), tt.path, tt.value))
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(c.Principal.Check(), c.Call.Check()); !errors.Is(err, toolresult.ErrInvalidInput) {
				t.Errorf("got %v, want an InputError", err)
			}
		})
	}
}

func TestReadCaseAccepts(t *testing.T) {
	for _, tt := range []struct {
		path  string
		value any
	}{
		{"now", int64(0)},
		{"now", contract.MaxTime - 30},
		{"principal.roles", []any{"a", "b", "\uffff", "\U00010000"}},
		{"principal.tenant_id", "\u200b"},
		{"execution_context.idempotency_key", strings.Repeat("\U0001f600", 255)},
		{"proposal.arguments", map[string]any{}},
		{"proposal.arguments", map[string]any{"x": []any{nil, 1.0, "<"}}},
		{"approval_mode", "mismatched"},
	} {
		if err := readCase(edited(t, readFile(t, "refund.case.json"), tt.path, tt.value)); err != nil {
			t.Errorf("%s: %v", tt.path, err)
		}
	}
}

func bound(t testing.TB) (*Case, *toolresult.Bound) {
	t.Helper()
	c, err := ReadCase(readFile(t, "refund.case.json"))
	if err != nil {
		t.Fatal(err)
	}
	specs, err := exampleSpecs()
	if err != nil {
		t.Fatal(err)
	}
	b, err := toolresult.Bind(c.Principal, c.Call, specs[c.Call.Name].Contract())
	if err != nil {
		t.Fatal(err)
	}
	return c, b
}

func TestApprovals(t *testing.T) {
	c, b := bound(t)
	approval := func(edit func(*toolresult.Approval)) []toolresult.Approval {
		a := toolresult.NewApproval(b, "approval-call-1", "human-reviewer-1", time.Unix(c.Now+60, 0))
		edit(&a)
		return []toolresult.Approval{a}
	}
	for _, tt := range []struct {
		mode   string
		want   []toolresult.Approval
		covers bool
	}{
		{"none", nil, false},
		{"valid", approval(func(*toolresult.Approval) {}), true},
		{"expired", approval(func(a *toolresult.Approval) { a.ExpiresAt = c.Now - 1 }), false},
		{"mismatched", approval(func(a *toolresult.Approval) { a.ApprovalDigest = strings.Repeat("0", 64) }), false},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			c.ApprovalMode = tt.mode
			got, err := c.Approvals(b)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if covers := slices.ContainsFunc(got, func(a toolresult.Approval) bool { return a.Covers(b, time.Unix(c.Now, 0)) }); covers != tt.covers {
				t.Errorf("covers the call: %t, want %t", covers, tt.covers)
			}
		})
	}
}

func TestApprovalsLimits(t *testing.T) {
	_, b := bound(t)
	for _, tt := range []struct {
		mode  string
		now   int64
		field string // "" is no error
	}{
		{"none", contract.MaxTime - 30, ""},
		{"valid", contract.MaxTime - 60, ""},
		{"expired", 0, ""},
		{"valid", contract.MaxTime - 59, "now + approval_seconds"},
		{"expired", contract.MaxTime - 59, "now + approval_seconds"},
		{"mismatched", contract.MaxTime - 30, "now + approval_seconds"},
		{"valid", -1, "now"},
		{"", 1, "approval_mode"},
		{"VALID", 1, "approval_mode"},
	} {
		_, err := Approvals(b, tt.mode, tt.now)
		var input *toolresult.InputError
		if errors.As(err, &input); tt.field == "" && err != nil || tt.field != "" && (input == nil || input.Field != tt.field) {
			t.Errorf("%s at %d: got %v, want field %q", tt.mode, tt.now, err, tt.field)
		}
	}
}
