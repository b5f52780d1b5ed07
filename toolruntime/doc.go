// Package toolruntime carries out the tool calls of a language model once,
// approved, and provably.
//
// A service describes its tools as [Tool] values, opens a [Store] (package
// sqlitestore), and makes a [Runtime] of both. Then it has three things to call:
//
//   - [Runtime.Dispatch] for a call that the model has proposed. A new write
//     needs an approval and an idempotency key; a repetition is answered from the
//     ledger and runs nothing.
//   - [Runtime.QueryStatus] when an answer was OUTCOME_UNKNOWN. It never causes
//     an effect.
//   - [Runtime.Process] to finish what a dead process has left, as far as the
//     tool's [EffectKind] allows.
//
// [Runtime.Audit] recomputes everything that is stored.
//
// # How a call ends
//
// How a call ended is data: a toolresult.Package with a code, of which the model
// gets one half and the audit the other. A Go error is for what the package
// cannot say: the host misused the API ([ErrInvalidInput]), stored state breaks
// its contract ([ErrContract]), the database failed ([ErrDatabase]), or a
// callback of the host did. No error means that the effect did not happen.
//
// # What the host provides
//
// Who may use a tool on a resource ([Authorizer]), who may approve ([Approvers]),
// and, optionally, who a principal is now ([Resolver]). What is left out denies.
// None of these, and no tool's code, ever runs inside a transaction.
package toolruntime
