package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// Parts are the parts of a turn (blocks, steps, calls) that a stream sends piece by
// piece: each is started, continued by its index, and stopped.
type Parts struct {
	list []*Part
}

// A Part is one of them. What it was started with is its fields, and pieces of text
// are appended to those.
type Part struct {
	fields  map[string]json.RawMessage
	texts   map[string]*strings.Builder
	at      Node
	stopped bool
}

// Start starts the part that must be the next one.
func (p *Parts) Start(index, part Node) error {
	i, err := index.Index()
	if err != nil {
		return err
	}
	if i != len(p.list) {
		return index.Refuse("is not the next one")
	}
	o, err := part.Object()
	if err != nil {
		return err
	}
	p.list = append(p.list, &Part{fields: o.fields, texts: map[string]*strings.Builder{}, at: part})
	return nil
}

// At returns a part that was started and not stopped.
func (p *Parts) At(index Node) (*Part, error) {
	i, err := index.Index()
	if err != nil {
		return nil, err
	}
	if i >= len(p.list) || p.list[i].stopped {
		return nil, index.Refuse("is not that of an open part")
	}
	return p.list[i], nil
}

// Stop ends a part.
func (p *Parts) Stop(index Node) error {
	part, err := p.At(index)
	if err == nil {
		part.stopped = true
	}
	return err
}

// Append adds a piece to a text field. A piece that is missing adds nothing.
func (p *Part) Append(field string, piece Node) error {
	if piece.Missing() {
		return nil
	}
	text, err := piece.Text()
	if err != nil {
		return err
	}
	b := p.texts[field]
	if b == nil {
		b = &strings.Builder{}
		p.texts[field] = b
	}
	b.WriteString(text)
	return nil
}

// JSON is the list of the parts, each of which must have been stopped. The pieces of
// jsonField are the text of a value: if it is no JSON, the field is a string of it,
// so that it is read as arguments that are wrong, and not lost.
func (p *Parts) JSON(jsonField string) (json.RawMessage, error) {
	list := make([]map[string]json.RawMessage, len(p.list))
	for i, part := range p.list {
		if !part.stopped {
			return nil, part.at.Refuse("was not stopped")
		}
		fields := maps.Clone(part.fields)
		for field, b := range part.texts {
			text := b.String()
			var started string
			switch {
			case field == jsonField && strings.TrimSpace(text) == "":
				continue
			case field == jsonField && json.Valid([]byte(text)):
				fields[field] = json.RawMessage(text)
				continue
			case field != jsonField:
				_ = json.Unmarshal(fields[field], &started) // what is no text was none
			}
			fields[field] = quote(started + text)
		}
		list[i] = fields
	}
	return JSON(list)
}

// JSON writes a body from its parts, which stay as they were written.
func JSON(v any) (json.RawMessage, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("provider stream: %w", err)
	}
	return bytes.TrimSpace(text.Bytes()), nil
}

func quote(s string) json.RawMessage {
	text, _ := JSON(s) // a string always has a JSON form
	return text
}

// With returns the object with a field replaced.
func (o Object) With(field string, value json.RawMessage) map[string]json.RawMessage {
	fields := maps.Clone(o.fields)
	fields[field] = value
	return fields
}
