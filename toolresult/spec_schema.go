package toolresult

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/toolruntime/toolruntime-go/internal/schema"
)

// compileSchema compiles the schema of a field of [SpecConfig].
func compileSchema(field string, text json.RawMessage) (*schema.Schema, error) {
	s, err := schema.Compile(text)
	if err != nil {
		return nil, schemaError(field, err)
	}
	return s, nil
}

func schemaError(field string, err error) error {
	var e *schema.Error
	switch {
	case !errors.As(err, &e):
		return &InputError{field, "cannot be used"}
	case e.Where == "":
		return &InputError{field, "is " + e.Problem}
	}
	return &InputError{field, e.Where + ": " + e.Problem}
}

// bindings checks that a result can have what is demanded of it whenever the
// arguments are right: afterwards it would be too late.
func bindings(equal map[string]string, input, output *schema.Schema) ([]binding, error) {
	var list []binding
	for _, field := range slices.Sorted(maps.Keys(equal)) {
		argument := equal[field]
		fail := func(format string, args ...any) ([]binding, error) {
			return nil, &InputError{"equal", fmt.Sprintf(format, args...)}
		}
		switch {
		case !slices.Contains(output.Fields(), field):
			return fail("names %q, which the output schema does not declare", field)
		case !slices.Contains(input.Fields(), argument):
			return fail("names %q, which the input schema does not declare", argument)
		case !output.CanEqual(field, input, argument):
			return fail("binds the output field %q to the argument %q, and no value fits the schemas of both", field, argument)
		case output.Needs(field) && !input.Needs(argument):
			return fail("binds the output field %q, which is required, to the argument %q, which is not", field, argument)
		}
		list = append(list, binding{field, argument})
	}
	return list, nil
}

// checkOutputSchema refuses a schema under which a result would be refused only
// when the effect has happened.
func (s *Spec) checkOutputSchema() error {
	if s.output.Open() {
		return &InputError{"output_schema", "#: allows fields that it does not name, and a result has exactly the declared fields"}
	}
	names := s.output.Names()
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if word, found := sensitiveName(name); found {
			return &InputError{"output_schema", names[name] + ": names a field that results must not carry: " + word}
		}
	}
	if size, err := s.output.LeastOutput(maxOutputDepth); err != nil {
		return schemaError("output_schema", err)
	} else if size > maxOutputBytes {
		return &InputError{"output_schema", fmt.Sprintf("#: demands %d bytes, and results have at most %d", size, maxOutputBytes)}
	}
	size, err := s.output.LeastOutput(s.depth)
	if err != nil {
		return &InputError{"max_output_depth", fmt.Sprintf("is %d, and every output that fits the schema is deeper", s.depth)}
	}
	if size > s.maxBytes {
		return &InputError{"max_output_bytes", fmt.Sprintf("is %d, and every output that fits the schema has at least %d bytes", s.maxBytes, size)}
	}
	return nil
}
