package canonjson

import (
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Append appends the canonical form of v to dst. It checks all of v: types,
// ranges, sizes, encoding and depth, where depth is the depth of v itself in the
// document that it will be part of, 0 for a root. Every error is an *Error.
func Append(dst []byte, v any, depth int) ([]byte, error) {
	dst, err := appendValue(dst, v, depth)
	if err != nil {
		return nil, err.atRoot()
	}
	return dst, nil
}

func appendValue(dst []byte, v any, depth int) ([]byte, *Error) {
	if depth > MaxDepth {
		return nil, &Error{Kind: KindNesting}
	}
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case string:
		if err := checkText(v); err != nil {
			return nil, err
		}
		return AppendString(dst, v), nil
	case int64:
		return appendInt(dst, v)
	case float64:
		return appendFloat(dst, v)
	case map[string]any:
		return appendObject(dst, v, depth)
	case []any:
		return appendArray(dst, v, depth)
	case Raw:
		return append(dst, v...), nil
	}
	return appendOtherInt(dst, v)
}

func appendOtherInt(dst []byte, v any) ([]byte, *Error) {
	switch v := v.(type) {
	case int:
		return appendInt(dst, int64(v))
	case int8:
		return appendInt(dst, int64(v))
	case int16:
		return appendInt(dst, int64(v))
	case int32:
		return appendInt(dst, int64(v))
	case uint8:
		return appendInt(dst, int64(v))
	case uint16:
		return appendInt(dst, int64(v))
	case uint32:
		return appendInt(dst, int64(v))
	case uint:
		return appendUint(dst, uint64(v))
	case uint64:
		return appendUint(dst, v)
	}
	return nil, &Error{Kind: KindType}
}

func appendInt(dst []byte, n int64) ([]byte, *Error) {
	if n > MaxInt || n < -MaxInt {
		return nil, &Error{Kind: KindIntegerRange}
	}
	return strconv.AppendInt(dst, n, 10), nil
}

func appendUint(dst []byte, n uint64) ([]byte, *Error) {
	if n > MaxInt {
		return nil, &Error{Kind: KindIntegerRange}
	}
	return strconv.AppendUint(dst, n, 10), nil
}

// appendFloat may compare values instead of decimal exponents, since 1e-4 and
// 1e16 are the shortest digits of the floats nearest to them.
func appendFloat(dst []byte, f float64) ([]byte, *Error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, &Error{Kind: KindNonFinite}
	}
	if abs := math.Abs(f); abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64), nil
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	if !slices.Contains(dst[start:], '.') {
		dst = append(dst, ".0"...)
	}
	return dst, nil
}

func appendObject(dst []byte, m map[string]any, depth int) ([]byte, *Error) {
	if len(m) > MaxEntries {
		return nil, &Error{Kind: KindSizeLimit}
	}
	var few [16]string
	keys := few[:0]
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	dst = append(dst, '{')
	for i, key := range keys {
		if err := checkText(key); err != nil {
			return nil, err.inKey(key)
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendString(dst, key), ':')
		var err *Error
		if dst, err = appendValue(dst, m[key], depth+1); err != nil {
			return nil, err.inKey(key)
		}
	}
	return append(dst, '}'), nil
}

func appendArray(dst []byte, list []any, depth int) ([]byte, *Error) {
	if len(list) > MaxEntries {
		return nil, &Error{Kind: KindSizeLimit}
	}
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err *Error
		if dst, err = appendValue(dst, v, depth+1); err != nil {
			return nil, err.inIndex(i)
		}
	}
	return append(dst, ']'), nil
}

func checkText(s string) *Error {
	if !utf8.ValidString(s) {
		return &Error{Kind: KindInvalidUTF8}
	}
	if len(s) > MaxString && utf8.RuneCountInString(s) > MaxString {
		return &Error{Kind: KindSizeLimit}
	}
	return nil
}

// AppendString appends s as a canonical string literal, with its quotes. The
// caller has checked that s is valid UTF-8, with ValidText for instance.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	done := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(append(dst, s[done:i]...), '\\')
		done = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, c)
		case '\b':
			dst = append(dst, 'b')
		case '\f':
			dst = append(dst, 'f')
		case '\n':
			dst = append(dst, 'n')
		case '\r':
			dst = append(dst, 'r')
		case '\t':
			dst = append(dst, 't')
		default:
			const hexDigits = "0123456789abcdef"
			dst = append(dst, 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(dst, s[done:]...), '"')
}
