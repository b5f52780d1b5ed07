package gemini

import (
	"io"

	"github.com/toolruntime/toolruntime-go/provider/internal/wire"
)

// Stream reads the events of a streamed interaction and returns the interaction,
// as [Calls] takes it: its calls are whole, and what other steps say is left out.
// Only one that the stream says is completed is returned; errors are a
// [*ResponseError], or come from r. A stream has at most 64 MiB.
func Stream(r io.Reader) ([]byte, error) {
	var steps wire.Parts
	var id string
	for event, err := range wire.Events(r) {
		if err != nil {
			return nil, err
		}
		if event.Done {
			break
		}
		kind, err := event.Get("event_type").Text()
		if err != nil {
			return nil, err
		}
		switch kind {
		case "error":
			return nil, event.At.NotWhole(wire.Failed)
		case "interaction.created":
			interaction, err := event.Get("interaction").Object()
			if err != nil {
				return nil, err
			}
			if id, err = interaction.Get("id").Identifier(); err != nil {
				return nil, err
			}
		case "step.start":
			err = steps.Start(event.Get("index"), event.Get("step"))
		case "step.delta":
			err = take(&steps, event)
		case "step.stop":
			err = steps.Stop(event.Get("index"))
		case "interaction.completed":
			return completed(event.Get("interaction"), id, &steps)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, wire.ErrCut()
}

func take(steps *wire.Parts, event wire.Event) error {
	step, err := steps.At(event.Get("index"))
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
	if kind != "arguments_delta" {
		return nil // no part of a call
	}
	piece := delta.Get("arguments")
	if piece.Missing() {
		piece = delta.Get("partial_arguments")
	}
	return step.Append("arguments", piece)
}

func completed(node wire.Node, id string, steps *wire.Parts) ([]byte, error) {
	interaction, err := node.Object()
	if err != nil {
		return nil, err
	}
	if own, err := interaction.Get("id").Identifier(); err != nil || id != "" && own != id {
		return nil, node.Refuse("is not the interaction that was created")
	}
	list, err := steps.JSON("arguments")
	if err != nil {
		return nil, err
	}
	return wire.JSON(interaction.With("steps", list))
}
