// Package anthropic translates between the Anthropic Messages API and
// toolresult. It is pure: the service sends and receives the JSON with whatever
// client it uses.
//
// [Calls] reads the tool_use blocks of a message, [Next] writes the two messages
// that continue the conversation. [Stream] makes the message of a stream. [Outputs]
// and [Output] write answers where the message is not at hand.
//
// # Which turns have calls
//
// Only a message whose stop_reason is tool_use or end_turn. One that was cut off,
// refused or paused, or that does not say how it ended, is a [*ResponseError] with
// the reason, and none of its calls may be carried out. One that ended at a stop
// sequence may have no calls: they could have been cut there.
//
// # What the model may send as input
//
// The bytes of input are taken as they are, so digits stay exact. Where there is
// nothing (no input, null, a blank string) it is {}.
//
// A call that cannot be carried out (its input is broken, its id is that of another
// call) is a call like any other, with a Fault: the runtime answers it with
// INVALID_ARGUMENTS, and the other calls of the turn get theirs. A call without a
// usable id cannot have a result: [Next] leaves the call out, and says in a text what
// became of it.
package anthropic

import (
	"encoding/json"

	"github.com/toolruntime/toolruntime-go/provider/internal/wire"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// Profile is the provider profile of the calls.
var Profile = toolresult.AnthropicMessages

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
// body has at most 16 MiB and 128 calls. Errors are a [*ResponseError], or what
// host said.
func Calls(response []byte, host Host) ([]toolresult.Call, error) {
	m, err := read(response)
	if err != nil {
		return nil, err
	}
	return m.turn.Calls(host)
}

var stops = map[string]wire.Reason{
	"tool_use": "", "end_turn": "", "stop_sequence": wire.Stopped,
	"max_tokens": wire.CutOff, "model_context_window_exceeded": wire.CutOff,
	"pause_turn": wire.Paused, "refusal": wire.Refused,
}

// A message is a response, with its blocks to give back.
type message struct {
	turn   *wire.Turn
	blocks []any
}

func read(response []byte) (*message, error) {
	root, err := wire.Open(response)
	if err != nil {
		return nil, err
	}
	turn, err := wire.NewTurn(Profile, root.Get("id"))
	if err != nil {
		return nil, err
	}
	stop := root.Get("stop_reason")
	whole, reason := stop.Whole(stops), wire.ReasonOf(stop.Whole(stops))
	if whole != nil && reason != wire.Stopped {
		return nil, whole
	}
	blocks, err := root.Get("content").Objects()
	if err != nil {
		return nil, err
	}
	m := &message{turn: turn, blocks: []any{}}
	echoed := map[string]bool{}
	for _, block := range blocks {
		kind, err := block.Get("type").Text()
		if err != nil {
			return nil, err
		}
		if kind != "tool_use" {
			m.blocks = append(m.blocks, block.AsIs())
			continue
		}
		if whole != nil {
			return nil, whole
		}
		if err := turn.Add(wire.Candidate{ID: block.Get("id"), Name: block.Get("name"), Arguments: block.Get("input")}); err != nil {
			return nil, err
		}
		// The API takes a block back with an id of its own only.
		id := string(block.Get("id").Raw)
		if echoed[id] || !wire.Answerable(block.Get("id")) {
			continue
		}
		echoed[id] = true
		given, err := echo(block)
		if err != nil {
			return nil, err
		}
		m.blocks = append(m.blocks, given)
	}
	return m, nil
}

// echo is a tool_use block as the API takes it back: its input is an object.
func echo(block wire.Object) (any, error) {
	input := block.Get("input")
	if !input.Missing() && input.Raw[0] == '{' {
		return block.AsIs(), nil
	}
	wrapped := json.RawMessage(`{}`)
	if !input.Missing() {
		wrapped = json.RawMessage(`{"INVALID_JSON":` + string(input.Raw) + `}`)
	}
	return wire.AsIs(block.With("input", wrapped))
}

// Output returns the content block that answers the call b with the package p.
// The package is validated first; only its model result leaves, as canonical text,
// and what is wrong with the arguments, as a text after it. spec is nil for an
// unregistered tool. The error is an [*OutputError].
func Output(b *toolresult.Bound, spec *toolresult.Spec, p *toolresult.Package) (json.RawMessage, error) {
	item, err := wire.Check(Profile, b, spec, p)
	if err != nil {
		return nil, err
	}
	return wire.Encode(block(item))
}

// Outputs returns the one user message that answers all calls of a response, in
// their order. Each call has exactly one result; the results may stand in any
// order. The error is an [*OutputError], and then nothing is to be sent.
func Outputs(calls []toolresult.Expected, results []*toolresult.Package) (json.RawMessage, error) {
	items, err := wire.CheckTurn(Profile, calls, results)
	if err != nil {
		return nil, err
	}
	return wire.Encode(answer(items))
}

// Next returns the list of the two messages that continue the conversation: the
// response as the assistant's, its blocks as they came, and the user's, which
// answers all calls. Errors are those of [Calls] and [Outputs].
func Next(response []byte, calls []toolresult.Expected, results []*toolresult.Package) (json.RawMessage, error) {
	m, err := read(response)
	if err != nil {
		return nil, err
	}
	items, err := m.turn.Answer(calls, results)
	if err != nil {
		return nil, err
	}
	return wire.Encode([]any{map[string]any{"role": "assistant", "content": m.blocks}, answer(items)})
}

func answer(items []wire.Item) map[string]any {
	results, others := []any{}, []any{} // the API wants the results first
	for _, item := range items {
		if item.CallID == "" {
			others = append(others, texts(item)...)
			continue
		}
		results = append(results, block(item))
	}
	return map[string]any{"role": "user", "content": append(results, others...)}
}

func block(i wire.Item) map[string]any {
	return map[string]any{"type": "tool_result", "tool_use_id": i.CallID, "content": texts(i), "is_error": i.Failed}
}

func texts(i wire.Item) []any {
	var blocks []any
	for _, text := range i.Texts() {
		blocks = append(blocks, map[string]any{"type": "text", "text": text})
	}
	return blocks
}
