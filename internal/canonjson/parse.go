package canonjson

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Parse reads one JSON document by the strict rules. Every error is an *Error.
// Strings of the result share one copy of the document's text, so keeping one
// of them keeps up to MaxBytes.
func Parse(data []byte) (any, error) {
	if len(data) > MaxBytes { // before it is copied
		return nil, &Error{Kind: KindTooLarge}
	}
	return parse(string(data))
}

func parse(src string) (any, error) {
	if len(src) > MaxBytes {
		return nil, &Error{Kind: KindTooLarge}
	}
	if !utf8.ValidString(src) {
		return nil, &Error{Kind: KindInvalidUTF8}
	}
	p := parser{src: src}
	if nestsTooDeep(p.src) {
		return nil, &Error{Kind: KindNesting}
	}
	v, err := p.value()
	if err == nil && !p.atEnd() {
		err = &Error{Kind: KindSyntax}
	}
	if err != nil {
		return nil, err.atRoot()
	}
	return v, nil
}

// nestsTooDeep bounds the recursion of the parser. On text that is not JSON its
// count means little, but the parser stops there before it could recurse on.
func nestsTooDeep(src string) bool {
	depth := 0
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case '"':
			for i++; i < len(src) && src[i] != '"'; i++ {
				if src[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			if depth++; depth > MaxDepth {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}

type parser struct {
	src string
	pos int
}

func (p *parser) skipSpace() {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

func (p *parser) atEnd() bool {
	p.skipSpace()
	return p.pos == len(p.src)
}

// peek returns the next byte that is not white space. At the end it returns 0,
// which no token starts with.
func (p *parser) peek() byte {
	if p.atEnd() {
		return 0
	}
	return p.src[p.pos]
}

func (p *parser) take(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.pos++
	return true
}

func (p *parser) takeWord(w string) bool {
	if !strings.HasPrefix(p.src[p.pos:], w) {
		return false
	}
	p.pos += len(w)
	return true
}

func (p *parser) value() (any, *Error) {
	switch c := p.peek(); {
	case c == '{':
		return p.object()
	case c == '[':
		return p.array()
	case c == '"':
		return p.text()
	case c == '-' || isDigit(c):
		return p.number()
	case p.takeWord("null"):
		return nil, nil
	case p.takeWord("true"):
		return true, nil
	case p.takeWord("false"):
		return false, nil
	case p.takeWord("NaN"), p.takeWord("Infinity"):
		return nil, &Error{Kind: KindNonFinite}
	}
	return nil, &Error{Kind: KindSyntax}
}

func (p *parser) object() (any, *Error) {
	p.pos++
	m := map[string]any{}
	if p.take('}') {
		return m, nil
	}
	for {
		if p.peek() != '"' {
			return nil, &Error{Kind: KindSyntax}
		}
		key, err := p.text()
		if err != nil {
			return nil, err
		}
		if _, ok := m[key]; ok {
			return nil, (&Error{Kind: KindDuplicateKey}).inKey(key)
		}
		if len(m) == MaxEntries {
			return nil, &Error{Kind: KindSizeLimit}
		}
		if !p.take(':') {
			return nil, (&Error{Kind: KindSyntax}).inKey(key)
		}
		v, err := p.value()
		if err != nil {
			return nil, err.inKey(key)
		}
		m[key] = v
		if p.take('}') {
			return m, nil
		}
		if !p.take(',') {
			return nil, &Error{Kind: KindSyntax}
		}
	}
}

func (p *parser) array() (any, *Error) {
	p.pos++
	list := []any{}
	if p.take(']') {
		return list, nil
	}
	for {
		v, err := p.value()
		if err != nil {
			return nil, err.inIndex(len(list))
		}
		if len(list) == MaxEntries {
			return nil, &Error{Kind: KindSizeLimit}
		}
		list = append(list, v)
		if p.take(']') {
			return list, nil
		}
		if !p.take(',') {
			return nil, &Error{Kind: KindSyntax}
		}
	}
}

// text reads a string. It checks the syntax of the whole literal before it
// decodes escapes, so that a broken escape is never taken for half a pair.
func (p *parser) text() (string, *Error) {
	start, escaped := p.pos+1, false
	for i := start; i < len(p.src); i++ {
		switch c := p.src[i]; {
		case c == '"':
			p.pos = i + 1
			if escaped {
				return unescape(p.src[start:i])
			}
			return p.src[start:i], nil
		case c < ' ':
			return "", &Error{Kind: KindSyntax}
		case c == '\\':
			n := escapeLen(p.src[i:])
			if n == 0 {
				return "", &Error{Kind: KindSyntax}
			}
			escaped = true
			i += n - 1
		}
	}
	return "", &Error{Kind: KindSyntax}
}

// escapeLen returns the length of the escape that s starts with, 0 when there
// is no such escape.
func escapeLen(s string) int {
	if len(s) < 2 {
		return 0
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if hex4(s[2:]) >= 0 {
			return 6
		}
	}
	return 0
}

// hex4 decodes the four hex digits that s starts with; -1 when it does not.
func hex4(s string) rune {
	if len(s) < 4 {
		return -1
	}
	var r rune
	for _, c := range []byte(s[:4]) {
		switch {
		case isDigit(c):
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// unescape decodes the inside of a literal whose escapes are well-formed.
func unescape(s string) (string, *Error) {
	var out strings.Builder
	out.Grow(len(s))
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 {
			out.WriteString(s)
			return out.String(), nil
		}
		out.WriteString(s[:i])
		c := s[i+1]
		s = s[i+2:]
		switch c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r := hex4(s)
			s = s[4:]
			if utf16.IsSurrogate(r) {
				low, ok := strings.CutPrefix(s, `\u`)
				if !ok {
					return "", &Error{Kind: KindSurrogate}
				}
				if r = utf16.DecodeRune(r, hex4(low)); r == utf8.RuneError {
					return "", &Error{Kind: KindSurrogate}
				}
				s = low[4:]
			}
			out.WriteRune(r)
			continue
		}
		out.WriteByte(c)
	}
}
