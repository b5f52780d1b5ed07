// Command toolruntime dispatches, asks, audits, checks and migrates from the
// command line. Its exit code is a gate: 0 is PASS, 1 is BLOCK for a business or
// audit reason, 2 means that it could not be found out.
//
// Run `toolruntime help` for the commands.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends the work that is under way, a second one the process:
	// opening a pipe that nobody writes to cannot be ended otherwise.
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
