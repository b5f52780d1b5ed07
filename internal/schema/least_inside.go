package schema

import (
	"maps"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func (l *least) array(list []*jsonschema.Schema, depth int) answer {
	low, high, lowAt := 0, maxEntries, list[0]
	unique := false
	prefix := 0
	for _, s := range list {
		unique = unique || s.UniqueItems
		prefix = max(prefix, len(s.PrefixItems))
		if s.MinItems != nil && *s.MinItems > low {
			low, lowAt = *s.MinItems, s
		}
		if s.MaxItems != nil {
			high = min(high, *s.MaxItems)
		}
		if s.Contains != nil && (s.MinContains == nil || *s.MinContains > 0) {
			wanted := 1
			if s.MinContains != nil {
				wanted = *s.MinContains
			}
			if s.MaxContains != nil && *s.MaxContains < wanted {
				return none(s, "maxContains", "is below minContains")
			}
			if wanted > low {
				low, lowAt = wanted, s
			}
			if got := l.of(set{open: gather(nil, s.Contains)}, depth-1); got.none != nil {
				return got
			}
		}
	}
	switch {
	case low > maxEntries:
		return none(lowAt, "minItems", "demands more than the 1024 items that an array can have")
	case low > high:
		return none(lowAt, "minItems", "demands more items than are allowed")
	case low == 0:
		return l.empty(list, depth)
	case depth < 1:
		return l.endless(list)
	}
	size := 1 + low
	for i := range low {
		item := set{open: itemsAt(list, i)}
		got := l.of(item, depth-1)
		if got.none != nil {
			return got
		}
		if size += got.size; i < prefix {
			continue
		}
		if n := variety(item.open); unique && n >= 0 && low-prefix > n {
			return none(lowAt, "uniqueItems", "demands more different items than there are")
		}
		size += (low - i - 1) * got.size
		break
	}
	return answer{size: min(size, saturated)}
}

// itemsAt returns what the item at an index has to pass.
func itemsAt(list []*jsonschema.Schema, i int) []*jsonschema.Schema {
	var items []*jsonschema.Schema
	for _, s := range list {
		if i < len(s.PrefixItems) {
			items = gather(items, s.PrefixItems[i])
		} else {
			items = gather(items, s.Items2020)
		}
	}
	return items
}

func (l *least) empty(list []*jsonschema.Schema, depth int) answer {
	if l.input && depth < 1 {
		return l.endless(list)
	}
	return answer{size: 2}
}

func (l *least) endless(list []*jsonschema.Schema) answer {
	return none(list[0], "", "needs values inside values, deeper than values can be nested")
}

func (l *least) object(list []*jsonschema.Schema, depth int) answer {
	list, required, from := l.required(list)
	low, lowAt := 0, list[0]
	for _, s := range list {
		if s.MinProperties != nil && *s.MinProperties > low {
			low, lowAt = *s.MinProperties, s
		}
	}
	names := len(required)
	for _, s := range list {
		if s.MaxProperties != nil && *s.MaxProperties < max(low, names) {
			return none(s, "maxProperties", "allows fewer properties than are demanded")
		}
		if s.AdditionalProperties == false && len(s.PatternProperties) == 0 && len(s.Properties) < low {
			return none(lowAt, "minProperties", "demands more properties than are allowed")
		}
	}
	switch {
	case max(low, names) > maxEntries:
		return none(lowAt, "minProperties", "demands more than the 1024 properties that an object can have")
	case low == 0 && names == 0:
		return l.empty(list, depth)
	case depth < 1:
		return l.endless(list)
	}
	size := 1 + max(low, names) + max(low-names, 0)*len(`"":0`)
	for _, name := range required {
		if s := refusesName(list, name); s != nil {
			return none(s, "propertyNames", "forbids a name that is required")
		}
		inside := l.property(list, name)
		got := l.of(set{open: inside}, depth-1)
		if got.none != nil {
			if slices.ContainsFunc(inside, l.isForbidden) {
				return none(from[name].by, from[name].keyword, "requires "+printable(strconv.Quote(name), 80)+", which is not declared while others are forbidden")
			}
			return got
		}
		size += len(name) + len(`"":`) + got.size
	}
	return answer{size: min(size, saturated)}
}

// A demand is what says that a name is required.
type demand struct {
	by      *jsonschema.Schema
	keyword string
}

// required returns the names that an object must have, by order, and the list
// with what those names bring in.
func (l *least) required(list []*jsonschema.Schema) ([]*jsonschema.Schema, []string, map[string]demand) {
	from := map[string]demand{}
	list = slices.Clone(list)
	for before := -1; before != len(from)+len(list); {
		before = len(from) + len(list)
		for _, s := range list {
			require := func(names []string, keyword string) {
				for _, name := range names {
					if _, known := from[name]; !known {
						from[name] = demand{s, keyword}
					}
				}
			}
			require(s.Required, "required")
			for _, name := range slices.Sorted(maps.Keys(from)) {
				require(s.DependentRequired[name], "dependentRequired")
				list = gather(list, s.DependentSchemas[name])
				switch dep := s.Dependencies[name].(type) {
				case []string:
					require(dep, "dependencies")
				case *jsonschema.Schema:
					list = gather(list, dep)
				}
			}
		}
	}
	return list, slices.Sorted(maps.Keys(from)), from
}

// property returns what the property of a name has to pass.
func (l *least) property(list []*jsonschema.Schema, name string) []*jsonschema.Schema {
	var inside []*jsonschema.Schema
	for _, s := range list {
		own, matched := s.Properties[name]
		inside = gather(inside, own)
		for re, sub := range s.PatternProperties {
			if re.MatchString(name) {
				matched = true
				inside = gather(inside, sub)
			}
		}
		if additional, ok := s.AdditionalProperties.(*jsonschema.Schema); ok && !matched {
			inside = gather(inside, additional)
		}
		if s.AdditionalProperties == false && !matched {
			inside = gather(inside, l.forbidden(s))
		}
		if rest := s.UnevaluatedProperties; rest != nil && !l.declaredBy(s).has(name) {
			if isNever(rest) {
				rest = l.forbidden(s)
			}
			inside = gather(inside, rest)
		}
	}
	return inside
}

// forbidden returns what stands for the names that s does not declare.
func (l *least) forbidden(s *jsonschema.Schema) *jsonschema.Schema {
	if l.forbids[s] == nil {
		no := false
		l.forbids[s] = &jsonschema.Schema{Bool: &no, Location: s.Location}
	}
	return l.forbids[s]
}

func (l *least) isForbidden(s *jsonschema.Schema) bool {
	for _, forbidden := range l.forbids {
		if s == forbidden {
			return true
		}
	}
	return false
}

func refusesName(list []*jsonschema.Schema, name string) *jsonschema.Schema {
	for _, s := range list {
		if s.PropertyNames != nil && !admits(gather(nil, s.PropertyNames), name, nil) {
			return s
		}
	}
	return nil
}
