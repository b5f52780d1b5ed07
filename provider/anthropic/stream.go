package anthropic

import (
	"encoding/json"
	"io"

	"github.com/toolruntime/toolruntime-go/provider/internal/wire"
)

// Stream reads the events of a streamed message and returns the message, as
// [Calls] takes it. Only one that the stream says has stopped is returned; errors
// are a [*ResponseError], or come from r. A stream has at most 64 MiB.
func Stream(r io.Reader) ([]byte, error) {
	var s stream
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
		if kind == "message_stop" {
			return s.message()
		}
		if err := s.take(kind, event); err != nil {
			return nil, err
		}
	}
	return nil, wire.ErrCut()
}

// A stream is what has come of a message.
type stream struct {
	started bool
	start   wire.Object
	stop    wire.Node
	blocks  wire.Parts
}

func (s *stream) take(kind string, event wire.Event) error {
	var err error
	switch kind {
	case "error":
		return event.At.NotWhole(wire.Failed)
	case "message_start":
		if s.started {
			return event.At.Refuse("is a second start")
		}
		s.started = true
		s.start, err = event.Get("message").Object()
	case "content_block_start":
		if !s.stop.Missing() {
			return event.At.Refuse("comes after the stop reason")
		}
		err = s.blocks.Start(event.Get("index"), event.Get("content_block"))
	case "content_block_delta":
		err = s.delta(event)
	case "content_block_stop":
		err = s.blocks.Stop(event.Get("index"))
	case "message_delta":
		delta, err := event.Get("delta").Object()
		if err != nil {
			return err
		}
		if stop := delta.Get("stop_reason"); !stop.Missing() {
			if !s.stop.Missing() && string(s.stop.Raw) != string(stop.Raw) {
				return stop.Refuse("is another than before")
			}
			s.stop = stop
		}
	}
	return err
}

func (s *stream) delta(event wire.Event) error {
	block, err := s.blocks.At(event.Get("index"))
	if err != nil {
		return err
	}
	delta, err := event.Get("delta").Object()
	if err != nil {
		return err
	}
	kind, err := delta.Get("type").Text()
	if err != nil {
		return err
	}
	switch kind {
	case "text_delta":
		return block.Append("text", delta.Get("text"))
	case "input_json_delta":
		return block.Append("input", delta.Get("partial_json"))
	case "thinking_delta":
		return block.Append("thinking", delta.Get("thinking"))
	case "signature_delta":
		return block.Append("signature", delta.Get("signature"))
	}
	return nil // a citation, or what is not known: no part of a call
}

func (s *stream) message() ([]byte, error) {
	if !s.started {
		return nil, wire.ErrCut()
	}
	content, err := s.blocks.JSON("input")
	if err != nil {
		return nil, err
	}
	fields := s.start.With("content", content)
	fields["stop_reason"] = json.RawMessage("null")
	if !s.stop.Missing() {
		fields["stop_reason"] = s.stop.Raw
	}
	return wire.JSON(fields)
}
