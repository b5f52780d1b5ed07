package schema

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The limits of a schema's text.
const (
	MaxBytes   = 65536 // bytes of the text
	MaxNesting = 32    // nested containers in the text
	maxNumber  = 64    // characters of a number
	maxExp     = 308   // decimal exponent of a number
	maxInt     = 1<<53 - 1
)

// parse reads the text into the form that the validator compiles, in which
// numbers are still text. Unlike encoding/json alone it refuses repeated keys:
// the model would be shown one of the two and the validator would use the other.
func parse(text []byte) (map[string]any, error) {
	switch {
	case len(text) > MaxBytes:
		return nil, errorAt("", "more than 65536 bytes")
	case !utf8.Valid(text):
		return nil, errorAt("", "not valid UTF-8")
	case tooNested(text):
		return nil, errorAt("", "nested deeper than 32 levels")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	r := reader{dec: dec}
	v, err := r.value()
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errorAt("", "text after the schema")
	}
	doc, ok := v.(map[string]any)
	if !ok {
		return nil, errorAt("#", "not a JSON object")
	}
	return doc, nil
}

// tooNested counts brackets outside strings, so that nothing recursive has to
// run on text that is nested without end.
func tooNested(text []byte) bool {
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > MaxNesting {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

type reader struct {
	dec  *json.Decoder
	path []string
}

func (r *reader) fail(problem string) error { return errorAt(pointer(r.path), problem) }

func (r *reader) value() (any, error) {
	token, err := r.dec.Token()
	if err != nil {
		return nil, r.fail("invalid JSON")
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return r.object()
		}
		return r.array()
	case json.Number:
		return t, r.checkNumber(string(t))
	default:
		return t, nil
	}
}

func (r *reader) object() (any, error) {
	obj := map[string]any{}
	for r.dec.More() {
		token, err := r.dec.Token()
		key, ok := token.(string)
		if err != nil || !ok {
			return nil, r.fail("invalid JSON")
		}
		r.path = append(r.path, key)
		if _, repeated := obj[key]; repeated {
			return nil, r.fail("repeated key")
		}
		if obj[key], err = r.value(); err != nil {
			return nil, err
		}
		r.path = r.path[:len(r.path)-1]
	}
	if _, err := r.dec.Token(); err != nil {
		return nil, r.fail("invalid JSON")
	}
	return obj, nil
}

func (r *reader) array() (any, error) {
	array := []any{}
	for r.dec.More() {
		r.path = append(r.path, strconv.Itoa(len(array)))
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		array = append(array, v)
		r.path = r.path[:len(r.path)-1]
	}
	if _, err := r.dec.Token(); err != nil {
		return nil, r.fail("invalid JSON")
	}
	return array, nil
}

// checkNumber keeps numbers to those that a value can have, and cheap: the
// validator computes with exact fractions, in which 1e999999 has a million digits.
func (r *reader) checkNumber(s string) error {
	if len(s) > maxNumber {
		return r.fail("number too long")
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		if exp, err := strconv.Atoi(s[i+1:]); err != nil || exp < -maxExp || exp > maxExp {
			return r.fail("number out of range")
		}
	}
	switch n := literal(json.Number(s)).(type) {
	case int64:
		if n < -maxInt || n > maxInt {
			return r.fail("integer out of range")
		}
	case float64:
		if math.IsInf(n, 0) {
			return r.fail("number out of range")
		}
	default:
		return r.fail("integer out of range")
	}
	return nil
}

// literal turns a value of the schema's text into the form that validated
// values have. A number that has no such form becomes nil.
func literal(v any) any {
	switch v := v.(type) {
	case json.Number:
		if strings.ContainsAny(string(v), ".eE") {
			f, err := v.Float64()
			if err != nil {
				return nil
			}
			return f
		}
		n, err := v.Int64()
		if err != nil {
			return nil
		}
		return n
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = literal(x)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = literal(x)
		}
		return out
	default:
		return v
	}
}
