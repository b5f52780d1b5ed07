package schema

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// An Error says why a schema or a Go type cannot be used.
type Error struct {
	// Where is the place: a JSON pointer such as "#/properties/reason/pattern"
	// in a schema, or a Go field such as "Refund.Reason". It is bounded.
	Where string
	// Problem is the rule that is broken, without any value.
	Problem string
}

func (e *Error) Error() string {
	if e.Where == "" {
		return "schema: " + e.Problem
	}
	return "schema: " + e.Where + ": " + e.Problem
}

// maxWhere bounds what the author of a schema, who may be a stranger, can add
// to an error and so to a log.
const maxWhere = 200

func errorAt(where, problem string) *Error {
	return &Error{Where: printable(where, maxWhere), Problem: problem}
}

// printable cuts s to about limit bytes and escapes what a log should not show.
func printable(s string, limit int) string {
	cut := len(s) > limit
	if cut {
		s = s[:limit]
		for len(s) > 0 && !utf8.RuneStart(s[len(s)-1]) {
			s = s[:len(s)-1]
		}
		if n := len(s); n > 0 && s[n-1] >= utf8.RuneSelf {
			s = s[:n-1] // the first byte of a code point that was cut
		}
	}
	quoted := strconv.Quote(s)
	s = strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
	if cut {
		s += "…"
	}
	return s
}

// pointer writes a JSON pointer as the fragment that a schema error shows.
func pointer(tokens []string) string {
	var b strings.Builder
	b.WriteByte('#')
	for _, token := range tokens {
		b.WriteByte('/')
		b.WriteString(pointerEscaper.Replace(token))
	}
	return b.String()
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")
