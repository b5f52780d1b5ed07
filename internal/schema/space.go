package schema

import (
	"strings"
	"unicode"
)

// TrimSpace returns s without the white space around it. White space is what
// Unicode calls White_Space, and U+001C to U+001F, the separators that other
// implementations of the contract count as such. U+200B and U+FEFF are not
// white space.
func TrimSpace(s string) string { return strings.TrimFunc(s, isSpace) }

// IsBlank reports whether s has nothing but white space.
func IsBlank(s string) bool {
	for _, r := range s {
		if !isSpace(r) {
			return false
		}
	}
	return true
}

func isSpace(r rune) bool {
	return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f
}
