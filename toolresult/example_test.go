package toolresult_test

import (
	"encoding/json"
	"fmt"
	"log"
	"time"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

func exampleCall() (*toolresult.Spec, *toolresult.Bound) {
	spec, err := toolruntime.SpecOf(refunds.NewOrders().CreateRefundDraft())
	if err != nil {
		log.Fatal(err)
	}
	proposal := toolresult.Proposal{
		Name:      "create_refund_draft",
		Arguments: json.RawMessage(`{"order_ref": "ORDER-7", "reason": "damaged"}`),
	}
	call := toolresult.NewCall(proposal, toolresult.ExecutionContext{
		Provider: "openai", APIFamily: "responses", ResponseID: "resp_1", CallID: "call_1",
		OperationID: "operation-1", IdempotencyKey: "ticket-4711", AdapterRevision: "openai-responses-v1",
	})
	b, err := toolresult.Bind(toolresult.Principal{TenantID: "tenant-a", SubjectID: "user-1"}, call, spec.Contract())
	if err != nil {
		log.Fatal(err)
	}
	return spec, b
}

// A proposal and the host's context make a call; bound to a principal and a
// contract it has the digests that everything else refers to.
func ExampleBind() {
	_, b := exampleCall()
	fmt.Println(b.Arguments())
	fmt.Println(b.StatusRef())
	// Output:
	// {"order_ref":"ORDER-7","reason":"damaged"}
	// status_7d8db8f08374d17671ba589d7d970936
}

// A package proves itself to whoever knows the call.
func ExampleValidate() {
	spec, b := exampleCall()
	pkg := b.Failure(toolresult.ApprovalRequired, "", time.Unix(1_784_419_200, 0))
	fmt.Println(toolresult.Validate(b, spec, pkg))

	pkg.ModelResult.Error.Recovery = "retry_after"
	for _, problem := range toolresult.Validate(b, spec, pkg) {
		fmt.Println(problem)
	}
	// Output:
	// []
	// model_result.error.recovery: is not the catalogue's
	// protected_audit.binding.result_sha256: does not match the recomputed result digest
	// protected_audit.binding.call_binding_sha256: does not match the recomputed call_binding
}

// An approval covers one call, as it was shown to the approver, until it
// expires.
func ExampleApproval_Covers() {
	_, b := exampleCall()
	approval := toolresult.NewApproval(b, "approval-1", "human-reviewer-1", time.Unix(1_784_419_260, 0))
	fmt.Println(approval.Covers(b, time.Unix(1_784_419_259, 0)))
	fmt.Println(approval.Covers(b, time.Unix(1_784_419_260, 0)))
	// Output:
	// true
	// false
}
