package wire_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/toolresult"
)

func FuzzCalls(f *testing.F) {
	for _, p := range providers {
		f.Add([]byte(p.body(p.call("a", "tool", `{"x":1}`))))
		f.Add(read(f, p, p.fixture))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, p := range providers {
			checkCalls(t, p, body)
		}
	})
}

func FuzzStream(f *testing.F) {
	for _, p := range providers {
		f.Add(read(f, p, p.streamed))
	}
	f.Fuzz(func(t *testing.T, events []byte) {
		for _, p := range providers {
			body, err := p.stream(bytes.NewReader(events))
			if err != nil {
				continue
			}
			if !json.Valid(body) {
				t.Fatalf("%s: not JSON: %q", p.name, body)
			}
			checkCalls(t, p, body)
		}
	})
}

// checkCalls: every call of a response, whatever it is, can be answered.
func checkCalls(t *testing.T, p provider, body []byte) {
	calls, err := p.calls(body, host)
	if err != nil || len(calls) == 0 {
		return
	}
	expected := make([]toolresult.Expected, len(calls))
	results := make([]*toolresult.Package, len(calls))
	for i, c := range calls {
		b, err := toolresult.Bind(toolresult.Principal{TenantID: "t", SubjectID: "s"}, c, toolresult.UnregisteredContract(c.Name))
		if err != nil || c.Check() != nil {
			t.Fatalf("%s: a call that cannot be answered: %v, %v", p.name, err, c.Check())
		}
		expected[i].Bound = b
		results[i] = b.Failure(toolresult.UnknownTool, "", time.Unix(now, 0))
	}
	if next, err := p.next(body, expected, results); err != nil || !json.Valid(next) {
		t.Fatalf("%s: %s, %v", p.name, next, err)
	}
}
