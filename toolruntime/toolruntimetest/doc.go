// Package toolruntimetest helps to test a service's own tools: what becomes of a
// call when the downstream's answer is lost, refused or late, and that nothing
// happens twice.
//
// Nothing in it stands in for the runtime. [Store] is the real ledger, in a file of
// the test's own, and the runtime over it is the one that runs in production. What
// is made up is what lies outside: the [Clock], the people ([Allow], [Persons],
// [Approve]), and a [Downstream] that counts its effects and misbehaves when told
// to. [CheckOnce] then holds the ledger against the audit and the downstream against
// the promise.
//
//	bank := &toolruntimetest.Downstream{}
//	bank.Next(toolruntimetest.AnswerLost)
//	… a call is dispatched, and a worker finishes it …
//	toolruntimetest.CheckOnce(t, rt, bank)
//
// # Waits
//
// Workers wait by the ledger's clock for what is due, and by timers in between. In a
// bubble of testing/synctest both pass at once, so a worker's backoff of minutes
// takes no time: leave Options.Now nil there. Without a bubble, a [Clock] as
// Options.Now moves leases, backoffs and expiries when the test says so; a worker
// looks at it at least as often as its Poll.
package toolruntimetest
