package schema

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// MaxViolations bounds what one validation returns.
const MaxViolations = 32

// Rules that are not the name of a keyword.
const (
	RuleUnknownField = "unknown field"   // a property that the schema does not declare
	RuleNotAllowed   = "not allowed"     // the schema is false here
	RuleTooDeep      = "too deep"        // the value is nested over MaxDepth
	RuleTooLarge     = "too large"       // the value has over MaxValues values
	RuleTooComplex   = "too complex"     // checking could cost more than the budget
	RuleFailed       = "validator error" // a defect of the validator: the value counts as invalid
)

// A Violation is one rule of the schema that a value breaks.
type Violation struct {
	// Path is the place in the value, for example "$.items[3].amount". For a
	// missing property it is where the property should be.
	Path string
	// Rule is the keyword, for example "maxLength", or one of the Rule constants.
	Rule string
}

// String returns the violation as "$.a: maxLength". It never contains a value.
func (v Violation) String() string { return v.Path + ": " + v.Rule }

type collector struct {
	found []Violation
	total int
	// unmatched are fields that no schema has looked at to the end, although one
	// declares them: where something else is wrong, that is why.
	unmatched []Violation
	closed    map[string]*jsonschema.Schema // see vocabulary
	declared  map[string]*declarations      // by them
}

// maxCollected bounds the memory for the violations of a bad value, of which
// there can be millions.
const maxCollected = 1024

func (c *collector) add(path, rule string) {
	c.total++
	c.found = with(c.found, Violation{path, rule})
}

func (c *collector) result() []Violation {
	if len(c.found) == 0 {
		c.found = c.unmatched
	}
	return slices.Clip(first(c.found))
}

func with(list []Violation, v Violation) []Violation {
	if list = append(list, v); len(list) == maxCollected {
		list = first(list)
	}
	return list
}

// first sorts before it cuts: the validator walks maps in random order.
func first(list []Violation) []Violation {
	slices.SortFunc(list, func(a, b Violation) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Rule, b.Rule))
	})
	list = slices.Compact(list)
	return list[:min(len(list), MaxViolations)]
}

const unevaluatedProperties = "/unevaluatedProperties"

// declares reports whether a schema that allows no property which it has not
// looked at declares the one at a place all the same.
func (c *collector) declares(url string, location []string) bool {
	d := c.declared[url]
	if s := c.closed[url]; d == nil && s != nil {
		d = declaredBy(s)
		c.declared[url] = d
	}
	return d != nil && len(location) > 0 && d.has(location[len(location)-1])
}

func (c *collector) collect(v any, err error) {
	if err == nil {
		return
	}
	var e *jsonschema.ValidationError
	if !errors.As(err, &e) {
		c.add("$", RuleFailed)
		return
	}
	before := c.total
	c.visit(v, e)
	if c.total == before {
		c.add("$", RuleFailed) // an error must never look like a valid value
	}
}

// visit descends to the rules that are broken for certain. Below anyOf and the
// like are only alternatives, which would all look like demands.
func (c *collector) visit(v any, e *jsonschema.ValidationError) {
	switch k := e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		for _, cause := range e.Causes {
			c.visit(v, cause)
		}
	case *kind.Required:
		c.addEach(v, e, k.Missing, "required")
	case *kind.DependentRequired:
		c.addEach(v, e, k.Missing, "dependentRequired")
	case *kind.Dependency:
		c.addEach(v, e, k.Missing, "dependencies")
	case *kind.AdditionalProperties:
		c.addEach(v, e, k.Properties, RuleUnknownField)
	case *kind.PropertyNames:
		// The validator's own error has causes, and a location that it may have
		// overwritten since. The extension reports the same name, well located.
		if len(e.Causes) == 0 {
			c.addEach(v, e, []string{k.Property}, "propertyNames")
		}
	case *kind.FalseSchema:
		at := path(v, e.InstanceLocation)
		switch {
		case !strings.HasSuffix(e.SchemaURL, unevaluatedProperties):
			c.add(at, RuleNotAllowed)
		case c.declares(e.SchemaURL, e.InstanceLocation):
			c.total++
			c.unmatched = with(c.unmatched, Violation{at, RuleUnknownField})
		default:
			c.add(at, RuleUnknownField)
		}
	default:
		c.add(path(v, e.InstanceLocation), ruleOf(e.ErrorKind))
	}
}

func (c *collector) addEach(v any, e *jsonschema.ValidationError, names []string, rule string) {
	at := path(v, e.InstanceLocation)
	for _, name := range names {
		c.add(at+segment(name), rule)
	}
}

func ruleOf(k jsonschema.ErrorKind) string {
	switch k.(type) {
	case *kind.Not:
		return "not"
	case *kind.InvalidJsonValue:
		return "type"
	}
	if keywords := k.KeywordPath(); len(keywords) > 0 {
		return keywords[0]
	}
	return RuleFailed
}

// path needs the value, because a location does not say whether "3" is an
// index or a key.
func path(v any, location []string) string {
	var b strings.Builder
	b.WriteByte('$')
	for _, token := range location {
		switch x := v.(type) {
		case []any:
			b.WriteString("[" + printable(token, maxKeyInPath) + "]")
			v = nil
			if i, err := strconv.Atoi(token); err == nil && 0 <= i && i < len(x) {
				v = x[i]
			}
		case map[string]any:
			b.WriteString(segment(token))
			v = x[token]
		default:
			b.WriteString(segment(token))
		}
	}
	return b.String()
}

// maxKeyInPath bounds what one key, which a model chose, adds to a path.
const maxKeyInPath = 64

const nameChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

func segment(key string) string {
	count := 0
	for i := range key {
		if count++; count > maxKeyInPath {
			return "[" + strconv.Quote(key[:i]+"…") + "]"
		}
	}
	if key != "" && strings.Trim(key, nameChars) == "" {
		return "." + key
	}
	return "[" + strconv.Quote(key) + "]"
}
