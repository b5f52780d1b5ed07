package schema

import (
	"math/big"
	"regexp/syntax"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// kinds is a set of kinds of values. Integers and floats are apart, as they are
// everywhere here.
type kinds uint8

const (
	kindNull kinds = 1 << iota
	kindBool
	kindInt
	kindFloat
	kindString
	kindArray
	kindObject

	anyKind = kindObject<<1 - 1
)

// kindOrder is that of the sizes of their least values.
var kindOrder = [...]kinds{kindInt, kindString, kindArray, kindObject, kindFloat, kindBool, kindNull}

var kindsByName = map[string]kinds{
	"null": kindNull, "boolean": kindBool, "integer": kindInt, "number": kindInt | kindFloat,
	"string": kindString, "array": kindArray, "object": kindObject,
}

func kindOf(v any) kinds {
	switch v.(type) {
	case bool:
		return kindBool
	case int64:
		return kindInt
	case float64:
		return kindFloat
	case string:
		return kindString
	case []any:
		return kindArray
	case map[string]any:
		return kindObject
	}
	return kindNull
}

// kindsOf returns the kinds that the types of s allow.
func kindsOf(s *jsonschema.Schema) kinds {
	allowed := anyKind
	if s.Types != nil && !s.Types.IsEmpty() {
		allowed = 0
		for _, name := range s.Types.ToStrings() {
			allowed |= kindsByName[name]
		}
	}
	if s.Not != nil && s.Not.Types != nil && onlyTypes(s.Not) {
		allowed &^= kindsOf(s.Not)
	}
	return allowed
}

// accepts reports whether s is true or says nothing.
func accepts(s *jsonschema.Schema) bool {
	if s.Bool != nil {
		return *s.Bool
	}
	return (s.Types == nil || s.Types.IsEmpty()) && onlyTypes(s)
}

// isNever reports whether s says in so many words that no value is allowed.
func isNever(s *jsonschema.Schema) bool {
	return s.Bool != nil && !*s.Bool || s.Not != nil && accepts(s.Not)
}

// onlyTypes reports whether s has no assertion but its types.
func onlyTypes(s *jsonschema.Schema) bool {
	inPlace := s.Ref == nil && s.RecursiveRef == nil && s.DynamicRef == nil && s.Not == nil && s.If == nil &&
		len(s.AllOf)+len(s.AnyOf)+len(s.OneOf) == 0 && s.Enum == nil && s.Const == nil && s.Bool == nil
	object := s.MaxProperties == nil && s.MinProperties == nil && len(s.Required) == 0 && s.PropertyNames == nil &&
		len(s.Properties) == 0 && len(s.PatternProperties) == 0 && s.AdditionalProperties == nil &&
		len(s.Dependencies)+len(s.DependentRequired)+len(s.DependentSchemas) == 0 && s.UnevaluatedProperties == nil
	array := s.MinItems == nil && s.MaxItems == nil && !s.UniqueItems && s.Contains == nil && s.Items == nil &&
		len(s.PrefixItems) == 0 && s.Items2020 == nil && s.UnevaluatedItems == nil
	scalar := s.MinLength == nil && s.MaxLength == nil && s.Pattern == nil && s.Maximum == nil && s.Minimum == nil &&
		s.ExclusiveMaximum == nil && s.ExclusiveMinimum == nil && s.MultipleOf == nil
	return inPlace && object && array && scalar
}

// variety returns how many values pass the list at most, or -1 for many.
func variety(list []*jsonschema.Schema) int {
	if values, from := candidates(list); from != nil {
		n := 0
		for _, v := range values {
			if admits(list, literal(v), from) {
				n++
			}
		}
		return n
	}
	left := anyKind
	for _, s := range list {
		left &= kindsOf(s)
	}
	switch left {
	case kindBool:
		return 2
	case kindNull:
		return 1
	case kindBool | kindNull:
		return 3
	}
	return -1
}

// levels returns the depth of the deepest value in v, whose own is 0. An empty
// container may count as a level.
func levels(v any, emptyCounts bool) int {
	most := 0
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			most = max(most, 1+levels(x, emptyCounts))
		}
	case map[string]any:
		for _, x := range v {
			most = max(most, 1+levels(x, emptyCounts))
		}
	default:
		return 0
	}
	if most == 0 && emptyCounts {
		return 1
	}
	return most
}

// leastSize returns a lower bound of the canonical size of a value.
func leastSize(v any) int {
	switch v := v.(type) {
	case bool, nil:
		return 4
	case int64:
		return len(strconv.FormatInt(v, 10))
	case float64:
		return len("0.0")
	case string:
		return 2 + len(v)
	case []any:
		size := 1 + max(1, len(v))
		for _, x := range v {
			size += leastSize(x)
		}
		return size
	case map[string]any:
		size := 1 + max(1, len(v))
		for key, x := range v {
			size += len(key) + len(`"":`) + leastSize(x)
		}
		return size
	}
	return 0
}

func rational(v any) (*big.Rat, bool) {
	switch v := v.(type) {
	case int64:
		return new(big.Rat).SetInt64(v), true
	case float64:
		n, ok := new(big.Rat).SetString(strconv.FormatFloat(v, 'g', -1, 64))
		return n, ok
	}
	return nil, false
}

func patternLength(pattern string) int {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	return shortest(re)
}
