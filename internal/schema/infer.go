package schema

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	inferred "github.com/google/jsonschema-go/jsonschema"
)

// For returns the schema of the struct type T.
//
// Property names and which of them are required come from the json tags: a
// field is required unless it is omitempty or omitzero. Additional properties
// are refused in every struct. A pointer may be null. Field types are strings,
// booleans, integers, floats, time.Time, structs, slices, arrays and pointers
// of these, maps with string keys, and any or json.RawMessage for what has no
// schema. Types with a JSON form of their own, and []byte, are refused.
//
// The tag "schema" adds constraints, as key=value separated by commas:
//
//	minLength, maxLength, pattern   strings
//	enum=a|b|c                      strings and integers
//	minimum, maximum                integers and floats
//	minItems, maxItems              slices
//	uniqueItems=true                slices and arrays
//	items.KEY                       KEY for the elements of a slice or array
//	description                     any field
//
// A comma ends a value only where a key and "=" follow at once. So patterns and
// descriptions can contain commas: "pattern=^[a-z]{1,3}$,description=A, or b".
// Write [,] in a pattern where that would be taken for a key. A struct tag is
// a Go string: a backslash of a pattern is written twice.
//
// A tag that cannot take effect is an error.
func For[T any]() (*Schema, error) { return Infer(reflect.TypeFor[T]()) }

// Infer is [For] for a type known at run time.
func Infer(t reflect.Type) (s *Schema, err error) {
	switch {
	case t == nil:
		return nil, errorAt("", "no type")
	case t == reflect.TypeFor[map[string]any](), t == rawMessage:
		return nil, errorAt(t.String(), "has no schema to infer: give its schema as text to Compile")
	case t.Kind() != reflect.Struct || hasOwnForm(t):
		return nil, errorAt(t.String(), "not a plain struct type")
	}
	structure, err := inferred.ForType(t, &inferred.ForOptions{
		TypeSchemas: map[reflect.Type]*inferred.Schema{rawMessage: {}},
	})
	if err != nil {
		return nil, errorAt(t.String(), printable(err.Error(), maxWhere))
	}
	if err := refine(t, structure, nil, t.Name()); err != nil {
		return nil, err
	}
	text, err := json.Marshal(structure)
	if err != nil {
		return nil, errorAt(t.String(), "cannot be written as JSON Schema")
	}
	return Compile(text)
}

var (
	rawMessage = reflect.TypeFor[json.RawMessage]()
	timeType   = reflect.TypeFor[time.Time]()
	ownForms   = []reflect.Type{
		reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](),
		reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
	}
)

// hasOwnForm reports whether values of t look in JSON as a method decides, of
// which their Go type says nothing.
func hasOwnForm(t reflect.Type) bool {
	return slices.ContainsFunc(ownForms, func(form reflect.Type) bool {
		return t.Implements(form) || t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(form)
	})
}

// refine walks a type and its inferred structure side by side, makes the
// structure match what encoding really does, and applies the constraints.
func refine(t reflect.Type, s *inferred.Schema, c constraints, where string) error {
	nullable := false
	for t.Kind() == reflect.Pointer {
		nullable, t = true, t.Elem()
	}
	c, err := c.describe(s, where)
	if err != nil {
		return err
	}
	switch {
	case t == timeType:
		s.Format = "date-time"
		return c.apply(s, "string", nullable, where)
	case t == rawMessage || t.Kind() == reflect.Interface:
		if nullable || t.NumMethod() > 0 && t != rawMessage {
			return errorAt(where, "type not supported")
		}
		return c.apply(s, "", false, where)
	case hasOwnForm(t):
		return errorAt(where, "type has a JSON form of its own: give the schema as text to Compile")
	}
	switch t.Kind() {
	case reflect.Struct:
		if err := refineStruct(t, s, where); err != nil {
			return err
		}
		return c.apply(s, "object", nullable, where)
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return errorAt(where, "bytes are a string in JSON: use string")
		}
		if err := refine(t.Elem(), s.Items, c.items(), where+"[]"); err != nil {
			return err
		}
		kind := "array"
		if t.Kind() == reflect.Array {
			kind = "fixed array"
		}
		return c.apply(s, kind, nullable, where)
	case reflect.Map:
		if t.Key().Kind() != reflect.String || hasOwnForm(t.Key()) {
			return errorAt(where, "map keys have to be strings")
		}
		if err := refine(t.Elem(), s.AdditionalProperties, nil, where+"[]"); err != nil {
			return err
		}
		return c.apply(s, "object", nullable, where)
	}
	return c.apply(s, scalarKind(t), nullable, where)
}

func scalarKind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Float32, reflect.Float64:
		return "number"
	}
	return "integer" // the others are refused by the inference
}

func refineStruct(t reflect.Type, s *inferred.Schema, where string) error {
	seen := map[string]bool{}
	for _, f := range reflect.VisibleFields(t) {
		at := where + "." + f.Name
		tag, hasTag := f.Tag.Lookup("schema")
		if f.Anonymous {
			if err := checkEmbedded(f, at); err != nil || !hasTag {
				if err != nil {
					return err
				}
				continue
			}
			return errorAt(at, "schema tag on an embedded field")
		}
		name, ok, err := propertyName(f, at)
		if err != nil {
			return err
		}
		if !ok {
			if hasTag {
				return errorAt(at, "schema tag on a field that is not in JSON")
			}
			continue
		}
		if seen[name] {
			return errorAt(at, "two fields have the same JSON name")
		}
		seen[name] = true
		c, err := parseTag(tag, at)
		if err != nil {
			return err
		}
		if err := refine(f.Type, s.Properties[name], c, at); err != nil {
			return err
		}
	}
	return nil
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

func propertyName(f reflect.StructField, where string) (name string, ok bool, err error) {
	tag := f.Tag.Get("json")
	if !f.IsExported() || tag == "-" {
		return "", false, nil
	}
	name, options, _ := strings.Cut(tag, ",")
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "", "omitempty", "omitzero":
		default:
			return "", false, errorAt(where, "json option not supported")
		}
	}
	if strings.ContainsAny(name, `'"\`) {
		return "", false, errorAt(where, "json name has quotes")
	}
	if name == "" {
		name = f.Name
	}
	return name, true, nil
}
