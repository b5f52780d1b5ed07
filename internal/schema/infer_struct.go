package schema

import (
	"reflect"
	"regexp"
	"strings"

	inferred "github.com/google/jsonschema-go/jsonschema"
)

func (i *inference) structure(t reflect.Type, where string) (*inferred.Schema, error) {
	s := &inferred.Schema{Properties: map[string]*inferred.Schema{}, AdditionalProperties: &inferred.Schema{Not: &inferred.Schema{}}}
	for _, f := range reflect.VisibleFields(t) {
		at := where + "." + f.Name
		tag, hasTag := f.Tag.Lookup("schema")
		if f.Anonymous {
			if err := checkEmbedded(f, at); err != nil {
				return nil, err
			}
			if hasTag {
				return nil, errorAt(at, "schema tag on an embedded field")
			}
			continue
		}
		name, optional, ok, err := propertyName(f, at)
		if err != nil {
			return nil, err
		}
		if !ok {
			if hasTag {
				return nil, errorAt(at, "schema tag on a field that is not in JSON")
			}
			continue
		}
		if s.Properties[name] != nil {
			return nil, errorAt(at, "two fields have the same JSON name")
		}
		c, err := parseTag(tag, at)
		if err != nil {
			return nil, err
		}
		description, err := describedBy(f, at)
		if err != nil {
			return nil, err
		}
		if s.Properties[name], err = i.schema(f.Type, c, description, at); err != nil {
			return nil, err
		}
		s.PropertyOrder = append(s.PropertyOrder, name)
		if !optional {
			s.Required = append(s.Required, name)
		}
	}
	return s, nil
}

var likeConstraint = regexp.MustCompile(`^[^ \t\n]*=`)

// describedBy reads the tag "jsonschema", which is a description.
func describedBy(f reflect.StructField, where string) (string, error) {
	tag, ok := f.Tag.Lookup("jsonschema")
	switch {
	case ok && tag == "":
		return "", errorAt(where, "empty jsonschema tag")
	case likeConstraint.MatchString(tag):
		return "", errorAt(where, "jsonschema tag is a description: constraints stand in the tag schema")
	}
	return tag, nil
}

// checkEmbedded leaves what the inference and encoding agree on: structs whose
// fields count as the outer struct's.
func checkEmbedded(f reflect.StructField, where string) error {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if _, named := f.Tag.Lookup("json"); named || t.Kind() != reflect.Struct || hasOwnForm(t) {
		return errorAt(where, "only plain structs without a json tag can be embedded")
	}
	return nil
}

func propertyName(f reflect.StructField, where string) (name string, optional, ok bool, err error) {
	tag := f.Tag.Get("json")
	if !f.IsExported() || tag == "-" {
		return "", false, false, nil
	}
	name, options, _ := strings.Cut(tag, ",")
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "":
		case "omitempty", "omitzero":
			optional = true
		default:
			return "", false, false, errorAt(where, "json option not supported")
		}
	}
	if strings.ContainsAny(name, `'"\`) {
		return "", false, false, errorAt(where, "json name has quotes")
	}
	if name == "" {
		name = f.Name
	}
	return name, optional, true, nil
}
