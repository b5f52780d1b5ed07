package toolresult

import (
	"errors"
	"strings"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
	"github.com/toolruntime/toolruntime-go/internal/schema"
)

// A Problem is one way in which a value breaks the contract. It names the place
// and the rule, never a value.
type Problem struct {
	Path string // for example "model_result.data.amount"
	Rule string
}

func (p Problem) String() string { return p.Path + ": " + p.Rule }

// malformed is where and how a text is outside the JSON domain, or not canonical.
func malformed(path string, err error) (place, rule string) {
	var e *canonjson.Error
	if errors.As(err, &e) {
		return path + strings.TrimPrefix(e.Path, "$"), (&canonjson.Error{Kind: e.Kind}).Error()
	}
	return path, err.Error()
}

type problems []Problem

func (ps *problems) add(path, rule string) { *ps = append(*ps, Problem{path, rule}) }

// violations turns the paths of a schema ("$.amount") into those of a package
// ("data.amount").
func violations(path string, vs []schema.Violation) []Problem {
	var ps problems
	for _, v := range vs {
		ps.add(path+v.Path[1:], "breaks the schema: "+v.Rule)
	}
	return ps
}
