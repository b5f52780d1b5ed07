package wire_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// events writes a stream of the given data.
func events(data ...string) string { return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n" }

// TestStreamForms: what servers may leave out or do otherwise, and still say the end.
func TestStreamForms(t *testing.T) {
	block := func(start string, pieces ...string) string {
		list := []string{`{"type":"message_start","message":{"id":"r","content":[]}}`, `{"type":"content_block_start","index":0,"content_block":` + start + `}`}
		for _, piece := range pieces {
			list = append(list, `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":`+quote(piece)+`}}`)
		}
		return events(append(list, `{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`, `{"type":"message_stop"}`)...)
	}
	step := func(deltas ...string) string {
		list := []string{`{"event_type":"interaction.created","interaction":{"id":"r"}}`,
			`{"event_type":"step.start","index":0,"step":{"type":"function_call","id":"c","name":"tool","arguments":{}}}`}
		for _, delta := range deltas {
			list = append(list, `{"event_type":"step.delta","index":0,"delta":`+delta+`}`)
		}
		return events(append(list, `{"event_type":"step.stop","index":0}`, `{"event_type":"interaction.completed","interaction":{"id":"r","status":"requires_action"}}`)...)
	}
	chunk := func(delta, finish string) string {
		return `{"id":"r","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`
	}
	const tool = `{"type":"tool_use","id":"c","name":"tool","input":{}}`
	for _, tt := range []struct {
		form, name, stream string
		want               []string // the arguments of the calls
	}{
		{"openai", "items that the end does not repeat", events(
			`{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","call_id":"d","name":"tool","arguments":"{\"x\":2}"}}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"c","name":"tool","arguments":"{\"x\":1}"}}`,
			`{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}`), []string{`{"x":1}`, `{"x":2}`}},
		{"openai", "nothing after the end is read", events(`{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}`, `{`), nil},
		{"openaichat", "calls at once, without an index", events(
			chunk(`{"tool_calls":[{"id":"c","function":{"name":"tool","arguments":"{\"x\":1}"}}]}`, "null"),
			chunk(`{"tool_calls":[{"id":"d","function":{"name":"tool","arguments":"{}"}}]}`, `"stop"`), "[DONE]"), []string{`{"x":1}`, `{}`}},
		{"openaichat", "id and name again", events(
			chunk(`{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"tool","arguments":"{\"x\""}}]}`, "null"),
			chunk(`{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"tool","arguments":":1}"}}]}`, `"tool_calls"`), "[DONE]"), []string{`{"x":1}`}},
		{"openaichat", "the form of before tool_calls", events(
			chunk(`{"function_call":{"name":"tool","arguments":"{\"x\":"}}`, "null"), chunk(`{"function_call":{"arguments":"1}"}}`, `"function_call"`), "[DONE]"), []string{`{"x":1}`}},
		{"anthropic", "no pieces", block(tool), []string{`{}`}},
		{"anthropic", "blank pieces", block(tool, "", " "), []string{`{}`}},
		{"anthropic", "an input at the start", block(`{"type":"tool_use","id":"c","name":"tool","input":{"x":1}}`), []string{`{"x":1}`}},
		{"anthropic", "digits stay", block(tool, `{"x":616581622363398`, `,"y":1.0}`), []string{`{"x":616581622363398,"y":1.0}`}},
		{"anthropic", "pieces that are no JSON", block(tool, `{"x":`), []string{`"{\"x\":"`}},
		{"gemini", "no pieces", step(), []string{`{}`}},
		{"gemini", "pieces by their other name", step(`{"type":"arguments_delta","partial_arguments":"{\"x\":"}`, `{"type":"arguments_delta","partial_arguments":"1}"}`), []string{`{"x":1}`}},
		{"gemini", "pieces that are no JSON", step(`{"type":"arguments_delta","arguments":"{\"x\":"}`), []string{`"{\"x\":"`}},
		{"geminicontent", "usage between parts", events(
			`{"responseId":"r","candidates":[{"content":{"parts":[{"functionCall":{"name":"tool","args":{"x":1}}}]}}]}`, `{"responseId":"r","usageMetadata":{}}`,
			`{"responseId":"r","candidates":[{"finishReason":"STOP"}]}`), []string{`{"x":1}`}},
	} {
		for _, p := range providers {
			if p.name != tt.form {
				continue
			}
			body, err := p.stream(strings.NewReader(tt.stream))
			if err != nil {
				t.Errorf("%s: %s: %v", tt.form, tt.name, err)
				continue
			}
			calls, err := p.calls(body, host)
			var got []string
			for _, c := range calls {
				if c.Fault != nil {
					t.Errorf("%s: %s: %v", tt.form, tt.name, c.Fault)
				}
				got = append(got, string(c.Arguments))
			}
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" || !json.Valid(body) {
				t.Errorf("%s: %s: %v, %s", tt.form, tt.name, err, diff)
			}
		}
	}
}
