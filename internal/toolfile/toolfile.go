// Package toolfile has the format toolruntime-tools-v1: the contracts of a service's
// tools, and its provider profiles, as a file. A service writes it of what it has
// registered, and the command line reads it to look at the service's ledger.
package toolfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/toolruntime/toolruntime-go/toolresult"
)

// Version is the schema_version of a file.
const Version = "toolruntime-tools-v1"

// MaxBytes is how large a file may be: room for hundreds of tools whose schemas are as
// large as a schema may be.
const MaxBytes = 64 << 20

// A File is a toolruntime-tools-v1.
type File struct {
	SchemaVersion string    `json:"schema_version"`
	Profiles      []Profile `json:"profiles"`
	Tools         []Tool    `json:"tools"`
}

// A Profile is a provider profile beside those of the contract.
type Profile struct {
	Provider        string `json:"provider"`
	APIFamily       string `json:"api_family"`
	AdapterRevision string `json:"adapter_revision"`
}

// A Tool is the contract under which calls of a tool are accepted, and the others under
// which its ledger has operations.
type Tool struct {
	Contract
	Versions []Contract `json:"versions,omitempty"`
}

// A Contract is all that is known of a tool without its code. What is left out is what
// toolruntime.Tool takes it for.
type Contract struct {
	Name           string               `json:"name"`
	Risk           string               `json:"risk,omitzero"`   // write, which is the default, or read
	Effect         string               `json:"effect,omitzero"` // once, which is the default, queryable, idempotent or transactional
	Revisions      toolresult.Revisions `json:"revisions"`
	Source         string               `json:"source,omitzero"`
	InputSchema    json.RawMessage      `json:"input_schema"`
	OutputSchema   json.RawMessage      `json:"output_schema"`
	Equal          map[string]string    `json:"equal,omitempty"`
	MaxOutputBytes int                  `json:"max_output_bytes,omitzero"`
	MaxOutputDepth int                  `json:"max_output_depth,omitzero"`
	Timeout        Duration             `json:"timeout,omitzero"`
	KeyMemory      Duration             `json:"key_memory,omitzero"`
}

// A Duration is written as Go does, such as 1m30s; the longest one is "forever".
type Duration time.Duration

const forever = "forever"

// MarshalText implements [encoding.TextMarshaler].
func (d Duration) MarshalText() ([]byte, error) {
	if d == math.MaxInt64 {
		return []byte(forever), nil
	}
	return []byte(time.Duration(d).String()), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *Duration) UnmarshalText(text []byte) error {
	if string(text) == forever {
		*d = math.MaxInt64
		return nil
	}
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return errors.New("is no duration such as 30s, and not forever") // without the value
	}
	*d = Duration(v)
	return nil
}

// Parse reads a file. It holds the form alone: whether a tool can be used, its
// registration says. The error's text says what is wrong, and where, and repeats no
// value.
func Parse(data []byte) (*File, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("is larger than %d bytes", MaxBytes)
	}
	var f File
	err := jsonv2.Unmarshal(data, &f, jsonv2.RejectUnknownMembers(true))
	var syntax *jsontext.SyntacticError
	var where *jsonv2.SemanticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntax):
		return nil, fmt.Errorf("%s: is there twice", syntax.JSONPointer)
	case errors.As(err, &syntax):
		return nil, fmt.Errorf("is no JSON: at byte %d", syntax.ByteOffset)
	case errors.As(err, &where) && where.JSONPointer != "":
		return nil, fmt.Errorf("%s is not a member of a %s, or has another type there", where.JSONPointer, Version)
	case err != nil:
		return nil, fmt.Errorf("is not a %s", Version)
	case f.SchemaVersion != Version:
		return nil, fmt.Errorf("schema_version must be %s", Version)
	}
	for i := range f.Tools {
		if err := f.Tools[i].complete(); err != nil {
			return nil, err
		}
		for j := range f.Tools[i].Versions {
			if err := f.Tools[i].Versions[j].complete(); err != nil {
				return nil, err
			}
		}
	}
	return &f, nil
}

// complete checks that a contract has what it cannot do without. A schema may be as
// large as one may be without the white space that a file has.
func (c *Contract) complete() error {
	if c.Name == "" || len(c.InputSchema) == 0 || len(c.OutputSchema) == 0 {
		return errors.New("each of the tools needs name, input_schema and output_schema")
	}
	for _, s := range []*json.RawMessage{&c.InputSchema, &c.OutputSchema} {
		text := jsontext.Value(*s)
		if err := text.Compact(); err != nil {
			return fmt.Errorf("a schema of %q is no JSON", c.Name)
		}
		*s = json.RawMessage(text)
	}
	return nil
}

// Bytes is the text of a file, which [Parse] reads as it was.
func (f *File) Bytes() ([]byte, error) {
	out := *f
	out.SchemaVersion = Version
	text, err := jsonv2.Marshal(out, jsonv2.Deterministic(true), jsontext.Multiline(true), jsontext.WithIndent("  "))
	if err != nil {
		return nil, err
	}
	if text = append(text, '\n'); len(text) > MaxBytes {
		return nil, &toolresult.InputError{Field: "tools", Rule: fmt.Sprintf("must have contracts of %d bytes together", MaxBytes)}
	}
	return text, nil
}
