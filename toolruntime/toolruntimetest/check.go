package toolruntimetest

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// CheckOnce fails the test unless the ledger passes its audit, and no key has had
// more than one effect downstream. It is for the end of a test, and for wherever in it
// something could have gone wrong.
func CheckOnce(t testing.TB, rt *toolruntime.Runtime, all ...*Downstream) {
	t.Helper()
	r, err := rt.Audit(context.WithoutCancel(t.Context()), nil) // also in a Cleanup
	switch {
	case err != nil:
		t.Errorf("toolruntimetest: %v", err)
	case !r.Passed:
		t.Errorf("the audit does not pass: %q, %q, %q", r.SemanticErrors, r.IntegrityCheck, r.ForeignKeyViolations)
	}
	for i, d := range all {
		effects := d.Effects()
		for _, key := range slices.Sorted(maps.Keys(effects)) {
			if n := effects[key]; n > 1 {
				t.Errorf("downstream %d: the key %s has had %d effects", i+1, key, n)
			}
		}
	}
}
