package schema

import (
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// vocabulary adds our stricter rules to every subschema, as an extension of the
// validator. It takes part in each of its decisions, and so holds inside not,
// anyOf and if as well as at the top.
type vocabulary struct {
	trimmed    bool
	subschemas int
	closed     map[string]*jsonschema.Schema // those with unevaluatedProperties, by the place of that
}

func (c *vocabulary) compile(ctx *jsonschema.CompilerContext, obj map[string]any) (jsonschema.SchemaExt, error) {
	if c.subschemas++; c.subschemas > maxSubschemas {
		return nil, errorAt("", "too many subschemas")
	}
	self := ctx.Enqueue(nil) // already queued: this only looks it up
	if err := checkSubschema(self, obj); err != nil {
		return nil, err
	}
	if _, ok := obj["unevaluatedProperties"]; ok {
		c.closed[self.Location+unevaluatedProperties] = self
	}
	e := extension{integerOnly: integerOnly(obj["type"])}
	if c.trimmed && self.MinLength != nil && *self.MinLength > 0 {
		e.minLength = *self.MinLength
	}
	if enum, ok := obj["enum"].([]any); ok {
		e.enum, _ = literal(enum).([]any)
	}
	if value, ok := obj["const"]; ok {
		e.hasConst, e.value = true, literal(value)
	}
	if _, ok := obj["propertyNames"]; ok {
		e.names = ctx.Enqueue([]string{"propertyNames"})
	}
	if e.isZero() {
		return nil, nil
	}
	return &e, nil
}

func integerOnly(typ any) bool {
	switch t := typ.(type) {
	case string:
		return t == "integer"
	case []any:
		return slices.Contains(t, any("integer")) && !slices.Contains(t, any("number"))
	}
	return false
}

// An extension is what one subschema demands beyond JSON Schema.
type extension struct {
	integerOnly bool
	minLength   int // of the trimmed string; 0 = not checked here
	enum        []any
	hasConst    bool
	value       any // of const
	names       *jsonschema.Schema
}

func (e *extension) isZero() bool {
	return !e.integerOnly && e.minLength == 0 && e.enum == nil && !e.hasConst && e.names == nil
}

// Validate runs after the validator's own checks, which are weaker, and so can
// only add errors.
func (e *extension) Validate(ctx *jsonschema.ValidatorContext, v any) {
	switch v := v.(type) {
	case float64:
		if e.integerOnly {
			ctx.AddError(&kind.Type{Got: "number", Want: []string{"integer"}})
		}
	case string:
		if e.minLength > 0 && utf8.RuneCountInString(TrimSpace(v)) < e.minLength {
			ctx.AddError(&kind.MinLength{Want: e.minLength})
		}
	case map[string]any:
		if e.names != nil {
			e.checkNames(ctx, v)
		}
	}
	if e.enum != nil && !slices.ContainsFunc(e.enum, func(x any) bool { return equal(v, x) }) {
		ctx.AddError(&kind.Enum{})
	}
	if e.hasConst && !equal(v, e.value) {
		ctx.AddError(&kind.Const{})
	}
}

// checkNames repeats propertyNames, because the location in the validator's own
// error is not stable.
func (e *extension) checkNames(ctx *jsonschema.ValidatorContext, obj map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(obj)) {
		if e.names.Validate(name) != nil {
			ctx.AddError(&kind.PropertyNames{Property: name})
		}
	}
}

// equal is equality in which 1 and 1.0 differ.
func equal(a, b any) bool {
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	case nil, bool, string, int64, float64:
		return a == b
	}
	return false
}
