package openaichat

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/toolruntime/toolruntime-go/provider/internal/wire"
)

// Stream reads the chunks of a streamed completion and returns the completion, as
// [Calls] takes it. Only one that the stream has ended with [DONE] is returned;
// errors are a [*ResponseError], or come from r. A stream has at most 64 MiB.
func Stream(r io.Reader) ([]byte, error) {
	s := stream{finish: json.RawMessage("null")}
	for event, err := range wire.Events(r) {
		if err != nil {
			return nil, err
		}
		if event.Done {
			return s.completion()
		}
		if err := s.take(event); err != nil {
			return nil, err
		}
	}
	return nil, wire.ErrCut()
}

// A stream is what has come of a completion.
type stream struct {
	id       string
	finish   json.RawMessage
	finished bool
	content  text
	refusal  text
	legacy   *call
	calls    []*call
}

// A text is a field of which pieces come, or never do.
type text struct {
	strings.Builder
	come bool
}

type call struct {
	id, kind, name string
	arguments      text
}

func (s *stream) take(event wire.Event) error {
	if e := event.Get("error"); !e.Missing() {
		return e.NotWhole(wire.Failed)
	}
	if id := event.Get("id"); !id.Missing() && string(id.Raw) != `""` {
		if err := same(&s.id, id); err != nil {
			return err
		}
	}
	choices, err := event.Get("choices").Objects()
	if err != nil {
		return err
	}
	if len(choices) == 0 {
		return nil // usage
	}
	if i, err := choices[0].Get("index").Index(); err != nil || i != 0 || len(choices) > 1 {
		return event.At.Refuse("is not of the one choice")
	}
	delta, err := choices[0].Get("delta").Object()
	if err != nil {
		return err
	}
	if err := s.delta(event.At, delta); err != nil {
		return err
	}
	if finish := choices[0].Get("finish_reason"); !finish.Missing() {
		if s.finished && string(s.finish) != string(finish.Raw) {
			return finish.Refuse("is another than before")
		}
		s.finish, s.finished = finish.Raw, true
	}
	return nil
}

func (s *stream) delta(at wire.Node, delta wire.Object) error {
	pieces := !delta.Get("tool_calls").Missing() || !delta.Get(legacy).Missing()
	if s.finished && pieces {
		return at.Refuse("comes after the finish reason")
	}
	if err := s.content.add(delta.Get("content")); err != nil {
		return err
	}
	if err := s.refusal.add(delta.Get("refusal")); err != nil {
		return err
	}
	if call := delta.Get(legacy); !call.Missing() {
		if s.legacy == nil {
			s.legacy = newCall()
		}
		if err := s.legacy.function(call); err != nil {
			return err
		}
	}
	list := delta.Get("tool_calls")
	if list.Missing() {
		return nil
	}
	calls, err := list.Objects()
	if err != nil {
		return err
	}
	for _, piece := range calls {
		if err := s.piece(piece); err != nil {
			return err
		}
	}
	return nil
}

func newCall() *call { return &call{kind: "function"} }

// piece adds to a call. Servers that send a call at once give it no index.
func (s *stream) piece(piece wire.Object) error {
	i := len(s.calls)
	if index := piece.Get("index"); !index.Missing() {
		var err error
		if i, err = index.Index(); err != nil {
			return err
		}
		if i > len(s.calls) {
			return index.Refuse("is not the next one")
		}
	}
	if i == len(s.calls) {
		s.calls = append(s.calls, newCall())
	}
	c := s.calls[i]
	if id := piece.Get("id"); !id.Missing() && string(id.Raw) != `""` {
		if err := same(&c.id, id); err != nil {
			return err
		}
	}
	if kind := piece.Get("type"); !kind.Missing() {
		var err error
		if c.kind, err = kind.Text(); err != nil {
			return err
		}
	}
	if body := piece.Get("custom"); !body.Missing() {
		return c.custom(body)
	}
	if body := piece.Get("function"); !body.Missing() {
		return c.function(body)
	}
	return nil
}

func (c *call) function(body wire.Node) error { return c.body(body, "arguments") }
func (c *call) custom(body wire.Node) error   { return c.body(body, "input") }

func (c *call) body(body wire.Node, field string) error {
	o, err := body.Object()
	if err != nil {
		return err
	}
	if name := o.Get("name"); !name.Missing() && string(name.Raw) != `""` {
		if err := same(&c.name, name); err != nil {
			return err
		}
	}
	return c.arguments.add(o.Get(field))
}

// same takes what may be said several times, but only in the same words.
func same(to *string, n wire.Node) error {
	s, err := n.Text()
	if err != nil {
		return err
	}
	if *to != "" && *to != s {
		return n.Refuse("is another than before")
	}
	*to = s
	return nil
}

func (t *text) add(piece wire.Node) error {
	if piece.Missing() {
		return nil
	}
	s, err := piece.Text()
	t.come = true
	t.WriteString(s)
	return err
}

func (t *text) value() any {
	if !t.come {
		return nil
	}
	return t.String()
}

func (s *stream) completion() ([]byte, error) {
	if !s.finished {
		return nil, wire.ErrCut()
	}
	message := map[string]any{"role": "assistant", "content": s.content.value(), "refusal": s.refusal.value()}
	if s.legacy != nil {
		message[legacy] = map[string]any{"name": s.legacy.name, "arguments": s.legacy.arguments.String()}
	}
	var calls []any
	for _, c := range s.calls {
		field := "arguments"
		if c.kind == "custom" {
			field = "input"
		}
		calls = append(calls, map[string]any{"id": c.id, "type": c.kind, c.kind: map[string]any{"name": c.name, field: c.arguments.String()}})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	return wire.JSON(map[string]any{"id": s.id, "object": "chat.completion", "choices": []any{
		map[string]any{"index": 0, "message": message, "finish_reason": s.finish}}})
}
