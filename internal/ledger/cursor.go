package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A Cursor is a place in a list of the ledger's, to go on from: "" is its beginning. It
// is opaque, and may be stored. It names nobody.
type Cursor string

// cursorOf writes the numbers of a place in a list of some kind.
func cursorOf(kind byte, numbers ...int64) Cursor {
	text := []byte{kind}
	for _, n := range numbers {
		text = binary.AppendVarint(text, n)
	}
	sum := sha256.Sum256(text)
	return Cursor(base64.RawURLEncoding.EncodeToString(append(text, sum[:cursorSum]...)))
}

// cursorSum is how much of a sum a cursor carries, against one that was cut off or
// mistyped.
const cursorSum = 4

// numbers reads so many numbers of a cursor of a kind.
func (c Cursor) numbers(kind byte, what string, n int) ([]int64, error) {
	refused := &toolresult.InputError{Field: "after", Rule: "is no cursor of " + what}
	text, err := base64.RawURLEncoding.Strict().DecodeString(string(c))
	if err != nil || len(text) < 1+cursorSum || text[0] != kind {
		return nil, refused
	}
	text, tail := text[:len(text)-cursorSum], text[len(text)-cursorSum:]
	if sum := sha256.Sum256(text); !bytes.Equal(sum[:cursorSum], tail) {
		return nil, refused
	}
	numbers := make([]int64, n)
	for i, rest := 0, text[1:]; ; i++ {
		if i == n && len(rest) == 0 {
			return numbers, nil
		}
		v, size := binary.Varint(rest)
		if i == n || size <= 0 {
			return nil, refused
		}
		numbers[i], rest = v, rest[size:]
	}
}
