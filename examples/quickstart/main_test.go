package main

import (
	"os"
	"testing"
)

// TestMain gives the program a folder of its own for its ledger.
func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "quickstart")
	if err != nil {
		panic(err)
	}
	os.Setenv("TMPDIR", folder)
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

func Example() {
	main()
	// Output:
	// the bank is asked, with the key 942f8d49...
	// OK fresh {"order_ref":"ORDER-7","refund_id":"R-1"}
	// OK local_replay {"order_ref":"ORDER-7","refund_id":"R-1"}
}
