package toolresult_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/schema"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A subject is a valid package of some kind, whose every field gets mutated.
type subject struct {
	name  string
	bound *toolresult.Bound
	spec  *toolresult.Spec
	pkg   *toolresult.Package
}

func subjects(t *testing.T) []subject {
	refund, order := refundSpec(t), orderSpec(t)
	b, read := bind(t, refundCall(), refund.Contract()), bind(t, orderCall(), order.Contract())
	stranger := bind(t, callOf("drop_table", `{}`), toolresult.UnregisteredContract("drop_table"))
	list := []subject{
		{"read", read, order, read.Success(order.Source(), orderEvidence(), toolresult.Fresh)},
		{"stranger", stranger, nil, stranger.Failure(toolresult.UnknownTool, "", time.Unix(now, 0))},
	}
	for _, d := range []toolresult.Delivery{toolresult.Fresh, toolresult.LocalReplay, toolresult.ReceiptReconciled} {
		list = append(list, subject{"write " + string(d), b, refund, b.Success(refund.Source(), refundEvidence(b), d)})
	}
	for _, e := range toolresult.Catalogue() {
		list = append(list, subject{string(e.Code), b, refund, b.Failure(e.Code, statusRefOf(b, e.Code), time.Unix(now, 0))})
	}
	return list
}

// A mutant is a package with one difference at path.
type mutant struct {
	what, path string
	value      any // of a change
	tree       map[string]any
}

func (m mutant) String() string { return fmt.Sprintf("%s %s %#v", m.what, m.path, m.value) }

var strangeValues = []any{
	nil, true, false, int64(0), int64(1), int64(1000), 1000.0, -1.5, "", " ", "\u001c", "x", "\u200b", "fresh", "local_replay",
	"succeeded", "failed", "unknown", "committed", "NOT_FOUND", "2026-02-30T00:00:00Z", "2027-01-01T00:00:00Z",
	"status_0123456789abcdef0123456789abcdef", "status_0123456789ABCDEF0123456789ABCDEF", strings.Repeat("0", 64),
	[]any{}, []any{"x"}, []any{" "}, []any{int64(1)}, map[string]any{}, map[string]any{"x": "x"},
}

// mutants returns every way to change, drop and add one field of a package.
func mutants(t *testing.T, pkg *toolresult.Package) []mutant {
	raw := encode(t, pkg)
	var list []mutant
	add := func(what string, path []string, value any, edit func(parent map[string]any)) {
		root := tree(t, raw)
		parent := root
		for _, step := range path[:len(path)-1] {
			parent = parent[step].(map[string]any)
		}
		edit(parent)
		list = append(list, mutant{what, strings.Join(path, "."), value, root})
	}
	var walk func(m map[string]any, path []string)
	walk = func(m map[string]any, path []string) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			at := append(slices.Clone(path), key)
			add("drop", at, nil, func(parent map[string]any) { delete(parent, key) })
			for _, v := range strangeValues {
				if canonical(t, v) != canonical(t, m[key]) {
					add("change", at, v, func(parent map[string]any) { parent[key] = v })
				}
			}
			if s, ok := m[key].(string); ok {
				for _, v := range []string{s + " ", strings.ToUpper(s) + "X"} {
					add("change", at, v, func(parent map[string]any) { parent[key] = v })
				}
			}
			if child, ok := m[key].(map[string]any); ok {
				walk(child, at)
			}
		}
		for _, key := range []string{"extra", "", "Status", "tenant_id"} {
			add("add", append(slices.Clone(path), key), "x", func(parent map[string]any) { parent[key] = "x" })
		}
	}
	walk(tree(t, raw), nil)
	return list
}

func isLabels(v any) bool {
	list, ok := v.([]any)
	return ok && !slices.ContainsFunc(list, func(x any) bool { s, ok := x.(string); return !ok || schema.IsBlank(s) })
}

func TestEveryMutationIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	for _, s := range subjects(t) {
		if problems := toolresult.Validate(s.bound, s.spec, s.pkg); len(problems) > 0 {
			t.Fatalf("%s: the original: %v", s.name, problems)
		}
		for _, m := range mutants(t, s.pkg) {
			accepted := m.what == "change" && m.path == "protected_audit.redactions" && isLabels(m.value)
			problems := toolresult.ValidateJSON(s.bound, s.spec, []byte(canonical(t, m.tree)))
			if (len(problems) == 0) != accepted {
				t.Errorf("%s: %v: %v", s.name, m, problems)
			}
		}
	}
}

// TestReboundMutations gives the forger the digests as well: what is left to him
// is what no receiver can recompute.
func TestReboundMutations(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	for _, s := range subjects(t) {
		for _, m := range mutants(t, s.pkg) {
			if strings.HasPrefix(m.path, "protected_audit.binding") || !rebind(s.bound, m.tree) {
				continue
			}
			problems := toolresult.ValidateJSON(s.bound, s.spec, []byte(canonical(t, m.tree)))
			if accepted := m.what == "change" && cannotBeRecomputed(s, m); (len(problems) == 0) != accepted {
				t.Errorf("%s: %v: accepted should be %t: %v", s.name, m, accepted, problems)
			}
		}
	}
}

func cannotBeRecomputed(s subject, m mutant) bool {
	text, isText := m.value.(string)
	solid := isText && !schema.IsBlank(text)
	switch m.path {
	case "protected_audit.redactions":
		return isLabels(m.value)
	case "model_result.execution.delivery":
		return text == "fresh" || text == "local_replay" || text == "receipt_reconciled"
	case "model_result.provenance.resource_revision":
		return m.value == nil || solid
	case "model_result.provenance.observed_at":
		return isText && contract.ValidObservedAt(text)
	case "protected_audit.downstream.request_id":
		return s.pkg.Code() == toolresult.OK && solid
	case "protected_audit.downstream.receipt_id":
		return s.pkg.Code() == toolresult.OK && s.spec.Risk() == toolresult.Write && solid
	case "protected_audit.downstream.status_ref":
		return s.pkg.Code() == toolresult.StatusConflict && isText && contract.ValidStatusRef(text)
	case "model_result.data.status":
		return text == "paid" || text == "pending" || text == "refunded"
	}
	return false
}

// rebind recomputes the digests of a mutant; false where it has none.
func rebind(b *toolresult.Bound, root map[string]any) bool {
	model, hasModel := root["model_result"]
	audit, _ := root["protected_audit"].(map[string]any)
	binding, ok := audit["binding"].(map[string]any)
	downstream, hasDownstream := audit["downstream"].(map[string]any)
	if !hasModel || !ok || !hasDownstream {
		return false
	}
	result, err := canonjson.Digest(model)
	if err != nil {
		return false
	}
	var d toolresult.Downstream
	for key, to := range map[string]**string{"request_id": &d.RequestID, "receipt_id": &d.ReceiptID, "status_ref": &d.StatusRef} {
		if s, ok := downstream[key].(string); ok {
			*to = &s
		}
	}
	binding["result_sha256"] = result
	binding["call_binding_sha256"] = b.CallBindingSHA256(result, d)
	return true
}

// TestPackageOfAnotherCall moves valid packages to calls that differ in one
// respect.
func TestPackageOfAnotherCall(t *testing.T) {
	for _, s := range subjects(t) {
		others := map[string]func(*toolresult.Principal, *toolresult.Call){
			"tenant":    func(p *toolresult.Principal, _ *toolresult.Call) { p.TenantID = "tenant-b" },
			"subject":   func(p *toolresult.Principal, _ *toolresult.Call) { p.SubjectID = "user-2" },
			"arguments": func(_ *toolresult.Principal, c *toolresult.Call) { c.Arguments = []byte(`{"order_ref":"ORDER-8"}`) },
			"provider":  func(_ *toolresult.Principal, c *toolresult.Call) { c.Provider = "google" },
			"family":    func(_ *toolresult.Principal, c *toolresult.Call) { c.APIFamily = "chat" },
			"response":  func(_ *toolresult.Principal, c *toolresult.Call) { c.ResponseID = "resp-2" },
			"call":      func(_ *toolresult.Principal, c *toolresult.Call) { c.CallID = "call-2" },
			"operation": func(_ *toolresult.Principal, c *toolresult.Call) { c.OperationID = "op-2" },
			"key":       func(_ *toolresult.Principal, c *toolresult.Call) { c.IdempotencyKey = "key-2" },
			"no key":    func(_ *toolresult.Principal, c *toolresult.Call) { c.IdempotencyKey = "" },
			"adapter":   func(_ *toolresult.Principal, c *toolresult.Call) { c.AdapterRevision = "openai-responses-v2" },
		}
		for name, edit := range others {
			p, c := owner, s.bound.Call()
			edit(&p, &c)
			b, err := toolresult.Bind(p, c, s.bound.Contract())
			if err != nil {
				t.Fatal(err)
			}
			if len(toolresult.Validate(b, s.spec, s.pkg)) == 0 {
				t.Errorf("%s is accepted for a call with another %s", s.name, name)
			}
		}
	}
}

// TestSpecMustBeTheCalls holds that a package cannot be judged by another
// tool's contract, nor a registered tool's by none.
func TestSpecMustBeTheCalls(t *testing.T) {
	for _, s := range subjects(t) {
		for _, spec := range []*toolresult.Spec{refundSpec(t), orderSpec(t), nil} {
			same := spec == nil && s.spec == nil || spec != nil && spec.Contract() == s.bound.Contract()
			if valid := len(toolresult.Validate(s.bound, spec, s.pkg)) == 0; valid != same {
				t.Errorf("%s: valid is %t, want %t", s.name, valid, same)
			}
		}
	}
}
