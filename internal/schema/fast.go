package schema

import (
	"cmp"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"unicode/utf8"
)

// A node is a subschema of the fast path. It only ever says "valid": false
// means that the validator has to decide.
type node struct {
	null     bool
	kind     string // "object", "array", "string", "integer", "number" or "boolean"
	props    []property
	required int // how many of props
	items    *node
	minCount int // characters or items
	maxCount int // -1 = any
	enum     []string
	ints     []int64 // enum of integers
	pattern  *regexp.Regexp
	min, max bound
}

type property struct {
	name     string
	required bool
	node     *node
}

// A bound is a minimum or maximum. Values equal to one that is not an integer
// are left to the validator, which compares decimals and not binary fractions.
type bound struct {
	set, exact bool
	i          int64
	f          float64
}

// accepts reports whether v is valid beyond doubt.
func (n *node) accepts(v any, trimmed bool) bool {
	switch v := v.(type) {
	case string:
		return n.kind == "string" && n.acceptsString(v, trimmed)
	case int64:
		return n.acceptsInt(v)
	case map[string]any:
		return n.kind == "object" && n.acceptsObject(v, trimmed)
	case []any:
		return n.kind == "array" && n.acceptsArray(v, trimmed)
	case float64:
		return n.kind == "number" && n.acceptsFloat(v)
	case bool:
		return n.kind == "boolean"
	case nil:
		return n.null
	}
	return false
}

func (n *node) acceptsObject(obj map[string]any, trimmed bool) bool {
	found, required := 0, 0
	for i := range n.props {
		p := &n.props[i]
		x, ok := obj[p.name]
		if !ok {
			continue
		}
		if !p.node.accepts(x, trimmed) {
			return false
		}
		found++
		if p.required {
			required++
		}
	}
	return found == len(obj) && required == n.required
}

func (n *node) acceptsArray(array []any, trimmed bool) bool {
	if len(array) < n.minCount || n.maxCount >= 0 && len(array) > n.maxCount || n.items == nil && len(array) > 0 {
		return false
	}
	for _, x := range array {
		if !n.items.accepts(x, trimmed) {
			return false
		}
	}
	return true
}

func (n *node) acceptsString(s string, trimmed bool) bool {
	if n.enum != nil && !slices.Contains(n.enum, s) {
		return false
	}
	if n.minCount > 0 || n.maxCount >= 0 {
		count := utf8.RuneCountInString(s)
		if count < n.minCount || n.maxCount >= 0 && count > n.maxCount {
			return false
		}
		if trimmed && n.minCount > 0 && bordersSpace(s) && utf8.RuneCountInString(TrimSpace(s)) < n.minCount {
			return false
		}
	}
	return n.pattern == nil || n.pattern.MatchString(s)
}

// bordersSpace reports whether trimming might change s, which is not empty.
func bordersSpace(s string) bool {
	visible := func(c byte) bool { return ' ' < c && c < utf8.RuneSelf }
	return !visible(s[0]) || !visible(s[len(s)-1])
}

func (n *node) acceptsInt(v int64) bool {
	if n.kind != "integer" && n.kind != "number" || v < -maxInt || v > maxInt {
		return false
	}
	if n.ints != nil && !slices.Contains(n.ints, v) {
		return false
	}
	return n.min.below(v) && n.max.above(v)
}

func (b *bound) below(v int64) bool {
	return !b.set || b.exact && b.i <= v || !b.exact && b.f < float64(v)
}

func (b *bound) above(v int64) bool {
	return !b.set || b.exact && v <= b.i || !b.exact && float64(v) < b.f
}

func (n *node) acceptsFloat(v float64) bool {
	return n.ints == nil && !math.IsNaN(v) && !math.IsInf(v, 0) &&
		(!n.min.set || n.min.f < v) && (!n.max.set || v < n.max.f)
}

// fastPath compiles a schema for the fast path, or returns nil.
func fastPath(doc map[string]any) *node {
	n, ok := fastNode(doc)
	if !ok || n.kind != "object" || n.null {
		return nil
	}
	return n
}

func fastNode(v any) (*node, bool) {
	obj, ok := v.(map[string]any)
	if !ok {
		return nil, false
	}
	n := &node{maxCount: -1}
	if !n.setType(obj["type"]) {
		return nil, false
	}
	var required []any
	for keyword, x := range obj {
		if keyword == "required" {
			required, ok = x.([]any)
		} else {
			ok = n.set(keyword, x)
		}
		if !ok {
			return nil, false
		}
	}
	if (n.enum != nil || n.ints != nil) && n.null {
		return nil, false
	}
	return n, n.require(required)
}

func (n *node) setType(v any) bool {
	switch t := v.(type) {
	case string:
		n.kind = t
	case []any: // only a nullable type: ["null", "string"]
		i := slices.Index(t, any("null"))
		if len(t) != 2 || i < 0 {
			return false
		}
		n.null = true
		n.kind, _ = t[1-i].(string)
	}
	return n.kind != "" && n.kind != "null"
}

// set takes one keyword. A keyword of another type than the node's does
// nothing, as in JSON Schema, and is not worth understanding here.
func (n *node) set(keyword string, v any) bool {
	switch keyword {
	case "type", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly",
		"format", "$comment", "$schema":
		return true
	case "properties":
		return n.kind == "object" && n.setProperties(v)
	case "additionalProperties": // a value with any is not accepted either way
		return n.kind == "object"
	case "items":
		items, ok := fastNode(v)
		n.items = items
		return ok && n.kind == "array"
	case "minItems":
		return n.kind == "array" && setCount(&n.minCount, v)
	case "maxItems":
		return n.kind == "array" && setCount(&n.maxCount, v)
	case "minLength":
		return n.kind == "string" && setCount(&n.minCount, v)
	case "maxLength":
		return n.kind == "string" && setCount(&n.maxCount, v)
	case "enum":
		return n.setEnum(v)
	case "pattern":
		return n.kind == "string" && n.setPattern(v)
	case "minimum":
		return n.isNumber() && n.min.setTo(v)
	case "maximum":
		return n.isNumber() && n.max.setTo(v)
	}
	return false
}

func (n *node) isNumber() bool { return n.kind == "integer" || n.kind == "number" }

func (n *node) setProperties(v any) bool {
	props, ok := v.(map[string]any)
	if !ok {
		return false
	}
	for name, x := range props {
		sub, ok := fastNode(x)
		if !ok {
			return false
		}
		n.props = append(n.props, property{name: name, node: sub})
	}
	slices.SortFunc(n.props, func(a, b property) int { return cmp.Compare(a.name, b.name) })
	return true
}

func (n *node) require(names []any) bool {
	for _, name := range names {
		i := slices.IndexFunc(n.props, func(p property) bool { return any(p.name) == name })
		if i < 0 || n.props[i].required {
			return false
		}
		n.props[i].required = true
		n.required++
	}
	return true
}

func (n *node) setEnum(v any) bool {
	values, ok := v.([]any)
	if !ok || len(values) > 64 { // a long list is not fast to search
		return false
	}
	n.enum, n.ints = nil, nil
	for _, x := range values {
		switch x := literal(x).(type) {
		case string:
			n.enum = append(n.enum, x)
		case int64:
			n.ints = append(n.ints, x)
		}
	}
	return n.kind == "string" && len(n.enum) == len(values) && len(values) > 0 ||
		n.isNumber() && len(n.ints) == len(values) && len(values) > 0
}

// maxFastPattern keeps patterns that can be slow under the budget.
const maxFastPattern = 256

func (n *node) setPattern(v any) bool {
	s, ok := v.(string)
	if !ok {
		return false
	}
	size, err := instructions(s)
	if err != nil || size > maxFastPattern {
		return false
	}
	n.pattern, err = compilePattern(s)
	return err == nil
}

func setCount(count *int, v any) bool {
	n, ok := literal(v).(int64)
	*count = int(n)
	return ok && n >= 0 && n <= maxCount
}

func (b *bound) setTo(v any) bool {
	number, ok := v.(json.Number)
	if !ok {
		return false
	}
	b.set = true
	switch x := literal(number).(type) {
	case int64:
		b.exact, b.i, b.f = true, x, float64(x)
	case float64:
		b.f = x
	default:
		return false
	}
	return true
}
