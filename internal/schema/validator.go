package schema

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The document has a name, against which relative references are resolved, but
// no place from which anything could be loaded.
const (
	documentURL = "tool:///schema"
	metaURL     = "https://json-schema.org/draft/2020-12/"
	vocabURL    = "urn:toolruntime:vocabulary"
)

// The limits of a schema beyond those of its text.
const (
	maxSubschemas   = 2000
	maxPattern      = 1024 // bytes of a pattern
	maxInstructions = 1000 // of a compiled pattern: .{1,255} has about 500
	maxCount        = 1<<31 - 1
)

// A validator is one compilation of a schema. The input and the output of a
// tool differ in what minLength means, also inside not and anyOf, so each has
// its own.
type validator struct {
	compiled *jsonschema.Schema
	closed   map[string]*jsonschema.Schema // see vocabulary
}

func newValidator(doc map[string]any, trimmed bool, patterns patternCache) (*validator, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(patterns.compile)
	rules := vocabulary{trimmed: trimmed, closed: map[string]*jsonschema.Schema{}}
	c.RegisterVocabulary(&jsonschema.Vocabulary{URL: vocabURL, Schema: annotations(), Compile: rules.compile})
	c.AssertVocabs()
	if err := c.AddResource(documentURL, doc); err != nil {
		return nil, compileError(doc, err)
	}
	compiled, err := c.Compile(documentURL)
	if err != nil {
		return nil, compileError(doc, err)
	}
	return &validator{compiled: compiled, closed: rules.closed}, nil
}

// noLoader is what keeps a $ref or $schema from reading a file or the network.
type noLoader struct{}

var errNotLoaded = errors.New("outside this document")

func (noLoader) Load(string) (any, error) { return nil, errNotLoaded }

// annotations is the part of the metaschema that the validator leaves out when
// it has a vocabulary of ours: that a title is a string, and the like.
var annotations = sync.OnceValue(func() *jsonschema.Schema {
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	ref := func(name string) any { return map[string]any{"$ref": metaURL + "meta/" + name} }
	doc := map[string]any{"allOf": []any{ref("meta-data"), ref("format-annotation"), ref("content")}}
	if err := c.AddResource(vocabURL, doc); err != nil {
		panic(err)
	}
	return c.MustCompile(vocabURL)
})

// countKeywords are kept in the range of an int, beyond which the validator
// would silently use other bits of the number.
var countKeywords = []string{
	"minLength", "maxLength", "minItems", "maxItems",
	"minProperties", "maxProperties", "minContains", "maxContains",
}

// unsupported keywords choose the schema at run time, or change what keywords
// mean: nothing a tool needs, and much that cannot be bounded at compile time.
var unsupported = []string{"$dynamicRef", "$recursiveRef", "$vocabulary"}

// checkSubschema refuses what the metaschema allows. It runs for every
// subschema that is an object, wherever a $ref found it.
func checkSubschema(s *jsonschema.Schema, obj map[string]any) error {
	if !strings.HasPrefix(s.Location, documentURL+"#") {
		return errNotLoaded // the metaschemas, which are built in
	}
	where := fragment(s.Location)
	if s.DraftVersion != 2020 {
		return errorAt(where, "$schema is not JSON Schema 2020-12")
	}
	for _, keyword := range unsupported {
		if _, ok := obj[keyword]; ok {
			return errorAt(where, keyword+" is not supported")
		}
	}
	for _, keyword := range countKeywords {
		n, ok := obj[keyword].(json.Number)
		if !ok {
			continue
		}
		if f, err := n.Float64(); err != nil || f < 0 || f > maxCount {
			return errorAt(where+"/"+keyword, "count out of range")
		}
	}
	return nil
}
