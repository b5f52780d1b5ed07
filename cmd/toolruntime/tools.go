package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/scenario"
	"github.com/toolruntime/toolruntime-go/internal/toolfile"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// A toolset is what --tools names: the contracts of tools that another program
// runs, and its provider profiles. With them a ledger can be audited and resolved
// as that program would. There is no code behind them, so nothing is run.
type toolset struct {
	profiles []toolresult.Profile
	tools    []toolruntime.Registration
	names    []string
}

// readTools reads the file at path; "" names none.
func readTools(path string) (toolset, error) {
	var s toolset
	if path == "" {
		return s, nil
	}
	data, err := readUpTo(path, toolfile.MaxBytes)
	if err != nil {
		return s, err
	}
	wrong := func(err error) (toolset, error) {
		return toolset{}, &scenario.FixtureError{Problems: []string{"tools: " + err.Error()}}
	}
	file, err := toolfile.Parse(data)
	if err != nil {
		return wrong(err)
	}
	for _, p := range file.Profiles {
		s.profiles = append(s.profiles, toolresult.Profile(p))
	}
	for _, e := range file.Tools {
		t, err := registration(e)
		if err == nil {
			_, err = toolruntime.SpecOf(t)
		}
		if err != nil {
			return wrong(err)
		}
		s.tools, s.names = append(s.tools, t), append(s.names, e.Name)
	}
	return s, nil
}

var errNoCode = errors.New("this program has the contract of the tool and not its code")

// registration is a tool with the contracts of an entry.
func registration(e toolfile.Tool) (codeless, error) {
	t, err := withContract(e.Contract)
	for _, v := range e.Versions {
		version, wrong := withContract(v)
		t.Versions, err = append(t.Versions, version), cmp.Or(err, wrong)
	}
	return t, err
}

type codeless = toolruntime.Tool[json.RawMessage, json.RawMessage]

// withContract is a tool that can be held against a contract, and does nothing.
func withContract(c toolfile.Contract) (codeless, error) {
	t := codeless{
		Name: c.Name, Revisions: c.Revisions, Source: c.Source,
		InputSchema: c.InputSchema, OutputSchema: c.OutputSchema, Equal: c.Equal,
		MaxOutputBytes: c.MaxOutputBytes, MaxOutputDepth: c.MaxOutputDepth,
		Timeout: time.Duration(c.Timeout), KeyMemory: time.Duration(c.KeyMemory),
		Resource: func(json.RawMessage) string { return "" },
	}
	run := func(context.Context, toolruntime.Effect, json.RawMessage) (r toolruntime.Receipt[json.RawMessage], err error) {
		return r, toolruntime.RetryLater(0, errNoCode)
	}
	find := func(context.Context, toolruntime.Effect, json.RawMessage) (r toolruntime.Receipt[json.RawMessage], found bool, err error) {
		return r, false, errNoCode
	}
	switch c.Risk {
	case "", "write":
	case "read":
		t.Risk = toolruntime.Read
	default:
		return t, errors.New("risk must be write or read")
	}
	t.Run = run
	switch c.Effect {
	case "", "once":
	case "queryable":
		t.Effect, t.Find = toolruntime.Queryable, find
	case "idempotent":
		t.Effect = toolruntime.Idempotent
	case "transactional":
		t.Effect, t.Run = toolruntime.Transactional, nil
		t.RunTx = func(context.Context, toolruntime.Tx, toolruntime.Effect, json.RawMessage) (r toolruntime.Receipt[json.RawMessage], err error) {
			return r, toolruntime.RetryLater(0, errNoCode)
		}
	default:
		return t, errors.New("effect must be once, queryable, idempotent or transactional")
	}
	return t, nil
}

// with are the examples' tools and those of the file, which come first: a tool of
// the host's may have the name of an example.
func (s toolset) with(examples []toolruntime.Registration) []toolruntime.Registration {
	all := slices.Clone(s.tools)
	for _, t := range examples {
		if spec, err := toolruntime.SpecOf(t); err == nil && !slices.Contains(s.names, spec.Contract().Name) {
			all = append(all, t)
		}
	}
	return all
}

// approvers asks examples about the examples' tools. Who may approve another
// program's call, only that program knows: whoever it has accepted is taken for
// eligible.
func (s toolset) approvers(examples toolruntime.Approvers) toolruntime.Approvers {
	return func(ctx context.Context, p toolresult.Principal, tool, approver string) (bool, error) {
		if slices.Contains(s.names, tool) {
			return true, nil
		}
		return examples(ctx, p, tool, approver)
	}
}
