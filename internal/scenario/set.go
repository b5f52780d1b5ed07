package scenario

import (
	"fmt"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

const (
	setVersion         = "tool-cases-v2"
	modelResultVersion = "tool-model-result-v2"
	auditVersion       = "tool-audit-v2"

	maxEntries = 256 // cases of a set, and steps of a case
	maxRoles   = 32  // of a principal
)

// The actions of a step.
const (
	actionDispatch = "dispatch"
	actionQuery    = "query_status"
)

// The failures that a step can inject.
const (
	noFailure            = "none"
	timeoutBeforeExecute = "timeout_before_execute"
	rateLimit            = "rate_limit"
	toolError            = "tool_error"
	timeoutAfterCommit   = "timeout_after_commit"
	receiptUnavailable   = "timeout_after_commit_receipt_unavailable"
)

// A Set is a case set that has passed its contract. It is immutable and may be
// run any number of times, concurrently too.
type Set struct{ cases []setCase }

type setCase struct {
	id        string
	principal toolresult.Principal
	steps     []step
}

type step struct {
	id, action    string
	call          toolresult.Call
	approval      string
	now           int64
	failure       string
	statusRefFrom string // the step whose operation is asked for; "" in a dispatch
	expected      answer
}

// An answer is what a step is held against: how the call ended, and what has
// happened in the case so far.
type answer struct {
	code, status, outcome, recovery, delivery string
	data                                      string // canonical
	sideEffectCount                           int64
}

// ReadSet reads a case set. Every error is a [*FixtureError].
func ReadSet(data []byte) (*Set, error) {
	r, root, err := readDocument(data, setVersion, "schema_version", "contract", "cases")
	if err != nil {
		return nil, err
	}
	contract := root.child("contract", "model_result", "protected_audit")
	contract.text("model_result", only(modelResultVersion))
	contract.text("protected_audit", only(auditVersion))

	s := &Set{}
	ids := map[string]bool{}
	for _, o := range root.entries("cases", "id", "principal", "steps") {
		c := o.setCase()
		if c.id != "" && ids[c.id] {
			r.add(o.at("id"), "must be unique")
		}
		ids[c.id] = true
		s.cases = append(s.cases, c)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return s, nil
}

// entries opens the objects of an array of 1 to 256.
func (o object) entries(key string, fields ...string) []object {
	list, ok := o.list(key)
	if !ok {
		return nil
	}
	if len(list) < 1 || len(list) > maxEntries {
		o.r.add(o.at(key), fmt.Sprintf("must have 1 to %d entries", maxEntries))
		return nil
	}
	opened := make([]object, len(list))
	for i, v := range list {
		opened[i] = o.r.open(fmt.Sprintf("%s[%d]", o.at(key), i), v, fields...)
	}
	return opened
}

func (o object) setCase() setCase {
	var c setCase
	c.id, _ = o.text("id", identifier)
	c.principal = o.principal(identifier)
	if len(c.principal.Roles) > maxRoles {
		o.r.add(o.at("principal.roles"), fmt.Sprintf("must have at most %d entries", maxRoles))
	}
	earlier := map[string]bool{}
	for _, e := range o.entries("steps", "step_id", "action", "proposal", "execution_context",
		"approval", "now", "failure", "status_ref_from", "expected") {
		s := e.step(earlier)
		if s.id != "" && earlier[s.id] {
			o.r.add(e.at("step_id"), "must be unique in its case")
		}
		earlier[s.id] = true
		c.steps = append(c.steps, s)
	}
	return c
}

func (o object) step(earlier map[string]bool) step {
	s := step{
		call: o.call(identifier, identifier, func(context object) string {
			key, _ := context.textOrNull("idempotency_key", identifier)
			return key
		}),
		now:      o.integer("now", contract.MaxTime-approvalSeconds),
		expected: o.answer(),
	}
	s.id, _ = o.text("step_id", identifier)
	var known, given, whole bool
	s.action, known = o.text("action", oneOf(actionDispatch, actionQuery))
	s.approval, given = o.text("approval", oneOf(approvalModes...))
	if s.action == actionQuery && given && s.approval != noApproval {
		o.r.add(o.at("approval"), "must be none in a status query")
	}
	s.failure, given = o.text("failure", oneOf(noFailure, timeoutBeforeExecute, timeoutAfterCommit,
		receiptUnavailable, rateLimit, toolError))
	if s.action == actionQuery && given && s.failure != noFailure {
		o.r.add(o.at("failure"), "must be none in a status query")
	}
	s.statusRefFrom, whole = o.textOrNull("status_ref_from", identifier)
	switch {
	case !known || !whole:
	case s.action == actionQuery && !earlier[s.statusRefFrom]:
		o.r.add(o.at("status_ref_from"), "must name an earlier step of the case")
	case s.action == actionDispatch && s.statusRefFrom != "":
		o.r.add(o.at("status_ref_from"), "must be null in a dispatch")
	}
	return s
}

// answer reads what is expected. Of the texts only the code is held against the
// contract: another one that no call can give makes its step fail, and the
// report then shows it beside the true one.
func (o object) answer() answer {
	e := o.child("expected", "code", "status", "outcome", "recovery", "delivery", "data", "side_effect_count")
	var a answer
	a.code, _ = e.text("code", codeOfCatalogue)
	a.status, _ = e.text("status", anyText)
	a.outcome, _ = e.text("outcome", anyText)
	a.recovery, _ = e.text("recovery", anyText)
	a.delivery, _ = e.text("delivery", anyText)
	a.data = e.canonical("data", true)
	a.sideEffectCount = e.integer("side_effect_count", canonjson.MaxInt)
	return a
}

func codeOfCatalogue(s string) string {
	if _, ok := toolresult.Lookup(toolresult.Code(s)); ok || s == string(toolresult.OK) {
		return ""
	}
	return "must be OK or a code of the catalogue"
}
