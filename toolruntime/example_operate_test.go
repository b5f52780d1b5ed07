package toolruntime_test

import (
	"context"
	"fmt"
	"log"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// A tool is taken out of use while the bank has a problem: a call of it has no effect.
func ExampleRuntime_Pause() {
	ctx := context.Background()
	rt, end := openRefunds(refundBy(func(context.Context) error { return nil }))
	defer end()
	alice, call, approval := refundOf(rt, "ORDER-7")
	try := func() {
		pkg, err := rt.Dispatch(ctx, alice, call, &toolruntime.DispatchOptions{Approvals: []toolresult.Approval{approval}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(pkg.Code())
	}
	if err := rt.Pause(ctx, "refund", "dana", "the bank has called"); err != nil {
		log.Fatal(err)
	}
	try()
	if err := rt.Resume(ctx, "refund", "erin", "the bank is back"); err != nil {
		log.Fatal(err)
	}
	try()
	for p, err := range rt.Pauses(ctx, "refund") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("paused by %s (%s), resumed by %s (%s)\n", p.Actor, p.Reason, p.ResumedBy, p.ResumeReason)
	}
	// Output:
	// TOOL_PAUSED
	// OK
	// paused by dana (the bank has called), resumed by erin (the bank is back)
}

// All operations of a tool that wait for their first attempt or the next, page by page.
func ExampleRuntime_List() {
	ctx := context.Background()
	rt, end := openRefunds(refundBy(func(context.Context) error { return nil }))
	defer end()
	alice, call, approval := refundOf(rt, "ORDER-7")
	if _, err := rt.Submit(ctx, alice, call, approval); err != nil {
		log.Fatal(err)
	}
	opts := &toolruntime.ListOptions{State: toolruntime.StatePending, Tool: "refund", Oldest: true}
	for more := true; more; more = opts.After != "" {
		page, err := rt.List(ctx, opts)
		if err != nil {
			log.Fatal(err)
		}
		for _, v := range page.Operations {
			fmt.Println(v.Tool, v.State, v.Attempts, v.EndedAt.IsZero())
		}
		opts.After = page.Next
	}
	// Output: refund pending 0 true
}

// A host deals with each operation that has ended, and goes on after a restart where it
// was. It stores the cursor with what it has done.
func ExampleRuntime_Completions() {
	ctx := context.Background()
	rt, end := openRefunds(refundBy(func(context.Context) error { return nil }))
	defer end()
	alice, call, approval := refundOf(rt, "ORDER-7")
	if _, err := rt.Dispatch(ctx, alice, call, &toolruntime.DispatchOptions{Approvals: []toolresult.Approval{approval}}); err != nil {
		log.Fatal(err)
	}
	var stored toolruntime.Cursor // "" is the beginning
	for range 2 {                 // the second time there is nothing more
		// Without UntilNow it would wait for more.
		for c, err := range rt.Completions(ctx, stored, &toolruntime.CompletionOptions{UntilNow: true}) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(c.Tool, c.State, c.Code)
			stored = c.Cursor
		}
	}
	// Output: refund succeeded OK
}
