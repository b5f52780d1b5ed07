package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A Turn collects the calls of one response.
type Turn struct {
	profile    toolresult.Profile
	responseID string
	calls      []entry
	byID       map[string]int
}

// An entry is a call, and what its answer needs beyond the contract.
type entry struct {
	call    toolresult.Call
	path    string
	kind    string
	request string // the digest of what it asks for
}

// A Candidate is what a response says of one call.
type Candidate struct {
	ID, Name  Node
	Arguments Node // their JSON text
	// Kind tells apart the calls of a form that are answered in different ways; ""
	// is the usual one.
	Kind string
	// Fault is what the form itself has against the call, or nil.
	Fault *toolresult.Problem
	// NoIDs says that calls of the form need no id: answers are told apart by
	// their order.
	NoIDs bool
}

// NewTurn starts the turn of the response with the id in the given node.
func NewTurn(profile toolresult.Profile, id Node) (*Turn, error) {
	responseID, err := id.Identifier()
	if err != nil {
		return nil, err
	}
	return &Turn{profile: profile, responseID: responseID, byID: map[string]int{}}, nil
}

const (
	// noID starts the call id of a call to which the provider has given none.
	noID = "toolruntime-call-"
	// noName is the tool of a call whose name no tool can have.
	noName = "unreadable-name"
)

// Answerable reports whether an id is one that an answer can carry.
func Answerable(id Node) bool {
	s, err := id.Identifier()
	return err == nil && !strings.HasPrefix(s, noID)
}

// Add adds a call to the turn. A call with a fault is added too, as one that is
// refused: the others of the turn are not to suffer for it. The arguments are kept
// byte by byte; whether they fit the tool is for the runtime to say.
func (t *Turn) Add(c Candidate) error {
	if len(t.calls) == MaxCalls {
		return c.Name.Refuse(fmt.Sprintf("is that of a call after the first %d", MaxCalls))
	}
	fault := c.Fault
	note := func(path, rule string) {
		if fault == nil {
			fault = &toolresult.Problem{Path: path, Rule: rule}
		}
	}
	callID, _ := c.ID.Text()
	if !Answerable(c.ID) {
		callID = noID + strconv.Itoa(len(t.calls))
		if !c.NoIDs || !c.ID.Missing() {
			note("call id", "is missing or unusable, so nobody could tell whose the answer is")
		}
	}
	name, err := c.Name.Identifier()
	if err != nil {
		name = noName
		note("tool name", "is missing or unusable")
	}
	call := toolresult.NewCall(toolresult.Proposal{Name: name, Arguments: c.Arguments.Raw}, t.profile.Context(t.responseID, callID))
	b, err := toolresult.BindAnswerable(toolresult.Principal{}, call, toolresult.UnregisteredContract(name))
	switch {
	case err != nil:
		return &ResponseError{Path: c.Name.Path, Rule: err.Error(), Cause: err}
	case fault != nil:
		call = call.Refuse(*fault)
	case b.Call().Fault != nil || b.Arguments() == "{}":
		call = b.Call()
	}
	e := entry{call, c.Name.Path, c.Kind, b.RequestSHA256()}
	if at, doubled := t.byID[callID]; doubled {
		t.calls[at].double(e)
		return nil
	}
	t.byID[callID] = len(t.calls)
	t.calls = append(t.calls, e)
	return nil
}

// double adds a call under the id of e. One that says the same is the same call. Two
// that differ can have only one answer, so neither is carried out.
func (e *entry) double(second entry) {
	if e.kind == second.kind && e.request == second.request && (e.call.Fault == nil) == (second.call.Fault == nil) {
		return
	}
	e.call = e.call.Refuse(toolresult.Problem{Path: "call id", Rule: "is that of two calls that differ; neither was carried out"})
}

// Calls completes the calls with what the host says.
func (t *Turn) Calls(host Host) ([]toolresult.Call, error) {
	var calls []toolresult.Call
	for _, e := range t.calls {
		c, offered := e.call, e.call
		offered.Arguments = bytes.Clone(c.Arguments)
		var err error
		if c.OperationID, c.IdempotencyKey, err = host(offered); err != nil {
			return nil, fmt.Errorf("provider: host context of %s: %w", e.path, err)
		}
		if err := c.Check(); err != nil {
			return nil, fmt.Errorf("provider: host context of %s: %w", e.path, err)
		}
		calls = append(calls, c)
	}
	return calls, nil
}

// An Item is a result that may leave: what of it the provider gets, and nothing
// else.
type Item struct {
	ResponseID, Tool string
	CallID           string // "" where the provider has given none
	Kind             string // of the call, where the response is at hand
	Text             string // the canonical model result
	Advice           string // what the model is to change, or ""
	Failed           bool
}

// Texts are the texts of an answer in a form that takes several.
func (i Item) Texts() []string {
	if i.Advice == "" {
		return []string{i.Text}
	}
	return []string{i.Text, i.Advice}
}

// Result is the canonical model result, as a value.
func (i Item) Result() any { return canonjson.Raw(i.Text) }

// Check proves a package and returns what of it may leave.
func Check(profile toolresult.Profile, b *toolresult.Bound, spec *toolresult.Spec, p *toolresult.Package) (Item, error) {
	problems := toolresult.Validate(b, spec, p)
	c := b.Call()
	if c.Profile() != profile {
		problems = append(problems, toolresult.Problem{Path: "provider_context", Rule: "is not of this adapter"})
	}
	if len(problems) > 0 {
		return Item{}, &OutputError{problems}
	}
	// Data that was decoded from other text is equal to what was hashed, but need
	// not look like it.
	text, err := canonjson.Canonicalize([]byte(p.ModelResult.Text()))
	if err != nil {
		return Item{}, err
	}
	item := Item{ResponseID: c.ResponseID, Tool: c.Name, CallID: c.CallID, Text: string(text), Advice: advice(p),
		Failed: p.ModelResult.Status != toolresult.StatusSucceeded}
	if strings.HasPrefix(item.CallID, noID) {
		item.CallID = ""
	}
	return item, nil
}

// advice says what to change, one place a line.
func advice(p *toolresult.Package) string {
	if len(p.Problems) == 0 {
		return ""
	}
	lines := []string{"What is wrong with the call:"}
	for _, problem := range p.Problems[:min(len(p.Problems), toolresult.MaxProblems)] {
		lines = append(lines, problem.String())
	}
	return strings.Join(lines, "\n")
}

// CheckTurn proves the packages of one response, in any order, and returns the
// items in the order of the calls.
func CheckTurn(profile toolresult.Profile, calls []toolresult.Expected, results []*toolresult.Package) ([]Item, error) {
	if problems := checkSet(calls, results); len(problems) > 0 {
		return nil, &OutputError{problems}
	}
	byCall := make(map[string]*toolresult.Package, len(results))
	for _, p := range results {
		byCall[p.ProtectedAudit.ProviderContext.CallID] = p
	}
	items := make([]Item, len(calls))
	for i, c := range calls {
		var err error
		if items[i], err = Check(profile, c.Bound, c.Spec, byCall[c.Bound.Call().CallID]); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// Answer is CheckTurn for the very calls of t: the items are in the response's
// order, and know how their calls were made.
func (t *Turn) Answer(calls []toolresult.Expected, results []*toolresult.Package) ([]Item, error) {
	refuse := func(i int, rule string) ([]Item, error) {
		return nil, &OutputError{[]toolresult.Problem{{Path: fmt.Sprintf("calls[%d]", i), Rule: rule}}}
	}
	ordered := make([]toolresult.Expected, len(t.calls))
	for i, expected := range calls {
		c := expected.Bound.Call()
		at, known := t.byID[c.CallID]
		switch {
		case !known || c.ResponseID != t.responseID:
			return refuse(i, "is no call of the response")
		case ordered[at].Bound != nil:
			return refuse(i, "has the identity of an earlier call of the turn")
		}
		ordered[at] = expected
	}
	for i, expected := range ordered {
		if expected.Bound == nil {
			return nil, &OutputError{[]toolresult.Problem{{Path: t.calls[i].path, Rule: "is that of a call without an answer"}}}
		}
	}
	items, err := CheckTurn(t.profile, ordered, results)
	for i := range items {
		items[i].Kind = t.calls[i].kind
	}
	return items, err
}

func checkSet(calls []toolresult.Expected, results []*toolresult.Package) []toolresult.Problem {
	if len(calls) == 0 {
		return []toolresult.Problem{{Path: "calls", Rule: "has no call to answer"}}
	}
	for i, c := range calls {
		if c.Bound.Call().ResponseID != calls[0].Bound.Call().ResponseID {
			return []toolresult.Problem{{Path: fmt.Sprintf("calls[%d]", i), Rule: "is of another response"}}
		}
	}
	raw := make([]json.RawMessage, len(results))
	for i, p := range results {
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false) // six bytes of one would break the limits of packages
		if err := e.Encode(p); err != nil {
			return []toolresult.Problem{{Path: fmt.Sprintf("results[%d]", i), Rule: "is not a package"}}
		}
		raw[i] = text.Bytes()
	}
	return toolresult.ValidateSet(calls, raw)
}

// Encode writes a provider's payload in canonical form, so that equal results
// are equal bytes.
func Encode(v any) (json.RawMessage, error) { return canonjson.Marshal(v) }

// AsIs is an object that [Encode] writes as the provider wrote it, since it has to
// come back unchanged.
func (o Object) AsIs() any { return canonjson.Raw(o.raw) }

// Raw is the text of the object.
func (o Object) Raw() json.RawMessage { return o.raw }

// AsIs is a value that [Encode] writes as the provider wrote it.
func (n Node) AsIs() any { return canonjson.Raw(n.Raw) }

// AsIs is v as [Encode] writes it, with what it holds as the provider wrote it.
func AsIs(v any) (any, error) {
	text, err := JSON(v)
	return canonjson.Raw(text), err
}
