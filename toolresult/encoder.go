package toolresult

import (
	"sync"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
)

// encoder writes the canonical JSON of objects whose keys are known: the caller
// writes them in code point order, which the vectors hold. It exists so that a
// digest costs no tree of maps and no memory of its own: a call takes a dozen of
// them.
type encoder struct {
	b     []byte
	comma bool
}

var encoders = sync.Pool{New: func() any { return &encoder{b: make([]byte, 0, 2048)} }}

// maxPooled bounds what the pool keeps: arguments and results can be large.
const maxPooled = 16 << 10

// newEncoder is an encoder until sum or text ends it.
func newEncoder() *encoder {
	e := encoders.Get().(*encoder)
	e.b, e.comma = e.b[:0], false
	return e
}

func (e *encoder) free() {
	if cap(e.b) <= maxPooled {
		encoders.Put(e)
	}
}

func (e *encoder) open() {
	e.b = append(e.b, '{')
	e.comma = false
}

func (e *encoder) close() {
	e.b = append(e.b, '}')
	e.comma = true
}

func (e *encoder) key(k string) {
	if e.comma {
		e.b = append(e.b, ',')
	}
	e.comma = true
	e.b = append(e.b, '"')
	e.b = append(e.b, k...)
	e.b = append(e.b, '"', ':')
}

func (e *encoder) str(k, v string) {
	e.key(k)
	e.b = canonjson.AppendString(e.b, v)
}

// opt writes v, or null where v is empty.
func (e *encoder) opt(k, v string) {
	if v == "" {
		e.raw(k, "null")
		return
	}
	e.str(k, v)
}

func (e *encoder) ptr(k string, v *string) {
	if v == nil {
		e.raw(k, "null")
		return
	}
	e.str(k, *v)
}

func (e *encoder) boolean(k string, v bool) {
	if v {
		e.raw(k, "true")
	} else {
		e.raw(k, "false")
	}
}

// raw writes text that is canonical already.
func (e *encoder) raw(k, canonical string) {
	e.key(k)
	e.b = append(e.b, canonical...)
}

func (e *encoder) object(k string) {
	e.key(k)
	e.b = append(e.b, '{')
	e.comma = false
}

// sum returns the digest of what was written, and ends e.
func (e *encoder) sum() string {
	defer e.free()
	return canonjson.Sum(e.b)
}

// text returns what was written, and ends e.
func (e *encoder) text() string {
	defer e.free()
	return string(e.b)
}
