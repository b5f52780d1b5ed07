// Package canonjson reads strict JSON and writes it in the one form that is
// hashed, stored and compared.
//
// Two readers that disagree on a document disagree on what was approved. So
// this package accepts less than JSON allows, and refuses with a typed error
// what other readers repair, guess at or silently drop:
//
//	v, err := canonjson.Parse(raw)      // strict: *Error says which rule, and where
//	text, err := canonjson.Marshal(v)   // canonical: equal values, equal bytes
//	digest := canonjson.Sum(text)       // lower-case hex SHA-256
//
// [Canonicalize] joins the first two steps and [Digest] the last two. Text read
// back from storage goes through [ParseCanonical], which also proves that it is
// still the text that was written.
//
// # Values
//
// Parse returns nil, bool, int64, float64, string, []any and map[string]any.
// Append and Marshal take these, the other Go integer types, and [Raw]. A
// number without fraction and exponent is an integer, any other is a float, and
// each stays what it is: 1 and 1.0 are different values with different digests.
//
// # What is refused
//
// Invalid UTF-8, more than [MaxBytes], containers nested over [MaxDepth],
// anything RFC 8259 does not allow (a byte-order mark included), a repeated
// object key, numbers that are not finite, integer literals beyond ±[MaxInt],
// lone surrogates, strings over [MaxString] code points, and containers over
// [MaxEntries] entries. Size, encoding and nesting are checked by linear scans
// before anything recursive runs, so hostile input costs no stack.
//
// Depth has two measures, which differ at one point. Parse counts containers. A
// Go value is measured from its root at depth 0, with keys one level below their
// object; so an empty container at depth 32 can be written but not read again.
//
// # Canonical form
//
// Object keys are sorted by code point, which is the order of their UTF-8 bytes;
// there is no white space; strings are raw UTF-8 in which only the quote, the
// backslash and U+0000 to U+001F are escaped. Floats have the shortest digits
// that read back to the same value, at least one decimal, and an exponent from
// 1e+16 upwards and below 0.0001. This is deliberately not RFC 8785, which
// has no integers.
//
// # Errors
//
// An [Error] may be logged: it names the rule and the place, never a value, and
// keys in it are escaped and cut to a bounded length.
package canonjson
