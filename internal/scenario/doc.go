// Package scenario reads the two kinds of scenario files and runs case sets.
//
// A persistence case (persistent-tool-case-v1) is one write call in its
// surroundings, for the durable runtime: [ReadCase]. A case set (tool-cases-v2)
// is a table of calls and of the answers that they must get, for the contract
// alone: [ReadSet] and [Set.Run], which uses no database.
//
// Three things can go wrong, and they are told apart. A file that is not what
// it says it is gives a [*FixtureError] with every problem in it. A set that
// asks for something that has no answer gives a [*CannotRunError]. An answer
// that differs from the expected one is data, in the [Report].
package scenario
