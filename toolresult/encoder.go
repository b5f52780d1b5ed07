package toolresult

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
)

// encoder writes the canonical JSON of objects whose keys are known: the caller
// writes them in code point order, which the vectors hold. It exists so that a
// digest costs one buffer instead of a tree of maps.
type encoder struct {
	b     []byte
	comma bool
}

func (e *encoder) open() {
	if e.b == nil {
		e.b = make([]byte, 0, 1024)
	}
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

func (e *encoder) sum() string {
	s := sha256.Sum256(e.b)
	return hex.EncodeToString(s[:])
}
