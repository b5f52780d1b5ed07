// Package geminicontent translates between the generateContent method of the
// Gemini API (and of Vertex AI) and toolresult. It is pure: the service sends and
// receives the JSON with whatever client it uses. (The Interactions API is package
// gemini.)
//
// [Calls] reads the function calls of a response, [Next] writes the two contents
// that continue the conversation, with the model's as it came: the thought
// signatures in it have to come back. [Stream] makes the response of a stream.
//
// A runtime takes the calls if [Profile] is among its profiles.
//
// # Which turns have calls
//
// Only a response whose one candidate has the finishReason STOP. One that was cut
// off, filtered or blocked, or that does not say how it ended, is a
// [*ResponseError] with the reason, and none of its calls may be carried out.
//
// # Ids
//
// Many models give a call no id, and answers are told apart by their order. Such a
// call gets one from its place in the response, so a response that is read again has
// the same calls; the id stays here.
//
// # What the model may send as arguments
//
// The bytes of args are taken as they are, so digits stay exact. Where there is
// nothing (no args, null, a blank string) they are {}.
//
// A call that cannot be carried out (its arguments are broken, its id is that of
// another call) is a call like any other, with a Fault: the runtime answers it with
// INVALID_ARGUMENTS, and the other calls of the turn get theirs.
package geminicontent

import (
	"encoding/json"

	"github.com/toolruntime/toolruntime-go/provider/internal/wire"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// Profile is the provider profile of the calls, for the options of a runtime.
var Profile = toolresult.Profile{Provider: "google", APIFamily: "generate_content", AdapterRevision: "gemini-generate-content-v1"}

type (
	// Host supplies the operation id and idempotency key of a call, which never
	// come from the model.
	Host = wire.Host
	// ResponseError says why a response is refused.
	ResponseError = wire.ResponseError
	// OutputError lists why packages are not given to the provider.
	OutputError = wire.OutputError
)

// Calls returns the function calls of a response, in its order. Everything else in
// it is skipped. The body has at most 16 MiB and 128 calls. Errors are a
// [*ResponseError], or what host said.
func Calls(response []byte, host Host) ([]toolresult.Call, error) {
	turn, _, err := read(response)
	if err != nil {
		return nil, err
	}
	return turn.Calls(host)
}

var reasons = map[string]wire.Reason{
	"STOP": "", "MAX_TOKENS": wire.CutOff, "FINISH_REASON_UNSPECIFIED": wire.Unstated,
	"SAFETY": wire.Filtered, "RECITATION": wire.Filtered, "BLOCKLIST": wire.Filtered, "PROHIBITED_CONTENT": wire.Filtered,
	"SPII": wire.Filtered, "LANGUAGE": wire.Filtered, "MODEL_ARMOR": wire.Filtered,
	"MALFORMED_FUNCTION_CALL": wire.Failed, "UNEXPECTED_TOOL_CALL": wire.Failed, "TOO_MANY_TOOL_CALLS": wire.Failed,
	"MISSING_THOUGHT_SIGNATURE": wire.Failed, "MALFORMED_RESPONSE": wire.Failed, "OTHER": wire.Failed,
}

// read returns the turn, and the model's content to give back.
func read(response []byte) (*wire.Turn, wire.Node, error) {
	var none wire.Node
	root, err := wire.Open(response)
	if err != nil {
		return nil, none, err
	}
	turn, err := wire.NewTurn(Profile, root.Get("responseId"))
	if err != nil {
		return nil, none, err
	}
	candidate, err := only(root)
	if err != nil {
		return nil, none, err
	}
	if err := candidate.Get("finishReason").Whole(reasons); err != nil {
		return nil, none, err
	}
	node := candidate.Get("content")
	if node.Missing() {
		return turn, node, nil
	}
	parts, err := partsOf(node)
	if err != nil {
		return nil, none, err
	}
	for _, part := range parts {
		call := part.Get("functionCall")
		if call.Missing() {
			continue
		}
		o, err := call.Object()
		if err != nil {
			return nil, none, err
		}
		c := wire.Candidate{ID: o.Get("id"), Name: o.Get("name"), Arguments: o.Get("args"), NoIDs: true}
		if !o.Get("partialArgs").Missing() || string(o.Get("willContinue").Raw) == "true" {
			c.Fault = &toolresult.Problem{Path: "call status", Rule: "is a piece of a call: the arguments are not whole"}
		}
		if err := turn.Add(c); err != nil {
			return nil, none, err
		}
	}
	return turn, node, nil
}

// only returns the one candidate of a response that was not blocked.
func only(root wire.Object) (wire.Object, error) {
	if e := root.Get("error"); !e.Missing() {
		return wire.Object{}, e.NotWhole(wire.Failed)
	}
	if feedback := root.Get("promptFeedback"); !feedback.Missing() {
		o, err := feedback.Object()
		if err != nil {
			return wire.Object{}, err
		}
		if blocked := o.Get("blockReason"); !blocked.Missing() {
			return wire.Object{}, blocked.NotWhole(wire.Filtered)
		}
	}
	candidates, err := root.Get("candidates").Objects()
	if err != nil {
		return wire.Object{}, err
	}
	if len(candidates) != 1 {
		return wire.Object{}, root.Get("candidates").Refuse("must be one: nobody could tell which of several is the turn")
	}
	return candidates[0], nil
}

func partsOf(content wire.Node) ([]wire.Object, error) {
	o, err := content.Object()
	if err != nil || o.Get("parts").Missing() {
		return nil, err
	}
	return o.Get("parts").Objects()
}

// Outputs returns the one content that answers the calls of a response, in their
// order, which is the response's. Only the model results leave, as they are for a
// success and under error for anything else, and what is wrong with the arguments.
// Each call has exactly one result; the results may stand in any order. The error is
// an [*OutputError], and then nothing is to be sent.
func Outputs(calls []toolresult.Expected, results []*toolresult.Package) (json.RawMessage, error) {
	items, err := wire.CheckTurn(Profile, calls, results)
	if err != nil {
		return nil, err
	}
	return wire.Encode(answer(items))
}

// Next returns the list of the two contents that continue the conversation: the
// model's as it came, and the one that answers all calls. Errors are those of
// [Calls] and [Outputs].
func Next(response []byte, calls []toolresult.Expected, results []*toolresult.Package) (json.RawMessage, error) {
	turn, content, err := read(response)
	if err != nil {
		return nil, err
	}
	items, err := turn.Answer(calls, results)
	if err != nil {
		return nil, err
	}
	return wire.Encode([]any{content.AsIs(), answer(items)})
}

func answer(items []wire.Item) map[string]any {
	var parts []any
	for _, item := range items {
		key := "output"
		if item.Failed {
			key = "error"
		}
		response := map[string]any{key: item.Result()}
		if item.Advice != "" {
			response["advice"] = item.Advice
		}
		answer := map[string]any{"name": item.Tool, "response": response}
		if item.CallID != "" {
			answer["id"] = item.CallID
		}
		parts = append(parts, map[string]any{"functionResponse": answer})
	}
	return map[string]any{"role": "user", "parts": parts}
}
