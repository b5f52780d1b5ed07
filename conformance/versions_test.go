package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
)

type secondArgs struct {
	Text   string `json:"text" schema:"minLength=1,maxLength=200"`
	Urgent bool   `json:"urgent"`
}

// letter is a tool that has had two versions: the second asks for one thing more.
// What a version answers says which it is. Running either twice does harm.
func letter(version string, versions ...toolruntime.Registration) toolruntime.Registration {
	if version == "v1" {
		t := noteTool("letter", toolruntime.Once, func(_ context.Context, e toolruntime.Effect, _ noteArgs) (toolruntime.Receipt[note], error) {
			return noteReceipt(e, "v1"), nil
		})
		t.Versions = versions
		return t
	}
	return toolruntime.Tool[secondArgs, note]{
		Name: "letter", Timeout: time.Minute, Versions: versions,
		Resource: func(secondArgs) string { return "ORDER-7" },
		Run: func(_ context.Context, e toolruntime.Effect, _ secondArgs) (toolruntime.Receipt[note], error) {
			return noteReceipt(e, "v2"), nil
		},
	}
}

// registered are the versions that a process has, by its name.
func registered(name string) toolruntime.Registration {
	if current, other, both := strings.Cut(name, "+"); both {
		return letter(current, letter(other))
	}
	return letter(name)
}

// carry is a worker of a version.
func (p *part) carry(ctx context.Context) error {
	rt, closeStore, err := p.open(nil, registered(p.Name))
	if err != nil {
		return err
	}
	err = rt.Work(ctx, &toolruntime.WorkOptions{WorkerID: p.Name, Poll: 10 * time.Millisecond})
	return errors.Join(err, closeStore())
}

func letterCall(version, key string) toolresult.Call {
	if version == "v1" {
		return callOf("letter", key, `{"text":"hello"}`)
	}
	return callOf("letter", key, `{"text":"hello","urgent":true}`)
}

// TestVersionsDeploy rolls a tool forward and back, with workers that are processes
// of one version, of the other, or of both. Nothing fails, every operation is run
// once and by its own version, and a call of the first is answered by the second.
func TestVersionsDeploy(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		t.Parallel()
		desks := map[string]*desk{"v1": newDesk(t, e, withAuthorizer(anybody), withTools(registered("v1")))}
		desks["v2"] = desks["v1"].another(withAuthorizer(anybody), withTools(registered("v2+v1")))
		first := desks["v1"]
		refs, calls := map[string]string{}, map[string]toolresult.Call{}
		submit := func(version, key string) {
			calls[key] = letterCall(version, key)
			refs[key] = desks[version].submit(calls[key])
		}
		ended := func(keys ...string) {
			for _, key := range keys {
				first.await(refs[key])
			}
		}
		workers := map[string]*process{}
		for _, name := range []string{"v1", "v2", "v2+v1"} {
			workers[name] = first.newProcess(t, service{Role: "version", Name: name, Frozen: first.time()})
		}
		workers["v1"].start(false)
		submit("v1", "v1-alone")
		ended("v1-alone")
		workers["v2"].start(false)
		for i := range 5 {
			submit("v1", fmt.Sprint("v1-beside-", i))
			submit("v2", fmt.Sprint("v2-beside-", i))
		}
		for i := range 5 {
			ended(fmt.Sprint("v1-beside-", i), fmt.Sprint("v2-beside-", i))
		}
		workers["v1"].stop()
		submit("v1", "v1-late")
		submit("v2", "v2-after")
		ended("v2-after")
		if got := first.endings(refs["v1-late"]); len(got) != 0 {
			t.Errorf("v2 has taken what v1 alone may: %q", got)
		}
		workers["v2"].stop()
		workers["v2+v1"].start(false)
		ended("v1-late")
		workers["v2+v1"].stop()
		submit("v2", "v2-before-the-way-back")
		workers["v1"].start(false)
		submit("v1", "v1-again")
		ended("v1-again")
		if got := first.endings(refs["v2-before-the-way-back"]); len(got) != 0 {
			t.Errorf("v1 has taken what v2 alone may: %q", got)
		}
		workers["v1"].stop()
		workers["v2"].start(false)
		ended("v2-before-the-way-back")
		workers["v2"].stop()

		for key, c := range calls {
			if diff := cmp.Diff([]string{"succeeded"}, first.endings(refs[key])); diff != "" {
				t.Errorf("attempts of %s (-want +got):\n%s", key, diff)
			}
			desks["v2"].replays(c, key[:2], refs[key])
		}
		if r := desks["v2"].audit(); !r.Passed || r.Unregistered.Count != 0 {
			t.Errorf("%+v", r)
		}
	})
}

// replays repeats a call, and asks for it under another name: both are answered
// from the ledger, by what the version has said, and hold against what the host
// knows of the tool and the call.
func (d *desk) replays(c toolresult.Call, version, ref string) {
	d.t.Helper()
	p := user("user-1")
	again := c
	again.CallID += "-again"
	for _, c := range []toolresult.Call{c, again} {
		d.answers(c, d.repeat(c), version, toolresult.LocalReplay)
	}
	query := c.StatusQuery(ref)
	pkg, err := d.QueryStatus(context.Background(), p, query, ref, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	d.answers(query, pkg, version, toolresult.ReceiptReconciled)
}

func (d *desk) answers(c toolresult.Call, pkg *toolresult.Package, version string, delivery toolresult.Delivery) {
	d.t.Helper()
	var said note
	if err := pkg.Decode(&said); err != nil || said.Text != version || pkg.Delivery() != delivery {
		d.t.Errorf("%s: %v, %v, %v", c.CallID, pkg.Code(), pkg.Delivery(), said)
		return
	}
	spec, _ := d.Spec(c.Name)
	if ps := toolresult.Validate(d.bind(user("user-1"), c), spec, pkg); len(ps) != 0 {
		d.t.Errorf("%s: %v", c.CallID, ps)
	}
}

// TestVersionsConflict: without the versions of a tool the contract's rule holds,
// and with them only the very same intent is answered.
func TestVersionsConflict(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		d := newDesk(t, e, withAuthorizer(anybody), withTools(letter("v1")))
		d.send(user("user-1"), letterCall("v1", "k"), alive)
		both := d.another(withAuthorizer(anybody), withTools(registered("v2+v1")))
		alone := d.another(withAuthorizer(anybody), withTools(letter("v2")))
		changed := callOf("letter", "k", `{"text":"goodbye"}`)
		for _, tt := range []struct {
			name string
			at   *desk
			call toolresult.Call
			want toolresult.Code
		}{
			{"the same intent", both, letterCall("v1", "k"), toolresult.OK},
			{"another intent of v1", both, changed, toolresult.InvalidArguments},
			{"an intent of v2", both, letterCall("v2", "k"), toolresult.CallIDConflict},
			{"another call of v2", both, callOf("letter", "k", `{"text":"hello","urgent":false}`), toolresult.CallIDConflict},
			{"v2 does not name v1", alone, letterCall("v1", "k"), toolresult.InvalidArguments},
			{"v2 does not name v1 and takes its arguments", alone, letterCall("v2", "k"), toolresult.CallIDConflict},
		} {
			if got := tt.at.repeat(tt.call).Code(); got != tt.want {
				t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
			}
		}
		fresh := letterCall("v2", "k")
		fresh.CallID = "call-fresh"
		if got := both.repeat(fresh).Code(); got != toolresult.IdempotencyConflict {
			t.Errorf("another intent under the key: %q", got)
		}
	})
}

// TestWorkLeavesOthers: what a worker does not know costs no attempt, whether the
// tool, its revisions or its effect kind; it hides nothing behind it, and is told
// once in the log and always in the numbers.
func TestWorkLeavesOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	done := func(_ context.Context, e toolruntime.Effect, _ noteArgs) (toolruntime.Receipt[note], error) {
		return noteReceipt(e, "done"), nil
	}
	renewed := noteTool("revised", toolruntime.Once, done)
	renewed.Revisions.Handler = "revised-handler-v2"
	theirs := []toolruntime.Registration{noteTool("gone", toolruntime.Once, done), noteTool("revised", toolruntime.Once, done), noteTool("kind", toolruntime.Once, done)}
	ours := []toolruntime.Registration{renewed, noteTool("kind", toolruntime.Idempotent, done), noteTool("zz_own", toolruntime.Once, done)}
	forEachEngine(t, func(t *testing.T, e engine) {
		d := newDesk(t, e, withAuthorizer(anybody), withTools(theirs...))
		var refs []string
		for _, tool := range []string{"gone", "revised", "kind"} {
			for i := range 70 { // more tenants than a worker looks at in one go
				key := fmt.Sprint(tool, i)
				c, p := callOf(tool, key, `{"text":"hello"}`), toolresult.Principal{TenantID: "tenant-" + key, SubjectID: "user-1"}
				pkg, err := d.Submit(context.Background(), p, c, d.approval(p, c, "valid")...)
				if err != nil {
					t.Fatal(err)
				}
				refs = append(refs, pkg.StatusRef())
			}
		}
		var log bytes.Buffer
		other := d.another(withAuthorizer(anybody), withTools(ours...), func(_ *desk, o *toolruntime.Options, _ *[]toolruntime.Registration) {
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		other.setTime(start + 90)
		ref := other.submit(callOf("zz_own", "own", `{"text":"hello"}`))
		stop := other.work(toolruntime.WorkOptions{})
		other.await(ref)
		stop()
		for _, ref := range refs {
			if h, err := other.History(context.Background(), ref); err != nil || h.State != "pending" || len(h.Moments) != 2 {
				t.Fatalf("%+v, %v", h, err)
			}
		}
		for _, ref := range []string{refs[0], refs[70], refs[140]} {
			outcome, err := other.Process(context.Background(), ref, "worker", nil)
			if outcome != toolruntime.NotClaimed || !errors.Is(err, toolruntime.ErrContract) {
				t.Errorf("process: %v, %v", outcome, err)
			}
		}
		if n := strings.Count(log.String(), "no worker here knows it"); n != 3 || !strings.Contains(log.String(), "oldest=1m30s") {
			t.Errorf("said %d times:\n%s", n, log.String())
		}
		st, err := other.Stats(context.Background())
		if err != nil || len(st.Tools) != 3 {
			t.Fatalf("%+v, %v", st, err)
		}
		for _, s := range st.Tools {
			if s.NotKnownHere != 70 || !s.OldestNotKnownHere.Equal(utc(start)) || s.Attempts != 0 {
				t.Errorf("%+v", s)
			}
		}
		stop = d.work(toolruntime.WorkOptions{})
		for _, ref := range refs {
			d.await(ref)
		}
		stop()
		if r := d.audit(); !r.Passed {
			t.Errorf("%q", r.SemanticErrors)
		}
	})
}

// TestEffectKindIsAccepted: what was accepted as once is not run as idempotent,
// but its answer is given by both.
func TestEffectKindIsAccepted(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		runs := 0
		tool := func(kind toolruntime.EffectKind) toolruntime.Tool[noteArgs, note] {
			return noteTool("note", kind, func(_ context.Context, e toolruntime.Effect, _ noteArgs) (toolruntime.Receipt[note], error) {
				runs++
				return noteReceipt(e, "done"), nil
			})
		}
		d := newDesk(t, e, withAuthorizer(anybody), withTools(tool(toolruntime.Once)))
		ended, lost := callOf("note", "ended", `{"text":"hello"}`), callOf("note", "lost", `{"text":"hello"}`)
		d.send(user("user-1"), ended, alive)
		ref := d.send(user("user-1"), lost, drill.AfterClaim).StatusRef()
		other := d.another(withAuthorizer(anybody), withTools(tool(toolruntime.Idempotent)))
		other.setTime(start + 3600)
		if outcome, err := other.Process(context.Background(), ref, "worker", nil); outcome != toolruntime.NotClaimed || !errors.Is(err, toolruntime.ErrContract) {
			t.Errorf("%v, %v", outcome, err)
		}
		if got := other.repeat(ended).Code(); got != toolresult.OK {
			t.Errorf("a repetition: %q", got)
		}
		careful := tool(toolruntime.Idempotent)
		careful.Versions = []toolruntime.Registration{tool(toolruntime.Once)}
		both := d.another(withAuthorizer(anybody), withTools(careful))
		both.setTime(start + 3600)
		if outcome, err := both.Process(context.Background(), ref, "worker", nil); outcome != toolruntime.OutcomeUnknown || err != nil {
			t.Errorf("%v, %v", outcome, err)
		}
		if h, err := both.History(context.Background(), ref); err != nil || h.State != "in_review" || runs != 1 {
			t.Errorf("%+v, %v; ran %d times", h, err, runs)
		}
	})
}

// TestLaneNames: names that hold what divides lanes are still their own.
func TestLaneNames(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		names := []string{"pay", "pay\nout", `pay\nout`, "pay\n", `pay\`}
		var tools []toolruntime.Registration
		for _, name := range names {
			tools = append(tools, noteTool(name, toolruntime.Once, func(_ context.Context, e toolruntime.Effect, _ noteArgs) (toolruntime.Receipt[note], error) {
				return noteReceipt(e, "done"), nil
			}))
		}
		d := newDesk(t, e, withAuthorizer(anybody), withTools(tools...))
		if err := d.Pause(context.Background(), "pay\nout", "dana", "the bank has called"); err != nil {
			t.Fatal(err)
		}
		refs := map[string]string{}
		for i, name := range names {
			refs[name] = d.submit(callOf(name, fmt.Sprint("k", i), `{"text":"hello"}`))
		}
		d.work(toolruntime.WorkOptions{})
		for _, name := range names {
			if name != "pay\nout" {
				d.await(refs[name])
			}
		}
		st, err := d.Stats(context.Background())
		if err != nil || len(st.Tools) != 1 || st.Tools[0].Tool != "pay\nout" || !st.Tools[0].Paused || st.Tools[0].Pending != 1 || st.Tools[0].Attempts != 0 {
			t.Errorf("%+v, %v", st, err)
		}
		if r := d.audit(); !r.Passed {
			t.Errorf("%q", r.SemanticErrors)
		}
	})
}

// TestApproversSeeRoles: whenever approvers are asked, it is about the principal
// with the roles that it has then.
func TestApproversSeeRoles(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		role, asked := "agent", 0
		d := newDesk(t, e, withAuthorizer(anybody), withResolver(func(_ context.Context, tenant, subject string) (*toolresult.Principal, error) {
			return &toolresult.Principal{TenantID: tenant, SubjectID: subject, Roles: []string{role}}, nil
		}), func(_ *desk, o *toolruntime.Options, _ *[]toolruntime.Registration) {
			o.Approvers = func(_ context.Context, p toolresult.Principal, _, approver string) (bool, error) {
				asked++
				if !p.HasRole(role) {
					t.Errorf("asked about the roles %q", p.Roles)
				}
				return !p.HasRole("suspect") && approver == refunds.ApproverID, nil
			}
		})
		p, ctx := user("user-1"), context.Background()
		c := refundCall("ended")
		if got := d.send(p, c, alive); got.Code() != toolresult.OK {
			t.Fatal(got.Code())
		}
		ref := d.send(p, refundCall("open"), drill.AfterIntentCommit).StatusRef()
		d.repeat(c)
		if _, err := d.QueryStatus(ctx, p, c.StatusQuery(d.bind(p, c).StatusRef()), d.bind(p, c).StatusRef(), nil); err != nil {
			t.Error(err)
		}
		if r := d.audit(); !r.Passed || asked != 6 {
			t.Errorf("asked %d times; %q", asked, r.SemanticErrors)
		}
		role = "suspect"
		for name, err := range map[string]error{
			"process": func() error { _, err := d.Process(ctx, ref, "worker", nil); return err }(),
			"replay":  func() error { _, err := d.Dispatch(ctx, p, c, nil); return err }(),
		} {
			if !errors.Is(err, toolruntime.ErrContract) {
				t.Errorf("%s of an approval that is none any more: %v", name, err)
			}
		}
		if r := d.audit(); r.Passed {
			t.Error("the audit takes the approval")
		}
		if n := d.counts().DownstreamReceipts; n != 1 {
			t.Errorf("%d receipts", n)
		}
	})
}
