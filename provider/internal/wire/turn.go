package wire

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A Turn collects the calls of one response.
type Turn struct {
	profile    toolresult.Profile
	responseID string
	calls      []toolresult.Call
	paths      []string
	seen       map[string]bool
}

// NewTurn starts the turn of the response with the id in the given node.
func NewTurn(profile toolresult.Profile, id Node) (*Turn, error) {
	responseID, err := id.Identifier()
	if err != nil {
		return nil, err
	}
	return &Turn{profile: profile, responseID: responseID, seen: map[string]bool{}}, nil
}

// Add adds a call to the turn. The arguments are kept byte by byte, and blank
// ones are {}. They only need to have a digest, since a call without one could
// not even be answered: whether they fit the tool is for the runtime to say.
func (t *Turn) Add(id, name, arguments Node) error {
	callID, err := id.Identifier()
	if err != nil {
		return err
	}
	tool, err := name.Identifier()
	if err != nil {
		return err
	}
	switch {
	case t.seen[callID]:
		return id.refuse("is the id of an earlier call of the response")
	case len(t.calls) == MaxCalls:
		return id.refuse(fmt.Sprintf("is the call after the first %d", MaxCalls))
	}
	text := arguments.Raw
	if len(bytes.TrimSpace(text)) == 0 {
		text = json.RawMessage("{}")
	}
	c := toolresult.NewCall(toolresult.Proposal{Name: tool, Arguments: text}, toolresult.ExecutionContext{
		Provider: t.profile.Provider, APIFamily: t.profile.APIFamily, AdapterRevision: t.profile.AdapterRevision,
		ResponseID: t.responseID, CallID: callID,
	})
	if _, err := toolresult.Bind(toolresult.Principal{}, c, toolresult.UnregisteredContract(tool)); err != nil {
		return &ResponseError{arguments.Path, "has no digest: " + err.Error(), err}
	}
	t.seen[callID] = true
	t.paths = append(t.paths, id.Path)
	t.calls = append(t.calls, c)
	return nil
}

// Calls completes the calls with what the host says.
func (t *Turn) Calls(host Host) ([]toolresult.Call, error) {
	for i := range t.calls {
		c := &t.calls[i]
		offered := *c
		offered.Arguments = bytes.Clone(c.Arguments)
		var err error
		if c.OperationID, c.IdempotencyKey, err = host(offered); err != nil {
			return nil, fmt.Errorf("provider: host context of %s: %w", t.paths[i], err)
		}
		if err := c.Check(); err != nil {
			return nil, fmt.Errorf("provider: host context of %s: %w", t.paths[i], err)
		}
	}
	return t.calls, nil
}

// An Item is a result that may leave: what of it the provider gets, and nothing
// else.
type Item struct {
	ResponseID, CallID, Tool string
	Text                     string // the canonical model result
	Failed                   bool
}

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
	return Item{c.ResponseID, c.CallID, c.Name, string(text), p.ModelResult.Status != toolresult.StatusSucceeded}, nil
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
