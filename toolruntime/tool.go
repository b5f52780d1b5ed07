package toolruntime

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/ledger"
	"github.com/toolruntime/toolruntime-go/internal/limits"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// The risks of a tool, for [Tool.Risk].
const (
	Write = toolresult.Write
	Read  = toolresult.Read
)

// An EffectKind says what running a write twice does, and with it what the
// runtime may do when an attempt is lost: when nobody knows whether it had its
// effect. The zero value is the careful one.
type EffectKind int

// The effect kinds.
const (
	// Once: running twice does harm and nobody can be asked. A lost attempt is
	// never run again; the operation waits for a person.
	Once EffectKind = iota
	// Queryable: the downstream can be asked by our key (Tool.Find). A lost
	// attempt is asked for, and run again only if nothing happened.
	Queryable
	// Idempotent: the downstream deduplicates by our key. A lost attempt is run
	// again with the same key.
	Idempotent
	// Transactional: the effect is rows in the ledger's own database. Effect,
	// receipts and state commit together, so a lost attempt has done nothing.
	Transactional
)

func (k EffectKind) String() string {
	switch k {
	case Once:
		return "once"
	case Queryable:
		return "queryable"
	case Idempotent:
		return "idempotent"
	case Transactional:
		return "transactional"
	}
	return fmt.Sprintf("EffectKind(%d)", int(k))
}

// An Effect is what a handler knows of the effect it is to have.
type Effect struct {
	// Identity is the digest of scope and request: the idempotency key to give
	// to the downstream. It is the same in every attempt.
	Identity string
	// StatusRef is the public name of the operation; "" for a read.
	StatusRef string
	// Principal is on whose behalf, with the roles as they are now.
	Principal toolresult.Principal
	// Tool and IdempotencyKey complete the scope.
	Tool           string
	IdempotencyKey string
	// Attempt counts from 1; it is 0 for a read.
	Attempt int64
}

// A Receipt is the downstream's evidence of an effect, or the answer of a read.
type Receipt[Out any] struct {
	ID        string // the downstream's receipt id; a write needs one
	RequestID string // the downstream's request id; a write needs one
	Data      Out
	// ResourceRevision is the downstream's version of the resource; "" is null.
	ResourceRevision string
	// ObservedAt is when the effect was observed, in whole seconds; zero means
	// the runtime's clock when the handler returns.
	ObservedAt time.Time
}

// A Tool describes a tool and how it is run. In and Out are structs whose
// schemas are inferred from their fields and tags:
//
//	type RefundArgs struct {
//		OrderRef string `json:"order_ref" schema:"minLength=1,maxLength=64"`
//		Reason   string `json:"reason" schema:"enum=duplicate|damaged|other"`
//	}
//
// or any type that decodes the given InputSchema and OutputSchema, for example
// [json.RawMessage]. A field without omitempty is required and no others are
// allowed. A tool is refused when no call or no result could fit its schemas,
// and when they have words that would be ignored: docs/schemas.md has the rules.
type Tool[In, Out any] struct {
	Name        string
	Description string // for the model
	Risk        toolresult.Risk
	Effect      EffectKind
	// Revisions of the contract. An operation keeps those under which it was
	// accepted and is never run under others, so change one with what it stands
	// for. An empty one becomes the tool's name and the part with "-v1"; those
	// of the schemas get the schema's digest instead of a number. That is up to 20 code
	// points more than the name, and a revision has at most 255.
	Revisions toolresult.Revisions
	Source    string // the source_label of results; "" means the name

	InputSchema  json.RawMessage   // JSON Schema 2020-12; nil means inferred from In
	OutputSchema json.RawMessage   // JSON Schema 2020-12; nil means inferred from Out
	Equal        map[string]string // output field -> the argument that it must equal

	// KeyMemory is for how long the downstream of an idempotent or a queryable tool
	// remembers our key, counted from the first attempt that may have reached it. 0
	// means [DefaultKeyMemory] for an idempotent tool, and [Forever] for a queryable
	// one. Where a repetition could end after that it is not made, and what Find does
	// not find is not taken for "not done": the operation goes in review, and a
	// person's try_again is refused. It must be longer than Timeout.
	KeyMemory time.Duration

	// Versions are other contracts of this tool under which the ledger has
	// operations, or another process accepts them: each the tool as it was then, or
	// will be. What was accepted under them is answered under them, and carried out
	// by their own Run; by one that has neither Run nor RunTx it is only answered.
	// New operations are accepted under this contract alone. With versions a call
	// costs one read more. See docs/changing-a-tool.md.
	Versions []Registration

	MaxOutputBytes int // of the canonical form, at most 32,768, which 0 means
	MaxOutputDepth int // of the deepest value, the root being 0; at most 29, which 0 means
	// Timeout ends the context of a handler, of Find, and of each of the host's
	// callbacks for a call of this tool; 0 means 30 s. A lease that nobody renews ends
	// a handler's, too. A handler that goes on all the same is waited for, under its
	// lease: its effect may still come.
	Timeout       time.Duration
	MaxConcurrent int     // handlers at once in a worker; 0 means as many as the worker has
	MaxPerSecond  float64 // handlers started per second in a worker; 0 means no limit

	// Resource names what the arguments touch, for the Authorizer. It looks at
	// nothing else, so it is called once for a call. Required.
	Resource func(In) string
	// Rule is the business rule: it runs before an intent is accepted and again
	// before the effect. An error means that it could not be found out. Optional.
	Rule func(context.Context, toolresult.Principal, In) (bool, error)
	// Run has the effect. A receipt means that it happened. For a write every
	// error, a panic and an ended context mean that it may have happened.
	// Required, but in a version that is only answered for.
	Run func(context.Context, Effect, In) (Receipt[Out], error)
	// RunTx has the effect of a transactional tool, which has no Run: rows that are
	// written through tx, and kept only together with the receipt. An error means
	// that nothing was done, and it is run again. It runs inside the transaction, the
	// only code of the host that does. On SQLite nobody else can write meanwhile, so
	// it must be short. On PostgreSQL it may run several times within one attempt,
	// when the server asks for a repetition or the connection is lost: what it does
	// past tx happens as often. It names tables outside the ledger's schema with
	// theirs there, and leaves the session's settings alone.
	RunTx func(context.Context, Tx, Effect, In) (Receipt[Out], error)
	// Find asks the downstream about the effect without causing it: false means
	// that it has not happened and will not by itself, an error that the
	// downstream could not say. Required for Queryable, allowed for Idempotent.
	Find func(context.Context, Effect, In) (Receipt[Out], bool, error)
}

// A Registration is a [Tool] of whatever types.
type Registration interface {
	compile() (*tool, error)
}

// SpecOf returns the contract of a tool without a runtime: to offer the tool to
// a model, or to validate packages where the tool itself is not run.
func SpecOf(t Registration) (*toolresult.Spec, error) {
	c, err := current(t)
	if err != nil {
		return nil, err
	}
	return c.spec, nil
}

// tool is a Tool without its types.
type tool struct {
	spec        *toolresult.Spec
	config      toolresult.SpecConfig // of the spec
	version     string                // its name in lanes
	versions    []*tool               // itself, and the others that are registered with it
	runs        bool                  // has the effect, and is not only answered for
	description string
	effect      EffectKind
	timeout     time.Duration
	concurrent  int           // 0 is no limit
	perSecond   float64       // 0 is no limit
	keyMemory   time.Duration // 0 for what has no key
	decode      func(args string) (input, error)
	rule        func(ctx context.Context, p toolresult.Principal, in input) (bool, error)
	run         func(ctx context.Context, e Effect, in input) (observed, error)
	runTx       func(ctx context.Context, tx Tx, e Effect, in input) (observed, error) // of transactional
	find        func(ctx context.Context, e Effect, in input) (observed, bool, error)  // or nil
}

// An input is a call's arguments for the callbacks of its tool: canonical text
// that has passed the input schema, and what it decodes to.
type input struct {
	text string
	// value is an In that holds no memory which a callback could change under
	// another, or nil: then each callback gets a value decoded anew.
	value    any
	resource string
}

// observed is a receipt without its type. result is canonical unless malformed
// says why it has no canonical form; then it is whatever text there was.
type observed struct {
	receiptID, requestID, result, resourceRevision string
	at                                             time.Time
	malformed                                      error
}

const defaultTimeout = 30 * time.Second

func (t Tool[In, Out]) compile() (*tool, error) {
	if err := limits.Identifier("name", t.Name); err != nil {
		return nil, err
	}
	fail := func(rule string) (*tool, error) {
		return nil, &toolresult.InputError{Field: fmt.Sprintf("tool %q", t.Name), Rule: rule}
	}
	switch {
	case t.Resource == nil:
		return fail("needs Resource, which names what its arguments touch")
	case t.Effect == Transactional && (t.Run != nil || t.Risk == Read):
		return fail("is transactional: it is a write, and needs RunTx and no Run")
	case t.Effect != Transactional && t.RunTx != nil:
		return fail("needs Run, and RunTx only if it is transactional")
	case t.Risk == Write && t.Effect == Queryable && t.Find == nil && t.Run != nil:
		return fail("is queryable and needs Find")
	case t.Find != nil && (t.Effect == Once || t.Effect == Transactional):
		return fail("has Find: then its effect is queryable or idempotent")
	case t.Effect < Once || t.Effect > Transactional:
		return fail("has an unknown effect kind")
	case t.Risk != Write && t.Risk != Read:
		return fail("has an unknown risk")
	case t.KeyMemory != 0 && t.Effect != Idempotent && t.Effect != Queryable:
		return fail("has KeyMemory: then its effect is queryable or idempotent")
	case t.memory() != 0 && t.memory() <= or(t.Timeout, defaultTimeout):
		return fail("has a KeyMemory that is not longer than its Timeout: nothing could be repeated")
	}
	if err := cmp.Or(limits.Optional.Check("timeout", t.Timeout), limits.Most.Check("max concurrent", t.MaxConcurrent),
		limits.PerSecond.Check("max per second", t.MaxPerSecond)); err != nil {
		return nil, fmt.Errorf("toolruntime: tool %q: %w", t.Name, err)
	}
	input, err := schemaOf[In]("input_schema", t.InputSchema)
	if err != nil {
		return nil, fmt.Errorf("toolruntime: tool %q: %w", t.Name, err)
	}
	output, err := schemaOf[Out]("output_schema", t.OutputSchema)
	if err != nil {
		return nil, fmt.Errorf("toolruntime: tool %q: %w", t.Name, err)
	}
	if err := errors.Join(holds[In]("input_schema", t.InputSchema), holds[Out]("output_schema", t.OutputSchema)); err != nil {
		return nil, fmt.Errorf("toolruntime: tool %q: %w", t.Name, err)
	}
	c := &tool{description: t.Description, effect: t.Effect, timeout: or(t.Timeout, defaultTimeout),
		concurrent: t.MaxConcurrent, perSecond: t.MaxPerSecond, keyMemory: t.memory(), runs: t.Run != nil || t.RunTx != nil}
	c.versions = []*tool{c}
	versions, err := c.compileVersions(t.Versions)
	if err != nil {
		return nil, fmt.Errorf("toolruntime: versions of tool %q: %w", t.Name, err)
	}
	revisions := t.revisions(input, output)
	if err := t.nameFits(revisions); err != nil {
		return nil, fmt.Errorf("toolruntime: tool %.32q…: %w", t.Name, err)
	}
	c.config = toolresult.SpecConfig{
		Contract:       toolresult.Contract{Name: t.Name, Revisions: revisions},
		Risk:           t.Risk,
		Source:         or(t.Source, t.Name),
		InputSchema:    bytes.Clone(input),
		OutputSchema:   bytes.Clone(output),
		Equal:          maps.Clone(t.Equal),
		MaxOutputBytes: t.MaxOutputBytes,
		MaxOutputDepth: t.MaxOutputDepth,
		Versions:       versions,
	}
	if c.spec, err = toolresult.NewSpec(c.config); err != nil {
		return nil, fmt.Errorf("toolruntime: tool %q: %w", t.Name, err)
	}
	c.version = ledger.VersionOf(c.spec.Contract(), c.effect.String())
	t.erase(c)
	return c, c.checkVersions()
}

// erase gives c the callbacks without their types.
func (t Tool[In, Out]) erase(c *tool) {
	copies := flat(reflect.TypeFor[In]())
	c.decode = func(args string) (input, error) {
		in, err := decode[In](args)
		if err != nil {
			return input{}, err
		}
		x := input{text: args, resource: t.Resource(in)}
		if copies {
			x.value = in
		}
		return x, nil
	}
	c.rule = func(ctx context.Context, p toolresult.Principal, x input) (bool, error) {
		if t.Rule == nil {
			return true, nil
		}
		in, err := inputOf[In](x)
		if err != nil {
			return false, err
		}
		return t.Rule(ctx, p, in)
	}
	c.runTx = func(ctx context.Context, tx Tx, e Effect, x input) (observed, error) {
		in, err := inputOf[In](x)
		if err != nil {
			return observed{}, err
		}
		r, err := t.RunTx(ctx, tx, e, in)
		return erased(r), err
	}
	c.run = func(ctx context.Context, e Effect, x input) (observed, error) {
		in, err := inputOf[In](x)
		if err != nil {
			return observed{}, err
		}
		r, err := t.Run(ctx, e, in)
		return erased(r), err
	}
	if t.Find == nil {
		return
	}
	c.find = func(ctx context.Context, e Effect, x input) (observed, bool, error) {
		in, err := inputOf[In](x)
		if err != nil {
			return observed{}, false, err
		}
		r, found, err := t.Find(ctx, e, in)
		return erased(r), found, err
	}
}

// flat reports whether copies of a type's values share no memory.
func flat(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return flat(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !flat(t.Field(i).Type) {
				return false
			}
		}
		return true
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return false
	}
	return true
}

func inputOf[In any](x input) (In, error) {
	if in, ok := x.value.(In); ok {
		return in, nil
	}
	return decode[In](x.text)
}
