package conformance

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/scenario"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

const seedFixture = "../examples/refunds/case.json"

// maxFixtureBytes is the contract's limit of a scenario file.
const maxFixtureBytes = 65536

var fixtureBoundaryTests = map[string]seedTest{
	"test_fixture_loads_exact_contract": onFiles(func(t *testing.T) {
		if _, err := loadFixture(seedFixture); err != nil {
			t.Error(err)
		}
		wantEqual(t, "schema version", any("persistent-tool-case-v1"), fixtureTree(t)["schema_version"])
	}),

	"test_fixture_builds_v2_principal_and_call": onFiles(func(t *testing.T) {
		c, err := loadFixture(seedFixture)
		if err != nil {
			t.Fatal(err)
		}
		var actor toolresult.Principal = c.Principal
		var call toolresult.Call = c.Call
		if err := errors.Join(actor.Check(), call.Check()); err != nil {
			t.Error(err)
		}
		wantEqual(t, "tool", "create_refund_draft", call.Name)
	}),

	"test_duplicate_json_key_is_rejected": onFiles(func(t *testing.T) {
		rejectFile(t, []byte(`{"schema_version":"a","schema_version":"b"}`))
	}),

	"test_nonfinite_json_is_rejected": onFiles(func(t *testing.T) {
		rejectFile(t, []byte(`{"value":NaN}`))
	}),

	"test_invalid_utf8_is_rejected": onFiles(func(t *testing.T) {
		rejectFile(t, []byte("\xff"))
	}),

	"test_oversize_fixture_is_rejected": onFiles(func(t *testing.T) {
		rejectFile(t, []byte(strings.Repeat(" ", maxFixtureBytes+1)))
	}),

	"test_nested_fixture_is_rejected_before_decoder": onFiles(func(t *testing.T) {
		err := rejectFile(t, []byte(deeplyNestedJSON(t)))
		wantMention(t, "nesting", []string{err.Error()})
	}),

	"test_extra_root_field_is_rejected": onFiles(func(t *testing.T) {
		tree := fixtureTree(t)
		tree["extra"] = true
		wantMention(t, "root fields", rejectTree(t, tree))
	}),

	"test_roles_must_be_sorted_and_unique": onFiles(func(t *testing.T) {
		tree := fixtureTree(t)
		tree["principal"].(map[string]any)["roles"] = []string{"z", "a", "a"}
		wantMention(t, "roles", rejectTree(t, tree))
	}),

	"test_boolean_now_is_rejected": onFiles(func(t *testing.T) {
		tree := fixtureTree(t)
		tree["now"] = true
		wantMention(t, "now", rejectTree(t, tree))
		// A portable time that leaves no room for a lease.
		tree["now"] = contract.MaxTime
		wantMention(t, "now", rejectTree(t, tree))
	}),

	"test_provider_revision_mismatch_is_rejected": onFiles(func(t *testing.T) {
		tree := fixtureTree(t)
		tree["execution_context"].(map[string]any)["adapter_revision"] = "invented"
		wantMention(t, "provider profile", rejectTree(t, tree))
	}),

	"test_missing_idempotency_key_is_rejected": onFiles(func(t *testing.T) {
		tree := fixtureTree(t)
		tree["execution_context"].(map[string]any)["idempotency_key"] = nil
		wantMention(t, "idempotency_key", rejectTree(t, tree))
	}),

	"test_non_write_tool_is_rejected": onFiles(func(t *testing.T) {
		tree := fixtureTree(t)
		tree["proposal"].(map[string]any)["name"] = "get_order"
		wantMention(t, "create_refund_draft", rejectTree(t, tree))
	}),
}

func loadFixture(path string) (*scenario.Case, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return scenario.ReadCase(data)
}

// fixtureTree is the fixture's document, to be changed.
func fixtureTree(t *testing.T) map[string]any {
	t.Helper()
	data, err := os.ReadFile(seedFixture)
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

// rejectFile wants a file with the given bytes to be refused as a fixture.
func rejectFile(t *testing.T, data []byte) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "case.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := loadFixture(path)
	if !errors.Is(err, scenario.ErrFixture) {
		t.Fatalf("error: %v, want one that is: %v", err, scenario.ErrFixture)
	}
	return err
}

// rejectTree wants a document to be refused and returns every reason.
func rejectTree(t *testing.T, tree map[string]any) []string {
	t.Helper()
	data, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	_, err = scenario.ReadCase(data)
	var refusal *scenario.FixtureError
	if !errors.As(err, &refusal) {
		t.Fatalf("error: %v, want a FixtureError", err)
	}
	return refusal.Problems
}
