package canonjson

import (
	"crypto/sha256"
	"encoding/hex"
	"unicode/utf8"
)

// The limits of a document.
const (
	MaxBytes   = 65536            // bytes of a document given to Parse
	MaxDepth   = 32               // nested containers
	MaxString  = 65536            // code points of a string or key
	MaxEntries = 1024             // entries of one array or object
	MaxInt     = 9007199254740991 // 2^53-1: beyond it other readers lose digits
)

// Raw is text that this package produced. Append copies it unchanged and
// unchecked.
type Raw string

// Marshal returns the canonical form of v.
func Marshal(v any) ([]byte, error) { return Append(nil, v, 0) }

// Canonicalize returns the canonical form of a JSON document. It can be longer
// than the document, and than MaxBytes: 1e15 becomes 1000000000000000.0.
func Canonicalize(data []byte) ([]byte, error) {
	v, err := Parse(data)
	if err != nil {
		return nil, err
	}
	return Append(make([]byte, 0, len(data)), v, 0)
}

// ParseCanonical is Parse for text that must be canonical already, and that the
// strings of the result share. Where it is not, the error has KindNotCanonical.
func ParseCanonical(text string) (any, error) {
	v, err := parse(text)
	if err != nil {
		return nil, err
	}
	again, err := Append(make([]byte, 0, len(text)), v, 0)
	if err != nil {
		return nil, err
	}
	if string(again) != text {
		return nil, &Error{Kind: KindNotCanonical}
	}
	return v, nil
}

// IsCanonical reports whether text is accepted by Parse and equals its own
// re-encoding.
func IsCanonical(text string) bool {
	_, err := ParseCanonical(text)
	return err == nil
}

// Digest returns the Sum of the canonical form of v.
func Digest(v any) (string, error) {
	text, err := Append(make([]byte, 0, 512), v, 0)
	if err != nil {
		return "", err
	}
	return Sum(text), nil
}

// Sum returns the lower-case hex SHA-256 of text that is canonical.
func Sum(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	var text [2 * sha256.Size]byte
	hex.Encode(text[:], sum[:])
	return string(text[:])
}

// ValidText reports whether s can be part of a document: it is valid UTF-8,
// which also excludes surrogates.
func ValidText(s string) bool { return utf8.ValidString(s) }
