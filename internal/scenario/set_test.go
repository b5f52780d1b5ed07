package scenario

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
	"github.com/toolruntime/toolruntime-go/internal/contract"
)

func readSet(data []byte) error {
	_, err := ReadSet(data)
	return err
}

// smallSet is a dispatch that times out after its commit and a status query.
func smallSet(t testing.TB) []byte {
	t.Helper()
	set := readFile(t, "refunds.cases.json")
	tree, err := canonjson.Parse(set)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range tree.(map[string]any)["cases"].([]any) {
		if c.(map[string]any)["id"] == "lost-receipt" {
			return edited(t, set, "cases", []any{c})
		}
	}
	t.Fatal("no such case")
	return nil
}

func TestReadSetDocument(t *testing.T) { documentTests(t, smallSet(t), readSet) }

// The places and rules that the rejections of a set share.
const (
	step0   = "cases.0.steps.0"
	step1   = "cases.0.steps.1"
	inStep  = "cases[0].steps[0]"
	inQuery = "cases[0].steps[1]"

	notObject = "must be an object"
	notString = "must be a string"
	unknown1  = " fields: 1 are not in the contract"
	tooLong   = "must have at most 255 code points"
)

var longID = strings.Repeat("x", 256)

func TestReadSetRejectsCases(t *testing.T) {
	rejectionTests(t, smallSet(t), readSet, []rejection{
		{"", "x", "root: " + notObject},
		{"extra", nil, "root" + unknown1},
		{"schema_version", "tool-cases-v1", "schema_version: must be tool-cases-v2"},
		{"contract", "tool-model-result-v2", "contract: " + notObject},
		{"contract.extra", "x", "contract" + unknown1},
		{"contract.model_result", "tool-model-result-v1", "contract.model_result: must be tool-model-result-v2"},
		{"contract.protected_audit", "x", "contract.protected_audit: must be tool-audit-v2"},
		{"cases", map[string]any{}, "cases: must be an array"},
		{"cases", []any{}, "cases: must have 1 to 256 entries"},
		{"cases", slices.Repeat([]any{nil}, 257), "cases: must have 1 to 256 entries"},
		{"cases.0", nil, "cases[0]: " + notObject},
		{"cases.0.extra", nil, "cases[0]" + unknown1},
		{"cases.0.id", longID, "cases[0].id: " + tooLong},
		{"cases.0.principal.extra", nil, "cases[0].principal" + unknown1},
		{"cases.0.principal.roles", []any{"b", "a"}, "cases[0].principal.roles: must be sorted and unique"},
		{"cases.0.principal.roles", []any{longID}, "cases[0].principal.roles[0]: " + tooLong},
		{"cases.0.principal.roles", roleNames(33), "cases[0].principal.roles: must have at most 32 entries"},
	})
}

func TestReadSetRejectsSteps(t *testing.T) {
	const (
		ref     = ".status_ref_from: must name an earlier step of the case"
		profile = ".execution_context: provider profile is not registered, or its adapter_revision is not the registered one"
		between = ".now: must be between 0 and 253402300739"
	)
	rejectionTests(t, smallSet(t), readSet, []rejection{
		{step1, []any{}, inQuery + ": " + notObject},
		{step0 + ".extra", nil, inStep + unknown1},
		{step0 + ".action", "process", inStep + ".action: must be one of dispatch, query_status"},
		{step0 + ".action", true, inStep + ".action: " + notString},
		{step0 + ".proposal.extra", nil, inStep + ".proposal" + unknown1},
		{step0 + ".proposal.arguments", "x", inStep + ".proposal.arguments: " + notObject},
		{step0 + ".execution_context.extra", nil, inStep + ".execution_context" + unknown1},
		{step0 + ".execution_context.idempotency_key", "", inStep + ".execution_context.idempotency_key: must not be blank"},
		{step0 + ".execution_context.adapter_revision", "invented", inStep + profile},
		{step0 + ".approval", "yes", inStep + ".approval: must be one of none, valid, expired, mismatched"},
		{step0 + ".now", true, inStep + ".now: must be an integer"},
		{step0 + ".now", 1.0, inStep + ".now: must be an integer"},
		{step0 + ".now", int64(-1), inStep + between},
		{step0 + ".now", contract.MaxTime - 59, inStep + between},
		{step0 + ".failure", "after_claim", inStep + ".failure: must be one of none, timeout_before_execute, " +
			"timeout_after_commit, timeout_after_commit_receipt_unavailable, rate_limit, tool_error"},
		{step0 + ".failure", nil, inStep + ".failure: " + notString},
		{step0 + ".status_ref_from", "ask", inStep + ".status_ref_from: must be null in a dispatch"},
		{step0 + ".status_ref_from", "", inStep + ".status_ref_from: must not be blank"},
		{step1 + ".step_id", "times-out", inQuery + ".step_id: must be unique in its case"},
		{step1 + ".status_ref_from", nil, inQuery + ref},
		{step1 + ".status_ref_from", "ask", inQuery + ref},
		{step1 + ".status_ref_from", "later", inQuery + ref},
		{step1 + ".status_ref_from", int64(0), inQuery + ".status_ref_from: " + notString},
		{step1 + ".approval", "valid", inQuery + ".approval: must be none in a status query"},
		{step1 + ".failure", "rate_limit", inQuery + ".failure: must be none in a status query"},
	})
}

func TestReadSetRejectsExpected(t *testing.T) {
	rejectionTests(t, smallSet(t), readSet, []rejection{
		{step0 + ".expected", nil, inStep + ".expected: " + notObject},
		{step0 + ".expected.extra", nil, inStep + ".expected" + unknown1},
		{step0 + ".expected.code", "FAILED", inStep + ".expected.code: must be OK or a code of the catalogue"},
		{step0 + ".expected.code", nil, inStep + ".expected.code: " + notString},
		{step0 + ".expected.recovery", nil, inStep + ".expected.recovery: " + notString},
		{step0 + ".expected.data", []any{}, inStep + ".expected.data: must be an object or null"},
		{step0 + ".expected.side_effect_count", int64(-1), inStep + ".expected.side_effect_count: must be between 0 and 9007199254740991"},
		{step0 + ".expected.side_effect_count", false, inStep + ".expected.side_effect_count: must be an integer"},
		{step0 + ".expected.side_effect_count", 1.0, inStep + ".expected.side_effect_count: must be an integer"},
	})
}

func TestReadSetRejectsIdentifiers(t *testing.T) {
	var table []rejection
	for _, f := range []string{"cases.0.id", "cases.0.principal.tenant_id", "cases.0.principal.subject_id",
		step1 + ".step_id", step0 + ".proposal.name", step0 + ".execution_context.response_id",
		step0 + ".execution_context.call_id", step0 + ".execution_context.operation_id",
		step0 + ".execution_context.idempotency_key", step0 + ".execution_context.provider"} {
		place := shown(f)
		table = append(table,
			rejection{f, "\t", place + ": must not be blank"},
			rejection{f, longID, place + ": " + tooLong},
			rejection{f, int64(1), place + ": " + notString})
	}
	rejectionTests(t, smallSet(t), readSet, table)
}

func TestReadSetRejectsMissingFields(t *testing.T) {
	var table []rejection
	for place, names := range map[string][]string{
		"": {"schema_version", "contract", "cases"}, "contract": {"model_result", "protected_audit"},
		"cases.0":           {"id", "principal", "steps"},
		"cases.0.principal": {"tenant_id", "subject_id", "roles"},
		step1: {"step_id", "action", "proposal", "execution_context", "approval", "now", "failure",
			"status_ref_from", "expected"},
		step1 + ".proposal": {"name", "arguments"},
		step1 + ".execution_context": {"provider", "api_family", "response_id", "call_id", "operation_id",
			"idempotency_key", "adapter_revision"},
		step1 + ".expected": {"code", "status", "outcome", "recovery", "delivery", "data", "side_effect_count"},
	} {
		for _, f := range names {
			if place == "" {
				table = append(table, rejection{f, removed{}, "root fields: " + f + " is missing"})
				continue
			}
			table = append(table, rejection{place + "." + f, removed{}, shown(place) + " fields: " + f + " is missing"})
		}
	}
	rejectionTests(t, smallSet(t), readSet, table)
}

func TestReadSetReportsEveryProblem(t *testing.T) {
	data := edited(t, smallSet(t), "cases.0.steps.0.step_id", " ")
	data = edited(t, data, "cases.0.steps.0.now", "now")
	want := []string{
		"cases[0].steps[0].now: must be an integer",
		"cases[0].steps[0].step_id: must not be blank",
		"cases[0].steps[1].status_ref_from: must name an earlier step of the case",
	}
	if diff := cmp.Diff(want, problemsOf(t, readSet(data))); diff != "" {
		t.Error(diff)
	}
}

func TestReadSetIDs(t *testing.T) {
	tree, err := canonjson.Parse(smallSet(t))
	if err != nil {
		t.Fatal(err)
	}
	c := tree.(map[string]any)["cases"].([]any)[0]
	twice := edited(t, smallSet(t), "cases", []any{c, c})
	if diff := cmp.Diff([]string{"cases[1].id: must be unique"}, problemsOf(t, readSet(twice))); diff != "" {
		t.Error(diff)
	}
	if err := readSet(edited(t, twice, "cases.1.id", "another")); err != nil {
		t.Errorf("step ids need be unique in their case only: %v", err)
	}
}

func TestReadSetAccepts(t *testing.T) {
	for _, tt := range []struct {
		path  string
		value any
	}{
		{"cases.0.steps.0.now", int64(0)},
		{"cases.0.steps.0.now", contract.MaxTime - 60},
		{"cases.0.principal.roles", roleNames(32)},
		{"cases.0.steps.0.execution_context.idempotency_key", nil},
		{"cases.0.steps.0.proposal.name", "anything"},
		{"cases.0.steps.0.expected.status", "whatever"},
		{"cases.0.steps.0.expected.data", map[string]any{}},
		{"cases.0.id", strings.Repeat("é", 255)},
	} {
		if err := readSet(edited(t, smallSet(t), tt.path, tt.value)); err != nil {
			t.Errorf("%s: %v", tt.path, err)
		}
	}
}

// shown is a path of the tests as problems show it.
func shown(path string) string {
	return strings.NewReplacer("cases.0", "cases[0]", "steps.0", "steps[0]", "steps.1", "steps[1]").Replace(path)
}

// roleNames returns n sorted, unique roles.
func roleNames(n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = string(rune('a'+i/26)) + string(rune('a'+i%26))
	}
	return list
}
