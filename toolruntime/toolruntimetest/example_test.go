package toolruntimetest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/toolruntime/toolruntime-go/toolruntime/toolruntimetest"
)

// The bank carries the first payment out and its answer is lost. The repetition gets
// that answer, and nothing is paid again.
func ExampleDo() {
	ctx, bank := context.Background(), &toolruntimetest.Downstream{}
	pay := func() (string, error) {
		return toolruntimetest.Do(ctx, bank, "key-1", func() string { return "payment 1" })
	}
	bank.Next(toolruntimetest.AnswerLost)
	_, err := pay()
	fmt.Println(err)
	fmt.Println(pay())
	fmt.Println(bank.Effects())
	// Output:
	// the connection was lost
	// payment 1 <nil>
	// map[key-1:1]
}

// Inside of an HTTP server, where a lost answer is a connection that breaks: for a tool
// whose Run and Find send requests, as those of package httpeffect do.
func ExampleDo_http() {
	bank := &toolruntimetest.Downstream{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := toolruntimetest.Do(r.Context(), bank, r.Header.Get("Idempotency-Key"), func() string {
			return `{"refund_id":"R-1"}`
		})
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, answer)
	}))
	defer server.Close()

	request, err := http.NewRequest(http.MethodPost, server.URL, nil)
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Idempotency-Key", "key-1")
	bank.Next(toolruntimetest.AnswerLost)
	_, err = server.Client().Do(request)
	fmt.Println("an answer:", err == nil, bank.Effects())
	// Output:
	// an answer: false map[key-1:1]
}

// A fault may have the very error that a tool's own client returns.
func ExampleFault() {
	errDeclined := errors.New("bank: the card was declined")
	bank := &toolruntimetest.Downstream{}
	bank.Next(toolruntimetest.Fault{Before: errDeclined})
	_, err := toolruntimetest.Do(context.Background(), bank, "key-1", func() string { return "payment 1" })
	fmt.Println(errors.Is(err, errDeclined), len(bank.Effects()))
	// Output:
	// true 0
}
