package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/internal/toolfile"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

type bookArgs struct {
	Room   string   `json:"room" schema:"minLength=1,maxLength=64"`
	Guests []string `json:"guests,omitempty" schema:"maxItems=4"`
}

type booking struct {
	Room string `json:"room" schema:"maxLength=64"`
}

// registered is what a service could have registered, in every kind and with every
// field that a contract has.
func registered() []toolruntime.Registration {
	type receipt = toolruntime.Receipt[booking]
	resource := func(a bookArgs) string { return a.Room }
	run := func(context.Context, toolruntime.Effect, bookArgs) (r receipt, err error) { return r, nil }
	find := func(context.Context, toolruntime.Effect, bookArgs) (r receipt, found bool, err error) {
		return r, false, nil
	}
	raw := toolruntime.Tool[json.RawMessage, json.RawMessage]{
		Name: "given", Effect: toolruntime.Idempotent, KeyMemory: 20 * time.Second, Timeout: 10 * time.Second,
		// More than a scenario file may have, and with white space of its own.
		InputSchema: json.RawMessage(`{ "type" : "object",
			"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"s": {"const": "` + strings.Repeat("x", 60_000) + `"}}}} }`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"enum":[1,1.0]}},"description":"` + strings.Repeat("é", 10_000) + `"}`),
		Resource:     func(json.RawMessage) string { return "" },
		Run: func(context.Context, toolruntime.Effect, json.RawMessage) (r toolruntime.Receipt[json.RawMessage], err error) {
			return r, nil
		},
	}
	first := toolruntime.Tool[bookArgs, booking]{Name: "once", Effect: toolruntime.Idempotent, Resource: resource,
		Revisions: toolresult.Revisions{Effect: "book-v0"}}
	return append(refunds.NewOrders().Tools(), raw,
		toolruntime.Tool[bookArgs, booking]{Name: "once", Resource: resource, Run: run, Source: "the desk",
			Revisions: toolresult.Revisions{Policy: "two people"}, Equal: map[string]string{"room": "room"},
			MaxOutputBytes: 300, MaxOutputDepth: 3, Versions: []toolruntime.Registration{first}},
		toolruntime.Tool[bookArgs, booking]{Name: "queryable", Effect: toolruntime.Queryable, Resource: resource, Run: run, Find: find},
		toolruntime.Tool[bookArgs, booking]{Name: "queryable for a week", Effect: toolruntime.Queryable, KeyMemory: 7 * 24 * time.Hour,
			Resource: resource, Run: run, Find: find},
		toolruntime.Tool[bookArgs, booking]{Name: "transactional", Effect: toolruntime.Transactional, Resource: resource,
			RunTx: func(context.Context, toolruntime.Tx, toolruntime.Effect, bookArgs) (r receipt, err error) {
				return r, nil
			}},
	)
}

// TestContractsHaveAll: all that a tool says of itself, and its versions, are written.
func TestContractsHaveAll(t *testing.T) {
	rt, err := toolruntime.New(&toolruntime.Store{}, nil, registered()...)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := rt.WriteContracts(&b); err != nil {
		t.Fatal(err)
	}
	file, err := toolfile.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(file.Tools, func(c toolfile.Tool) bool { return c.Name == "once" })
	spec, _ := rt.Spec("once")
	want := toolfile.Tool{Contract: toolfile.Contract{
		Name: "once", Risk: "write", Effect: "once", Revisions: spec.Contract().Revisions, Source: "the desk",
		InputSchema: spec.InputSchema(), OutputSchema: spec.OutputSchema(), Equal: map[string]string{"room": "room"},
		MaxOutputBytes: 300, MaxOutputDepth: 3, Timeout: toolfile.Duration(30 * time.Second),
	}}
	first := want.Contract
	first.Effect, first.Source, first.Equal, first.MaxOutputBytes, first.MaxOutputDepth = "idempotent", "once", nil, 0, 0
	first.Revisions.Effect, first.Revisions.Policy, first.KeyMemory = "book-v0", "once-policy-v1", toolfile.Duration(24*time.Hour)
	want.Versions = []toolfile.Contract{first}
	if diff := cmp.Diff(want, file.Tools[i]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if read := slices.IndexFunc(file.Tools, func(c toolfile.Tool) bool { return c.Risk == "read" }); read < 0 {
		t.Error("no tool is a read")
	}
}

// TestContractsToNowhere: the writer's error is the caller's.
func TestContractsToNowhere(t *testing.T) {
	rt, err := toolruntime.New(&toolruntime.Store{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := rt.WriteContracts(closedFile(t)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("%v", err)
	}
}

func closedFile(t *testing.T) *os.File {
	f, err := os.Create(filepath.Join(t.TempDir(), "contracts.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestContracts: what a service writes of its tools, this program reads as they are,
// and would write the same of it.
func TestContracts(t *testing.T) {
	write := func(profiles []toolresult.Profile, tools []toolruntime.Registration) string {
		t.Helper()
		rt, err := toolruntime.New(&toolruntime.Store{}, &toolruntime.Options{Profiles: profiles}, tools...)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := rt.WriteContracts(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for _, tt := range []struct {
		name     string
		profiles []toolresult.Profile
		tools    []toolruntime.Registration
	}{
		{"all", []toolresult.Profile{{Provider: "acme", APIFamily: "chat", AdapterRevision: "acme-chat-v1"}}, registered()},
		{"nothing", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := write(tt.profiles, tt.tools)
			path := filepath.Join(t.TempDir(), "contracts.json")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			set, err := readTools(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(text, write(set.profiles, set.tools)); diff != "" {
				t.Errorf("it is read as something else (-want +got):\n%s", diff)
			}
			read := map[string]*toolresult.Spec{}
			for _, r := range set.tools {
				s, err := toolruntime.SpecOf(r)
				if err != nil {
					t.Fatal(err)
				}
				read[s.Contract().Name] = s
			}
			if len(read) != len(tt.tools) {
				t.Errorf("%d tools were read of %d", len(read), len(tt.tools))
			}
			for _, r := range tt.tools {
				want, err := toolruntime.SpecOf(r)
				if err != nil {
					t.Fatal(err)
				}
				got := read[want.Contract().Name]
				if got == nil || got.Contract() != want.Contract() || got.Risk() != want.Risk() || got.Source() != want.Source() ||
					string(got.InputSchema()) != string(want.InputSchema()) || string(got.OutputSchema()) != string(want.OutputSchema()) {
					t.Errorf("%s was read as something else", want.Contract().Name)
				}
			}
		})
	}
}
