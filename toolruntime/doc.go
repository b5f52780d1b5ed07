// Package toolruntime carries out the tool calls of a language model once,
// approved, and provably.
//
// A service describes its tools as [Tool] values, opens a [Store] (package
// sqlitestore or pgstore), and makes a [Runtime] of both. Then it calls:
//
//   - [Runtime.Dispatch] for a call that the model has proposed. A new write
//     needs an approval and an idempotency key; a repetition is answered from the
//     ledger and runs nothing.
//   - [Runtime.Submit] for one that workers shall carry out, [Runtime.Work] to be
//     such a worker, and [Runtime.Await] for the answer. [Runtime.Prepare] and
//     [Submission.SubmitTx] submit in a transaction of the host's, together with rows
//     of its own: [Store.Update], or package pgstore's SQLTx and PgxTx.
//   - [Runtime.Status] when an answer was OUTCOME_UNKNOWN or ACCEPTED. It never causes
//     an effect. [Runtime.QueryStatus] is the same for a model's own question.
//   - [Runtime.Process] to finish one operation that a dead process has left, as far as
//     the tool's [EffectKind] allows; a worker does so with all.
//   - [Runtime.Cancel] to take back what has not begun.
//   - [Runtime.Pause] to take a tool out of use for a while.
//   - [Runtime.Resolve] when a person has found out what nobody knew.
//
// [Runtime.List] finds operations by how they stand, and [Runtime.Completions] tells of
// each that has ended. [Runtime.Audit] recomputes everything that is stored. The command
// line does it, too, with the file that [Runtime.WriteContracts] writes. Package drill
// stops a call as if its process had died, to practise what comes after, and package
// toolruntimetest helps to test a service's own tools.
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
// None of these runs inside a transaction, and neither does a tool's code, but for
// RunTx of a [Transactional] tool, which is for that. (The one exception is an approver
// who is asked about in SubmitTx, where somebody else was faster.)
package toolruntime
