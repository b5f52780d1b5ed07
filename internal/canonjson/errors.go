package canonjson

import (
	"errors"
	"strconv"
	"strings"
)

// Kind says which rule a document or value breaks.
type Kind string

// Where several rules are broken, too_large and invalid_utf8 win, then nesting,
// then what comes first in the text.
const (
	KindTooLarge     Kind = "too_large"     // more than MaxBytes
	KindInvalidUTF8  Kind = "invalid_utf8"  // not UTF-8
	KindNesting      Kind = "nesting"       // deeper than MaxDepth
	KindSyntax       Kind = "syntax"        // not RFC 8259
	KindDuplicateKey Kind = "duplicate_key" // equal after unescaping
	KindNonFinite    Kind = "non_finite"    // NaN, infinity, or overflow to it
	KindIntegerRange Kind = "integer_range" // beyond ±MaxInt
	KindSurrogate    Kind = "surrogate"     // half of a pair
	KindSizeLimit    Kind = "size_limit"    // over MaxString or MaxEntries
	KindType         Kind = "type"          // a Go value that JSON has no form for
	KindNotCanonical Kind = "not_canonical" // valid, but not as this package writes it
)

var rules = map[Kind]string{
	KindTooLarge:     "document too large",
	KindInvalidUTF8:  "invalid UTF-8",
	KindNesting:      "nesting is deeper than 32 levels",
	KindSyntax:       "invalid JSON syntax",
	KindDuplicateKey: "repeated object key",
	KindNonFinite:    "number is not finite",
	KindIntegerRange: "integer out of range",
	KindSurrogate:    "lone surrogate",
	KindSizeLimit:    "too many entries or code points",
	KindType:         "type outside the JSON domain",
	KindNotCanonical: "text is not canonical",
}

// An Error is the first broken rule that was found.
type Error struct {
	Kind Kind
	// Path is the place, for example "$.items[3].amount". It is empty for rules
	// that concern the document as a whole.
	Path string
}

func (e *Error) Error() string {
	rule, ok := rules[e.Kind]
	if !ok {
		rule = string(e.Kind)
	}
	if e.Path == "" {
		return rule
	}
	return rule + " at " + e.Path
}

// Is lets errors.Is match by kind: the target is an *Error, and its path, unless
// empty, must be equal too.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind == e.Kind && (t.Path == "" || t.Path == e.Path)
}

// Paths grow from the inside out while an error returns through the recursion,
// so that the good case pays nothing for them.

func (e *Error) inKey(key string) *Error {
	e.Path = keySegment(key) + e.Path
	return e
}

func (e *Error) inIndex(i int) *Error {
	e.Path = "[" + strconv.Itoa(i) + "]" + e.Path
	return e
}

func (e *Error) atRoot() *Error {
	e.Path = "$" + e.Path
	return e
}

// maxKeyInPath bounds what one key, which is chosen by whoever wrote the
// document, adds to an error and so to a log.
const maxKeyInPath = 64

func keySegment(key string) string {
	count := 0
	for i := range key {
		if count++; count > maxKeyInPath {
			return "[" + strconv.Quote(key[:i]+"…") + "]"
		}
	}
	if isName(key) {
		return "." + key
	}
	return "[" + strconv.Quote(key) + "]"
}

const nameChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

func isName(key string) bool {
	return key != "" && strings.Trim(key, nameChars) == ""
}

// Rule is what the strict reader says of a stored value, without the place: a path
// names keys, and stored keys are stored values.
func Rule(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return (&Error{Kind: e.Kind}).Error()
	}
	return "is malformed"
}
