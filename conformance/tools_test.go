package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
)

// errLost is a handler's way to say that it does not know.
var errLost = errors.New("connection lost")

type noteArgs struct {
	Text string `json:"text" schema:"minLength=1,maxLength=200"`
}

type note struct {
	Text string `json:"text" schema:"maxLength=20"`
}

// noteTool is a write whose behaviour the test chooses.
func noteTool(name string, effect toolruntime.EffectKind, run func(ctx context.Context, e toolruntime.Effect, a noteArgs) (toolruntime.Receipt[note], error)) toolruntime.Tool[noteArgs, note] {
	return toolruntime.Tool[noteArgs, note]{
		Name: name, Effect: effect, Timeout: time.Minute,
		Resource: func(noteArgs) string { return "ORDER-7" },
		Run:      run,
	}
}

func noteReceipt(e toolruntime.Effect, text string) toolruntime.Receipt[note] {
	return toolruntime.Receipt[note]{ID: "receipt-" + e.Identity[:16], RequestID: "request-" + e.Identity[:16], Data: note{text}}
}

func user(subject string) toolresult.Principal {
	return toolresult.Principal{TenantID: "tenant-a", SubjectID: subject}
}

// callOf is a call whose ids all derive from its key.
func callOf(tool, key, arguments string) toolresult.Call {
	return toolresult.NewCall(
		toolresult.Proposal{Name: tool, Arguments: []byte(arguments)},
		toolresult.ExecutionContext{Provider: "openai", APIFamily: "responses", ResponseID: "response-" + key,
			CallID: "call-" + key, OperationID: "operation-" + key, IdempotencyKey: key,
			AdapterRevision: "openai-responses-v1"})
}

func refundCall(key string) toolresult.Call {
	return callOf("create_refund_draft", key, `{"order_ref":"ORDER-7","reason":"duplicate"}`)
}

// alive is the point of a process that does not die.
const alive drill.Point = ""

// dying is the context of a process that dies at a point.
func dying(p drill.Point) context.Context {
	if p == alive {
		return context.Background()
	}
	return drill.StopAt(context.Background(), p)
}

// send dispatches a call that an approver has accepted.
func (d *desk) send(p toolresult.Principal, c toolresult.Call, point drill.Point) *toolresult.Package {
	d.t.Helper()
	pkg, err := d.Dispatch(dying(point), p, c, &toolruntime.DispatchOptions{Approvals: d.approval(p, c, "valid")})
	if err != nil {
		d.t.Fatal(err)
	}
	return pkg
}

// utc is a time in Unix seconds as histories have it.
func utc(unix int64) time.Time { return time.Unix(unix, 0).UTC() }

// held is what a worker holds that has died after its claim.
type held struct {
	Worker         string
	Until, Attempt int64
}

// hold claims an operation as a worker that dies then; nil when there is nothing to
// claim.
func hold(ctx context.Context, rt *toolruntime.Runtime, ref, worker string, lease time.Duration) (*held, error) {
	outcome, err := rt.Process(drill.StopAt(ctx, drill.AfterClaim), ref, worker, &toolruntime.ProcessOptions{Lease: lease})
	if err != nil || outcome != toolruntime.CrashedAfterClaim {
		return nil, err
	}
	h, err := rt.History(ctx, ref)
	if err != nil {
		return nil, err
	}
	last := h.Moments[len(h.Moments)-1]
	return &held{last.Who, last.Until.Unix(), last.Attempt}, nil
}
