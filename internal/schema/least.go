package schema

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The limits of every value, which canonjson holds.
const (
	maxText    = 65536 // characters of a string
	maxEntries = 1024  // of an array or object
)

// least looks for the least value that a schema accepts. What it cannot decide
// it takes for possible: it never says that there is none where there is one,
// and its sizes are never too large.
//
// A value has to pass several schemas at once, those that $ref and allOf apply
// beside each other, so the question is always about a set of them; and as
// values nest only so deep, about a depth. Answers for a depth come from those
// for the depth below, so that a schema that needs itself without end has none.
type least struct {
	input    bool // empty containers count as a level, as they do when read
	ids      map[*jsonschema.Schema]int
	known    map[string]answer
	declared map[*jsonschema.Schema]*declarations
	// forbids has what stands for the properties that a schema leaves out.
	forbids map[*jsonschema.Schema]*jsonschema.Schema
	budget  int
}

// An answer is a lower bound of the canonical size, or why there is no value.
type answer struct {
	size int
	none *Error
}

// A set is schemas that a value must pass at once. Alternatives are looked at
// only for the open ones: each by itself with the rest, not with each other.
type set struct{ closed, open []*jsonschema.Schema }

func (s set) all() []*jsonschema.Schema { return append(slices.Clip(s.closed), s.open...) }

// maxLeast bounds the search. Beyond it everything is taken for possible.
const maxLeast = 50_000

func newLeast(input bool) *least {
	return &least{input: input, ids: map[*jsonschema.Schema]int{}, known: map[string]answer{},
		declared: map[*jsonschema.Schema]*declarations{}, forbids: map[*jsonschema.Schema]*jsonschema.Schema{}, budget: maxLeast}
}

// rootSet is what the whole value has to pass: the root allows only what it
// declares, wherever else a $ref to it may stand.
func rootSet(root *jsonschema.Schema) []*jsonschema.Schema {
	no := false
	return gather(nil, &jsonschema.Schema{Location: root.Location, Ref: root, UnevaluatedProperties: &jsonschema.Schema{Bool: &no}})
}

// gather adds s to the schemas that a value must pass, and all that s applies
// to the same value whatever it is.
func gather(list []*jsonschema.Schema, more ...*jsonschema.Schema) []*jsonschema.Schema {
	for _, s := range more {
		if s == nil || slices.Contains(list, s) {
			continue
		}
		list = append(list, s)
		list = gather(list, s.Ref)
		list = gather(list, s.AllOf...)
	}
	return list
}

func none(s *jsonschema.Schema, keyword, problem string) answer {
	where := fragment(s.Location)
	if keyword != "" {
		where += "/" + keyword
	}
	return answer{none: errorAt(where, problem)}
}

func (l *least) key(s set, depth int) string {
	name := func(list []*jsonschema.Schema) string {
		ids := make([]int, len(list))
		for i, x := range list {
			id, ok := l.ids[x]
			if !ok {
				id = len(l.ids)
				l.ids[x] = id
			}
			ids[i] = id
		}
		slices.Sort(ids)
		return fmt.Sprint(ids)
	}
	return name(s.closed) + name(s.open) + strconv.Itoa(depth)
}

// of answers for the values of s that are no deeper than depth.
func (l *least) of(s set, depth int) answer {
	l.budget -= 1 + len(s.closed) + len(s.open)
	if l.budget < 0 {
		return answer{}
	}
	key := l.key(s, depth)
	if known, ok := l.known[key]; ok {
		return known
	}
	found := l.plain(s.all(), depth)
	for _, x := range s.open {
		if found.none != nil {
			break
		}
		rest := s.all()
		for _, group := range alternatives(x) {
			if best := l.branches(x, rest, group, depth); best.none != nil || best.size > found.size {
				found = best
			}
		}
	}
	l.known[key] = found
	return found
}

type group struct {
	keyword  string
	branches []*jsonschema.Schema
}

// alternatives are lists of schemas of which a value must pass at least one.
func alternatives(s *jsonschema.Schema) []group {
	var groups []group
	for _, g := range []group{{"anyOf", s.AnyOf}, {"oneOf", s.OneOf}, {"if", []*jsonschema.Schema{s.Then, s.Else}}} {
		if len(g.branches) > 0 && !slices.Contains(g.branches, nil) {
			groups = append(groups, g)
		}
	}
	return groups
}

func (l *least) branches(s *jsonschema.Schema, rest []*jsonschema.Schema, g group, depth int) answer {
	best := none(s, g.keyword, "no value can pass any of the branches")
	for _, branch := range g.branches {
		got := l.of(set{closed: rest, open: without(gather(nil, branch), rest)}, depth)
		if got.none == nil && (best.none != nil || got.size < best.size) {
			best = got
		}
	}
	return best
}

func without(list, rest []*jsonschema.Schema) []*jsonschema.Schema {
	return slices.DeleteFunc(list, func(s *jsonschema.Schema) bool { return slices.Contains(rest, s) })
}

// plain answers for schemas without their alternatives.
func (l *least) plain(list []*jsonschema.Schema, depth int) answer {
	if len(list) == 0 {
		return answer{size: 1}
	}
	left := anyKind
	for _, s := range list {
		switch {
		case s.Bool != nil && !*s.Bool:
			return none(s, "", "allows no value")
		case s.Not != nil && accepts(s.Not):
			return none(s, "not", "forbids every value")
		}
		before := left
		if left &= kindsOf(s); left == 0 {
			if before == anyKind || kindsOf(s) == 0 {
				return none(s, "type", "leaves no type of value")
			}
			return none(s, "type", "leaves no type of value with the other schemas that apply here")
		}
	}
	if values, from := candidates(list); from != nil {
		return l.listed(list, values, from, left, depth)
	}
	best := answer{none: errorAt("", "")}
	for _, kind := range kindOrder {
		if left&kind == 0 {
			continue
		}
		got := l.kind(kind, list, depth)
		switch {
		case best.none == nil && (got.none != nil || got.size >= best.size):
		case best.none == nil || got.none == nil || best.none.Problem == "":
			best = got
		}
	}
	return best
}

func (l *least) kind(kind kinds, list []*jsonschema.Schema, depth int) answer {
	switch kind {
	case kindString:
		return leastString(list)
	case kindInt, kindFloat:
		return leastNumber(list, kind)
	case kindArray:
		return l.array(list, depth)
	case kindObject:
		return l.object(list, depth)
	}
	return answer{size: 4} // null, true
}

// candidates returns the values of the shortest enum or const of the list.
func candidates(list []*jsonschema.Schema) (values []any, from *jsonschema.Schema) {
	for _, s := range list {
		var these []any
		switch {
		case s.Const != nil:
			these = []any{*s.Const}
		case s.Enum != nil:
			these = s.Enum.Values
		default:
			continue
		}
		if from == nil || len(these) < len(values) {
			values, from = these, s
		}
	}
	return values, from
}

func (l *least) listed(list []*jsonschema.Schema, values []any, from *jsonschema.Schema, left kinds, depth int) answer {
	best := none(from, "enum", "has no value that can pass")
	if from.Const != nil {
		best = none(from, "const", "can never pass")
	}
	for _, v := range values {
		v = literal(v)
		if kindOf(v)&left == 0 || levels(v, l.input) > depth || !admits(list, v, from) {
			continue
		}
		if size := leastSize(v); best.none != nil || size < best.size {
			best = answer{size: size}
		}
	}
	return best
}

// longEnum is too long to hold each value of another one against it.
const longEnum = 512

// admits reports whether a value, one of those that from lists if any, can pass
// the rules of the list that look at nothing inside it.
func admits(list []*jsonschema.Schema, v any, from *jsonschema.Schema) bool {
	for _, s := range list {
		if kindOf(v)&kindsOf(s) == 0 || s.Const != nil && !equal(v, literal(*s.Const)) {
			return false
		}
		if s.Enum != nil && (s != from || s.Const != nil) && len(s.Enum.Values) <= longEnum && !slices.ContainsFunc(s.Enum.Values, func(x any) bool { return equal(v, literal(x)) }) {
			return false
		}
		n, isNumber := rational(v)
		text, isText := v.(string)
		switch {
		case isText && (s.MinLength != nil && len([]rune(text)) < *s.MinLength || s.MaxLength != nil && len([]rune(text)) > *s.MaxLength):
			return false
		case isText && s.Pattern != nil && !s.Pattern.MatchString(text):
			return false
		case isNumber && !(interval{}).with(s).contains(n):
			return false
		}
	}
	return true
}

func leastString(list []*jsonschema.Schema) answer {
	low, high, lowAt, keyword := 0, maxText, list[0], "minLength"
	for _, s := range list {
		if s.MinLength != nil && *s.MinLength > low {
			low, lowAt, keyword = *s.MinLength, s, "minLength"
		}
		if s.Pattern != nil {
			if n := patternLength(s.Pattern.String()); n >= never {
				return none(s, "pattern", "matches no text")
			} else if n > low {
				low, lowAt, keyword = n, s, "pattern"
			}
		}
		if s.MaxLength != nil {
			high = min(high, *s.MaxLength)
		}
	}
	if low > high {
		return none(lowAt, keyword, "demands more characters than are allowed")
	}
	return answer{size: 2 + low}
}
