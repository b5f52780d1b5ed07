package scenario

import (
	"errors"
	"fmt"
	"strings"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
)

// ErrFixture matches every [*FixtureError].
var ErrFixture = errors.New("the scenario file breaks its contract")

// A FixtureError lists every problem of a scenario file, or the one for which
// the strict reader refused it. Each names the place and the rule and none a
// value, so that it may be shown and logged. Unknown fields are counted; only the
// strict reader's places name keys of the file, escaped and cut.
type FixtureError struct {
	Problems []string

	cause error // of the strict reader, if the file is no document at all
}

// shownProblems bounds the error's text; Problems has them all.
const shownProblems = 20

func (e *FixtureError) Error() string {
	shown, more := e.Problems, ""
	if n := len(shown) - shownProblems; n > 0 {
		shown, more = shown[:shownProblems], fmt.Sprintf("; and %d more", n)
	}
	return "scenario: " + strings.Join(shown, "; ") + more
}

// Is reports that every FixtureError is [ErrFixture].
func (e *FixtureError) Is(target error) bool { return target == ErrFixture }

// Unwrap returns the error of the strict JSON reader, or nil.
func (e *FixtureError) Unwrap() error { return e.cause }

// A reader walks a document and notes what is wrong with it. It goes on after a
// problem, so that whoever wrote the file sees all of them at once.
type reader struct{ problems []string }

func (r *reader) add(place, rule string) { r.problems = append(r.problems, place+": "+rule) }

func (r *reader) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	return &FixtureError{Problems: r.problems}
}

// readDocument reads a file by the strict rules and opens its root.
func readDocument(data []byte, version string, fields ...string) (*reader, object, error) {
	tree, err := canonjson.Parse(data)
	if err != nil {
		problem := "file: " + err.Error()
		if errors.Is(err, &canonjson.Error{Kind: canonjson.KindNesting}) {
			problem = fmt.Sprintf("file: nesting is deeper than %d levels", canonjson.MaxDepth)
		}
		return nil, object{}, &FixtureError{Problems: []string{problem}, cause: err}
	}
	r := &reader{}
	root := r.open("root", tree, fields...)
	root.text("schema_version", only(version))
	return r, root, nil
}

// open returns v as an object that must have exactly the given fields.
func (r *reader) open(place string, v any, fields ...string) object {
	m, ok := v.(map[string]any)
	if !ok {
		r.add(place, "must be an object")
		return object{r: r, place: place}
	}
	known := 0
	for _, f := range fields {
		if _, ok := m[f]; ok {
			known++
		} else {
			r.add(place+" fields", f+" is missing")
		}
	}
	if unknown := len(m) - known; unknown > 0 {
		r.add(place+" fields", fmt.Sprintf("%d are not in the contract", unknown))
	}
	return object{r, place, m}
}

// An object is an object of the document with its place. A field that is
// missing was noted when the object was opened; reading it is silent and gives
// the zero value.
type object struct {
	r      *reader
	place  string
	fields map[string]any
}

func (o object) at(key string) string {
	if o.place == "root" {
		return key
	}
	return o.place + "." + key
}

// child opens the field as an object with exactly the given fields.
func (o object) child(key string, fields ...string) object {
	v, ok := o.fields[key]
	if !ok {
		return object{r: o.r, place: o.at(key)}
	}
	return o.r.open(o.at(key), v, fields...)
}

// text returns a string that passes the rule; ok is false when it does not.
func (o object) text(key string, rule textRule) (s string, ok bool) {
	v, there := o.fields[key]
	if !there {
		return "", false
	}
	s, ok = v.(string)
	if !ok {
		o.r.add(o.at(key), "must be a string")
		return "", false
	}
	if broken := rule(s); broken != "" {
		o.r.add(o.at(key), broken)
		return s, false
	}
	return s, true
}

// textOrNull is text, where null is the empty string.
func (o object) textOrNull(key string, rule textRule) (s string, ok bool) {
	if v, there := o.fields[key]; there && v == nil {
		return "", true
	}
	return o.text(key, rule)
}

// integer returns an integer of at least 0 and at most limit. The strict reader
// tells integers from floats, and neither is a boolean.
func (o object) integer(key string, limit int64) int64 {
	v, there := o.fields[key]
	if !there {
		return 0
	}
	n, ok := v.(int64)
	switch {
	case !ok:
		o.r.add(o.at(key), "must be an integer")
	case n < 0 || n > limit:
		o.r.add(o.at(key), fmt.Sprintf("must be between 0 and %d", limit))
	}
	return n
}

// list returns the entries of an array.
func (o object) list(key string) ([]any, bool) {
	v, there := o.fields[key]
	if !there {
		return nil, false
	}
	list, ok := v.([]any)
	if !ok {
		o.r.add(o.at(key), "must be an array")
	}
	return list, ok
}

// canonical returns the canonical text of a field that must be an object, or
// null where that is allowed.
func (o object) canonical(key string, nullable bool) string {
	v, there := o.fields[key]
	if !there {
		return ""
	}
	if _, ok := v.(map[string]any); !ok && (v != nil || !nullable) {
		rule := "must be an object"
		if nullable {
			rule += " or null"
		}
		o.r.add(o.at(key), rule)
		return ""
	}
	text, err := canonjson.Marshal(v)
	if err != nil {
		o.r.add(o.at(key), err.Error())
	}
	return string(text)
}
