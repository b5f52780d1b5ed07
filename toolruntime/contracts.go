package toolruntime

import (
	"io"
	"maps"
	"slices"

	"github.com/toolruntime/toolruntime-go/internal/toolfile"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// WriteContracts writes the contracts of the registered tools, with their versions, and
// the provider profiles of Options.Profiles: the file that the command line takes as
// --tools, so that it can audit, resolve and restore this service's ledger as the
// service would. There is no code in it, and nothing of the ledger. Equal tools give
// equal bytes.
//
// Nothing is written unless all of it can be. The error is then an
// [toolresult.InputError], and otherwise the writer's.
func (rt *Runtime) WriteContracts(w io.Writer) error {
	f := toolfile.File{Profiles: []toolfile.Profile{}, Tools: []toolfile.Tool{}}
	for _, p := range rt.profiles[len(toolresult.DefaultProfiles()):] {
		f.Profiles = append(f.Profiles, toolfile.Profile(p))
	}
	for _, name := range slices.Sorted(maps.Keys(rt.tools)) {
		t := rt.tools[name]
		c := toolfile.Tool{Contract: t.contract()}
		for _, v := range t.versions[1:] {
			c.Versions = append(c.Versions, v.contract())
		}
		f.Tools = append(f.Tools, c)
	}
	text, err := f.Bytes()
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// contract is what there is of a tool beside its code.
func (t *tool) contract() toolfile.Contract {
	c := t.config
	return toolfile.Contract{
		Name: c.Contract.Name, Risk: c.Risk.String(), Effect: t.effect.String(), Revisions: c.Contract.Revisions,
		Source: c.Source, InputSchema: c.InputSchema, OutputSchema: c.OutputSchema, Equal: c.Equal,
		MaxOutputBytes: c.MaxOutputBytes, MaxOutputDepth: c.MaxOutputDepth,
		Timeout: toolfile.Duration(t.timeout), KeyMemory: toolfile.Duration(t.keyMemory),
	}
}
