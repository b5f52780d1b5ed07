// Package gemini translates between the Gemini Interactions API and toolresult.
// It is pure: the service sends and receives the JSON with whatever client it
// uses.
//
// [Calls] reads the function calls of an interaction, [Outputs] writes the body
// of the interaction that answers all of them, [Output] that for a single call.
//
// # What the model may send as arguments
//
// The bytes of the arguments are taken as they are, so digits stay exact.
// Missing or null arguments, and an empty string, are {}. Other JSON that is not
// an object is a call like any other, which the runtime answers with
// INVALID_ARGUMENTS. What is outside the JSON domain (a repeated key, for
// example) has no digest, so it cannot even be answered: then the whole response
// is refused with a [*ResponseError], and none of its calls may be carried out.
package gemini

import (
	"encoding/json"

	"github.com/toolruntime/toolruntime-go/provider/internal/wire"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

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
// else in it is skipped. The body has at most 16 MiB and 128 calls, and no two
// calls may share an id. Errors are a [*ResponseError], or what host said.
func Calls(response []byte, host Host) ([]toolresult.Call, error) {
	root, err := wire.Open(response)
	if err != nil {
		return nil, err
	}
	turn, err := wire.NewTurn(toolresult.GeminiInteractions, root.Get("id"))
	if err != nil {
		return nil, err
	}
	outputs, err := root.Get("outputs").Objects()
	if err != nil {
		return nil, err
	}
	for _, output := range outputs {
		kind, err := output.Get("type").Text()
		if err != nil {
			return nil, err
		}
		if kind != "function_call" {
			continue
		}
		id, err := callID(output)
		if err != nil {
			return nil, err
		}
		if err := turn.Add(id, output.Get("name"), output.Get("arguments").Value()); err != nil {
			return nil, err
		}
	}
	return turn.Calls(host)
}

// callID returns the id of a call, which the API has under either name. Two that
// differ would leave open which of them a result answers.
func callID(output wire.Object) (wire.Node, error) {
	id, other := output.Get("id"), output.Get("call_id")
	switch {
	case other.Missing():
		return id, nil
	case id.Missing():
		return other, nil
	}
	a, err := id.Text()
	if err != nil {
		return id, err
	}
	b, err := other.Text()
	if err != nil {
		return other, err
	}
	if a != b {
		return id, &ResponseError{Path: other.Path, Rule: "differs from the id"}
	}
	return id, nil
}

// Output returns the body of the interaction that answers the call b, the only
// one of its response, with the package p. The package is validated first; only
// its model result leaves, as canonical text. spec is nil for an unregistered
// tool. The error is an [*OutputError].
func Output(b *toolresult.Bound, spec *toolresult.Spec, p *toolresult.Package) (json.RawMessage, error) {
	item, err := wire.Check(toolresult.GeminiInteractions, b, spec, p)
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
	items, err := wire.CheckTurn(toolresult.GeminiInteractions, calls, results)
	if err != nil {
		return nil, err
	}
	return body(items)
}

func body(items []wire.Item) (json.RawMessage, error) {
	input := make([]any, len(items))
	for i, item := range items {
		input[i] = map[string]any{
			"type": "function_result", "name": item.Tool, "call_id": item.CallID,
			"result": []any{map[string]any{"type": "text", "text": item.Text}},
		}
	}
	return wire.Encode(map[string]any{"previous_interaction_id": items[0].ResponseID, "input": input})
}
