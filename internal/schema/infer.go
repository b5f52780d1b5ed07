package schema

import (
	"encoding"
	"encoding/json"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
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
// schema. Types with a JSON form of their own, time.Duration, which has none,
// and []byte are refused. A type may contain itself: then its schema stands in
// $defs, or at the root.
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
	i := inference{root: t, refs: map[reflect.Type]string{}, defs: map[string]*inferred.Schema{}}
	i.findRefs(t, map[reflect.Type]bool{}, map[reflect.Type]bool{})
	structure, err := i.structure(t, t.Name())
	if err != nil {
		return nil, err
	}
	structure.Type = "object"
	if len(i.defs) > 0 {
		structure.Defs = i.defs
	}
	text, err := json.Marshal(structure)
	if err != nil {
		return nil, errorAt(t.String(), "cannot be written as JSON Schema")
	}
	return Compile(text)
}

var (
	rawMessage   = reflect.TypeFor[json.RawMessage]()
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
	ownForms     = []reflect.Type{
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

// An inference is the work on one type. refs has the types that contain
// themselves, and what leads to the schema of each.
type inference struct {
	root reflect.Type
	refs map[reflect.Type]string
	defs map[string]*inferred.Schema
}

// findRefs finds a type on every cycle: the one that is met again first.
func (i *inference) findRefs(t reflect.Type, open, done map[reflect.Type]bool) {
	switch {
	case open[t]:
		if _, known := i.refs[t]; !known {
			i.refs[t] = i.refTo(t)
		}
		return
	case done[t] || t == timeType || hasOwnForm(t):
		return
	}
	open[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		i.findRefs(t.Elem(), open, done)
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if f.IsExported() && !f.Anonymous && f.Tag.Get("json") != "-" {
				i.findRefs(f.Type, open, done)
			}
		}
	}
	delete(open, t)
	done[t] = true
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9_]+`)

func (i *inference) refTo(t reflect.Type) string {
	if t == i.root {
		return "#"
	}
	name := strings.Trim(notInNames.ReplaceAllString(t.Name(), "_"), "_")
	if name == "" {
		name = t.Kind().String()
	}
	taken := func(ref string) bool {
		for _, other := range i.refs {
			if other == ref {
				return true
			}
		}
		return false
	}
	ref := "#/$defs/" + name
	for n := 2; taken(ref); n++ {
		ref = "#/$defs/" + name + "_" + strconv.Itoa(n)
	}
	return ref
}

// schema returns the schema of what encoding really makes of a type, with the
// constraints of a tag.
func (i *inference) schema(t reflect.Type, c constraints, description, where string) (*inferred.Schema, error) {
	s := &inferred.Schema{Description: description}
	c, err := c.describe(s, where)
	if err != nil {
		return nil, err
	}
	nullable := false
	for t.Kind() == reflect.Pointer && i.refs[t] == "" {
		nullable, t = true, t.Elem()
	}
	if i.refs[t] != "" {
		return i.ref(s, t, c, nullable, where)
	}
	return i.value(s, t, c, nullable, where)
}

func (i *inference) ref(s *inferred.Schema, t reflect.Type, c constraints, nullable bool, where string) (*inferred.Schema, error) {
	if err := c.apply(s, "", false, where); err != nil {
		return nil, err
	}
	ref := i.refs[t]
	name, isDef := strings.CutPrefix(ref, "#/$defs/")
	if _, built := i.defs[name]; isDef && !built {
		i.defs[name] = nil // in work
		def, err := i.value(&inferred.Schema{}, t, nil, false, t.Name())
		if err != nil {
			return nil, err
		}
		i.defs[name] = def
	}
	if nullable {
		s.AnyOf = []*inferred.Schema{{Ref: ref}, {Type: "null"}}
	} else {
		s.Ref = ref
	}
	return s, nil
}

func (i *inference) value(s *inferred.Schema, t reflect.Type, c constraints, nullable bool, where string) (*inferred.Schema, error) {
	var err error
	kind := ""
	switch {
	case t == timeType:
		s.Format, kind = "date-time", "string"
	case t == rawMessage || t.Kind() == reflect.Interface:
		if nullable || t.NumMethod() > 0 && t != rawMessage {
			return nil, errorAt(where, "type not supported")
		}
	case hasOwnForm(t):
		return nil, errorAt(where, "type has a JSON form of its own: give the schema as text to Compile")
	case t == durationType:
		return nil, errorAt(where, "time.Duration has no JSON form: use a number of milliseconds or the like")
	default:
		if kind, err = i.plain(s, t, c, where); err != nil {
			return nil, err
		}
	}
	return s, c.apply(s, kind, nullable, where)
}

// plain fills in a type of no special meaning and returns its kind.
func (i *inference) plain(s *inferred.Schema, t reflect.Type, c constraints, where string) (kind string, err error) {
	switch t.Kind() {
	case reflect.Struct:
		structure, err := i.structure(t, where)
		if err != nil {
			return "", err
		}
		s.Properties, s.PropertyOrder, s.Required = structure.Properties, structure.PropertyOrder, structure.Required
		s.AdditionalProperties = structure.AdditionalProperties
		return "object", nil
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return "", errorAt(where, "bytes are a string in JSON: use string")
		}
		s.Items, err = i.schema(t.Elem(), c.items(), "", where+"[]")
		if t.Kind() == reflect.Slice {
			return "array", err
		}
		n, m := t.Len(), t.Len()
		s.MinItems, s.MaxItems = &n, &m
		return "fixed array", err
	case reflect.Map:
		if t.Key().Kind() != reflect.String || hasOwnForm(t.Key()) {
			return "", errorAt(where, "a map key of this type is not supported: map keys have to be strings")
		}
		s.AdditionalProperties, err = i.schema(t.Elem(), nil, "", where+"[]")
		return "object", err
	case reflect.String:
		return "string", nil
	case reflect.Bool:
		return "boolean", nil
	case reflect.Float32, reflect.Float64:
		return "number", nil
	}
	return "integer", integer(s, t, where)
}

// integer sets the bounds of the Go type. Those of 64 bits are beyond the
// integers of this JSON.
func integer(s *inferred.Schema, t reflect.Type, where string) error {
	bounds := func(low, high float64) { s.Minimum, s.Maximum = &low, &high }
	zero := 0.0
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		s.Minimum = &zero
	case reflect.Int8:
		bounds(math.MinInt8, math.MaxInt8)
	case reflect.Int16:
		bounds(math.MinInt16, math.MaxInt16)
	case reflect.Int32:
		bounds(math.MinInt32, math.MaxInt32)
	case reflect.Uint8:
		bounds(0, math.MaxUint8)
	case reflect.Uint16:
		bounds(0, math.MaxUint16)
	case reflect.Uint32:
		bounds(0, math.MaxUint32)
	default:
		return errorAt(where, "type "+t.Kind().String()+" is unsupported: it has no JSON form")
	}
	return nil
}
