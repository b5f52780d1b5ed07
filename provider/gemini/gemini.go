// Package gemini translates between the Gemini Interactions API and toolresult.
// It is pure: the service sends and receives the JSON with whatever client it
// uses. (The generateContent API is package geminicontent.)
//
// [Calls] reads the function calls of an interaction, [Next] writes the body of the
// interaction that answers all of them. [Stream] makes the interaction of a stream.
// [Outputs] and [Output] write answers where the interaction is not at hand.
//
// # Which turns have calls
//
// Only an interaction whose status is requires_action or completed. One that is
// incomplete, failed, cancelled or still going on, or that does not say what it is,
// is a [*ResponseError] with the reason, and none of its calls may be carried out.
//
// Calls stand in steps, as the API has answered since May 2026; the outputs of
// before are read where there are no steps. A call whose result stands in the same
// interaction, as in one that was asked for again, has been answered.
//
// # What the model may send as arguments
//
// The bytes of the arguments are taken as they are, so digits stay exact. Where
// there is nothing (no arguments, null, a blank string) they are {}.
//
// A call that cannot be carried out (its arguments are broken, its id is that of
// another call) is a call like any other, with a Fault: the runtime answers it with
// INVALID_ARGUMENTS, and the other calls of the turn get theirs. For a call without a
// usable id there is no answer that the API would take, so [Next] leaves it out.
package gemini

import (
	"encoding/json"

	"github.com/toolruntime/toolruntime-go/provider/internal/wire"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// Profile is the provider profile of the calls.
var Profile = toolresult.GeminiInteractions

type (
	// Host supplies the operation id and idempotency key of a call, which never
	// come from the model.
	Host = wire.Host
	// ResponseError says why a response is refused.
	ResponseError = wire.ResponseError
	// OutputError lists why packages are not given to the provider.
	OutputError = wire.OutputError
)

// Calls returns the function calls of an interaction, in its order. Everything
// else in it is skipped. The body has at most 16 MiB and 128 calls. Errors are a
// [*ResponseError], or what host said.
func Calls(response []byte, host Host) ([]toolresult.Call, error) {
	turn, err := read(response)
	if err != nil {
		return nil, err
	}
	return turn.Calls(host)
}

var statuses = map[string]wire.Reason{
	"requires_action": "", "completed": "", "incomplete": wire.CutOff, "failed": wire.Failed,
	"cancelled": wire.Cancelled, "in_progress": wire.Running, "queued": wire.Running,
}

func read(response []byte) (*wire.Turn, error) {
	root, err := wire.Open(response)
	if err != nil {
		return nil, err
	}
	turn, err := wire.NewTurn(Profile, root.Get("id"))
	if err != nil {
		return nil, err
	}
	if err := root.Get("status").Whole(statuses); err != nil {
		return nil, err
	}
	if e := root.Get("error"); !e.Missing() {
		return nil, e.NotWhole(wire.Failed)
	}
	list := root.Get("steps")
	if list.Missing() {
		list = root.Get("outputs")
	}
	steps, err := list.Objects()
	if err != nil {
		return nil, err
	}
	answered := map[string]bool{}
	for _, step := range steps {
		if kind, err := step.Get("type").Text(); err == nil && kind == "function_result" {
			if id, err := step.Get("call_id").Text(); err == nil {
				answered[id] = true
			}
		}
	}
	for _, step := range steps {
		if err := add(turn, step, answered); err != nil {
			return nil, err
		}
	}
	return turn, nil
}

func add(turn *wire.Turn, step wire.Object, answered map[string]bool) error {
	kind, err := step.Get("type").Text()
	if err != nil || kind != "function_call" {
		return err
	}
	c := wire.Candidate{ID: step.Get("id"), Name: step.Get("name"), Arguments: step.Get("arguments")}
	if other := step.Get("call_id"); c.ID.Missing() {
		c.ID = other
	} else if !other.Missing() && string(other.Raw) != string(c.ID.Raw) {
		// It is open which of them a result would answer.
		c.ID = wire.Node{Path: other.Path}
	}
	if id, err := c.ID.Text(); err == nil && answered[id] {
		return nil
	}
	return turn.Add(c)
}

// Output returns the body of the interaction that answers the call b, the only
// one of its response, with the package p. The package is validated first; only
// its model result leaves, as canonical text, and what is wrong with the arguments,
// as a text after it. spec is nil for an unregistered tool. The error is an
// [*OutputError].
func Output(b *toolresult.Bound, spec *toolresult.Spec, p *toolresult.Package) (json.RawMessage, error) {
	item, err := wire.Check(Profile, b, spec, p)
	if err != nil {
		return nil, err
	}
	return body([]wire.Item{item})
}

// Outputs returns the body of the one interaction that answers all calls of a
// response, in their order. Each call has exactly one result; the results may
// stand in any order. The error is an [*OutputError], and then nothing is to be
// sent.
func Outputs(calls []toolresult.Expected, results []*toolresult.Package) (json.RawMessage, error) {
	items, err := wire.CheckTurn(Profile, calls, results)
	if err != nil {
		return nil, err
	}
	return body(items)
}

// Next is [Outputs] for all calls of a response, which is held against them. Errors
// are those of [Calls] and [Outputs].
func Next(response []byte, calls []toolresult.Expected, results []*toolresult.Package) (json.RawMessage, error) {
	turn, err := read(response)
	if err != nil {
		return nil, err
	}
	items, err := turn.Answer(calls, results)
	if err != nil {
		return nil, err
	}
	return body(items)
}

func body(items []wire.Item) (json.RawMessage, error) {
	input := []any{}
	for _, item := range items {
		if item.CallID == "" {
			continue
		}
		var texts []any
		for _, text := range item.Texts() {
			texts = append(texts, map[string]any{"type": "text", "text": text})
		}
		result := map[string]any{"type": "function_result", "name": item.Tool, "call_id": item.CallID, "result": texts}
		if item.Failed {
			result["is_error"] = true
		}
		input = append(input, result)
	}
	return wire.Encode(map[string]any{"previous_interaction_id": items[0].ResponseID, "input": input})
}
