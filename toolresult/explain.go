package toolresult

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolruntime/toolruntime-go/internal/schema"
)

// MaxProblems bounds what [Spec.CheckArguments] returns.
const MaxProblems = 16

// A shape is an input schema as far as it helps to say what is wrong with
// arguments: which names it declares, and what it wants at a place.
type shape struct {
	root  map[string]any
	names map[string]bool // of properties, at any depth
}

func newShape(text []byte) *shape {
	s := &shape{names: map[string]bool{}}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&s.root) != nil {
		s.root = nil
	}
	s.collect(s.root)
	return s
}

func (s *shape) collect(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, x := range v {
			if properties, ok := x.(map[string]any); ok && key == "properties" {
				for name := range properties {
					s.names[name] = true
				}
			}
			s.collect(x)
		}
	case []any:
		for _, x := range v {
			s.collect(x)
		}
	}
}

// explain says in words what vs say by keyword. Fields that the schema does not
// declare are the model's own words: they are counted and not named.
func (s *shape) explain(arguments any, vs []schema.Violation) []Problem {
	unknown := map[string]int{}
	var ps []Problem
	for _, v := range vs {
		at := segments(v.Path)
		if v.Rule == schema.RuleUnknownField && len(at) > 0 {
			unknown[s.pointer(at[:len(at)-1])]++
			continue
		}
		ps = append(ps, Problem{s.pointer(at), s.rule(arguments, at, v.Rule)})
	}
	for path, n := range unknown {
		rule := "has a field that the tool does not declare: leave it out"
		if n > 1 {
			rule = fmt.Sprintf("has %d fields that the tool does not declare: leave them out", n)
		}
		ps = append(ps, Problem{path, rule})
	}
	slices.SortFunc(ps, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Rule, b.Rule))
	})
	ps = slices.Compact(ps)
	return slices.Clip(ps[:min(len(ps), MaxProblems)])
}

// fault is p for the eyes of the model.
func (s *shape) fault(p Problem) Problem {
	if strings.HasPrefix(p.Path, "$") {
		p.Path = s.pointer(segments(p.Path))
	}
	return p
}

// maxPointer bounds a place, whose depth the model chooses.
const maxPointer = 200

// pointer is the JSON pointer of a place. "*" stands for what the model named.
func (s *shape) pointer(at []string) string {
	if len(at) == 0 {
		return "/"
	}
	var b strings.Builder
	for _, segment := range at {
		if _, err := strconv.ParseUint(segment, 10, 16); err != nil && !s.names[segment] {
			segment = "*"
		}
		segment = strings.NewReplacer("~", "~0", "/", "~1").Replace(segment)
		if b.Len()+len(segment) > maxPointer {
			b.WriteString("/…")
			break
		}
		b.WriteString("/" + segment)
	}
	return b.String()
}

// segments splits a path such as "$.items[3].amount".
func segments(path string) []string {
	var at []string
	for rest := strings.TrimPrefix(path, "$"); rest != ""; {
		switch {
		case strings.HasPrefix(rest, `["`):
			quoted, err := strconv.QuotedPrefix(rest[1:])
			if err != nil {
				return append(at, "*")
			}
			key, _ := strconv.Unquote(quoted)
			at = append(at, key)
			rest = strings.TrimPrefix(rest[1+len(quoted):], "]")
		case rest[0] == '[':
			index, after, _ := strings.Cut(rest[1:], "]")
			at, rest = append(at, index), after
		default:
			rest = strings.TrimPrefix(rest, ".")
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			at, rest = append(at, rest[:end]), rest[end:]
		}
	}
	return at
}

// rule says what the keyword wants at a place.
func (s *shape) rule(arguments any, at []string, keyword string) string {
	nodes := s.at(at)
	switch keyword {
	case "type":
		return s.typeRule(arguments, at, said(nodes, "type"))
	case "anyOf", "oneOf":
		return s.choiceRule(arguments, at, keyword, said(nodes, keyword))
	case "required", "dependentRequired", "dependencies":
		return "is missing"
	case "enum", "const":
		if _, float := valueAt(arguments, at).(float64); float {
			return "must be a value that the schema lists; 1.0 is not 1"
		}
		return "must be a value that the schema lists"
	case "pattern":
		return "must match the schema's pattern"
	case "uniqueItems":
		return "must not hold an entry twice"
	}
	if form, ok := limitRules[keyword]; ok {
		if n, ok := said(nodes, keyword).(json.Number); ok && len(n) <= 24 {
			return fmt.Sprintf(form, n)
		}
	}
	return "breaks the schema: " + keyword
}

// said is the value of a keyword, if the schemas that apply at a place say one.
func said(nodes []map[string]any, keyword string) (value any) {
	for _, node := range nodes {
		switch v, ok := node[keyword]; {
		case ok && value == nil:
			value = v
		case ok && !equalJSON(v, value):
			return nil
		}
	}
	return value
}

var limitRules = map[string]string{
	"minLength":        "must have at least %s characters, white space around them not counted",
	"maxLength":        "must have at most %s characters",
	"minItems":         "must have at least %s entries",
	"maxItems":         "must have at most %s entries",
	"minProperties":    "must have at least %s fields",
	"maxProperties":    "must have at most %s fields",
	"minimum":          "must be at least %s",
	"maximum":          "must be at most %s",
	"exclusiveMinimum": "must be more than %s",
	"exclusiveMaximum": "must be less than %s",
	"multipleOf":       "must be a multiple of %s",
}

func (s *shape) typeRule(arguments any, at []string, types any) string {
	got := valueAt(arguments, at)
	want, integer := wanted(types)
	_, float := got.(float64)
	switch {
	case want == "":
		return "must not be " + kindOf(got)
	case integer && float:
		return "must be " + want + ": write it without a fraction or an exponent"
	case got == nil && !s.required(at):
		return "must be " + want + ", not null: leave the field out where there is no value"
	}
	return "must be " + want + ", not " + kindOf(got)
}

// choiceRule says which types there are to choose from, where none of them is that
// of the value.
func (s *shape) choiceRule(arguments any, at []string, keyword string, branches any) string {
	list, _ := branches.([]any)
	var types []any
	for _, branch := range list {
		node, _ := branch.(map[string]any)
		switch t := said(s.applied(nil, node), "type").(type) {
		case string:
			types = append(types, t)
		case []any:
			types = append(types, t...)
		default:
			types, list = nil, nil
		}
	}
	if len(types) > 0 && !slices.ContainsFunc(types, func(t any) bool { return hasType(valueAt(arguments, at), t) }) {
		return s.typeRule(arguments, at, types)
	}
	if keyword == "oneOf" {
		return "must fit one of the schema's alternatives, and no other"
	}
	return "must fit one of the schema's alternatives"
}

// hasType reports whether a value is of a type. An integer is not written 1.0.
func hasType(v, name any) bool {
	if _, float := v.(float64); float {
		return name == "number"
	}
	word, _ := name.(string)
	return typeWords[word] == kindOf(v) || kindOf(v) == aNumber && (word == "integer" || word == "number")
}

// required reports whether the field at a place may not be left out.
func (s *shape) required(at []string) bool {
	if len(at) == 0 {
		return true
	}
	return slices.ContainsFunc(s.at(at[:len(at)-1]), func(node map[string]any) bool {
		list, _ := node["required"].([]any)
		return slices.Contains(list, any(at[len(at)-1]))
	})
}

const aNumber = "a number"

var typeWords = map[string]string{"object": "an object", "array": "a list", "string": "a string",
	"integer": "an integer", "number": aNumber, "boolean": "true or false", "null": "null"}

func wanted(v any) (words string, integer bool) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var all []string
	for _, x := range list {
		name, _ := x.(string)
		integer = integer || name == "integer"
		if word := typeWords[name]; word != "" {
			all = append(all, word)
		}
	}
	return strings.Join(all, " or "), integer
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "true or false"
	case string:
		return "a string"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return aNumber
}

func valueAt(v any, at []string) any {
	for _, segment := range at {
		switch x := v.(type) {
		case map[string]any:
			v = x[segment]
		case []any:
			i, err := strconv.Atoi(segment)
			if err != nil || i < 0 || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// at are the subschemas of a place, as far as properties, items, $ref and allOf
// lead there. What they do not say is said by keyword alone.
func (s *shape) at(at []string) []map[string]any {
	nodes := s.applied(nil, s.root)
	for _, segment := range at {
		var next []map[string]any
		for _, node := range nodes {
			next = s.applied(next, step(node, segment))
		}
		nodes = next
	}
	return nodes
}

func step(node map[string]any, segment string) map[string]any {
	properties, _ := node["properties"].(map[string]any)
	if next, ok := properties[segment].(map[string]any); ok {
		return next
	}
	prefix, _ := node["prefixItems"].([]any)
	if i, err := strconv.Atoi(segment); err == nil && i >= 0 && i < len(prefix) {
		next, _ := prefix[i].(map[string]any)
		return next
	}
	for _, keyword := range [...]string{"items", "additionalProperties"} {
		if next, ok := node[keyword].(map[string]any); ok {
			return next
		}
	}
	return nil
}

// maxApplied bounds the schemas of one place: by $ref they could close to a ring.
const maxApplied = 32

// applied adds a schema to those of a place, and what applies with it.
func (s *shape) applied(nodes []map[string]any, node map[string]any) []map[string]any {
	if node == nil || len(nodes) == maxApplied {
		return nodes
	}
	nodes = append(nodes, node)
	if ref, ok := node["$ref"].(string); ok && strings.HasPrefix(ref, "#") {
		nodes = s.applied(nodes, s.referenced(ref))
	}
	all, _ := node["allOf"].([]any)
	for _, x := range all {
		next, _ := x.(map[string]any)
		nodes = s.applied(nodes, next)
	}
	return nodes
}

func (s *shape) referenced(ref string) map[string]any {
	var v any = s.root
	for _, token := range strings.Split(strings.TrimPrefix(ref[1:], "/"), "/") {
		if token != "" {
			v = valueAt(v, []string{strings.NewReplacer("~1", "/", "~0", "~").Replace(token)})
		}
	}
	node, _ := v.(map[string]any)
	return node
}
