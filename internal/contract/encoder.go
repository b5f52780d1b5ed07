package contract

import (
	"sync"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
)

// An Encoder writes the canonical JSON of objects whose keys are known: the caller
// writes them in code point order, which the vectors hold. It exists so that a
// digest costs no tree of maps and no memory of its own: a call takes a dozen of
// them.
type Encoder struct {
	b     []byte
	comma bool
}

var encoders = sync.Pool{New: func() any { return &Encoder{b: make([]byte, 0, 2048)} }}

// maxPooled bounds what the pool keeps: arguments and results can be large.
const maxPooled = 16 << 10

// NewEncoder is an encoder until Sum or Text ends it.
func NewEncoder() *Encoder {
	e := encoders.Get().(*Encoder)
	e.b, e.comma = e.b[:0], false
	return e
}

func (e *Encoder) free() {
	if cap(e.b) <= maxPooled {
		encoders.Put(e)
	}
}

// Open begins an object.
func (e *Encoder) Open() {
	e.b = append(e.b, '{')
	e.comma = false
}

// Close ends an object.
func (e *Encoder) Close() {
	e.b = append(e.b, '}')
	e.comma = true
}

// Key writes a key, whose value follows.
func (e *Encoder) Key(k string) {
	if e.comma {
		e.b = append(e.b, ',')
	}
	e.comma = true
	e.b = append(e.b, '"')
	e.b = append(e.b, k...)
	e.b = append(e.b, '"', ':')
}

// Str writes a text.
func (e *Encoder) Str(k, v string) {
	e.Key(k)
	e.b = canonjson.AppendString(e.b, v)
}

// Opt writes v, or null where v is empty.
func (e *Encoder) Opt(k, v string) {
	if v == "" {
		e.Raw(k, "null")
		return
	}
	e.Str(k, v)
}

// Ptr writes a text, or null where there is none.
func (e *Encoder) Ptr(k string, v *string) {
	if v == nil {
		e.Raw(k, "null")
		return
	}
	e.Str(k, *v)
}

// Boolean writes true or false.
func (e *Encoder) Boolean(k string, v bool) {
	if v {
		e.Raw(k, "true")
	} else {
		e.Raw(k, "false")
	}
}

// Raw writes text that is canonical already.
func (e *Encoder) Raw(k, canonical string) {
	e.Key(k)
	e.b = append(e.b, canonical...)
}

// Append writes canonical text that belongs to the last key.
func (e *Encoder) Append(canonical []byte) { e.b = append(e.b, canonical...) }

// Object begins an object under a key.
func (e *Encoder) Object(k string) {
	e.Key(k)
	e.b = append(e.b, '{')
	e.comma = false
}

// Sum returns the digest of what was written, and ends e.
func (e *Encoder) Sum() string {
	defer e.free()
	return canonjson.Sum(e.b)
}

// Text returns what was written, and ends e.
func (e *Encoder) Text() string {
	defer e.free()
	return string(e.b)
}
