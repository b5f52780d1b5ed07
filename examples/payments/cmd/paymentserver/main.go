// Command paymentserver is the payment server of the examples as a process.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-json-experiment/json"

	"github.com/toolruntime/toolruntime-go/examples/payments"
)

func main() {
	db := flag.String("db", "payments.sqlite3", "the server's `file`, created if there is none")
	address := flag.String("addr", "127.0.0.1:0", "the `address` to listen on; port 0 chooses one")
	switches := flag.String("switches", "{}", "how to misbehave, as the `JSON` of POST /switches")
	flag.Parse()
	if err := run(*db, *address, *switches); err != nil {
		fmt.Fprintf(os.Stderr, "paymentserver: error: %v\n", err)
		os.Exit(1)
	}
}

func run(db, address, switches string) error {
	var sw payments.Switches
	if err := json.Unmarshal([]byte(switches), &sw, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("-switches: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return payments.ListenAndServe(ctx, db, address, sw, os.Stdout)
}
