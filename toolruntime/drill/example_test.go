package drill_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

type noteArgs struct {
	Text string `json:"text" schema:"maxLength=64"`
}

// The process dies between the effect and the ledger's knowledge of it. Whoever asks
// afterwards gets the answer, and nothing is done twice.
func ExampleStopAt() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	store, err := sqlitestore.Open(ctx, filepath.Join(folder, "tools.db"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	effects := 0
	note := toolruntime.Tool[noteArgs, noteArgs]{
		Name: "write_note", Effect: toolruntime.Idempotent,
		Resource: func(noteArgs) string { return "notes" },
		Run: func(_ context.Context, _ toolruntime.Effect, a noteArgs) (toolruntime.Receipt[noteArgs], error) {
			effects++
			return toolruntime.Receipt[noteArgs]{ID: "note-1", RequestID: "request-1", Data: a}, nil
		},
	}
	rt, err := toolruntime.New(store, &toolruntime.Options{
		Authorizer: func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil },
		Approvers:  func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil },
	}, note)
	if err != nil {
		log.Fatal(err)
	}
	principal := toolresult.Principal{TenantID: "acme", SubjectID: "alice"}
	turn := toolresult.OpenAIResponses.Context("resp_1", "call_1")
	turn.OperationID, turn.IdempotencyKey = "op_1", "note-of-today"
	call := toolresult.NewCall(toolresult.Proposal{Name: "write_note", Arguments: []byte(`{"text":"hello"}`)}, turn)
	bound, err := rt.Bind(principal, call)
	if err != nil {
		log.Fatal(err)
	}
	approval := toolresult.NewApproval(bound, "approval-1", "carol", time.Now().Add(time.Minute))

	pkg, err := rt.Dispatch(drill.StopAt(ctx, drill.AfterDownstreamCommit), principal, call,
		&toolruntime.DispatchOptions{Approvals: []toolresult.Approval{approval}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(pkg.Code())

	pkg, err = rt.Status(ctx, principal, call)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(pkg.Code(), pkg.Delivery(), "effects:", effects)
	// Output:
	// OUTCOME_UNKNOWN
	// OK receipt_reconciled effects: 1
}
