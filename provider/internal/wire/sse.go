package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// Events reads the data of server-sent events from r, one after the other, each a
// JSON object. An event that the stream breaks off in is none. The word [DONE],
// with which some providers end a stream, is the event with done set; nothing is
// read after it. An error of r comes wrapped, others are a [*ResponseError].
func Events(r io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		s := bufio.NewScanner(&limited{r: r, left: MaxStreamBytes})
		s.Buffer(nil, MaxResponseBytes)
		s.Split(lines())
		var data []byte
		first := true
		for count := 0; s.Scan(); {
			line := s.Bytes()
			if first {
				line, first = bytes.TrimPrefix(line, []byte("\ufeff")), false
			}
			if len(line) > 0 {
				field, value, _ := bytes.Cut(line, []byte(":"))
				if string(field) == "data" {
					data = append(append(data, bytes.TrimPrefix(value, []byte(" "))...), '\n')
				}
				if len(data) > MaxResponseBytes {
					yield(Event{}, stream(count).Refuse("is too large"))
					return
				}
				continue
			}
			if data = bytes.TrimSpace(data); len(data) == 0 {
				continue
			}
			if string(data) == "[DONE]" {
				yield(Event{Done: true}, nil)
				return
			}
			at := stream(count)
			o, err := open(Node{at.Path, bytes.Clone(data)})
			if !yield(Event{Object: o, At: at}, err) || err != nil {
				return
			}
			data = data[:0]
			count++
		}
		if err := s.Err(); err != nil {
			if errors.Is(err, bufio.ErrTooLong) {
				err = stream(0).Refuse("has a line that is too large")
			}
			yield(Event{}, fmt.Errorf("provider stream: %w", err))
		}
	}
}

// An Event is one event of a stream.
type Event struct {
	Object
	At   Node // where it stands, for errors
	Done bool
}

func stream(i int) Node { return Node{Path: fmt.Sprintf("stream[%d]", i)} }

// ErrCut is the refusal of a stream that has not said its end.
func ErrCut() error {
	return &ResponseError{Path: "stream", Rule: "broke off before its end", Reason: CutOff}
}

// limited is r up to a number of bytes, after which it fails.
type limited struct {
	r    io.Reader
	left int
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, &ResponseError{Path: "stream", Rule: fmt.Sprintf("is larger than %d bytes", MaxStreamBytes)}
	}
	n, err := l.r.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// lines splits at CR LF, LF, and CR, as the format of events wants it. What stands
// after the last of them is no line.
func lines() bufio.SplitFunc {
	afterCR := false
	return func(data []byte, atEOF bool) (int, []byte, error) {
		skipped := 0
		if afterCR && len(data) > 0 {
			afterCR = false
			if data[0] == '\n' {
				data, skipped = data[1:], 1
			}
		}
		i := bytes.IndexAny(data, "\r\n")
		if i < 0 {
			if atEOF {
				return skipped + len(data), nil, nil
			}
			if skipped > 0 {
				return skipped, nil, nil
			}
			return 0, nil, nil
		}
		afterCR = data[i] == '\r'
		return skipped + i + 1, data[:i:i], nil
	}
}
