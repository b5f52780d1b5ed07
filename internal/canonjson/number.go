package canonjson

import (
	"strconv"
	"strings"
)

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// number reads a literal that starts with a minus sign or a digit. One without
// fraction and exponent is an integer, however large.
func (p *parser) number() (any, *Error) {
	start := p.pos
	negative := p.takeWord("-")
	if negative && p.takeWord("Infinity") {
		return nil, &Error{Kind: KindNonFinite}
	}
	whole := p.digits()
	if whole == "" || whole[0] == '0' && len(whole) > 1 {
		return nil, &Error{Kind: KindSyntax}
	}
	var fraction, exponent string
	isFloat := false
	if p.takeWord(".") {
		isFloat = true
		if fraction = p.digits(); fraction == "" {
			return nil, &Error{Kind: KindSyntax}
		}
	}
	if p.takeWord("e") || p.takeWord("E") {
		isFloat = true
		from := p.pos
		if !p.takeWord("+") {
			p.takeWord("-")
		}
		if p.digits() == "" {
			return nil, &Error{Kind: KindSyntax}
		}
		exponent = p.src[from:p.pos]
	}
	literal := p.src[start:p.pos]
	if !isFloat {
		return integer(whole, negative)
	}
	if len(literal) > maxExactFloat {
		literal = shorten(negative, whole, fraction, exponent)
	}
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return nil, &Error{Kind: KindNonFinite}
	}
	return f, nil
}

func (p *parser) digits() string {
	from := p.pos
	for p.pos < len(p.src) && isDigit(p.src[p.pos]) {
		p.pos++
	}
	return p.src[from:p.pos]
}

// integer decides by length before it computes, so that a long literal costs
// no more than reading it.
func integer(digits string, negative bool) (any, *Error) {
	if len(digits) > len("9007199254740991") {
		return nil, &Error{Kind: KindIntegerRange}
	}
	var n int64
	for _, c := range []byte(digits) {
		n = n*10 + int64(c-'0')
	}
	if n > MaxInt {
		return nil, &Error{Kind: KindIntegerRange}
	}
	if negative {
		n = -n
	}
	return n, nil
}

// maxExactFloat is the length of a literal up to which strconv is exact. Of a
// longer one it can miscount the digits before the point, of which it keeps 800,
// and it stops reading an exponent at five digits, even where zeros in the
// mantissa make up for the rest.
const maxExactFloat = 800

// shorten rewrites a float as 0.DIGITSeMAGNITUDE, equal to it or as far out of
// range, in which strconv is exact at any length.
func shorten(negative bool, whole, fraction, exponent string) string {
	sign := ""
	if negative {
		sign = "-"
	}
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return sign + "0.0"
	}
	// An exponent too long for an int saturates. Clamping keeps the sum from
	// wrapping around: no document is long enough to bring it back into range.
	const far = 4 * MaxBytes
	exp := 0
	if exponent != "" {
		exp, _ = strconv.Atoi(exponent)
	}
	magnitude := max(-far, min(exp, far)) + len(digits) - len(fraction)
	return sign + "0." + digits + "e" + strconv.Itoa(magnitude)
}
