// Package payments is a small payment server, and the tool with which a service
// pays through it.
//
// The server is a downstream as they are found in the world: it runs in a
// process of its own, keeps what it did in a file of its own, takes an
// Idempotency-Key, and misbehaves on demand. It counts its effects, so that
// whoever uses it can prove that none happened twice.
//
//	POST /payments        {"account":"ACC-1","amount_cents":500,"currency":"EUR"}, and an Idempotency-Key
//	GET  /payments/{key}  the payment of a key
//	GET  /stats           how many effects each key had
//	GET  /switches        how the server misbehaves
//	POST /switches        the same, to be changed: a [Switches]
//
// POST answers 201 with the payment. The same key and payment again answers 200
// with the first answer and "Idempotent-Replayed: true", the key with another
// payment 422, and a key that is being worked on 409. GET answers 200, 404 with
// the problem type [ProblemNoSuchKey], or 409 while the payment is being worked
// on: its outcome is open then, so 404 would be a lie.
//
// Start it with
//
//	go run ./examples/payments/cmd/paymentserver -db payments.sqlite3
//
// # The tool
//
// [Tool] is what the author of a service writes: the arguments, the result, and
// an httpeffect.Client that makes the request, reads the receipt, and names what
// the server's answers prove: by the problem types 400, 429 and 503 of the server
// that nothing was paid, and by [ProblemNoSuchKey] that a key is not known. The
// same statuses without them prove nothing. It comes in each kind of effect, since one server can play each: for a tool of the kind
// once, switch its deduplication off.
package payments
