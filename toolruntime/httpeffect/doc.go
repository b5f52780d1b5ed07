// Package httpeffect has the effects of HTTP APIs that take an idempotency key,
// and says of every answer what it proves: that the effect happened, that it
// did not, or neither.
//
// A [Client] is given to a tool as its Run and, if the API can be asked by key,
// its Find:
//
//	pay := httpeffect.Client[PayArgs, Payment]{Request: newPayment, Lookup: getPayment, Receipt: receipt}
//	tool := toolruntime.Tool[PayArgs, Payment]{
//		Name: "create_payment", Effect: toolruntime.Queryable,
//		Run: pay.Run, Find: pay.Find,
//		...
//	}
//
// It sends the identity of the effect as the idempotency key, the same in every
// attempt. A tool of the kind Once has no Find, and its Client needs no Lookup.
//
// # What an answer proves
//
//	answer to Run                                what the runtime is told
//	200, 201, 203, 204 with a readable receipt   done
//	the same with a body that is cut, over the   unknown: *AnswerError
//	  limit or no strict JSON, or no receipt
//	202, 409                                     unknown, ask again: *InFlightError
//	422                                          nothing done, give up: *AnswerError, Conflict
//	400 401 403 404 405 410 411 413 414 415 431  nothing done, give up: *AnswerError, Refused
//	408 425 429, and 503 with Retry-After        nothing done, retry later: *AnswerError, NotDone
//	503 without Retry-After, other 5xx, any      unknown: *AnswerError
//	  redirect, every other status
//	no answer, and no connection was there yet   nothing done, retry later: *TransportError
//	no answer after that: reset, timeout, ...    unknown: *TransportError
//
// [Classify] is this table for the statuses; [Client].Classify replaces it for
// an API that uses them otherwise. "Unknown" is never wrong, only slower: the
// runtime then asks by Find, or repeats the request with the same key, or leaves
// the question to a person, by the kind of the effect.
//
// Every answer speaks for its own request. A refusal does not say what became of
// an earlier attempt that got no answer.
//
// An answer to Find is read more strictly, since "it has not happened" lets the
// effect happen again: 200 and 203 are the receipt, 404 is "it has not happened"
// (see [Client].Absent), and everything else is an error.
//
// # What this package does not do
//
// It never follows a redirect. A redirected POST may have had its effect, or be
// turned into a GET that looks like success; the API's address is configured
// wrongly then.
//
// It never sends a request twice. [http.Transport] does, unasked, when a
// connection that was used before breaks and the request has an Idempotency-Key
// header: the second request would have no attempt of its own in the ledger, and
// a second effect where the API does not honour the key. So the key's name is
// put into [http.Request.Header] in lower case, which HTTP does not tell apart
// and the transport does not recognise. A RoundTripper of yours that looks for
// the key finds it as Header["idempotency-key"].
//
// # Errors
//
// The errors of this package can be logged: none of them has a URL, a header or
// any of a body in it. What your own functions return is passed on as it is.
package httpeffect
