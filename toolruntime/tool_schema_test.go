package toolruntime_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

type noteArgs struct {
	Text string `json:"text"`
	//lint:ignore U1000 an unexported field is no part of the arguments
	hidden string
}

type noteTree struct {
	Text  string     `json:"text"`
	Parts []noteTree `json:"parts,omitempty"`
}

type noteDone struct {
	CallID string `json:"call_id"`
}

// own says by a method what of its JSON it takes.
type own struct{}

func (*own) UnmarshalJSON([]byte) error { panic("called at registration") }

func read[In, Out any](input, output string) toolruntime.Registration {
	t := toolruntime.Tool[In, Out]{Name: "note", Risk: toolruntime.Read,
		Resource: func(In) string { return "r" },
		Run: func(context.Context, toolruntime.Effect, In) (toolruntime.Receipt[Out], error) {
			return toolruntime.Receipt[Out]{}, nil
		}}
	if input != "" {
		t.InputSchema = json.RawMessage(input)
	}
	if output != "" {
		t.OutputSchema = json.RawMessage(output)
	}
	return t
}

func TestRegistrationRefusesWhatCannotBeUsed(t *testing.T) {
	const text, textAndMore = `{"type":"object","properties":{"text":{"type":"string"}}}`, `{"type":"object","properties":{"text":{},"more":{}}}`
	type args = noteArgs
	type raw = json.RawMessage
	for name, tt := range map[string]struct {
		tool        toolruntime.Registration
		field, rule string // "" is accepted
	}{
		"given for the type":            {read[args, args](text, text), "", ""},
		"given for raw text":            {read[raw, raw](textAndMore, textAndMore), "", ""},
		"given for a map":               {read[map[string]any, map[string]any](textAndMore, textAndMore), "", ""},
		"given for a type's own form":   {read[own, raw](textAndMore, text), "", ""},
		"arguments that In drops":       {read[args, args](textAndMore, text), "input_schema", `#/properties: names "more"`},
		"results that Out cannot have":  {read[args, args](text, textAndMore), "output_schema", `#/properties: names "more"`},
		"an unexported field":           {read[args, args](`{"type":"object","properties":{"hidden":{}}}`, text), "input_schema", `names "hidden"`},
		"a name in another case":        {read[args, args](`{"type":"object","properties":{"Text":{}}}`, text), "input_schema", `names "Text"`},
		"a type that contains itself":   {read[noteTree, noteTree]("", ""), "", ""},
		"a field that no result has":    {read[args, noteDone]("", ""), "output_schema", "#/properties/call_id: "},
		"a type without a schema":       {read[raw, args]("", ""), "input_schema", "has no schema to infer"},
		"a schema that no value passes": {read[raw, args](`{"type":"object","properties":{"a":false},"required":["a"]}`, ""), "input_schema", "#/properties/a: allows no value"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := toolruntime.SpecOf(tt.tool)
			var e *toolresult.InputError
			switch {
			case tt.field == "" && err != nil:
				t.Error(err)
			case tt.field != "" && (!errors.As(err, &e) || e.Field != tt.field || !strings.Contains(e.Rule, tt.rule)):
				t.Errorf("got %v, want %s with %q", err, tt.field, tt.rule)
			}
		})
	}
}

// TestLongNames: of a name that leaves no room for the revisions made of it the error
// says so, and not that a revision is wrong that nobody has given.
func TestLongNames(t *testing.T) {
	all := toolresult.Revisions{InputSchema: "i", OutputSchema: "o", Effect: "e", Handler: "h", Producer: "p", Policy: "p"}
	but := func(change func(*toolresult.Revisions)) toolresult.Revisions {
		r := all
		change(&r)
		return r
	}
	for name, tt := range map[string]struct {
		length int
		given  toolresult.Revisions
		rule   string // "" is accepted
	}{
		"the longest":    {235, toolresult.Revisions{}, ""},
		"one longer":     {236, toolresult.Revisions{}, "must have at most 235 code points, not 236, where revisions are made of it: take a shorter one, or give Revisions.OutputSchema"},
		"much longer":    {255, but(func(r *toolresult.Revisions) { r.Effect, r.Policy = "", "" }), "must have at most 245 code points, not 255, where revisions are made of it: take a shorter one, or give Revisions.Effect and Revisions.Policy"},
		"all are given":  {255, all, ""},
		"too long alone": {256, all, "must have at most 255 code points"},
	} {
		t.Run(name, func(t *testing.T) {
			tool := read[noteArgs, noteArgs]("", "").(toolruntime.Tool[noteArgs, noteArgs])
			tool.Name, tool.Revisions = strings.Repeat("ä", tt.length), tt.given
			_, err := toolruntime.SpecOf(tool)
			var e *toolresult.InputError
			switch {
			case tt.rule == "" && err != nil:
				t.Error(err)
			case tt.rule != "" && (!errors.As(err, &e) || e.Field != "name" || e.Rule != tt.rule):
				t.Errorf("got %v, want name %s", err, tt.rule)
			}
		})
	}
}
