package canonjson_test

import (
	"errors"
	"fmt"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
)

func Example() {
	v, err := canonjson.Parse([]byte(`{ "reason": "duplicate", "order_ref": "ORDER-7", "amount": 1e2 }`))
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := canonjson.Marshal(v)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(text))
	fmt.Println(canonjson.Sum(text))
	// Output:
	// {"amount":100.0,"order_ref":"ORDER-7","reason":"duplicate"}
	// 6494079018dc3ed30eb86eb153517bdb27a7f1bf3c436217b867acd00dc2642e
}

func ExampleError() {
	_, err := canonjson.Parse([]byte(`{"items":[{"amount":1,"amount":2}]}`))
	fmt.Println(err)
	fmt.Println(errors.Is(err, &canonjson.Error{Kind: canonjson.KindDuplicateKey}))
	// Output:
	// repeated object key at $.items[0].amount
	// true
}
