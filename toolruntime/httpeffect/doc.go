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
//	422                                          unknown, for a person: *AnswerError, Conflict
//	every other status, any redirect             unknown: *AnswerError
//	no answer, and no connection was there yet   nothing done, retry later: *TransportError
//	no answer after that: reset, timeout, ...    unknown: *TransportError
//
// [Classify] is this table for the statuses. None of them proves that nothing was
// done, since nobody knows who has said it: an edge, a proxy or a load balancer
// answers 503 with Retry-After, 408 or 403 while the API behind it is at work, or
// has been. Only what was never sent is proof by itself. What the API proves, its
// tool's author has to name, by [Client].Classify: with [Statuses]
//
//	Classify: httpeffect.Statuses{
//		http.StatusBadRequest:      httpeffect.Refused,
//		http.StatusTooManyRequests: httpeffect.NotDone,
//	}.Classify,
//
// or, where something in front of the API has these statuses too, by what only the
// API says:
//
//	Classify: func(a httpeffect.Answer) httpeffect.Meaning {
//		var problem struct{ Type string `json:"type"` }
//		if a.Status == http.StatusBadRequest && a.Decode(&problem) == nil && problem.Type == "https://api.example/invalid" {
//			return httpeffect.Refused
//		}
//		return httpeffect.Classify(a)
//	},
//
// "Unknown" is never wrong, only slower: the runtime then asks by Find, or repeats
// the request with the same key, after what Retry-After asks for, or leaves the
// question to a person, by the kind of the effect. A tool of the kind Once that
// names nothing sends every refusal to a person.
//
// Every answer speaks for its own request. A refusal does not say what became of
// an earlier attempt that got no answer: then it goes to a person, too.
//
// An answer to Find is read as strictly, since "it has not happened" lets the
// effect happen again: 200 and 203 are the receipt, 404 is "it has not happened"
// if [Client].Absent says so, and everything else is an error.
//
// # One attempt, one request
//
// It never follows a redirect. A redirected POST may have had its effect, or be
// turned into a GET that looks like success; the API's address is configured
// wrongly then. Nor does the key reach another host.
//
// It never sends a request twice. [http.Transport] does, unasked, over HTTP/2 when
// the server resets the stream or goes away, thousands of times in the worst case;
// and over HTTP/1 when a connection that was used before breaks and the request has
// an Idempotency-Key header, or is a GET. The second request would have no attempt
// of its own in the ledger, and a second effect where the API does not honour the
// key. So Run's request has no GetBody, and the key's name is put into
// [http.Request.Header] in lower case, which HTTP does not tell apart and the
// transport does not recognise. A RoundTripper of yours that looks for the key
// finds it as Header["idempotency-key"]. What the transport can still repeat, a
// POST without a body over HTTP/2, is ended before it leaves again ([ErrSentAgain]).
//
// The price is that a kept connection which the server closes just as it is used
// makes the attempt unknown: let [http.Transport].IdleConnTimeout be shorter than
// what the server keeps connections for.
//
// A RoundTripper that repeats requests by itself must not be given to a Client. One
// that does it over an http.Transport, in the context of the request, is seen: the
// attempt is unknown, and is ended before the second request, over HTTP/2 always
// and over HTTP/1 unless a kept connection is there at once. For the same reason a RoundTripper
// must not use the context for other requests once it has sent this one; a fresh
// token, for example, it gets before that.
//
// What Find sends causes nothing, and the transport may repeat it.
//
// # Errors
//
// The errors of this package can be logged: none of them has a URL, a header or
// any of a body in it. What your own functions return is passed on as it is, but
// for a [url.Error], of which only the kind is left.
package httpeffect
