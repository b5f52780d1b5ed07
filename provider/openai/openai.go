// Package openai translates between the OpenAI Responses API and toolresult.
// It is pure: the service sends and receives the JSON with whatever client it
// uses.
//
// [Calls] reads the function calls of a response, [Outputs] writes the input
// items that answer all of them, [Output] one of them.
//
// # What the model may send as arguments
//
// OpenAI sends the arguments as a JSON string. Its content is taken as it is, so
// digits stay exact. An empty string, which models send for a function without
// parameters, is {}. Other JSON that is not an object is a call like any other,
// which the runtime answers with INVALID_ARGUMENTS. What is outside the JSON
// domain (broken, truncated, with a repeated key) has no digest, so it cannot
// even be answered: then the whole response is refused with a [*ResponseError],
// and none of its calls may be carried out. So is a call that is not completed.
package openai

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

// Calls returns the function calls of a response, in its order. Everything else
// in the response is skipped. The body has at most 16 MiB and 128 calls, and no
// two calls may share an id. Errors are a [*ResponseError], or what host said.
func Calls(response []byte, host Host) ([]toolresult.Call, error) {
	root, err := wire.Open(response)
	if err != nil {
		return nil, err
	}
	turn, err := wire.NewTurn(toolresult.OpenAIResponses, root.Get("id"))
	if err != nil {
		return nil, err
	}
	items, err := root.Get("output").Objects()
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		kind, err := item.Get("type").Text()
		if err != nil {
			return nil, err
		}
		if kind != "function_call" {
			continue
		}
		if err := add(turn, item); err != nil {
			return nil, err
		}
	}
	return turn.Calls(host)
}

func add(turn *wire.Turn, item wire.Object) error {
	if status := item.Get("status"); !status.Missing() {
		if s, err := status.Text(); err != nil || s != "completed" {
			return &ResponseError{Path: status.Path, Rule: "must be completed: the arguments may be cut off"}
		}
	}
	arguments := item.Get("arguments")
	text, err := arguments.Text()
	if err != nil {
		return err
	}
	arguments.Raw = json.RawMessage(text)
	return turn.Add(item.Get("call_id"), item.Get("name"), arguments)
}

// Output returns the input item that answers the call b with the package p. The
// package is validated first; only its model result leaves, as canonical text.
// spec is nil for an unregistered tool. The error is an [*OutputError].
func Output(b *toolresult.Bound, spec *toolresult.Spec, p *toolresult.Package) (json.RawMessage, error) {
	item, err := wire.Check(toolresult.OpenAIResponses, b, spec, p)
	if err != nil {
		return nil, err
	}
	return wire.Encode(output(item))
}

// Outputs returns the list of input items that answers all calls of a response,
// in their order. Each call has exactly one result; the results may stand in any
// order. The error is an [*OutputError], and then nothing is to be sent.
func Outputs(calls []toolresult.Expected, results []*toolresult.Package) (json.RawMessage, error) {
	items, err := wire.CheckTurn(toolresult.OpenAIResponses, calls, results)
	if err != nil {
		return nil, err
	}
	list := make([]any, len(items))
	for i, item := range items {
		list[i] = output(item)
	}
	return wire.Encode(list)
}

func output(i wire.Item) map[string]any {
	return map[string]any{"type": "function_call_output", "call_id": i.CallID, "output": i.Text}
}
