package scenario

import (
	"bytes"
	"errors"
	"testing"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
)

// FuzzRead holds for whatever bytes: no panic, no file that the strict reader
// refuses, one of a value and an error, and the same answer for the canonical
// form of a file as for the file.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"refund.case.json", "refunds.cases.json"} {
		f.Add(readFile(f, name))
	}
	f.Add(smallSet(f))
	f.Add([]byte(`{"schema_version":"tool-cases-v2","contract":{},"cases":[{"steps":[{"expected":[]}]}]}`))
	f.Add([]byte(`{"principal":{"roles":[null]},"proposal":null,"now":1e400}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		canonical, refused := canonjson.Canonicalize(data)
		c, errCase := ReadCase(data)
		s, errSet := ReadSet(data)
		for _, err := range []error{errCase, errSet} {
			if err != nil && !errors.Is(err, ErrFixture) {
				t.Fatalf("an error of another type: %v", err)
			}
			if err == nil && refused != nil {
				t.Fatalf("accepted what the strict reader refuses: %v", refused)
			}
		}
		if (c == nil) != (errCase != nil) || (s == nil) != (errSet != nil) {
			t.Fatal("neither or both of value and error")
		}
		if refused == nil && len(canonical) <= canonjson.MaxBytes && !bytes.Equal(canonical, data) {
			if _, err := ReadCase(canonical); (err == nil) != (errCase == nil) {
				t.Fatalf("the canonical form: %v, the file: %v", err, errCase)
			}
			if _, err := ReadSet(canonical); (err == nil) != (errSet == nil) {
				t.Fatalf("the canonical form: %v, the file: %v", err, errSet)
			}
		}
		if s != nil {
			if _, err := s.Run(t.Context()); err != nil && !errors.As(err, new(*CannotRunError)) {
				t.Fatalf("run: %v", err)
			}
		}
	})
}
