package schema

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var errPatternSize = errors.New("is too large a pattern")

// patternCache compiles patterns, each once: they can cost a million times
// their length, and the validator asks for each of them several times.
type patternCache map[string]patternResult

type patternResult struct {
	re  jsonschema.Regexp
	err error
}

func (c patternCache) compile(s string) (jsonschema.Regexp, error) {
	r, ok := c[s]
	if !ok {
		if re, err := compilePattern(s); err != nil {
			r.err = err
		} else {
			r.re = re
		}
		c[s] = r
	}
	return r.re, r.err
}

// compilePattern compiles a pattern as Go reads it. Its errors complete a
// sentence, and quote nothing of the pattern.
func compilePattern(s string) (*regexp.Regexp, error) {
	if len(s) > maxPattern {
		return nil, errPatternSize
	}
	size, err := instructions(s)
	if err != nil {
		return nil, errors.New(lacking(s, err))
	}
	if size > maxInstructions {
		return nil, errPatternSize
	}
	return regexp.Compile(s)
}

// instructions measures a pattern by its program: matching costs at most that
// many steps for each byte of the string.
func instructions(s string) (int, error) {
	parsed, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return 0, err
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0, err
	}
	return len(prog.Inst), nil
}

// lacking says what of a pattern Go does not read. JSON Schema recommends the
// patterns of JavaScript; those of Go (RE2) match in linear time and have less.
func lacking(s string, err error) string {
	const not = ", which the regular expressions of Go (RE2) do not have"
	var problem *syntax.Error
	if !errors.As(err, &problem) {
		return "is a malformed pattern"
	}
	part := problem.Expr
	switch problem.Code {
	case syntax.ErrInvalidPerlOp, syntax.ErrMissingRepeatArgument, syntax.ErrInvalidNamedCapture:
		switch {
		case strings.HasPrefix(part, "(?<=") || strings.HasPrefix(part, "(?<!"):
			return "uses a lookbehind" + not
		case strings.HasPrefix(part, "(?=") || strings.HasPrefix(part, "(?!"):
			return "uses a lookahead" + not
		}
	case syntax.ErrInvalidEscape:
		switch c := strings.TrimPrefix(part, `\`) + " "; {
		case '1' <= c[0] && c[0] <= '9' || c[0] == 'k':
			return "uses a backreference" + not
		case c[0] == 'u':
			return `uses the escape \u` + not + ": write the character itself"
		case c[0] == 'c':
			return `uses the escape \c` + not
		}
		return "uses an escape" + not
	case syntax.ErrMissingBracket, syntax.ErrInvalidCharRange:
		if strings.Contains(s, "[]") || strings.Contains(s, "[^]") {
			return "uses [] or [^] for nothing or anything" + not
		}
	case syntax.ErrInvalidRepeatSize, syntax.ErrLarge, syntax.ErrNestingDepth:
		return "is too large a pattern: repetitions go to 1000"
	}
	return "is a malformed pattern"
}

// never is more characters than a string can have.
const never = maxText + 1

// shortest returns the least number of characters that a string must have to
// match; never if none can.
func shortest(re *syntax.Regexp) int {
	switch re.Op {
	case syntax.OpNoMatch:
		return never
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpCharClass:
		if len(re.Rune) == 0 {
			return never
		}
		return 1
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpCapture, syntax.OpPlus:
		return shortest(re.Sub[0])
	case syntax.OpRepeat:
		return min(re.Min*shortest(re.Sub[0]), never)
	case syntax.OpAlternate:
		least := never
		for _, sub := range re.Sub {
			least = min(least, shortest(sub))
		}
		return least
	case syntax.OpConcat:
		return shortestOf(re.Sub)
	}
	return 0
}

// shortestOf knows that nothing stands before the beginning or after the end.
func shortestOf(parts []*syntax.Regexp) int {
	sum, ended := 0, false
	for _, part := range parts {
		n := shortest(part)
		if part.Op == syntax.OpBeginText && sum > 0 || ended && n > 0 {
			return never
		}
		ended = ended || part.Op == syntax.OpEndText
		sum = min(sum+n, never)
	}
	return sum
}
