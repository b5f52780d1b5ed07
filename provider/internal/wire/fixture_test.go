package wire_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/provider/geminicontent"
	"github.com/toolruntime/toolruntime-go/provider/internal/wire"
	"github.com/toolruntime/toolruntime-go/provider/openaichat"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

var update = flag.Bool("update", false, "write the expected requests anew")

func read(t testing.TB, p provider, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", p.name, "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func runtimeOf(t *testing.T) *toolruntime.Runtime {
	t.Helper()
	store, err := sqlitestore.Open(context.Background(), filepath.Join(t.TempDir(), "ledger.sqlite3"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	orders := refunds.NewOrders()
	rt, err := toolruntime.New(store, &toolruntime.Options{
		Authorizer: orders.Authorize, Approvers: refunds.Approvers, Now: func() time.Time { return time.Unix(now, 0) },
		Profiles: []toolresult.Profile{openaichat.Profile, geminicontent.Profile},
	}, orders.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

var principal = toolresult.Principal{TenantID: "tenant-a", SubjectID: "user-1"}

// answer carries out the calls of a response and returns the next request.
func answer(t *testing.T, rt *toolruntime.Runtime, p provider, body []byte) (next []byte, codes []string) {
	t.Helper()
	calls, err := p.calls(body, host)
	if err != nil {
		t.Fatal(err)
	}
	expected := make([]toolresult.Expected, len(calls))
	results := make([]*toolresult.Package, len(calls))
	for i, c := range calls {
		if results[i], err = rt.Dispatch(context.Background(), principal, c, nil); err != nil {
			t.Fatal(err)
		}
		if expected[i].Bound, err = rt.Bind(principal, c); err != nil {
			t.Fatal(err)
		}
		expected[i].Spec, _ = rt.Spec(c.Name)
		codes = append(codes, fmt.Sprint(c.CallID, " ", c.Name, " ", results[i].Code()))
	}
	if next, err = p.next(body, expected, results); err != nil {
		t.Fatal(err)
	}
	return next, codes
}

// TestFixtures: the captured shape of a turn, and its stream, become the same calls,
// good ones beside bad ones, and the expected next request.
func TestFixtures(t *testing.T) {
	want := map[string][]string{
		"openai":        {"call_a1 get_order OK", "call_b2 create_refund_draft INVALID_ARGUMENTS", "call_c3 run_query UNKNOWN_TOOL"},
		"openaichat":    {"call_a1 get_order OK", "call_b2 create_refund_draft INVALID_ARGUMENTS", "call_c3 run_query UNKNOWN_TOOL"},
		"anthropic":     {"toolu_a1 get_order OK", "toolu_b2 create_refund_draft INVALID_ARGUMENTS"},
		"gemini":        {"un6k8t18 get_order OK", "ktr5aysg create_refund_draft INVALID_ARGUMENTS"},
		"geminicontent": {"toolruntime-call-0 get_order OK", "toolruntime-call-1 create_refund_draft INVALID_ARGUMENTS", "fc-3 get_order NOT_FOUND"},
	}
	forEach(t, func(t *testing.T, p provider) {
		rt := runtimeOf(t)
		next, codes := answer(t, rt, p, read(t, p, p.fixture))
		if diff := cmp.Diff(want[p.name], codes); diff != "" {
			t.Error(diff)
		}
		_, date, _ := strings.Cut(strings.TrimSuffix(p.fixture, ".json"), "-")
		golden := filepath.Join("../..", p.name, "testdata", "next-"+date+".json")
		if *update {
			if err := os.WriteFile(golden, pretty(t, next), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		expected, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(expected), string(pretty(t, next))); diff != "" {
			t.Errorf("the next request: %s", diff)
		}
		streamed, err := p.stream(bytes.NewReader(read(t, p, p.streamed)))
		if err != nil {
			t.Fatal(err)
		}
		again, codes := answer(t, rt, p, streamed)
		if diff := cmp.Diff(want[p.name], codes); diff != "" {
			t.Errorf("of the stream: %s", diff)
		}
		if diff := cmp.Diff(value(t, next), value(t, again)); diff != "" {
			t.Errorf("the next request of the stream: %s", diff)
		}
	})
}

func pretty(t *testing.T, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		t.Fatal(err)
	}
	return append(b.Bytes(), '\n')
}

func value(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestStreamCut: a stream that is cut, between events, between lines or within them,
// has no calls until it has said its end.
func TestStreamCut(t *testing.T) {
	last := map[string]string{ // what the event begins with that ends a turn
		"openai": `{"type": "response.completed"`, "openaichat": "[DONE]", "anthropic": `{"type": "message_stop"`,
		"gemini": `{"interaction": {"id": "v1_Chd", "object": "interaction", "status": "requires_action"`, "geminicontent": `{"candidates": [{"content": {"parts": [{"functionCall": {"id": "fc-3"`,
	}
	forEach(t, func(t *testing.T, p provider) {
		events := read(t, p, p.streamed)
		at := bytes.Index(events, []byte(last[p.name]))
		if at < 0 {
			t.Fatal("the fixture has no end")
		}
		end := at + bytes.Index(events[at:], []byte("\n\n")) + len("\n\n")
		for i := range len(events) {
			if i%11 != 0 && events[i] != '\n' && (i == 0 || events[i-1] != '\n') {
				continue
			}
			body, err := p.stream(bytes.NewReader(events[:i]))
			var refused *wire.ResponseError
			switch {
			case i >= end && err != nil:
				t.Fatalf("whole after %d bytes: %v", i, err)
			case i < end && (body != nil || !errors.As(err, &refused) || refused.Reason != wire.CutOff):
				t.Fatalf("cut after %d of %d bytes: %s, %v", i, end, body, err)
			}
		}
		for name, text := range map[string]string{
			"CR LF": strings.ReplaceAll(string(events), "\n", "\r\n"), "CR": strings.ReplaceAll(string(events), "\n", "\r"),
			"a byte-order mark": "\ufeff" + string(events), "comments": ": ping\n\n" + strings.ReplaceAll(string(events), "\n\n", "\n\n: ping\n\n"),
			"no space": strings.ReplaceAll(string(events), "data: ", "data:"),
		} {
			if _, err := p.stream(strings.NewReader(text)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		broken := errors.New("connection reset")
		if _, err := p.stream(io.MultiReader(bytes.NewReader(events[:end-1]), iotest.ErrReader(broken))); !errors.Is(err, broken) {
			t.Errorf("a reader that fails: %v", err)
		}
	})
}
