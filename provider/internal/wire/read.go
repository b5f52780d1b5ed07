package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
	"github.com/toolruntime/toolruntime-go/internal/contract"
)

// A Node is a value of a response, and where it stands. Its text is valid JSON,
// and stays as the provider wrote it until somebody needs what it means.
type Node struct {
	Path string
	Raw  json.RawMessage
}

// An Object is a node with fields. They are told apart by their exact names,
// unlike encoding/json does it.
type Object struct {
	path   string
	raw    json.RawMessage
	fields map[string]json.RawMessage
}

// maxEntries bounds what small entries make of a large body in memory.
const maxEntries = canonjson.MaxEntries

// Open reads the body of a response.
func Open(body []byte) (Object, error) {
	o, err := open(Node{"response", body})
	o.path = ""
	return o, err
}

func open(root Node) (Object, error) {
	switch {
	case len(root.Raw) > MaxResponseBytes:
		return Object{}, root.Refuse(fmt.Sprintf("is larger than %d bytes", MaxResponseBytes))
	case !utf8.Valid(root.Raw):
		return Object{}, root.Refuse("is not valid UTF-8")
	case !json.Valid(root.Raw):
		return Object{}, root.Refuse("is not JSON")
	}
	return root.Object()
}

// Refuse is the refusal of a response because of n.
func (n Node) Refuse(rule string) error { return &ResponseError{Path: n.Path, Rule: rule} }

// Missing reports whether there is no such value, or null.
func (n Node) Missing() bool { return n.Raw == nil || string(n.Raw) == "null" }

// Get returns the field, which may be missing.
func (o Object) Get(key string) Node {
	path := key
	if o.path != "" {
		path = o.path + "." + key
	}
	return Node{path, o.fields[key]}
}

// Object reads an object. A repeated field is refused: two readers could take
// different ones.
func (n Node) Object() (Object, error) {
	fields := map[string]json.RawMessage{}
	d := json.NewDecoder(bytes.NewReader(n.Raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return Object{}, n.Refuse("must be an object")
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return Object{}, n.Refuse("must be an object")
		}
		key, _ := t.(string)
		if _, twice := fields[key]; twice {
			return Object{}, n.Refuse("has a repeated field")
		}
		if len(fields) == maxEntries {
			return Object{}, n.Refuse(fmt.Sprintf("has more than %d fields", maxEntries))
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return Object{}, n.Refuse("must be an object")
		}
		fields[key] = value
	}
	return Object{n.Path, n.Raw, fields}, nil
}

// Objects reads a list of objects.
func (n Node) Objects() ([]Object, error) {
	d := json.NewDecoder(bytes.NewReader(n.Raw))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return nil, n.Refuse("must be a list")
	}
	var objects []Object
	for i := 0; d.More(); i++ {
		if i == maxEntries {
			return nil, n.Refuse(fmt.Sprintf("has more than %d entries", maxEntries))
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, n.Refuse("must be a list")
		}
		o, err := (Node{n.Path + "[" + strconv.Itoa(i) + "]", value}).Object()
		if err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
	return objects, nil
}

// Text reads a string.
func (n Node) Text() (string, error) {
	var s string
	if n.Missing() || json.Unmarshal(n.Raw, &s) != nil {
		return "", n.Refuse("must be a string")
	}
	if loneSurrogate(n.Raw) {
		return "", n.Refuse("has half of a surrogate pair")
	}
	return s, nil
}

// Identifier reads a string that keeps the rule of identifiers.
func (n Node) Identifier() (string, error) {
	s, err := n.Text()
	if err != nil {
		return "", err
	}
	if contract.Identifier(s) != "" {
		return "", n.Refuse("must be an identifier: not blank, at most 255 code points")
	}
	return s, nil
}

// Index reads an index into a list.
func (n Node) Index() (int, error) {
	var i int
	if n.Missing() || json.Unmarshal(n.Raw, &i) != nil || i < 0 || i >= maxEntries {
		return 0, n.Refuse(fmt.Sprintf("must be an index below %d", maxEntries))
	}
	return i, nil
}

// JSONText returns the node as the JSON text that it is a string of. One that is no
// string stands for itself.
func (n Node) JSONText() Node {
	if n.Missing() || n.Raw[0] != '"' {
		return n
	}
	// Text that the string does not hold cannot be read, and will be said so.
	if text, err := n.Text(); err == nil {
		n.Raw = json.RawMessage(text)
	}
	return n
}

// As returns the object with n as its only field.
func (n Node) As(field string) Node {
	value := n.Raw
	if n.Missing() {
		value = json.RawMessage(`""`)
	}
	n.Raw = json.RawMessage(`{"` + field + `":` + string(value) + `}`)
	return n
}

// ReasonOf returns the reason of a refusal, or "".
func ReasonOf(err error) Reason {
	var e *ResponseError
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

// Whole reports as an error that n, where a response says how it ended, does not
// say that it is a whole turn. known are the words of the form and what they mean;
// "" means that the turn is whole.
func (n Node) Whole(known map[string]Reason) error {
	reason, ok := Unstated, false
	if !n.Missing() {
		var word string
		if json.Unmarshal(n.Raw, &word) == nil {
			reason, ok = known[word]
		}
		if !ok {
			reason = Unknown
		}
	}
	if reason == "" {
		return nil
	}
	return n.NotWhole(reason)
}

// NotWhole is the refusal of a response that n shows to be no whole turn.
func (n Node) NotWhole(reason Reason) error {
	return &ResponseError{Path: n.Path, Rule: "shows no whole turn: " + string(reason), Reason: reason}
}

// loneSurrogate reports what encoding/json would silently replace in a literal.
func loneSurrogate(literal []byte) bool {
	unit := func(i int) rune {
		if i+6 > len(literal) || literal[i] != '\\' || literal[i+1] != 'u' {
			return -1
		}
		n, _ := strconv.ParseUint(string(literal[i+2:i+6]), 16, 16)
		return rune(n)
	}
	for i := 0; i < len(literal); i++ {
		if literal[i] != '\\' {
			continue
		}
		if r := unit(i); utf16.IsSurrogate(r) {
			if utf16.DecodeRune(r, unit(i+6)) == utf8.RuneError {
				return true
			}
			i += 6
		}
		i++
	}
	return false
}
