package schema

import (
	"encoding/json"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// uniqueItems compares each item with others: all of them where an attacker
// makes their hashes collide.
const uniqueItemsCost = 64

func vertexOf(s *jsonschema.Schema) *vertex {
	x := &vertex{own: cost{node: 1, text: 1}, child: cost{node: 1}, names: s.PropertyNames}
	x.addInPlace(s)
	x.addChildren(s)
	x.addOwn(s)
	return x
}

func (x *vertex) addInPlace(s *jsonschema.Schema) {
	join := func(list ...*jsonschema.Schema) { x.inPlace = appendNonNil(x.inPlace, list...) }
	join(s.Ref, s.Not, s.If, s.Then, s.Else)
	join(s.AllOf...)
	join(s.AnyOf...)
	join(s.OneOf...)
	for _, sub := range s.DependentSchemas {
		join(sub)
	}
	for _, dep := range s.Dependencies {
		if sub, ok := dep.(*jsonschema.Schema); ok {
			join(sub)
		}
	}
}

func (x *vertex) addChildren(s *jsonschema.Schema) {
	for _, sub := range s.Properties {
		x.either = appendNonNil(x.either, sub)
	}
	x.either = appendNonNil(x.either, s.PrefixItems...)
	join := func(list ...*jsonschema.Schema) { x.every = appendNonNil(x.every, list...) }
	join(s.Items2020, s.Contains, s.UnevaluatedItems, s.UnevaluatedProperties)
	if sub, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		join(sub)
	}
	for re, sub := range s.PatternProperties {
		join(sub)
		x.child.text += patternCost(re)
		x.child.node++
	}
	if s.UniqueItems {
		x.child.node += uniqueItemsCost
	}
}

func (x *vertex) addOwn(s *jsonschema.Schema) {
	if s.Pattern != nil {
		x.own.text += patternCost(s.Pattern)
	}
	if s.Enum != nil {
		x.own.node += sizeOf(s.Enum.Values)
	}
	if s.Const != nil {
		x.own.node += sizeOf(*s.Const)
	}
	if s.MultipleOf != nil {
		x.own.node += 8 // a division of fractions with hundreds of digits
	}
	x.own.node += uint64(len(s.Required) + len(s.DependentSchemas))
	for _, names := range s.DependentRequired {
		x.own.node += 1 + uint64(len(names))
	}
	for _, dep := range s.Dependencies {
		names, _ := dep.([]string)
		x.own.node += 1 + uint64(len(names))
	}
}

func patternCost(re jsonschema.Regexp) uint64 {
	n, err := instructions(re.String())
	if err != nil {
		return maxInstructions
	}
	return uint64(n)
}

// numberCost is for the comparison of two numbers, which are made fractions of
// up to hundreds of digits each time.
const numberCost = 4

func sizeOf(v any) uint64 {
	n := uint64(1)
	switch v := v.(type) {
	case json.Number:
		return numberCost
	case []any:
		for _, x := range v {
			n += sizeOf(x)
		}
	case map[string]any:
		for _, x := range v {
			n += sizeOf(x)
		}
	}
	return n
}

func appendNonNil(list []*jsonschema.Schema, more ...*jsonschema.Schema) []*jsonschema.Schema {
	for _, s := range more {
		if s != nil {
			list = append(list, s)
		}
	}
	return list
}
