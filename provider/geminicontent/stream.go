package geminicontent

import (
	"encoding/json"
	"io"

	"github.com/toolruntime/toolruntime-go/provider/internal/wire"
)

// Stream reads the chunks of streamGenerateContent with alt=sse and returns the
// response, as [Calls] takes it, with every part as it came. Only one whose stream
// has said a finishReason is returned, and r is read to its end; errors are a
// [*ResponseError], or come from r. A stream has at most 64 MiB.
func Stream(r io.Reader) ([]byte, error) {
	var id json.RawMessage
	parts := []any{}
	var finish wire.Node
	for event, err := range wire.Events(r) {
		if err != nil {
			return nil, err
		}
		if event.Done {
			break
		}
		switch own := event.Get("responseId"); {
		case own.Missing():
		case id != nil && string(id) != string(own.Raw):
			return nil, own.Refuse("is another than before")
		default:
			id = own.Raw
		}
		if event.Get("candidates").Missing() && event.Get("promptFeedback").Missing() && event.Get("error").Missing() {
			continue // usage
		}
		candidate, err := only(event.Object)
		if err != nil {
			return nil, err
		}
		if content := candidate.Get("content"); !content.Missing() {
			more, err := partsOf(content)
			if err != nil {
				return nil, err
			}
			if len(more) > 0 && !finish.Missing() {
				return nil, event.At.Refuse("comes after the finish reason")
			}
			for _, part := range more {
				parts = append(parts, part.Raw())
			}
		}
		if last := candidate.Get("finishReason"); !last.Missing() {
			if !finish.Missing() && string(finish.Raw) != string(last.Raw) {
				return nil, last.Refuse("is another than before")
			}
			finish = last
		}
	}
	if finish.Missing() {
		return nil, wire.ErrCut()
	}
	return wire.JSON(map[string]any{"responseId": id, "candidates": []any{map[string]any{
		"content": map[string]any{"role": "model", "parts": parts}, "finishReason": finish.Raw}}})
}
