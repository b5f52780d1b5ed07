package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
	"github.com/toolruntime/toolruntime-go/internal/scenario"
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

// A toolsFile is a toolruntime-tools-v1.
type toolsFile struct {
	SchemaVersion string `json:"schema_version"`
	Profiles      []struct {
		Provider        string `json:"provider"`
		APIFamily       string `json:"api_family"`
		AdapterRevision string `json:"adapter_revision"`
	} `json:"profiles"`
	Tools []toolEntry `json:"tools"`
}

type toolEntry struct {
	Name           string               `json:"name"`
	Risk           string               `json:"risk"`   // write, which is the default, or read
	Effect         string               `json:"effect"` // once, queryable, idempotent or transactional
	Revisions      toolresult.Revisions `json:"revisions"`
	Source         string               `json:"source"`
	InputSchema    json.RawMessage      `json:"input_schema"`
	OutputSchema   json.RawMessage      `json:"output_schema"`
	Equal          map[string]string    `json:"equal"`
	MaxOutputBytes int                  `json:"max_output_bytes"`
	MaxOutputDepth int                  `json:"max_output_depth"`
}

const toolsVersion = "toolruntime-tools-v1"

// readTools reads the file at path; "" names none.
func readTools(path string) (toolset, error) {
	var s toolset
	if path == "" {
		return s, nil
	}
	data, err := readFile(path)
	if err != nil {
		return s, err
	}
	wrong := func(problem string) (toolset, error) {
		return toolset{}, &scenario.FixtureError{Problems: []string{"tools: " + problem}}
	}
	if _, err := canonjson.Parse(data); err != nil {
		return wrong(err.Error())
	}
	var file toolsFile
	if err := jsonv2.Unmarshal(data, &file, jsonv2.RejectUnknownMembers(true)); err != nil {
		var where *jsonv2.SemanticError
		if errors.As(err, &where) && where.JSONPointer != "" {
			return wrong(string(where.JSONPointer) + " is not a member of a " + toolsVersion + ", or has another type there")
		}
		return wrong("is not a " + toolsVersion)
	}
	if file.SchemaVersion != toolsVersion {
		return wrong("schema_version must be " + toolsVersion)
	}
	for _, p := range file.Profiles {
		s.profiles = append(s.profiles, toolresult.Profile{Provider: p.Provider, APIFamily: p.APIFamily, AdapterRevision: p.AdapterRevision})
	}
	for _, e := range file.Tools {
		t, problem := e.registration()
		if problem == "" {
			if _, err := toolruntime.SpecOf(t); err != nil {
				problem = err.Error()
			}
		}
		if problem != "" {
			return wrong(problem)
		}
		s.tools, s.names = append(s.tools, t), append(s.names, e.Name)
	}
	return s, nil
}

var errNoCode = errors.New("this program has the contract of the tool and not its code")

// registration is a tool with the contract of an entry. The problem is "" where
// there is none.
func (e toolEntry) registration() (t toolruntime.Tool[json.RawMessage, json.RawMessage], problem string) {
	if len(e.InputSchema) == 0 || len(e.OutputSchema) == 0 {
		return t, "each of the tools needs name, input_schema and output_schema"
	}
	t = toolruntime.Tool[json.RawMessage, json.RawMessage]{
		Name: e.Name, Revisions: e.Revisions, Source: e.Source,
		InputSchema: e.InputSchema, OutputSchema: e.OutputSchema, Equal: e.Equal,
		MaxOutputBytes: e.MaxOutputBytes, MaxOutputDepth: e.MaxOutputDepth,
		Resource: func(json.RawMessage) string { return "" },
	}
	run := func(context.Context, toolruntime.Effect, json.RawMessage) (r toolruntime.Receipt[json.RawMessage], err error) {
		return r, toolruntime.RetryLater(0, errNoCode)
	}
	find := func(context.Context, toolruntime.Effect, json.RawMessage) (r toolruntime.Receipt[json.RawMessage], found bool, err error) {
		return r, false, errNoCode
	}
	switch e.Risk {
	case "", "write":
	case "read":
		t.Risk = toolruntime.Read
	default:
		return t, "risk must be write or read"
	}
	t.Run = run
	switch e.Effect {
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
		return t, "effect must be once, queryable, idempotent or transactional"
	}
	return t, ""
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
