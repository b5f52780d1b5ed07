package toolruntimetest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// Allow is an Authorizer that lets everybody use every tool on everything.
func Allow(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil }

// Persons are Approvers: those named may approve every call, and nobody else any.
func Persons(names ...string) toolruntime.Approvers {
	names = slices.Clone(names)
	return func(_ context.Context, _ toolresult.Principal, _, approverID string) (bool, error) {
		return slices.Contains(names, approverID), nil
	}
}

// Call is a call as a provider's turn would bring it: of the named tool with these
// arguments, which are JSON, under an idempotency key. Its ids follow from the key;
// a repetition under another call identity is the same call with another CallID.
func Call(tool, arguments, key string) toolresult.Call {
	id := key
	if len(id) > 128 { // the ids must hold more than the key
		id = fmt.Sprintf("%x", sha256.Sum256([]byte(key)))
	}
	c := toolresult.OpenAIResponses.Context("response-of-"+id, "call-of-"+id)
	c.OperationID, c.IdempotencyKey = "operation-of-"+id, key
	return toolresult.NewCall(toolresult.Proposal{Name: tool, Arguments: []byte(arguments)}, c)
}

// Approve is the approval of a call by a person whom the runtime's Approvers know. It
// covers exactly this call, and does not expire.
func Approve(t testing.TB, rt *toolruntime.Runtime, p toolresult.Principal, c toolresult.Call, person string) toolresult.Approval {
	t.Helper()
	b, err := rt.Bind(p, c)
	if err != nil {
		t.Fatalf("toolruntimetest: approve: %v", err)
	}
	return toolresult.NewApproval(b, "approval-of-"+b.ApprovalDigest(person)[:12], person, time.Unix(contract.MaxTime, 0))
}
