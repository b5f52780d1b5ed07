package toolresult

import (
	"fmt"
	"maps"
	"slices"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/schema"
)

// Validate recomputes everything in a package against the current call b and
// the tool's spec, and returns every problem found; none means that the package
// is the truth about this call. spec is nil for an unregistered tool, which can
// only have failed.
func Validate(b *Bound, spec *Spec, p *Package) []Problem {
	if p == nil {
		return []Problem{{"package", "is missing"}}
	}
	model, err := canonjson.Parse([]byte(p.ModelResult.Text()))
	if err != nil {
		return []Problem{{"model_result", err.Error()}}
	}
	audit, err := p.ProtectedAudit.tree()
	if err != nil {
		return []Problem{{"protected_audit", err.Error()}}
	}
	return validate(b, spec, model, audit)
}

// ValidateJSON is [Validate] for a package from outside, in whatever shape. It
// never panics.
func ValidateJSON(b *Bound, spec *Spec, raw []byte) []Problem {
	tree, err := canonjson.Parse(raw)
	if err != nil {
		return []Problem{{"package", err.Error()}}
	}
	var c checker
	root := c.object("package", tree, "model_result", "protected_audit")
	if root == nil {
		return c.ps
	}
	return append(c.ps, validate(b, spec, root["model_result"], root["protected_audit"])...)
}

func validate(b *Bound, spec *Spec, model, audit any) []Problem {
	c := &checker{b: b, spec: spec}
	registered := UnregisteredContract(b.contract.Name)
	if spec != nil {
		registered = spec.contract
	}
	if b.contract != registered {
		c.ps.add("spec", "is not of the contract that the call is bound to")
	} else if spec != nil {
		c.version(audit)
	}
	c.audit(audit, model, c.model(model))
	return c.ps
}

// version goes over to the version of the tool whose contract the package names.
func (c *checker) version(audit any) {
	m, _ := audit.(map[string]any)
	named, _ := m["tool_contract"].(map[string]any)
	for _, v := range c.spec.versions {
		same := true
		for _, f := range contractFields(&v.contract) {
			same = same && named[f[0]] == f[1]
		}
		if !same {
			continue
		}
		if b, err := Bind(c.b.principal, c.b.call, v.contract); err == nil {
			c.b, c.spec = b, v
		}
		return
	}
}

// contractFields are the fields of a tool_contract.
func contractFields(t *Contract) [][2]string {
	return [][2]string{
		{"name", t.Name}, {"input_schema_revision", t.InputSchema},
		{"output_schema_revision", t.OutputSchema}, {"effect_revision", t.Effect},
		{"handler_revision", t.Handler}, {"producer_revision", t.Producer},
		{"policy_revision", t.Policy}}
}

type checker struct {
	b    *Bound
	spec *Spec
	ps   problems
}

// object returns v if it is an object with exactly the given fields, and
// otherwise what there is of it, with the problems noted; nil if it is none.
func (c *checker) object(path string, v any, fields ...string) map[string]any {
	m, ok := v.(map[string]any)
	if !ok {
		c.ps.add(path, "must be an object")
		return nil
	}
	for _, f := range fields {
		if _, ok := m[f]; !ok {
			c.ps.add(path+"."+f, "is missing")
		}
	}
	for _, f := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(fields, f) {
			c.ps.add(path, "has a field that the contract does not know")
			break
		}
	}
	return m
}

// equal notes a problem unless m[key] is want. An absent key was noted before.
func (c *checker) equal(path string, m map[string]any, key string, want any, rule string) {
	if got, ok := m[key]; ok && got != want {
		c.ps.add(path+"."+key, rule)
	}
}

// text notes a problem unless m[key] is a string that is not blank, or null
// where that is allowed.
func (c *checker) text(path string, m map[string]any, key string, nullable bool) {
	got, ok := m[key]
	if !ok || got == nil && nullable {
		return
	}
	if s, ok := got.(string); !ok || schema.IsBlank(s) {
		c.ps.add(path+"."+key, "must be a string that is not blank")
	}
}

func (c *checker) model(v any) map[string]any {
	const path = "model_result"
	m := c.object(path, v, "schema_version", "status", "data", "error", "execution", "provenance")
	if m == nil {
		return nil
	}
	c.equal(path, m, "schema_version", modelResultSchema, "is not this contract's")
	execution := c.object(path+".execution", m["execution"], "outcome", "delivery", "complete", "truncated")
	provenance := c.object(path+".provenance", m["provenance"],
		"source_label", "producer_revision", "resource_revision", "observed_at", "trust")
	c.execution(execution)
	c.provenance(provenance)
	switch statusIn(m) {
	case StatusSucceeded:
		c.success(m, execution, provenance)
	case StatusFailed, StatusUnknown:
		c.failure(m, execution, provenance)
	default:
		c.ps.add(path+".status", "is not one of the contract's")
	}
	return m
}

// statusIn is the status of a model result's tree, or "".
func statusIn(model map[string]any) Status {
	s, _ := model["status"].(string)
	return Status(s)
}

func (c *checker) execution(m map[string]any) {
	const path = "model_result.execution"
	if d, ok := m["delivery"]; ok {
		switch d {
		case string(Fresh), string(LocalReplay), string(ReceiptReconciled):
		default:
			c.ps.add(path+".delivery", "is not one of the contract's")
		}
	}
	for _, key := range [...]string{"complete", "truncated"} {
		if v, ok := m[key]; ok {
			if _, ok := v.(bool); !ok {
				c.ps.add(path+"."+key, "must be a boolean")
			}
		}
	}
}

func (c *checker) provenance(m map[string]any) {
	const path = "model_result.provenance"
	c.text(path, m, "resource_revision", true)
	if v, ok := m["observed_at"]; ok {
		if s, ok := v.(string); !ok || !contract.ValidObservedAt(s) {
			c.ps.add(path+".observed_at", "must be a real UTC instant in whole seconds")
		}
	}
}

func (c *checker) success(m, execution, provenance map[string]any) {
	const path = "model_result"
	c.equal(path, m, "error", nil, "must be null in a success")
	c.equal(path+".execution", execution, "outcome", string(OutcomeCommitted), "must be committed in a success")
	c.equal(path+".execution", execution, "complete", true, "must be true in a success")
	c.equal(path+".execution", execution, "truncated", false, "must be false in a success")
	c.equal(path+".provenance", provenance, "trust", trustData, "must be untrusted_data in a success")
	if c.spec == nil {
		c.ps.add(path+".status", "an unregistered tool cannot have succeeded")
		return
	}
	c.equal(path+".provenance", provenance, "source_label", c.spec.source, "is not the registered producer's")
	c.equal(path+".provenance", provenance, "producer_revision", c.spec.contract.Producer, "is not the registered one")
	if data, ok := m["data"]; ok {
		text, err := canonjson.Marshal(data)
		if err != nil {
			c.ps.add(path+".data", err.Error())
			return
		}
		c.spec.checkData(&c.ps, path+".data", c.b, data, len(text))
	}
}

func (c *checker) failure(m, execution, provenance map[string]any) {
	const path = "model_result"
	c.equal(path, m, "data", nil, "must be null in a failure")
	c.equal(path+".execution", execution, "complete", false, "must be false in a failure")
	c.equal(path+".execution", execution, "truncated", false, "must be false in a failure")
	c.equal(path+".provenance", provenance, "trust", trustControl, "must be trusted_control in a failure")
	c.equal(path+".provenance", provenance, "source_label", controlSource, "is not the runtime's")
	c.equal(path+".provenance", provenance, "producer_revision", controlProducer, "is not the runtime's")
	info := c.object(path+".error", m["error"], "code", "category", "safe_message", "recovery", "retry_after_ms")
	if info == nil {
		return
	}
	code, _ := info["code"].(string)
	entry, ok := Lookup(Code(code))
	if !ok {
		c.ps.add(path+".error.code", "is not in the catalogue")
		return
	}
	c.equal(path, m, "status", string(entry.status()), "is not the catalogue's for the code")
	c.equal(path+".execution", execution, "outcome", string(entry.Outcome), "is not the catalogue's for the code")
	c.equal(path+".error", info, "category", string(entry.Category), "is not the catalogue's")
	c.equal(path+".error", info, "safe_message", entry.SafeMessage, "is not the catalogue's")
	c.equal(path+".error", info, "recovery", string(entry.Recovery), "is not the catalogue's")
	var retry any
	if entry.RetryAfterMS != 0 {
		retry = entry.RetryAfterMS
	}
	c.equal(path+".error", info, "retry_after_ms", retry, "is not the catalogue's")
}

func (c *checker) audit(v, modelTree any, model map[string]any) {
	const path = "protected_audit"
	m := c.object(path, v, "schema_version", "visibility", "operation_id", "principal_ref",
		"provider_context", "tool_contract", "binding", "downstream", "redactions")
	if m == nil {
		return
	}
	call := &c.b.call
	c.equal(path, m, "schema_version", auditSchema, "is not this contract's")
	c.equal(path, m, "visibility", auditVisibility, "must be protected_audit")
	c.equal(path, m, "operation_id", call.OperationID, "is another operation's")
	c.equal(path, m, "principal_ref", c.b.PrincipalRef(), "is another principal's")
	c.fields(path+".provider_context", m["provider_context"], "is another call's", [][2]string{
		{"provider", call.Provider}, {"api_family", call.APIFamily}, {"response_id", call.ResponseID},
		{"call_id", call.CallID}, {"adapter_revision", call.AdapterRevision}})
	c.fields(path+".tool_contract", m["tool_contract"], "is another contract's", contractFields(&c.b.contract))
	c.redactions(m)
	downstream, whole := c.downstream(m["downstream"], model)
	c.binding(m["binding"], modelTree, downstream, whole)
}

func (c *checker) fields(path string, v any, rule string, want [][2]string) {
	names := make([]string, len(want))
	for i, w := range want {
		names[i] = w[0]
	}
	m := c.object(path, v, names...)
	for _, w := range want {
		c.equal(path, m, w[0], w[1], rule)
	}
}

func (c *checker) redactions(m map[string]any) {
	v, ok := m["redactions"]
	if !ok {
		return
	}
	list, ok := v.([]any)
	if !ok {
		c.ps.add("protected_audit.redactions", "must be a list")
		return
	}
	for i, x := range list {
		if s, ok := x.(string); !ok || schema.IsBlank(s) {
			c.ps.add(fmt.Sprintf("protected_audit.redactions[%d]", i), "must be a string that is not blank")
		}
	}
}

// downstream checks the evidence and returns it as the binding digest takes it;
// whole is false when it has no digest.
func (c *checker) downstream(v any, model map[string]any) (d Downstream, whole bool) {
	const path = "protected_audit.downstream"
	m := c.object(path, v, "request_id", "receipt_id", "status_ref")
	if m == nil {
		return d, false
	}
	read := c.spec != nil && c.spec.risk == Read
	switch succeeded := statusIn(model) == StatusSucceeded; {
	case succeeded && read:
		c.text(path, m, "request_id", true)
		c.equal(path, m, "receipt_id", nil, "must be null for a read")
		c.equal(path, m, "status_ref", nil, "must be null for a read")
	case succeeded:
		c.text(path, m, "request_id", false)
		c.text(path, m, "receipt_id", false)
		c.equal(path, m, "status_ref", c.b.StatusRef(), "is another operation's")
	default:
		c.equal(path, m, "request_id", nil, "must be null in a failure")
		c.equal(path, m, "receipt_id", nil, "must be null in a failure")
		c.failedRef(m, model)
	}
	whole = len(m) == 3
	for key, to := range map[string]**string{"request_id": &d.RequestID, "receipt_id": &d.ReceiptID, "status_ref": &d.StatusRef} {
		switch s := m[key].(type) {
		case nil:
		case string:
			*to = &s
		default:
			whole = false
		}
	}
	return d, whole
}

// failedRef checks which operation a failure names. A status conflict names the
// one that was asked for, whosever it is; any other code this call's or none.
func (c *checker) failedRef(m, model map[string]any) {
	const path = "protected_audit.downstream.status_ref"
	v, ok := m["status_ref"]
	if !ok {
		return
	}
	info, _ := model["error"].(map[string]any)
	ref, _ := v.(string)
	switch info["code"] {
	case string(StatusConflict):
		if !contract.ValidStatusRef(ref) {
			c.ps.add(path, "must be a status_ref")
		}
	case string(Accepted), string(OutcomeUnknown):
		if ref != c.b.StatusRef() {
			c.ps.add(path, "is another operation's")
		}
	default:
		if v != nil && ref != c.b.StatusRef() {
			c.ps.add(path, "must be null or this operation's")
		}
	}
}

// binding recomputes the three digests from the package itself and the call.
func (c *checker) binding(v, modelTree any, d Downstream, whole bool) {
	const path = "protected_audit.binding"
	m := c.object(path, v, "request_sha256", "result_sha256", "call_binding_sha256")
	if m == nil {
		return
	}
	c.equal(path, m, "request_sha256", c.b.request, "does not match the recomputed request digest")
	result, err := canonjson.Digest(modelTree)
	if err != nil {
		c.ps.add(path+".result_sha256", "the model result has no digest: "+err.Error())
		return
	}
	c.equal(path, m, "result_sha256", result, "does not match the recomputed result digest")
	if !whole {
		c.ps.add(path+".call_binding_sha256", "the call_binding cannot be recomputed from this downstream evidence")
		return
	}
	c.equal(path, m, "call_binding_sha256", c.b.CallBindingSHA256(result, d), "does not match the recomputed call_binding")
}
