// Package openaichat translates between the OpenAI Chat Completions API, which
// many other servers speak too, and toolresult. It is pure: the service sends and
// receives the JSON with whatever client it uses. (The Responses API is package
// openai.)
//
// [Calls] reads the tool calls of a completion, [Next] writes the messages that
// continue the conversation. [Stream] makes the completion of a stream. [Outputs]
// writes answers where the completion is not at hand.
//
// A runtime takes the calls if [Profile] is among its profiles.
//
// # Which turns have calls
//
// Only a completion whose one choice has the finish_reason tool_calls, stop (as where
// the request named the function) or, from old servers, function_call. One that was
// cut off, filtered or refused, or that does not say how it ended, is a
// [*ResponseError] with the reason, and none of its calls may be carried out.
//
// # What the model may send as arguments
//
// The arguments are a JSON string. Its content is taken as it is, so digits stay
// exact. Where there is nothing in it (an empty string, white space, null) the
// arguments are {}. A custom tool is sent a text: its arguments are
// {"input": text}.
//
// A call that cannot be carried out (its arguments are broken, its id is that of
// another call) is a call like any other, with a Fault: the runtime answers it with
// INVALID_ARGUMENTS, and the other calls of the turn get theirs. For a call without a
// usable id there is no answer that the API would take, so [Next] leaves out both.
// The function_call of old servers has no id and needs none.
package openaichat

import (
	"encoding/json"

	"github.com/toolruntime/toolruntime-go/provider/internal/wire"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// Profile is the provider profile of the calls, for the options of a runtime.
var Profile = toolresult.Profile{Provider: "openai", APIFamily: "chat_completions", AdapterRevision: "openai-chat-completions-v1"}

type (
	// Host supplies the operation id and idempotency key of a call, which never
	// come from the model.
	Host = wire.Host
	// ResponseError says why a response is refused.
	ResponseError = wire.ResponseError
	// OutputError lists why packages are not given to the provider.
	OutputError = wire.OutputError
)

// Calls returns the tool calls of a completion, in its order. The body has at most
// 16 MiB and 128 calls. Errors are a [*ResponseError], or what host said.
func Calls(response []byte, host Host) ([]toolresult.Call, error) {
	c, err := read(response)
	if err != nil {
		return nil, err
	}
	return c.turn.Calls(host)
}

var reasons = map[string]wire.Reason{
	"tool_calls": "", "function_call": "", "stop": "", "length": wire.CutOff, "content_filter": wire.Filtered,
}

// legacy is the kind of a call in the form of before tool_calls.
const legacy = "function_call"

// A completion is a response, with its message to give back.
type completion struct {
	turn    *wire.Turn
	message wire.Object
	calls   []any // of the message, as the API takes them back
}

func read(response []byte) (*completion, error) {
	root, err := wire.Open(response)
	if err != nil {
		return nil, err
	}
	turn, err := wire.NewTurn(Profile, root.Get("id"))
	if err != nil {
		return nil, err
	}
	if e := root.Get("error"); !e.Missing() {
		return nil, e.NotWhole(wire.Failed)
	}
	choices, err := root.Get("choices").Objects()
	if err != nil {
		return nil, err
	}
	if len(choices) != 1 {
		return nil, root.Get("choices").Refuse("must be one: nobody could tell which of several is the turn")
	}
	if err := choices[0].Get("finish_reason").Whole(reasons); err != nil {
		return nil, err
	}
	message, err := choices[0].Get("message").Object()
	if err != nil {
		return nil, err
	}
	if r := message.Get("refusal"); !r.Missing() && string(r.Raw) != `""` {
		return nil, r.NotWhole(wire.Refused)
	}
	c := &completion{turn: turn, message: message}
	return c, c.read()
}

func (c *completion) read() error {
	if call := c.message.Get(legacy); !call.Missing() {
		o, err := call.Object()
		if err != nil {
			return err
		}
		if err := c.turn.Add(wire.Candidate{Name: o.Get("name"), Arguments: o.Get("arguments").JSONText(), Kind: legacy, NoIDs: true}); err != nil {
			return err
		}
	}
	list := c.message.Get("tool_calls")
	if list.Missing() {
		return nil
	}
	calls, err := list.Objects()
	if err != nil {
		return err
	}
	echoed := map[string]bool{}
	for _, call := range calls {
		if err := c.add(call); err != nil {
			return err
		}
		id := string(call.Get("id").Raw)
		if wire.Answerable(call.Get("id")) && !echoed[id] {
			echoed[id] = true
			c.calls = append(c.calls, call.AsIs())
		}
	}
	return nil
}

func (c *completion) add(call wire.Object) error {
	kind := "function"
	if t := call.Get("type"); !t.Missing() {
		var err error
		if kind, err = t.Text(); err != nil {
			return err
		}
	}
	if kind != "function" && kind != "custom" {
		return nil
	}
	candidate := wire.Candidate{ID: call.Get("id")}
	body, err := call.Get(kind).Object()
	switch {
	case err != nil:
		candidate.Name = call.Get(kind)
	case kind == "custom":
		candidate.Name, candidate.Arguments = body.Get("name"), body.Get("input").As("input")
	default:
		candidate.Name, candidate.Arguments = body.Get("name"), body.Get("arguments").JSONText()
	}
	return c.turn.Add(candidate)
}

// Outputs returns the list of messages that answers the tool calls of a completion,
// in their order. Only the model results leave, as canonical text, and what is wrong
// with the arguments, as a text beside them. Each call has exactly one result; the
// results may stand in any order. The error is an [*OutputError], and then nothing
// is to be sent.
func Outputs(calls []toolresult.Expected, results []*toolresult.Package) (json.RawMessage, error) {
	items, err := wire.CheckTurn(Profile, calls, results)
	if err != nil {
		return nil, err
	}
	return wire.Encode(messages(nil, items))
}

// Next returns the list of messages that continue the conversation: the assistant's
// as it came, and one for each call. Errors are those of [Calls] and [Outputs].
func Next(response []byte, calls []toolresult.Expected, results []*toolresult.Package) (json.RawMessage, error) {
	c, err := read(response)
	if err != nil {
		return nil, err
	}
	items, err := c.turn.Answer(calls, results)
	if err != nil {
		return nil, err
	}
	message, err := c.echo()
	if err != nil {
		return nil, err
	}
	return wire.Encode(messages(message, items))
}

// echo is the assistant's message as the API takes it back: with calls that have an
// id of their own, and at least one of them or a text.
func (c *completion) echo() ([]any, error) {
	if c.message.Get("tool_calls").Missing() {
		return []any{c.message.AsIs()}, nil
	}
	list, err := wire.Encode(c.calls)
	if err != nil {
		return nil, err
	}
	fields := c.message.With("tool_calls", list)
	if len(c.calls) == 0 {
		delete(fields, "tool_calls")
		if c.message.Get("content").Missing() {
			return nil, nil
		}
	}
	message, err := wire.AsIs(fields)
	return []any{message}, err
}

func messages(list []any, items []wire.Item) []any {
	for _, item := range items {
		message := map[string]any{"role": "tool", "tool_call_id": item.CallID, "content": content(item)}
		switch {
		case item.Kind == legacy:
			message = map[string]any{"role": "function", "name": item.Tool, "content": item.Text}
		case item.CallID == "":
			continue
		}
		list = append(list, message)
	}
	return list
}

func content(i wire.Item) any {
	if i.Advice == "" {
		return i.Text
	}
	var parts []any
	for _, text := range i.Texts() {
		parts = append(parts, map[string]any{"type": "text", "text": text})
	}
	return parts
}
