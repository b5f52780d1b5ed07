package schema

import (
	"maps"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// maxLevels is how deep arguments can be: they stand inside the request
	// that is hashed, and an empty container counts as a level.
	maxLevels = MaxDepth - 1
	// maxValue is the size of a whole request.
	maxValue = 65536
)

// A survey looks at every part of a schema that a value can have.
type survey struct {
	*least
	seen map[string]bool
	// names has the first place of each property that a value may have.
	names map[string]string
}

// usable refuses a schema that no value can pass, and parts of it that no value
// can have, though the schema does not say so by false or by an empty not.
func usable(root *jsonschema.Schema) (names map[string]string, err error) {
	v := survey{least: newLeast(true), seen: map[string]bool{}, names: map[string]string{}}
	top := rootSet(root)
	found := v.of(set{open: top}, maxLevels)
	switch {
	case found.none != nil:
		return nil, found.none
	case found.size > maxValue:
		return nil, errorAt("#", "no value is small enough: the least has more than 65536 bytes")
	}
	if e := v.look(nil, top); e != nil {
		return nil, e
	}
	return v.names, nil
}

// look surveys the schemas own, which apply to a value beside others.
func (v *survey) look(others, own []*jsonschema.Schema) *Error {
	key := v.key(set{others, own}, 0)
	if v.budget--; v.seen[key] || v.budget < 0 {
		return nil
	}
	v.seen[key] = true
	all := append(slices.Clip(others), own...)
	for _, s := range own {
		for _, look := range []func(*jsonschema.Schema, []*jsonschema.Schema) *Error{v.properties, v.items, v.branches} {
			if e := look(s, all); e != nil {
				return e
			}
		}
		v.note(s)
	}
	return nil
}

// inside surveys what a part of a value has to pass, unless it is forbidden.
func (v *survey) inside(list ...*jsonschema.Schema) *Error {
	if found := v.of(set{open: list}, maxLevels); found.none != nil {
		return found.none
	}
	return v.look(nil, list)
}

func (v *survey) properties(s *jsonschema.Schema, all []*jsonschema.Schema) *Error {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if isNever(s.Properties[name]) {
			continue
		}
		list := v.property(all, name)
		if slices.ContainsFunc(list, v.isForbidden) {
			return errorAt(fragment(s.Properties[name].Location), "is forbidden by another schema that applies here: use unevaluatedProperties there")
		}
		if e := v.inside(list...); e != nil {
			return e
		}
	}
	more := slices.SortedFunc(maps.Values(s.PatternProperties), byPlace)
	if additional, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		more = append(more, additional)
	}
	return v.each(append(more, s.UnevaluatedProperties))
}

func (v *survey) items(s *jsonschema.Schema, all []*jsonschema.Schema) *Error {
	for i, item := range s.PrefixItems {
		if !isNever(item) {
			if e := v.inside(itemsAt(all, i)...); e != nil {
				return e
			}
		}
	}
	return v.each([]*jsonschema.Schema{s.Items2020, s.Contains, s.UnevaluatedItems})
}

func (v *survey) each(list []*jsonschema.Schema) *Error {
	for _, s := range list {
		if s != nil && !isNever(s) {
			if e := v.inside(gather(nil, s)...); e != nil {
				return e
			}
		}
	}
	return nil
}

// branches surveys what may apply to the same value.
func (v *survey) branches(s *jsonschema.Schema, all []*jsonschema.Schema) *Error {
	for _, branch := range append(slices.Clip(s.AnyOf), s.OneOf...) {
		if isNever(branch) {
			continue
		}
		own := without(gather(nil, branch), all)
		if found := v.of(set{closed: all, open: own}, maxLevels); found.none != nil {
			return found.none
		}
		if e := v.look(all, own); e != nil {
			return e
		}
	}
	sometimes := []*jsonschema.Schema{s.Then, s.Else}
	sometimes = append(sometimes, slices.SortedFunc(maps.Values(s.DependentSchemas), byPlace)...)
	for _, sub := range sometimes {
		if sub != nil {
			if e := v.look(all, without(gather(nil, sub), all)); e != nil {
				return e
			}
		}
	}
	return nil
}

func byPlace(a, b *jsonschema.Schema) int {
	if a.Location < b.Location {
		return -1
	}
	if a.Location > b.Location {
		return 1
	}
	return 0
}

// note keeps the names that s demands or allows by name.
func (v *survey) note(s *jsonschema.Schema) {
	add := func(name, place string) {
		if _, known := v.names[name]; !known {
			v.names[name] = printable(place, maxWhere)
		}
	}
	where := fragment(s.Location)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if !isNever(s.Properties[name]) {
			add(name, where+"/properties/"+pointerEscaper.Replace(name))
		}
	}
	for _, name := range s.Required {
		add(name, where+"/required")
	}
	var keysOf func(x any, place string)
	keysOf = func(x any, place string) {
		switch x := x.(type) {
		case []any:
			for _, item := range x {
				keysOf(item, place)
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(x)) {
				add(name, place)
				keysOf(x[name], place)
			}
		}
	}
	if s.Enum != nil {
		for i, x := range s.Enum.Values {
			keysOf(x, where+"/enum/"+strconv.Itoa(i))
		}
	}
	if s.Const != nil {
		keysOf(*s.Const, where+"/const")
	}
}
