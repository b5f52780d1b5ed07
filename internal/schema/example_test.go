package schema_test

import (
	"fmt"

	"github.com/toolruntime/toolruntime-go/internal/schema"
)

type Refund struct {
	OrderRef string `json:"order_ref" schema:"minLength=1,maxLength=64,description=The order to refund"`
	Reason   string `json:"reason" schema:"enum=duplicate|damaged|other"`
}

func ExampleFor() {
	s, err := schema.For[Refund]()
	if err != nil {
		panic(err)
	}
	arguments := map[string]any{"order_ref": "   ", "reason": "bored", "amount": int64(10)}
	for _, v := range s.ValidateInput(arguments) {
		fmt.Println(v)
	}
	// Output:
	// $.amount: unknown field
	// $.order_ref: minLength
	// $.reason: enum
}

func ExampleCompile() {
	s, err := schema.Compile([]byte(`{
		"type": "object",
		"properties": {"lines": {"type": "array", "items": {"type": "integer"}}},
		"required": ["lines"]
	}`))
	if err != nil {
		panic(err)
	}
	fmt.Println(s.ValidateInput(map[string]any{"lines": []any{int64(1), 1.0, true}}))

	_, err = schema.Compile([]byte(`{"type": "object", "properties": {"a": {"$ref": "file:///etc/hostname"}}}`))
	fmt.Println(err)
	// Output:
	// [$.lines[1]: type $.lines[2]: type]
	// schema: #/properties/a/$ref: a $ref or $schema leads outside this document: nothing is loaded
}
