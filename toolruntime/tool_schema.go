package toolruntime

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/schema"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

func (t Tool[In, Out]) revisions(input, output json.RawMessage) toolresult.Revisions {
	r := t.Revisions
	r.InputSchema = or(r.InputSchema, t.Name+"-input-"+canonjson.Sum(input)[:12])
	r.OutputSchema = or(r.OutputSchema, t.Name+"-output-"+canonjson.Sum(output)[:12])
	r.Effect = or(r.Effect, t.Name+"-effect-v1")
	r.Handler = or(r.Handler, t.Name+"-handler-v1")
	r.Producer = or(r.Producer, t.Name+"-producer-v1")
	r.Policy = or(r.Policy, t.Name+"-policy-v1")
	return r
}

// nameFits checks that the name leaves room for what is put behind it: r are the
// revisions, of which some are made of it.
func (t Tool[In, Out]) nameFits(r toolresult.Revisions) error {
	behind := 0
	var missing []string
	for _, x := range []struct{ field, given, made string }{
		{"InputSchema", t.Revisions.InputSchema, r.InputSchema}, {"OutputSchema", t.Revisions.OutputSchema, r.OutputSchema},
		{"Effect", t.Revisions.Effect, r.Effect}, {"Handler", t.Revisions.Handler, r.Handler},
		{"Producer", t.Revisions.Producer, r.Producer}, {"Policy", t.Revisions.Policy, r.Policy},
	} {
		if x.given == "" && contract.Identifier(x.made) != "" {
			behind = max(behind, len(x.made)-len(t.Name))
			missing = append(missing, x.field)
		}
	}
	if missing == nil {
		return nil
	}
	return &toolresult.InputError{Field: "name", Rule: fmt.Sprintf(
		"must have at most %d code points, not %d, where revisions are made of it: take a shorter one, or give Revisions.%s",
		contract.MaxIdentifier-behind, utf8.RuneCountInString(t.Name), strings.Join(missing, " and Revisions."))}
}

func schemaOf[T any](field string, given json.RawMessage) (json.RawMessage, error) {
	if given != nil {
		return given, nil
	}
	s, err := schema.Infer(reflect.TypeFor[T]())
	var e *schema.Error
	switch {
	case errors.As(err, &e):
		return nil, &toolresult.InputError{Field: field, Rule: e.Where + ": " + e.Problem}
	case err != nil:
		return nil, err
	}
	return s.JSON(), nil
}

// holds checks that T has a field for each that a given schema names at its
// root: arguments that are dropped were approved in vain, and a result without
// a required field would be refused after the effect. The text ends before the
// value, so that no method of T's fields runs.
func holds[T any](field string, given json.RawMessage) error {
	if given == nil {
		return nil
	}
	s, err := schema.Compile(given)
	if err != nil {
		return nil // NewSpec says so
	}
	for _, name := range s.Fields() {
		key, err := json.Marshal(name)
		if err != nil {
			continue
		}
		var v T
		err = jsonv2.Unmarshal(append(append([]byte("{"), key...), ':'), &v, jsonv2.RejectUnknownMembers(true))
		if errors.Is(err, jsonv2.ErrUnknownName) {
			return &toolresult.InputError{Field: field, Rule: fmt.Sprintf("#/properties: names %q, for which %v has no field", name, reflect.TypeFor[T]())}
		}
	}
	return nil
}

// decode reads arguments that have passed the schema. A member that In does not
// have is an error: it was approved, so it must not be dropped in silence.
func decode[In any](args string) (In, error) {
	var in In
	err := jsonv2.Unmarshal([]byte(args), &in, jsonv2.RejectUnknownMembers(true))
	if err != nil {
		return in, errArguments
	}
	return in, nil
}

// errArguments has no detail: a decoder's error can quote values.
var errArguments = errors.New("the arguments do not fit the tool's Go type")

func erased[Out any](r Receipt[Out]) observed {
	o := observed{receiptID: r.ID, requestID: r.RequestID, resourceRevision: r.ResourceRevision, at: r.ObservedAt}
	raw, err := jsonv2.Marshal(r.Data)
	if err != nil {
		o.malformed = errors.New("the result has no JSON form")
		return o
	}
	text, err := canonjson.Canonicalize(raw)
	if err != nil {
		o.malformed = err
		text = raw
	}
	o.result = string(text)
	return o
}

// given are a host's options, or their zero value.
func given[T any](opts *T) (o T) {
	if opts != nil {
		o = *opts
	}
	return o
}

func or[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}
