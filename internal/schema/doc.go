// Package schema decides whether the arguments and the result of a tool have
// the shape that the tool declares.
//
// A schema is inferred from a Go struct, or given as JSON Schema 2020-12 text:
//
//	type Refund struct {
//		OrderRef string `json:"order_ref" schema:"minLength=1,maxLength=64"`
//		Reason   string `json:"reason" schema:"enum=duplicate|damaged|other"`
//	}
//	s, err := schema.For[Refund]()
//	s, err := schema.Compile(text)
//
//	for _, v := range s.ValidateInput(arguments) {
//		fmt.Println(v) // $.reason: enum
//	}
//
// Both roads end in the same validator, santhosh-tekuri/jsonschema. [For]
// documents the tags. A [Schema] is immutable and safe for concurrent use.
//
// # Values
//
// A value is a tree of nil, bool, int64, float64, string, []any and
// map[string]any, as the strict reader of this module makes it: 1 is an int64,
// 1.0 is a float64, and they are different values.
//
// # Where this is stricter than JSON Schema
//
//   - At the root exactly the declared properties are allowed, unless it has
//     additionalProperties or unevaluatedProperties. Declared means listed in
//     properties or patternProperties, of the root or of what applies to it by
//     $ref, allOf or a branch that holds.
//   - 1.0 is not an integer, and is not equal to 1 in enum and const. (Bounds
//     and uniqueItems compare numbers by value.)
//   - In input, minLength counts a string without the white space around it, as
//     [TrimSpace] removes it. This covers every string that the schema's
//     minLength applies to, at any depth, through $ref, allOf, not and the rest,
//     but not property names. maxLength, and all lengths in output, count raw code points.
//
// As the 2020-12 draft has it by default, format, contentEncoding,
// contentMediaType and contentSchema are annotations and not checked.
//
// # Accepted means usable
//
// Compile refuses words that would be ignored (unknown ones, and those that say
// nothing about the type beside them), and what no value can pass, at the place
// that says so. For the latter it looks for the least value that a schema
// accepts. What it cannot decide it takes for possible: it refuses nothing that
// some value passes, except an optional part that none can. A label of draft-06,
// draft-07 or 2019-09 is accepted where the words mean the same in 2020-12.
// docs/schemas.md is the whole list.
//
// # Hostile schemas
//
// Text may come from a remote party. Compile never loads anything: a $ref has
// to stay inside the document. It bounds size, nesting, numbers, patterns and
// the number of subschemas, refuses references that would loop on one value,
// and refuses $dynamicRef, $recursiveRef, $vocabulary and other drafts.
//
// Subschemas that share a $ref can still multiply the work, even exponentially
// in the depth of the value. So Compile works out how much one value at each
// depth may cost, and validation refuses a value whose cost could exceed a
// fixed budget ([RuleTooComplex]) instead of starting on it.
//
// # Speed
//
// Most values are valid and most schemas plain. For schemas that only use
// types, properties, items, enum, lengths, bounds and patterns there is a fast
// path, which allocates nothing. It answers "valid" or "don't know"; whatever
// it does not know, the validator decides, and tests hold the two together.
//
// # Errors
//
// An [Error] and a [Violation] may be logged. They name the rule and the place;
// they never carry a value, and keys in them are escaped and cut.
package schema
