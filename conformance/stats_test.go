package conformance

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// TestStats: attempts of what is open, and leases that were lost, by tool and
// whoever lost them; and what this process has done itself.
func TestStats(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		var fails error
		tool := func(name string, kind toolruntime.EffectKind) toolruntime.Registration {
			return noteTool(name, kind, func(_ context.Context, e toolruntime.Effect, a noteArgs) (toolruntime.Receipt[note], error) {
				return noteReceipt(e, a.Text), fails
			})
		}
		d := newDesk(t, e, withAuthorizer(anybody), withTools(tool("memo", toolruntime.Idempotent), tool("note", toolruntime.Idempotent)))
		process := func(ref string, want toolruntime.Outcome) {
			t.Helper()
			if outcome, err := d.Process(context.Background(), ref, "worker", nil); err != nil || outcome != want {
				t.Fatalf("%s, %v, want %s", outcome, err, want)
			}
		}
		claim := func(ref string) {
			t.Helper()
			if c, err := hold(context.Background(), d.Runtime, ref, "dead", toolruntime.DefaultLease); err != nil || c == nil {
				t.Fatal(c, err)
			}
		}
		// One that ended after a lost attempt, one whose lease runs out, one that
		// was unknown twice and is leased until its next attempt, one that waits.
		ended, lost, unknown := d.submit(callOf("memo", "ended", `{"text":"x"}`)), d.submit(noteCall("lost")), d.submit(noteCall("unknown"))
		claim(ended)
		claim(lost)
		fails = errLost
		process(unknown, toolruntime.OutcomeUnknown)
		d.setTime(start + 600)
		process(unknown, toolruntime.OutcomeUnknown)
		fails = nil
		process(ended, toolruntime.Succeeded)
		d.submit(noteCall("waits"))
		d.setTime(start + 1200)

		wantStats(t, d, []toolruntime.ToolStats{
			{Tool: "memo", LeasesLost: 1},
			{Tool: "note", Pending: 1, OldestPending: utc(start + 600), Processing: 2, OldestRunning: utc(start), Attempts: 3, LeasesLost: 1},
		})
		claim(lost) // the lost attempt has its row now, and the lease is a new one
		wantStats(t, d, []toolruntime.ToolStats{
			{Tool: "memo", LeasesLost: 1},
			{Tool: "note", Pending: 1, OldestPending: utc(start + 600), Processing: 2, OldestRunning: utc(start), Attempts: 4, LeasesLost: 1},
		})
		want := []toolruntime.AttemptCount{{Tool: "memo", Outcome: toolruntime.Succeeded, Count: 1}, {Tool: "note", Outcome: toolruntime.OutcomeUnknown, Count: 2}}
		if diff := cmp.Diff(want, d.Metrics().Attempts); diff != "" {
			t.Errorf("metrics (-want +got):\n%s", diff)
		}
	})
}

func wantStats(t *testing.T, d *desk, want []toolruntime.ToolStats) {
	t.Helper()
	s, err := d.Stats(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, s.Tools); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
}

// TestStatsOldest: the oldest operation of a tool is told whosever it is, in whatever
// order the tenants are read.
func TestStatsOldest(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		tool := noteTool("note", toolruntime.Idempotent, func(_ context.Context, e toolruntime.Effect, a noteArgs) (toolruntime.Receipt[note], error) {
			return noteReceipt(e, a.Text), nil
		})
		d := newDesk(t, e, withAuthorizer(anybody), withTools(tool))
		for i, tenant := range []string{"tenant-b", "tenant-c", "tenant-a"} {
			d.setTime(start + []int64{60, 0, 120}[i])
			p, c := toolresult.Principal{TenantID: tenant, SubjectID: "user-1"}, noteCall(tenant)
			if pkg, err := d.Submit(context.Background(), p, c, d.approval(p, c, "valid")...); err != nil || pkg.Code() != toolresult.Accepted {
				t.Fatalf("%v, %v", pkg, err)
			}
		}
		wantStats(t, d, []toolruntime.ToolStats{{Tool: "note", Pending: 3, OldestPending: utc(start)}})
	})
}
