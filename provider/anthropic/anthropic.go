// Package anthropic translates between the Anthropic Messages API and
// toolresult. It is pure: the service sends and receives the JSON with whatever
// client it uses.
//
// [Calls] reads the tool_use blocks of a message, [Outputs] writes the one user
// message that answers all of them, [Output] one block of it.
//
// # What the model may send as input
//
// The bytes of input are taken as they are, so digits stay exact. A missing or
// null input, and an empty string, are {}. Other JSON that is not an object is a
// call like any other, which the runtime answers with INVALID_ARGUMENTS. What is
// outside the JSON domain (a repeated key, for example) has no digest, so it
// cannot even be answered: then the whole response is refused with a
// [*ResponseError], and none of its calls may be carried out. So is a message
// with calls that was cut off.
package anthropic

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

// Calls returns the tool_use blocks of a message, in its order. Everything else
// in the message, calls of the provider's own tools included, is skipped. The
// body has at most 16 MiB and 128 calls, and no two calls may share an id.
// Errors are a [*ResponseError], or what host said.
func Calls(response []byte, host Host) ([]toolresult.Call, error) {
	root, err := wire.Open(response)
	if err != nil {
		return nil, err
	}
	turn, err := wire.NewTurn(toolresult.AnthropicMessages, root.Get("id"))
	if err != nil {
		return nil, err
	}
	blocks, err := root.Get("content").Objects()
	if err != nil {
		return nil, err
	}
	for _, block := range blocks {
		kind, err := block.Get("type").Text()
		if err != nil {
			return nil, err
		}
		if kind != "tool_use" {
			continue
		}
		if err := whole(root.Get("stop_reason")); err != nil {
			return nil, err
		}
		if err := turn.Add(block.Get("id"), block.Get("name"), block.Get("input").Value()); err != nil {
			return nil, err
		}
	}
	return turn.Calls(host)
}

func whole(stop wire.Node) error {
	if stop.Missing() {
		return nil
	}
	reason, err := stop.Text()
	if err != nil {
		return err
	}
	if reason == "max_tokens" || reason == "model_context_window_exceeded" {
		return &ResponseError{Path: stop.Path, Rule: "says that the message was cut off, and its calls with it"}
	}
	return nil
}

// Output returns the content block that answers the call b with the package p.
// The package is validated first; only its model result leaves, as canonical
// text. spec is nil for an unregistered tool. The error is an [*OutputError].
func Output(b *toolresult.Bound, spec *toolresult.Spec, p *toolresult.Package) (json.RawMessage, error) {
	item, err := wire.Check(toolresult.AnthropicMessages, b, spec, p)
	if err != nil {
		return nil, err
	}
	return wire.Encode(block(item))
}

// Outputs returns the one user message that answers all calls of a response, in
// their order. Each call has exactly one result; the results may stand in any
// order. The error is an [*OutputError], and then nothing is to be sent.
func Outputs(calls []toolresult.Expected, results []*toolresult.Package) (json.RawMessage, error) {
	items, err := wire.CheckTurn(toolresult.AnthropicMessages, calls, results)
	if err != nil {
		return nil, err
	}
	content := make([]any, len(items))
	for i, item := range items {
		content[i] = block(item)
	}
	return wire.Encode(map[string]any{"role": "user", "content": content})
}

func block(i wire.Item) map[string]any {
	return map[string]any{
		"type":        "tool_result",
		"tool_use_id": i.CallID,
		"content":     []any{map[string]any{"type": "text", "text": i.Text}},
		"is_error":    i.Failed,
	}
}
