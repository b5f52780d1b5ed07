package conformance

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// ideographs is a text of n code points, of four bytes each, that nothing compresses.
func ideographs(n int) string {
	var b strings.Builder
	for range n {
		b.WriteRune(rune(0x20000 + rand.N(0x5000)))
	}
	return b.String()
}

// letters is the same, of one byte each.
func letters(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('!' + rand.N(94))
	}
	return string(b)
}

// TestTextsAtTheEdge: a call whose texts the database can hold has its effect and its
// receipt, however long the ids of that are; one whose texts it cannot hold is refused
// before anything is stored, with the field's name. SQLite holds whatever the contract
// allows.
func TestTextsAtTheEdge(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	const most = 2640 // bytes of one key of PostgreSQL
	type texts struct{ tenant, subject, tool, key, call, response string }
	short := func(change func(*texts)) texts {
		v := texts{"tenant", "subject", "tool", "key", "call", "response"}
		change(&v)
		return v
	}
	tests := []struct {
		name  string
		texts texts
		field string // that PostgreSQL refuses
	}{
		{"letters everywhere", texts{letters(255), letters(255), letters(255), letters(255), letters(255), letters(255)}, ""},
		{"the longest scope", short(func(v *texts) {
			v.tenant, v.tool, v.key = ideographs(200), ideographs(200), ideographs(255)
			v.subject = letters(most - 1600 - 1020)
		}), ""},
		{"a scope that is too long", short(func(v *texts) {
			v.tenant, v.tool, v.key = ideographs(200), ideographs(200), ideographs(255)
			v.subject = letters(most - 1600 - 1020 + 1)
		}), "principal.tenant_id, principal.subject_id, name and idempotency_key"},
		{"the longest owner of receipts", short(func(v *texts) { v.tenant, v.tool = ideographs(200), ideographs(204) }), ""},
		{"an owner of receipts that is too long", short(func(v *texts) { v.tenant, v.tool = ideographs(200), ideographs(204)+"x" }),
			"principal.tenant_id and name"},
		{"the longest call", short(func(v *texts) {
			v.tenant, v.call, v.response = ideographs(140), ideographs(255), ideographs(254)
			v.subject = letters(most - 4*649 - len("openairesponses"))
		}), ""},
		{"a call that is too long", short(func(v *texts) { v.subject, v.call, v.response = ideographs(255), ideographs(255), ideographs(255) }),
			"principal.tenant_id, principal.subject_id, provider, api_family, response_id and call_id"},
		{"a zero byte in a tenant", short(func(v *texts) { v.tenant = "a\x00b" }), "principal.tenant_id"},
		{"a zero byte in a key", short(func(v *texts) { v.key = "a\x00b" }), "idempotency_key"},
		{"a zero byte in a call", short(func(v *texts) { v.call = "\x00call" }), "call_id"},
	}
	forEachEngine(t, func(t *testing.T, e engine) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				runs := 0
				tool := noteTool(tt.texts.tool, toolruntime.Once, func(context.Context, toolruntime.Effect, noteArgs) (toolruntime.Receipt[note], error) {
					runs++
					return toolruntime.Receipt[note]{ID: letters(1024), RequestID: letters(1024), Data: note{"x"}}, nil
				})
				// Derived revisions hold the tool's name, and are no longer than other ids.
				tool.Revisions = toolresult.Revisions{InputSchema: "a", OutputSchema: "b", Effect: "c", Handler: "d", Producer: "e", Policy: "f"}
				tool.Source = "source"
				d := newDesk(t, e, withTools(tool), withAuthorizer(anybody))
				c := callOf(tt.texts.tool, tt.texts.key, `{"text":"x"}`)
				c.CallID, c.ResponseID, c.OperationID = tt.texts.call, tt.texts.response, "operation"
				p := toolresult.Principal{TenantID: tt.texts.tenant, SubjectID: tt.texts.subject}
				approval := toolresult.NewApproval(d.bind(p, c), "approval", refunds.ApproverID, time.Unix(d.time()+60, 0))
				pkg, err := d.Dispatch(context.Background(), p, c, &toolruntime.DispatchOptions{Approvals: []toolresult.Approval{approval}})
				if field := tt.field; field != "" && e.name == "postgres" {
					var refused *toolresult.InputError
					if !errors.As(err, &refused) || refused.Field != field || runs != 0 || d.counts() != (toolruntime.Counts{}) {
						t.Errorf("%v after %d runs: %+v", err, runs, d.counts())
					}
					return
				}
				if err != nil || pkg.Code() != toolresult.OK || runs != 1 {
					t.Fatalf("%v, %v after %d runs", pkg.Code(), err, runs)
				}
				if r := d.audit(); !r.Passed {
					t.Errorf("%q", r.SemanticErrors)
				}
			})
		}
	})
}

// TestTextsOfPeople: neither does PostgreSQL hold U+0000 in what workers and people
// are called and say. It is refused by its name, and not by the database.
func TestTextsOfPeople(t *testing.T) {
	const odd = "a\x00b"
	ctx := context.Background()
	forEachEngine(t, func(t *testing.T, e engine) {
		d := newDesk(t, e)
		c := refundCall("key")
		ref := d.submit(c)
		for name, got := range map[string]error{
			"tool":      d.Resume(ctx, odd, "dana", "x"),
			"actor":     d.Pause(ctx, "tool", odd, "reason"),
			"reason":    d.Pause(ctx, "tool", "actor", odd),
			"worker_id": second(hold(ctx, d.Runtime, ref, odd, toolruntime.DefaultLease)),
		} {
			var refused *toolresult.InputError
			if is := errors.As(got, &refused) && refused.Field == name; is != (e.name == "postgres") || !is && got != nil {
				t.Errorf("%s: %v", name, got)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }
