package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
	"github.com/toolruntime/toolruntime-go/toolresult"
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
	fields map[string]json.RawMessage
}

// maxEntries bounds what small entries make of a large body in memory.
const maxEntries = canonjson.MaxEntries

// Open reads the body of a response.
func Open(body []byte) (Object, error) {
	root := Node{"response", body}
	switch {
	case len(body) > MaxResponseBytes:
		return Object{}, root.refuse(fmt.Sprintf("is larger than %d bytes", MaxResponseBytes))
	case !utf8.Valid(body):
		return Object{}, root.refuse("is not valid UTF-8")
	case !json.Valid(body):
		return Object{}, root.refuse("is not JSON")
	}
	o, err := root.Object()
	o.path = ""
	return o, err
}

func (n Node) refuse(rule string) error { return &ResponseError{Path: n.Path, Rule: rule} }

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
		return Object{}, n.refuse("must be an object")
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return Object{}, n.refuse("must be an object")
		}
		key, _ := t.(string)
		if _, twice := fields[key]; twice {
			return Object{}, n.refuse("has a repeated field")
		}
		if len(fields) == maxEntries {
			return Object{}, n.refuse(fmt.Sprintf("has more than %d fields", maxEntries))
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return Object{}, n.refuse("must be an object")
		}
		fields[key] = value
	}
	return Object{n.Path, fields}, nil
}

// Objects reads a list of objects.
func (n Node) Objects() ([]Object, error) {
	d := json.NewDecoder(bytes.NewReader(n.Raw))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return nil, n.refuse("must be a list")
	}
	var objects []Object
	for i := 0; d.More(); i++ {
		if i == maxEntries {
			return nil, n.refuse(fmt.Sprintf("has more than %d entries", maxEntries))
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, n.refuse("must be a list")
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
		return "", n.refuse("must be a string")
	}
	if loneSurrogate(n.Raw) {
		return "", n.refuse("has half of a surrogate pair")
	}
	return s, nil
}

// Identifier reads a string that keeps the rule of identifiers.
func (n Node) Identifier() (string, error) {
	s, err := n.Text()
	if err != nil {
		return "", err
	}
	if toolresult.CheckIdentifier(n.Path, s) != nil {
		return "", n.refuse("must be an identifier: not blank, at most 255 code points")
	}
	return s, nil
}

// Value returns the node as arguments that are a JSON value: null and an empty
// string say, like nothing at all, that there are none.
func (n Node) Value() Node {
	if n.Missing() || string(n.Raw) == `""` {
		return Node{Path: n.Path}
	}
	return n
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
