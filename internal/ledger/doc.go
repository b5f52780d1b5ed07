// Package ledger keeps operations: what was accepted, what has become of it, and the
// evidence for both. Each rule of that stands here once, for every database; what runs
// the transactions is an engine ([engine.Engine]).
//
// Whoever uses it sees verbs, and an [Operation] that says what it stands for and shows
// none of its rows. A verb is one transaction. It names what the caller has read, and
// decides again by the rows that are there; one whose commit is in doubt may be repeated
// with equal arguments.
//
// It knows no tool, asks no callback of the host and runs no effect, except in
// [Ledger.CommitWith] and [Ledger.Update], whose purpose is to share a transaction.
package ledger
