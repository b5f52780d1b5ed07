// Package toolresult is the Tool Result v2 contract: what a model may propose,
// what the trusted host adds to it, what an approval covers, and what a call
// returns. It is pure: no clock, no database, no I/O, so that any service can
// check a package that another one made.
//
// # The types, in the order of a call
//
// The model says a [Proposal] (a tool's name and its arguments, nothing else).
// The host adds an [ExecutionContext] and a [Principal]; together with the
// proposal they form a [Call]. [Bind] binds a call to a principal and a tool's
// [Contract] and computes the digests that everything else refers to:
//
//	b, err := toolresult.Bind(principal, call, spec.Contract())
//	b.RequestSHA256()              // the business intent, without key or provider ids
//	b.Fingerprint(purpose)         // the identity of this very call
//	b.ApprovalDigest("reviewer-1") // what a human accepted
//	b.StatusRef()                  // the public name of the operation
//
// A call ends in a [Package]: the [ModelResult] goes to the model, the
// [ProtectedAudit] never does. [Bound.Success] and [Bound.Failure] make
// packages; [Validate] recomputes everything in one and returns all problems.
//
// # Digests
//
// Every digest is the lower-case hexadecimal SHA-256 of the canonical JSON of
// an object with fixed keys. Canonical JSON here is not RFC 8785: keys are
// sorted by code point, and 1 and 1.0 are different values.
//
// # Errors
//
// A value that breaks a limit of trusted input is the host's bug and comes back
// as an [*InputError], which names the field and the rule and never the value.
// Arguments are the model's: [Bind] has an error for those without a digest, and
// [BindAnswerable] binds them so that the call can be answered.
// How a call ended is data: see [Catalogue] for the codes and for what a model
// may do after each.
package toolresult
