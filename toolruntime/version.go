package toolruntime

import (
	"context"
	"fmt"

	"github.com/toolruntime/toolruntime-go/internal/ledger"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A version of a tool is a contract with an effect kind. Operations are accepted
// by one of them and are carried out by no other: revisions say what was approved,
// and the effect kind what a lost attempt may do.

// compileVersions adds other versions of a tool to c, which is the first of them.
func (c *tool) compileVersions(all []Registration) (specs []*toolresult.Spec, err error) {
	for _, r := range all {
		if r == nil {
			return nil, &toolresult.InputError{Field: "versions", Rule: "must not be nil"}
		}
		v, err := r.compile()
		if err != nil {
			return nil, err
		}
		for _, v := range v.versions {
			c.versions = append(c.versions, v)
			specs = append(specs, v.spec)
		}
	}
	return specs, nil
}

// checkVersions holds the versions of a tool against each other.
func (c *tool) checkVersions() error {
	name, seen := c.spec.Contract().Name, map[string]bool{}
	for _, v := range c.versions {
		rule := ""
		switch {
		case v.spec.Contract().Name != name:
			rule = "has a version of another name"
		case len(c.versions) > 1 && v.spec.Risk() == Read:
			rule = "has versions: it is a write, and so are they"
		case seen[v.version]:
			rule = "has two versions of the same revisions and effect kind"
		}
		if rule != "" {
			return &toolresult.InputError{Field: fmt.Sprintf("tool %q", name), Rule: rule}
		}
		seen[v.version] = true
	}
	return nil
}

// current compiles a tool under whose contract calls are accepted.
func current(t Registration) (*tool, error) {
	c, err := t.compile()
	if err == nil && !c.runs {
		err = &toolresult.InputError{Field: fmt.Sprintf("tool %q", c.spec.Contract().Name), Rule: "needs Run, or RunTx if it is transactional"}
	}
	return c, err
}

// carrier is the version that carries out an operation, or nil where it is not
// here. One from before effect kinds were kept goes by the revisions alone.
func (rt *Runtime) carrier(r *ledger.Operation) *tool {
	if t := rt.tools[r.ToolName()]; t != nil {
		for _, v := range t.versions {
			if v.runs && v.spec.Contract() == r.Contract() && (r.Kind() == "" || r.Kind() == v.effect.String()) {
				return v
			}
		}
	}
	return nil
}

// carries reports whether an operation can be carried out here.
func (rt *Runtime) carries(r *ledger.Operation) bool { return rt.carrier(r) != nil }

// known is the version whose contract it is, or nil: what it says of arguments and
// results holds for every operation under that contract.
func (rt *Runtime) known(c toolresult.Contract) *tool {
	if t := rt.tools[c.Name]; t != nil {
		for _, v := range t.versions {
			if v.spec.Contract() == c {
				return v
			}
		}
	}
	return nil
}

// knows reports whether a lane's version, or for old operations any of its tool,
// is carried out here.
func (rt *Runtime) knows(version string) bool { return rt.versions[version] }

// reversion binds a repetition to the contract under which its operation was
// accepted, where a version of the tool has that and the intent is the same one.
// Any other call stays what it is, and so does the answer to it.
func (rt *Runtime) reversion(ctx context.Context, r *request) error {
	if r.tool == nil || len(r.tool.versions) == 1 || r.bound.Call().IdempotencyKey == "" {
		return nil
	}
	rec, err := rt.ledger.ByScope(ctx, r.bound)
	if err != nil || rec == nil || rec.Contract() == r.bound.Contract() {
		return err
	}
	v := rt.known(rec.Contract())
	if v == nil {
		return nil
	}
	b, err := toolresult.Bind(r.bound.Principal(), r.bound.Call(), v.spec.Contract())
	if err == nil && b.RequestSHA256() == rec.RequestSHA256() {
		r.tool, r.bound = v, b
	}
	return err
}
