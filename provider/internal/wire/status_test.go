package wire_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/toolruntime/toolruntime-go/provider/internal/wire"
)

// bodyWith is a response with one call and the given fields where its form says how
// it ended.
var bodyWith = map[string]func(fields string) string{
	"openai": func(fields string) string {
		return `{"id":"r","output":[{"type":"function_call","call_id":"c","name":"purge","arguments":"{}"}]` + fields + `}`
	},
	"openaichat": func(fields string) string {
		return `{"id":"r","choices":[{"message":{"tool_calls":[{"id":"c","type":"function","function":{"name":"purge","arguments":"{}"}}]}` + fields + `}]}`
	},
	"anthropic": func(fields string) string {
		return `{"id":"r","content":[{"type":"tool_use","id":"c","name":"purge","input":{}}]` + fields + `}`
	},
	"gemini": func(fields string) string {
		return `{"id":"r","steps":[{"type":"function_call","id":"c","name":"purge","arguments":{}}]` + fields + `}`
	},
	"geminicontent": func(fields string) string {
		return `{"responseId":"r","candidates":[{"content":{"parts":[{"functionCall":{"name":"purge","args":{}}}]}` + fields + `}]}`
	},
}

// TestStatus is the table of what a response says of its end, and whether its call
// is taken. "" is a whole turn.
func TestStatus(t *testing.T) {
	const whole wire.Reason = ""
	fields := map[string]string{"openai": "status", "openaichat": "finish_reason", "anthropic": "stop_reason", "gemini": "status", "geminicontent": "finishReason"}
	table := map[string]map[string]wire.Reason{
		"openai": {"completed": whole, "incomplete": wire.CutOff, "failed": wire.Failed, "cancelled": wire.Cancelled,
			"in_progress": wire.Running, "queued": wire.Running, "Completed": wire.Unknown},
		"openaichat": {"tool_calls": whole, "stop": whole, "function_call": whole, "length": wire.CutOff, "content_filter": wire.Filtered},
		"anthropic": {"tool_use": whole, "end_turn": whole, "stop_sequence": wire.Stopped, "max_tokens": wire.CutOff,
			"model_context_window_exceeded": wire.CutOff, "pause_turn": wire.Paused, "refusal": wire.Refused},
		"gemini": {"requires_action": whole, "completed": whole, "incomplete": wire.CutOff, "failed": wire.Failed,
			"cancelled": wire.Cancelled, "in_progress": wire.Running},
		"geminicontent": {"STOP": whole, "MAX_TOKENS": wire.CutOff, "FINISH_REASON_UNSPECIFIED": wire.Unstated, "SAFETY": wire.Filtered,
			"RECITATION": wire.Filtered, "BLOCKLIST": wire.Filtered, "PROHIBITED_CONTENT": wire.Filtered, "SPII": wire.Filtered, "LANGUAGE": wire.Filtered,
			"MALFORMED_FUNCTION_CALL": wire.Failed, "UNEXPECTED_TOOL_CALL": wire.Failed, "TOO_MANY_TOOL_CALLS": wire.Failed,
			"MISSING_THOUGHT_SIGNATURE": wire.Failed, "OTHER": wire.Failed, "stop": wire.Unknown},
	}
	others := map[string]wire.Reason{`"a word of 2027"`: wire.Unknown, `""`: wire.Unknown, "null": wire.Unstated, "7": wire.Unknown, `["completed"]`: wire.Unknown, `true`: wire.Unknown}
	forEach(t, func(t *testing.T, p provider) {
		try := func(more string, want wire.Reason) {
			t.Helper()
			calls, err := p.calls([]byte(bodyWith[p.name](more)), host)
			var refused *wire.ResponseError
			switch {
			case want == whole && (err != nil || len(calls) != 1):
				t.Errorf("%s: %v, %v, want its call", more, calls, err)
			case want != whole && (calls != nil || !errors.As(err, &refused) || refused.Reason != want || strings.Contains(err.Error(), "2027")):
				t.Errorf("%s: %v, %v, want none: %s", more, calls, err, want)
			}
		}
		for word, want := range table[p.name] {
			try(fmt.Sprintf(`,%q:%q`, fields[p.name], word), want)
		}
		for value, want := range others {
			try(fmt.Sprintf(`,%q:%s`, fields[p.name], value), want)
		}
		try("", wire.Unstated)
		try(fmt.Sprintf(`,%q:"completed"`, strings.ToUpper(fields[p.name])), wire.Unstated)
	})
}

// TestStatusBeside: what else shows that a response is no whole turn.
func TestStatusBeside(t *testing.T) {
	for _, tt := range []struct {
		form, body string
		want       wire.Reason
	}{
		{"openai", bodyWith["openai"](`,"status":"completed","error":{"code":"server_error"}`), wire.Failed},
		{"openai", bodyWith["openai"](`,"status":"completed","incomplete_details":{"reason":"max_output_tokens"}`), wire.CutOff},
		{"openai", strings.Replace(bodyWith["openai"](`,"status":"completed"`), `"output":[`, `"output":[{"type":"message","content":[{"type":"refusal","refusal":"no"}]},`, 1), wire.Refused},
		{"openaichat", strings.Replace(bodyWith["openaichat"](`,"finish_reason":"stop"`), `"message":{`, `"message":{"refusal":"no",`, 1), wire.Refused},
		{"openaichat", strings.Replace(bodyWith["openaichat"](`,"finish_reason":"stop"`), `{`, `{"error":{"code":429},`, 1), wire.Failed},
		{"openaichat", strings.Replace(bodyWith["openaichat"](`,"finish_reason":"stop"`), `"choices":[`, `"choices":[{"finish_reason":"stop","message":{}},`, 1), ""},
		{"openaichat", `{"id":"r","choices":[]}`, ""},
		{"gemini", bodyWith["gemini"](`,"status":"completed","error":{"code":"internal"}`), wire.Failed},
		{"geminicontent", `{"responseId":"r","promptFeedback":{"blockReason":"SAFETY"}}`, wire.Filtered},
		{"geminicontent", strings.Replace(bodyWith["geminicontent"](`,"finishReason":"STOP"`), `{`, `{"promptFeedback":{"blockReason":"OTHER"},`, 1), wire.Filtered},
		{"geminicontent", strings.Replace(bodyWith["geminicontent"](`,"finishReason":"STOP"`), `"candidates":[`, `"candidates":[{"finishReason":"STOP"},`, 1), ""},
		{"geminicontent", strings.Replace(bodyWith["geminicontent"](`,"finishReason":"STOP"`), `{`, `{"error":{"code":503},`, 1), wire.Failed},
	} {
		for _, p := range providers {
			if p.name != tt.form {
				continue
			}
			calls, err := p.calls([]byte(tt.body), host)
			var refused *wire.ResponseError
			if calls != nil || !errors.As(err, &refused) || refused.Reason != tt.want {
				t.Errorf("%s: %s: %v, %v, want %q", tt.form, tt.body, calls, err, tt.want)
			}
		}
	}
	// A text that ends at a stop sequence is a whole one: there is nothing to cut.
	for _, p := range providers {
		if p.name == "anthropic" {
			if calls, err := p.calls([]byte(`{"id":"r","stop_reason":"stop_sequence","content":[{"type":"text","text":"x"}]}`), host); err != nil || calls != nil {
				t.Errorf("a text with a stop sequence: %v, %v", calls, err)
			}
		}
	}
}

// TestStreamNotWhole: streams that say that they have failed, that contradict
// themselves, or whose turn is none.
func TestStreamNotWhole(t *testing.T) {
	replace := func(old, with string) func(string) string {
		return func(s string) string {
			if !strings.Contains(s, old) {
				panic(old)
			}
			return strings.Replace(s, old, with, 1)
		}
	}
	before := func(event string, more string) func(string) string {
		return func(s string) string {
			at := strings.Index(s, event)
			return s[:at] + more + s[at:]
		}
	}
	after := func(more string) func(string) string { return func(s string) string { return s + more + "\n\n" } }
	const malformed = wire.Reason("")
	for _, tt := range []struct {
		form, name string
		edit       func(string) string
		want       wire.Reason
	}{
		{"openai", "error", before("event: response.completed", "data: {\"type\":\"error\",\"code\":\"server_error\"}\n\n"), wire.Failed},
		{"openai", "failed", replace(`"type": "response.completed"`, `"type":"response.failed"`), wire.Failed},
		{"openai", "incomplete", replace(`"type": "response.completed"`, `"type":"response.incomplete"`), wire.CutOff},
		{"openai", "cancelled", replace(`"type": "response.completed"`, `"type":"response.cancelled"`), wire.Cancelled},
		{"openai", "[DONE] instead of an end", before("event: response.completed", "data: [DONE]\n\n"), wire.CutOff},
		{"openai", "of another response", replace(`resp_68a1`, `resp_0`), malformed},
		{"openai", "completed with another status", func(s string) string {
			at := strings.Index(s, "event: response.completed")
			return s[:at] + strings.Replace(s[at:], `"status": "completed"`, `"status":"in_progress"`, 1)
		}, wire.Running},
		{"openai", "not JSON", before("event: response.completed", "data: {\n\n"), malformed},
		{"openaichat", "error", before("data: [DONE]", "data: {\"error\":{\"code\":500}}\n\n"), wire.Failed},
		{"openaichat", "no finish reason", replace(`"finish_reason": "tool_calls"`, `"finish_reason":null`), wire.CutOff},
		{"openaichat", "length", replace(`"finish_reason": "tool_calls"`, `"finish_reason":"length"`), wire.CutOff},
		{"openaichat", "filtered", replace(`"finish_reason": "tool_calls"`, `"finish_reason":"content_filter"`), wire.Filtered},
		{"openaichat", "refused", replace(`"delta": {}`, `"delta":{"refusal":"no"}`), wire.Refused},
		{"openaichat", "more after the end", before("data: [DONE]", `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"x"}}]}}]}`+"\n\n"), malformed},
		{"openaichat", "a second choice", replace(`"index": 0, "delta": {}`, `"index":1,"delta":{}`), malformed},
		{"openaichat", "another id", replace(`{"index": 0, "function": {"arguments"`, `{"index":0,"id":"call_z","function":{"arguments"`), malformed},
		{"openaichat", "another completion", func(s string) string { return strings.Replace(s, "chatcmpl-C9x", "chatcmpl-0", 1) }, malformed},
		{"openaichat", "an index ahead", replace(`"index": 1, "id"`, `"index":5,"id"`), malformed},
		{"anthropic", "error", before("event: message_stop", "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n"), wire.Failed},
		{"openaichat", "two finish reasons", before("data: [DONE]", `data: {"choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}`+"\n\n"), malformed},
		{"anthropic", "two stop reasons", before("event: message_stop", "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"refusal\"}}\n\n"), malformed},
		{"anthropic", "refusal", replace(`"stop_reason": "tool_use"`, `"stop_reason":"refusal"`), wire.Refused},
		{"anthropic", "max_tokens", replace(`"stop_reason": "tool_use"`, `"stop_reason":"max_tokens"`), wire.CutOff},
		{"anthropic", "no stop reason", replace(`"stop_reason": "tool_use"`, `"stop_reason":null`), wire.Unstated},
		{"anthropic", "a block is not stopped", replace(`{"type": "content_block_stop", "index": 5}`, `{"type":"ping"}`), malformed},
		{"anthropic", "a block stops twice", replace(`{"type": "content_block_stop", "index": 5}`, `{"type":"content_block_stop","index":4}`), malformed},
		{"anthropic", "a second start", before("event: content_block_start", "data: {\"type\":\"message_start\",\"message\":{}}\n\n"), malformed},
		{"anthropic", "no start", replace(`"type": "message_start"`, `"type":"ping"`), wire.CutOff},
		{"gemini", "error", before("event: interaction.completed", "data: {\"event_type\":\"error\",\"error\":{\"code\":\"gateway_timeout\"}}\n\n"), wire.Failed},
		{"gemini", "failed", replace(`"status": "requires_action"`, `"status":"failed"`), wire.Failed},
		{"gemini", "incomplete", replace(`"status": "requires_action"`, `"status":"incomplete"`), wire.CutOff},
		{"gemini", "still going on", replace(`"status": "requires_action"`, `"status":"in_progress"`), wire.Running},
		{"gemini", "a step is not stopped", replace(`{"index": 4, "event_type": "step.stop"}`, `{"event_type":"step.pause"}`), malformed},
		{"gemini", "of another interaction", func(s string) string { return strings.Replace(s, "v1_Chd", "v1_0", 1) }, malformed},
		{"geminicontent", "error", before(`data: {"candidates": [{"content": {"parts": [{"functionCall": {"id"`, "data: {\"error\":{\"code\":503}}\n\n"), wire.Failed},
		{"geminicontent", "two finish reasons", after(`data: {"candidates":[{"finishReason":"SAFETY"}]}`), malformed},
		{"geminicontent", "more after the end", after(`data: {"candidates":[{"content":{"parts":[{"text":"x"}]}}]}`), malformed},
		{"geminicontent", "filtered", replace(`"finishReason": "STOP"`, `"finishReason":"SAFETY"`), wire.Filtered},
		{"geminicontent", "cut off", replace(`"finishReason": "STOP"`, `"finishReason":"MAX_TOKENS"`), wire.CutOff},
		{"geminicontent", "no finish reason", replace(`"finishReason": "STOP"`, `"finishReason":null`), wire.CutOff},
		{"geminicontent", "of another response", func(s string) string { return strings.Replace(s, "b7MVaYyK", "x", 1) }, malformed},
	} {
		for _, p := range providers {
			if p.name != tt.form {
				continue
			}
			body, err := p.stream(strings.NewReader(tt.edit(string(read(t, p, p.streamed)))))
			if err == nil {
				var calls any
				if calls, err = p.calls(body, host); err == nil {
					t.Errorf("%s: %s: %v", tt.form, tt.name, calls)
					continue
				}
			}
			var refused *wire.ResponseError
			if !errors.As(err, &refused) || refused.Reason != tt.want {
				t.Errorf("%s: %s: %v, want %q", tt.form, tt.name, err, tt.want)
			}
		}
	}
}

// TestStreamLimits: the reader of events is one for all forms.
func TestStreamLimits(t *testing.T) {
	p := providers[0]
	for name, text := range map[string]string{
		"a line without an end": "data: " + strings.Repeat("x", wire.MaxResponseBytes+1),
		"an event of many":      strings.Repeat("data: "+strings.Repeat(" ", 1<<20)+"x\n", 17),
		"an endless stream":     strings.Repeat(": "+strings.Repeat("x", 1<<20)+"\n\n", 65),
	} {
		var refused *wire.ResponseError
		if _, err := p.stream(strings.NewReader(text)); !errors.As(err, &refused) || refused.Reason != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
