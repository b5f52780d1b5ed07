package toolresult

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/schema"
)

// A Risk says whether a tool changes anything. The zero value is the careful
// one.
type Risk int

// The risks.
const (
	Write Risk = iota // changes something: needs a key, an approval, and the ledger
	Read              // changes nothing: never in the ledger
)

func (r Risk) String() string {
	if r == Read {
		return "read"
	}
	return "write"
}

// A SpecConfig describes a tool to [NewSpec].
type SpecConfig struct {
	Contract       Contract
	Risk           Risk
	Source         string            // the source_label of a success
	InputSchema    json.RawMessage   // JSON Schema 2020-12 of an object
	OutputSchema   json.RawMessage   // the same, of an object with exactly the fields that it names
	Equal          map[string]string // output field -> the argument it must equal
	MaxOutputBytes int               // canonical size, at most 32,768, which 0 means
	MaxOutputDepth int               // depth of the deepest value, the root being 0; 0 means 29
	// Versions are the tool's specs under other contracts. A package of one of them,
	// which answers for an operation that was accepted under it, is held against it.
	Versions []*Spec
}

// A Spec is the registry's entry of a tool, as far as results are concerned:
// its contract, and the rules for arguments and output. It is immutable and
// safe for concurrent use.
type Spec struct {
	contract        Contract
	risk            Risk
	source          string
	input, output   *schema.Schema
	equal           []binding // sorted by field
	maxBytes, depth int
	versions        []*Spec
	shape           func() *shape // of the input
}

// maxOutputBytes leaves room for the package around the data, whose ids may be
// long: what has been committed must also fit into what is sent.
const maxOutputBytes = 32_768

// maxOutputDepth leaves room for the package around the data, which is two
// levels, and for an empty container, which is a level of its own when read.
const maxOutputDepth = canonjson.MaxDepth - 3

type binding struct{ field, argument string }

// NewSpec checks a tool's description and compiles its schemas. Schemas load
// nothing: a $ref that leaves the document is an error.
//
// A spec that it returns can be used: there are arguments and results that fit,
// and no word of a schema is ignored. docs/schemas.md has the rules. An error is
// an [*InputError]; of a schema its Field is "input_schema" or "output_schema",
// and its Rule begins with the place as a JSON pointer.
func NewSpec(c SpecConfig) (*Spec, error) {
	for _, f := range [...]struct{ name, value string }{
		{"name", c.Contract.Name}, {"source", c.Source},
		{"input_schema_revision", c.Contract.InputSchema}, {"output_schema_revision", c.Contract.OutputSchema},
		{"effect_revision", c.Contract.Effect}, {"handler_revision", c.Contract.Handler},
		{"producer_revision", c.Contract.Producer}, {"policy_revision", c.Contract.Policy},
	} {
		if err := checkIdentifier(f.name, f.value); err != nil {
			return nil, err
		}
	}
	s := &Spec{contract: c.Contract, risk: c.Risk, source: c.Source, maxBytes: c.MaxOutputBytes, depth: c.MaxOutputDepth,
		versions: slices.Clone(c.Versions)}
	var err error
	if s.input, err = compileSchema("input_schema", c.InputSchema); err != nil {
		return nil, err
	}
	if s.output, err = compileSchema("output_schema", c.OutputSchema); err != nil {
		return nil, err
	}
	s.shape = sync.OnceValue(func() *shape { return newShape(s.input.JSON()) })
	if s.equal, err = bindings(c.Equal, s.input, s.output); err != nil {
		return nil, err
	}
	for _, v := range c.Versions {
		if v == nil || v.contract.Name != c.Contract.Name {
			return nil, &InputError{"versions", "must be specs of the same tool"}
		}
	}
	if s.maxBytes, err = within("max_output_bytes", s.maxBytes, maxOutputBytes); err != nil {
		return nil, err
	}
	if s.depth, err = within("max_output_depth", s.depth, maxOutputDepth); err != nil {
		return nil, err
	}
	if err := s.checkOutputSchema(); err != nil {
		return nil, err
	}
	return s, nil
}

func within(field string, v, limit int) (int, error) {
	if v == 0 {
		return limit, nil
	}
	if v < 1 || v > limit {
		return 0, &InputError{field, fmt.Sprintf("must be between 1 and %d", limit)}
	}
	return v, nil
}

// Contract returns the tool's name and revisions.
func (s *Spec) Contract() Contract { return s.contract }

// Risk returns whether the tool changes anything.
func (s *Spec) Risk() Risk { return s.risk }

// Source returns the producer's label, the source_label of a success.
func (s *Spec) Source() string { return s.source }

// InputSchema returns the JSON Schema of the arguments, to offer to a model.
func (s *Spec) InputSchema() json.RawMessage { return slices.Clone(s.input.JSON()) }

// OutputSchema returns the JSON Schema of the data of a success.
func (s *Spec) OutputSchema() json.RawMessage { return slices.Clone(s.output.JSON()) }

// CheckArguments returns in which ways b's arguments break the input schema, at
// most [MaxProblems] of them; none means that they may be used. It says so in
// words for whoever wrote the arguments: see [Package.Problems].
func (s *Spec) CheckArguments(b *Bound) []Problem {
	if b.call.Fault == nil {
		vs := s.input.ValidateInput(b.tree)
		if len(vs) == 0 {
			return nil
		}
		return s.shape().explain(b.tree, vs)
	}
	return []Problem{s.shape().fault(*b.call.Fault)}
}

// CheckOutput returns every way in which a result breaks the tool's output
// contract for the call b.
func (s *Spec) CheckOutput(b *Bound, e Evidence) []Problem {
	var ps problems
	if len(e.Data) > canonjson.MaxBytes {
		ps.add("data", "is larger than 65536 bytes")
		return ps
	}
	tree, err := canonjson.ParseCanonical(e.Data)
	if err != nil {
		ps.add(malformed("data", err))
		return ps
	}
	s.checkData(&ps, "data", b, tree, len(e.Data))
	if e.ProducerRevision != s.contract.Producer {
		ps.add("producer_revision", "is not the registered one")
	}
	if r := e.ResourceRevision; r != "" && (schema.IsBlank(r) || !canonjson.ValidText(r)) {
		ps.add("resource_revision", "must be null or text that is not blank")
	}
	if !contract.ValidObservedAt(e.ObservedAt) {
		ps.add("observed_at", "must be a real UTC instant in whole seconds")
	}
	return ps
}

// checkData holds the data of a result against the output contract. tree is
// inside the JSON domain, so it may be walked; size is that of its canonical
// text.
func (s *Spec) checkData(ps *problems, path string, b *Bound, tree any, size int) {
	data, ok := tree.(map[string]any)
	if !ok {
		ps.add(path, "must be an object")
		return
	}
	if size > s.maxBytes {
		ps.add(path, fmt.Sprintf("is larger than the tool's %d bytes", s.maxBytes))
	}
	if deepest(data, 0) > s.depth {
		ps.add(path, fmt.Sprintf("is nested deeper than the tool's %d levels", s.depth))
	}
	if key, found := sensitiveKey(data); found {
		ps.add(path, "has a field that results must not carry: "+key)
	}
	*ps = append(*ps, violations(path, s.output.ValidateOutput(data))...)
	args, _ := b.tree.(map[string]any)
	for _, eq := range s.equal {
		got, inData := data[eq.field]
		want, inArgs := args[eq.argument]
		if inData != inArgs || !equalJSON(got, want) {
			ps.add(path+"."+eq.field, "does not equal the argument "+eq.argument)
		}
	}
}

func deepest(v any, depth int) int {
	most := depth
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			most = max(most, deepest(x, depth+1))
		}
	case []any:
		for _, x := range v {
			most = max(most, deepest(x, depth+1))
		}
	}
	return most
}

// sensitive holds the keys that no result may carry at any depth: secrets, and
// control fields that would let data pose as the runtime.
var sensitive = map[string]bool{
	"authorization": true, "api_key": true, "access_token": true, "refresh_token": true,
	"password": true, "secret": true, "cookie": true, "set_cookie": true,
	"call_id": true, "operation_id": true, "request_digest": true, "request_sha256": true,
	"result_sha256": true, "call_binding_sha256": true,
}

// sensitiveKey returns the normalised name of a forbidden key in v; the name is
// one of ours, so it can be reported.
func sensitiveKey(v any) (string, bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, x := range v {
			if name, found := sensitiveName(key); found {
				return name, true
			}
			if name, found := sensitiveKey(x); found {
				return name, true
			}
		}
	case []any:
		for _, x := range v {
			if name, found := sensitiveKey(x); found {
				return name, true
			}
		}
	}
	return "", false
}

func sensitiveName(key string) (string, bool) {
	if len(key) > 2*len("call_binding_sha256") {
		return "", false
	}
	name := strings.ReplaceAll(strings.ToLower(key), "-", "_")
	return name, sensitive[name]
}

// equalJSON is equality of canonical forms: 1 and 1.0 differ.
func equalJSON(a, b any) bool {
	if sa, ok := a.(string); ok {
		sb, ok := b.(string)
		return ok && sa == sb
	}
	ta, errA := canonjson.Marshal(a)
	tb, errB := canonjson.Marshal(b)
	return errA == nil && errB == nil && string(ta) == string(tb)
}
