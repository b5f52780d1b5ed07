// Command worker is a service that pays through the payment server: it accepts
// payments, keeps them in a ledger, and carries them out in workers. Kill it at
// any instant and start it again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/toolruntime/toolruntime-go/examples/payments"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

type options struct {
	db, bank, listen, key string
	submit                int
	lease                 time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.db, "db", "ledger.sqlite3", "the ledger's `file`, created if there is none")
	flag.StringVar(&o.bank, "bank", "http://127.0.0.1:8080", "the `URL` of the payment server")
	flag.StringVar(&o.listen, "listen", "", "also accept POST /payments/TOOL on this `address`")
	flag.DurationVar(&o.lease, "lease", 10*time.Second, "how long a payment stays a dead worker's")
	flag.IntVar(&o.submit, "submit", 0, "submit `N` payments, wait for them and end; runs no worker")
	flag.StringVar(&o.key, "key", "demo", "the `prefix` of the keys of -submit; the same keys again pay nothing")
	flag.Parse()
	if err := run(o, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "worker: error: %v\n", err)
		os.Exit(1)
	}
}

// tools are the payment in each kind of effect. A real service has the one that
// its bank deserves.
func tools(bank string) []toolruntime.Registration {
	var all []toolruntime.Registration
	for _, kind := range kinds {
		tool := payments.Tool(bank, nil, kind)
		tool.Name = "pay_" + kind.String()
		all = append(all, tool)
	}
	return all
}

var kinds = []toolruntime.EffectKind{toolruntime.Idempotent, toolruntime.Queryable, toolruntime.Once}

func run(o options, out io.Writer) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	store, err := sqlitestore.Open(ctx, o.db, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	s := service{log: log}
	s.Runtime, err = toolruntime.New(store, &toolruntime.Options{Authorizer: mayPay, Approvers: mayApprove, Logger: log}, tools(o.bank)...)
	if err != nil {
		return err
	}
	if o.submit > 0 {
		return s.submit(ctx, o, out)
	}
	if o.listen != "" {
		end, err := s.serve(o.listen)
		if err != nil {
			return err
		}
		defer end()
	}
	log.Info("working", "db", o.db, "bank", o.bank, "pid", os.Getpid())
	err = s.Work(ctx, &toolruntime.WorkOptions{Lease: o.lease, Drain: 20 * time.Second})
	log.Info("drained")
	return err
}

// The one customer and the one approver of the example. A service takes the
// first from its session and has the second sign for every payment.
var customer = toolresult.Principal{TenantID: "shop", SubjectID: "customer-1"}

const approver = "treasurer"

func mayPay(_ context.Context, p toolresult.Principal, _, account string) (bool, error) {
	return p.TenantID == customer.TenantID && account == "ACC-1", nil
}

func mayApprove(_ context.Context, _ toolresult.Principal, _, approverID string) (bool, error) {
	return approverID == approver, nil
}

type service struct {
	*toolruntime.Runtime
	log *slog.Logger
}

// call is what a model's proposal becomes once the host has given it a key.
func call(tool, key string, arguments []byte) toolresult.Call {
	c := toolresult.OpenAIResponses.Context("response-"+tool+"-"+key, "call-"+tool+"-"+key)
	c.OperationID, c.IdempotencyKey = "operation-"+tool+"-"+key, key
	return toolresult.NewCall(toolresult.Proposal{Name: tool, Arguments: arguments}, c)
}

// accept hands a call to the workers. When it returns, the payment is on disk:
// it will be carried out, whatever dies.
func (s service) accept(ctx context.Context, c toolresult.Call) (*toolresult.Package, error) {
	b, err := s.Bind(customer, c)
	if err != nil {
		return nil, err
	}
	// The treasurer agrees to everything here. The approval covers exactly this call.
	approval := toolresult.NewApproval(b, "approval-"+c.IdempotencyKey, approver, time.Now().Add(time.Minute))
	return s.Submit(ctx, customer, c, approval)
}

// submit submits payments, the tools in turn, waits for them, and prints what
// became of each.
func (s service) submit(ctx context.Context, o options, out io.Writer) error {
	calls := make([]toolresult.Call, o.submit)
	for i := range calls {
		calls[i] = call("pay_"+kinds[i%len(kinds)].String(), fmt.Sprintf("%s-%d", o.key, i),
			fmt.Appendf(nil, `{"account":"ACC-1","amount_cents":%d,"currency":"EUR"}`, 100+i))
		if _, err := s.accept(ctx, calls[i]); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%d payments are in the ledger\n", len(calls))
	for _, c := range calls {
		b, err := s.Bind(customer, c)
		if err != nil {
			return err
		}
		pkg, err := s.Await(ctx, customer, c)
		if err != nil {
			return err
		}
		var p payments.Paid
		if err := pkg.Decode(&p); pkg.Code() == toolresult.OK && err != nil {
			return err
		}
		fmt.Fprintf(out, "%s  %-14s  %s  %s\n", b.StatusRef(), c.Name, pkg.Code(), p.PaymentID)
	}
	return nil
}

// serve accepts POST /payments/TOOL with an Idempotency-Key and the arguments as
// the body, and answers 202 with the status_ref, or 200 with the payment once
// the same request is made again after it has ended.
func (s service) serve(address string) (end func(), err error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /payments/{tool}", s.post)
	h := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go h.Serve(l)
	s.log.Info("listening", "address", l.Addr().String())
	return func() { h.Shutdown(context.Background()) }, nil
}

func (s service) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 16<<10))
	if err != nil {
		http.Error(w, "the body is too long", http.StatusRequestEntityTooLarge)
		return
	}
	pkg, err := s.accept(r.Context(), call(r.PathValue("tool"), r.Header.Get("Idempotency-Key"), body))
	var p payments.Paid
	switch {
	case errors.Is(err, toolruntime.ErrInvalidInput):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case err != nil:
		s.log.Error("accept", "error", err)
		http.Error(w, "ask again", http.StatusServiceUnavailable) // with the same key
	case pkg.Code() == toolresult.OK && pkg.Decode(&p) == nil:
		fmt.Fprintln(w, p.PaymentID)
	case pkg.Code() == toolresult.Accepted, pkg.Code() == toolresult.OutcomeUnknown:
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintln(w, pkg.StatusRef())
	default:
		http.Error(w, string(pkg.Code()), http.StatusUnprocessableEntity)
	}
}
