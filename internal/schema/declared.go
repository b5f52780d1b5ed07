package schema

import (
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// declarations are the properties that a schema names, itself or by what it
// applies to the same object.
type declarations struct {
	names    map[string]struct{}
	patterns []jsonschema.Regexp
	open     bool // says what the other properties have to be, or that they may be anything
}

func declaredBy(s *jsonschema.Schema) *declarations {
	d := &declarations{names: map[string]struct{}{}}
	d.add(s, map[*jsonschema.Schema]bool{})
	return d
}

func (l *least) declaredBy(s *jsonschema.Schema) *declarations {
	d, ok := l.declared[s]
	if !ok {
		d = declaredBy(s)
		l.declared[s] = d
		l.budget -= len(d.names)
	}
	return d
}

func (d *declarations) add(s *jsonschema.Schema, seen map[*jsonschema.Schema]bool) {
	if s == nil || seen[s] {
		return
	}
	seen[s] = true
	for name := range s.Properties {
		d.names[name] = struct{}{}
	}
	for re := range s.PatternProperties {
		d.patterns = append(d.patterns, re)
	}
	d.open = d.open || s.AdditionalProperties != nil && s.AdditionalProperties != false ||
		s.UnevaluatedProperties != nil && !isNever(s.UnevaluatedProperties)
	var x vertex
	x.addInPlace(s)
	for _, sub := range x.inPlace {
		if sub != s.Not {
			d.add(sub, seen)
		}
	}
}

func (d *declarations) has(name string) bool {
	if _, ok := d.names[name]; ok || d.open {
		return true
	}
	for _, re := range d.patterns {
		if re.MatchString(name) {
			return true
		}
	}
	return false
}
