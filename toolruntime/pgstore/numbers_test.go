package pgstore

import (
	"testing"
	"time"
)

// TestNumbers: what docs/postgres.md says of the limits that a server cannot be asked for.
func TestNumbers(t *testing.T) {
	o, err := (*Options)(nil).withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if o.MaxConns != 10 || o.RetryTimeout != 15*time.Second || connectTimeout != 10*time.Second || few != 8 || patience != 100*time.Millisecond {
		t.Errorf("a number of the page is another one: %+v", o)
	}
}
