// Package openai translates between the OpenAI Responses API and toolresult.
// It is pure: the service sends and receives the JSON with whatever client it
// uses. (Chat Completions are package openaichat.)
//
// [Calls] reads the calls of a response, [Next] writes what the next request
// answers them with. [Stream] makes the response of a stream. [Outputs] and
// [Output] write single answers where the response is not at hand.
//
// # Which turns have calls
//
// Only a response whose status is completed. One that is incomplete, failed,
// cancelled or still going on, that was refused, or that does not say what it is,
// is a [*ResponseError] with the reason, and none of its calls may be carried out.
//
// # What the model may send as arguments
//
// OpenAI sends the arguments as a JSON string. Its content is taken as it is, so
// digits stay exact. Where there is nothing in it (an empty string, white space,
// null) the arguments are {}. A custom tool is sent a text: its arguments are
// {"input": text}.
//
// A call that cannot be carried out (its arguments are broken, its id is that of
// another call, its status is not completed) is a call like any other, with a Fault:
// the runtime answers it with INVALID_ARGUMENTS, and the other calls of the turn get
// theirs. For a call without a usable id there is no answer that the API would
// take, so [Next] leaves it out.
package openai

import (
	"encoding/json"
	"io"
	"maps"
	"slices"

	"github.com/toolruntime/toolruntime-go/provider/internal/wire"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// Profile is the provider profile of the calls.
var Profile = toolresult.OpenAIResponses

type (
	// Host supplies the operation id and idempotency key of a call, which never
	// come from the model.
	Host = wire.Host
	// ResponseError says why a response is refused.
	ResponseError = wire.ResponseError
	// OutputError lists why packages are not given to the provider.
	OutputError = wire.OutputError
)

// Calls returns the calls of a response, in its order. Everything else in it is
// skipped. The body has at most 16 MiB and 128 calls. Errors are a
// [*ResponseError], or what host said.
func Calls(response []byte, host Host) ([]toolresult.Call, error) {
	turn, err := read(response)
	if err != nil {
		return nil, err
	}
	return turn.Calls(host)
}

var statuses = map[string]wire.Reason{
	"completed": "", "incomplete": wire.CutOff, "failed": wire.Failed,
	"cancelled": wire.Cancelled, "in_progress": wire.Running, "queued": wire.Running,
}

// custom is the kind of a custom tool's call.
const custom = "custom"

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
	if d := root.Get("incomplete_details"); !d.Missing() {
		return nil, d.NotWhole(wire.CutOff)
	}
	items, err := root.Get("output").Objects()
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		if err := add(turn, item); err != nil {
			return nil, err
		}
	}
	return turn, nil
}

func add(turn *wire.Turn, item wire.Object) error {
	kind, err := item.Get("type").Text()
	if err != nil {
		return err
	}
	c := wire.Candidate{ID: item.Get("call_id"), Name: item.Get("name")}
	switch kind {
	case "message":
		return refusal(item.Get("content"))
	case "function_call":
		c.Arguments = item.Get("arguments").JSONText()
	case "custom_tool_call":
		c.Kind, c.Arguments = custom, item.Get("input").As("input")
	default:
		return nil
	}
	if status := item.Get("status"); !status.Missing() && status.Whole(statuses) != nil {
		c.Fault = &toolresult.Problem{Path: "call status", Rule: "is not completed: the arguments may be cut off"}
	}
	return turn.Add(c)
}

// refusal finds out whether the model has declined.
func refusal(content wire.Node) error {
	if content.Missing() {
		return nil
	}
	parts, err := content.Objects()
	if err != nil {
		return err
	}
	for _, part := range parts {
		if kind, err := part.Get("type").Text(); err == nil && kind == "refusal" {
			return part.Get("type").NotWhole(wire.Refused)
		}
	}
	return nil
}

// Stream reads the events of a streamed response and returns the response, as
// [Calls] takes it. Only one that the stream says is completed is returned; errors
// are a [*ResponseError], or come from r. A stream has at most 64 MiB.
func Stream(r io.Reader) ([]byte, error) {
	var id string
	done := map[int]json.RawMessage{} // the items, for servers that do not repeat them
	for event, err := range wire.Events(r) {
		if err != nil {
			return nil, err
		}
		if event.Done {
			break
		}
		kind, err := event.Get("type").Text()
		if err != nil {
			return nil, err
		}
		switch kind {
		case "response.created":
			response, err := event.Get("response").Object()
			if err != nil {
				return nil, err
			}
			if id, err = response.Get("id").Identifier(); err != nil {
				return nil, err
			}
		case "response.output_item.done":
			i, err := event.Get("output_index").Index()
			if err != nil {
				return nil, err
			}
			done[i] = event.Get("item").Raw
		case "response.completed":
			return completed(event.Get("response"), id, done)
		case "response.incomplete":
			return nil, event.At.NotWhole(wire.CutOff)
		case "response.cancelled":
			return nil, event.At.NotWhole(wire.Cancelled)
		case "response.failed", "error":
			return nil, event.At.NotWhole(wire.Failed)
		}
	}
	return nil, wire.ErrCut()
}

func completed(node wire.Node, id string, done map[int]json.RawMessage) ([]byte, error) {
	response, err := node.Object()
	if err != nil {
		return nil, err
	}
	if own, err := response.Get("id").Identifier(); err != nil || id != "" && own != id {
		return nil, &ResponseError{Path: node.Path, Rule: "is not the response that was created"}
	}
	items, err := response.Get("output").Objects()
	if err != nil {
		return nil, err
	}
	if len(items) > 0 || len(done) == 0 {
		return node.Raw, nil
	}
	var output []json.RawMessage
	for _, i := range slices.Sorted(maps.Keys(done)) {
		output = append(output, done[i])
	}
	list, err := wire.JSON(output)
	if err != nil {
		return nil, err
	}
	return wire.JSON(response.With("output", list))
}

// Output returns the input item that answers the call b with the package p. The
// package is validated first; only its model result leaves, as canonical text, and
// what is wrong with the arguments, as a text beside it. spec is nil for an
// unregistered tool. The error is an [*OutputError].
func Output(b *toolresult.Bound, spec *toolresult.Spec, p *toolresult.Package) (json.RawMessage, error) {
	item, err := wire.Check(Profile, b, spec, p)
	if err != nil {
		return nil, err
	}
	return wire.Encode(output(item))
}

// Outputs returns the list of input items that answers function calls of a
// response, in their order. Each call has exactly one result; the results may stand
// in any order. The error is an [*OutputError], and then nothing is to be sent.
func Outputs(calls []toolresult.Expected, results []*toolresult.Package) (json.RawMessage, error) {
	items, err := wire.CheckTurn(Profile, calls, results)
	if err != nil {
		return nil, err
	}
	return wire.Encode(outputs(items))
}

// Next returns the fields of the request that answers all calls of a response:
// previous_response_id, and input. A service that keeps the conversation itself
// takes input alone, and puts the response's output before it, as it came. Errors
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
	return wire.Encode(map[string]any{"previous_response_id": items[0].ResponseID, "input": outputs(items)})
}

func outputs(items []wire.Item) []any {
	list := []any{}
	for _, item := range items {
		if item.CallID != "" {
			list = append(list, output(item))
		}
	}
	return list
}

func output(i wire.Item) map[string]any {
	kind, result := "function_call_output", any(i.Text)
	if i.Kind == custom {
		kind = "custom_tool_call_output"
	}
	if i.Advice != "" {
		var list []any
		for _, text := range i.Texts() {
			list = append(list, map[string]any{"type": "input_text", "text": text})
		}
		result = list
	}
	return map[string]any{"type": kind, "call_id": i.CallID, "output": result}
}
