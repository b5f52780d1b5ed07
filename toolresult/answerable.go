package toolresult

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
	"github.com/toolruntime/toolruntime-go/internal/schema"
)

// Refuse returns c as a call that is answered and never carried out, because of
// the problem p: its turn can be answered whole, and no other call of the turn
// suffers for it.
//
// Its arguments become a stand-in, a JSON string with the digest of what they
// were. So the call has digests of its own, the same bytes get the same answer,
// other bytes get others, and no tool can take it: the arguments of a tool are an
// object. That holds also where Fault is lost, for example through JSON.
func (c Call) Refuse(p Problem) Call {
	sum := sha256.Sum256(c.Arguments)
	c.Arguments = json.RawMessage(`"refused sha256:` + hex.EncodeToString(sum[:]) + `"`)
	c.Fault = &p
	return c
}

// BindAnswerable is [Bind] for whatever a model can send as arguments. Where
// there is nothing in them (no bytes, white space, null, a blank string) they are
// {}. Where no digest of them exists, the call is bound as one that is refused
// ([Call.Refuse]). It fails only for what is not the model's.
func BindAnswerable(p Principal, c Call, t Contract) (*Bound, error) {
	if err := checkTexts(p, c, t); err != nil {
		return nil, err
	}
	if c.Fault == nil && isNothing(c.Arguments) {
		c.Arguments = nil
	}
	tree, text, err := canonicalArguments(c.Arguments)
	if err != nil {
		c = c.Refuse(unreadable(err))
		if tree, text, err = canonicalArguments(c.Arguments); err != nil {
			return nil, err
		}
	}
	return bind(p, c, t, tree, text), nil
}

// isNothing reports whether arguments say that there are none.
func isNothing(arguments json.RawMessage) bool {
	const longest = 64 // a blank string of more is a mistake, and INVALID_ARGUMENTS
	text := bytes.TrimSpace(arguments)
	if len(text) == 0 || string(text) == "null" {
		return true
	}
	var s string
	return text[0] == '"' && len(text) <= longest && json.Unmarshal(text, &s) == nil && schema.IsBlank(s)
}

// unreadable says what is wrong with arguments that have no digest.
func unreadable(err error) Problem {
	var broken *canonjson.Error
	if !errors.As(err, &broken) {
		return Problem{"$", "more than 65536 bytes"}
	}
	rule, known := unreadableRules[broken.Kind]
	if !known {
		rule = "is not readable as JSON"
	}
	path := broken.Path
	if path == "" {
		path = "$"
	}
	return Problem{path, rule}
}

var unreadableRules = map[canonjson.Kind]string{
	canonjson.KindTooLarge:     "more than 65536 bytes",
	canonjson.KindInvalidUTF8:  "is not valid UTF-8",
	canonjson.KindNesting:      "nested deeper than 31 levels",
	canonjson.KindSyntax:       "is not whole JSON: cut off or malformed",
	canonjson.KindDuplicateKey: "stands there twice: send each field once",
	canonjson.KindNonFinite:    "is no finite number",
	canonjson.KindIntegerRange: "integer beyond 2^53, send it as a string",
	canonjson.KindSurrogate:    "has half of a surrogate pair",
	canonjson.KindSizeLimit:    "more than 1024 entries or 65536 characters",
}
