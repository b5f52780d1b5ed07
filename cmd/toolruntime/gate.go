package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/limits"
	"github.com/toolruntime/toolruntime-go/internal/scenario"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
)

// gating are the commands whose exit code is a gate.
func gating() []command {
	return []command{
		{
			name: "dispatch", needs: []string{"db", "fixture"},
			summary: "carry out the call of a case, once",
			detail: `Dispatches the call of a persistence case against the two example tools, and
makes the ledger where there is none. Doing it again answers from the ledger: no
second effect. --failure stops the call as if the process had died there: none,
after_intent_commit, after_claim or after_downstream_commit.`,
			example: `toolruntime dispatch --db refunds.sqlite3 --fixture examples/refunds/case.json
  toolruntime dispatch --db refunds.sqlite3 --fixture examples/refunds/case.json --failure after_downstream_commit`,
			flags: func(o *options, f *flag.FlagSet) {
				o.withFixture(f)
				f.StringVar(&o.failure, "failure", "none", "failure `point`")
				f.StringVar(&o.workerID, "worker-id", "cli-worker", "`name` of the worker")
			},
			run: dispatch,
		},
		{
			name: "status", needs: []string{"db", "fixture", "status-ref"},
			summary: "ask what became of an operation, without causing it",
			detail: `Asks for the status of the operation that the call of a case has made, and
accepts the downstream's receipt if there is one. It never causes an effect. It
runs one second after the case's time.`,
			example: `toolruntime status --db refunds.sqlite3 --fixture examples/refunds/case.json \
    --status-ref status_0123456789abcdef0123456789abcdef`,
			flags: func(o *options, f *flag.FlagSet) {
				o.withFixture(f)
				f.StringVar(&o.statusRef, "status-ref", "", "status_`ref` of the operation")
			},
			run: status,
		},
		{
			name: "audit", needs: []string{"db"},
			summary: "recompute everything that is stored and find what does not fit",
			detail: `Checks the database's integrity and durability, recomputes every row, and holds
the rows against each other. Exit code 1 means that something does not fit.

A ledger whose tools this program does not know is audited by what is stored, and
the report says how many operations could not be held against a registry. --tools
names their contracts, and the profiles of providers that your service has added,
without which their calls do not pass: the file that Runtime.WriteContracts writes
there. Who may approve a call of theirs only your service knows: here every stored
approver counts as eligible.

It reads no case. With --fixture, which it takes as dispatch and status do, it
makes the ledger where there is none, as they do.`,
			example: `toolruntime audit --db refunds.sqlite3
  toolruntime audit --db ledger.sqlite3 --tools contracts.json`,
			flags: func(o *options, f *flag.FlagSet) { o.withFixture(f); o.withTools(f) },
			run:   audit,
		},
		{
			name: "check", args: "CASES",
			summary: "run a set of cases in memory",
			detail: `Runs a tool-cases-v2 file: every case by itself, in memory, each step held
against what the file expects. It touches no ledger.`,
			example: `toolruntime check examples/refunds/cases.json`,
			flags:   (*options).format,
			run:     check,
		},
	}
}

var errStatusRef = &toolresult.InputError{Field: "status-ref", Rule: "must be status_ and 32 lower-case hexadecimal digits"}

// maxFile is the size of the largest scenario file.
const maxFile = 65536

func readFile(path string) ([]byte, error) { return readUpTo(path, maxFile) }

// readUpTo reads one byte more than the most: enough to see that a file is too large.
func readUpTo(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &fixtureIOError{err}
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, &fixtureIOError{err}
	}
	return data, nil
}

// A callReport is what dispatch and status print.
type callReport struct {
	Gate             scenario.Gate       `json:"gate"`
	Code             toolresult.Code     `json:"code"`
	Status           toolresult.Status   `json:"status"`
	Delivery         toolresult.Delivery `json:"delivery"`
	StatusRef        *string             `json:"status_ref"`
	ValidationErrors []string            `json:"validation_errors"`
	// Ended is when the operation ended and in which attempt: before this call, if
	// the answer is no fresh one.
	Ended    *endingView              `json:"ended,omitempty"`
	Database *toolruntime.AuditReport `json:"database"`
}

func dispatch(ctx context.Context, o *options, p *printer) (bool, error) {
	// Before anything is opened or made.
	switch point := drill.Point(o.failure); point {
	case "none":
	case drill.AfterIntentCommit, drill.AfterClaim, drill.AfterDownstreamCommit:
		ctx = drill.StopAt(ctx, point)
	default:
		return false, &toolresult.InputError{Field: "failure", Rule: "must be none, after_intent_commit, after_claim or after_downstream_commit"}
	}
	if err := limits.WorkerID(o.workerID); err != nil {
		return false, err
	}
	c, err := readCase(o.fixture)
	if err != nil {
		return false, err
	}
	return with(ctx, o, mayMake, func(d *desk) (bool, error) {
		d.setTime(c.Now)
		b, err := d.rt.Bind(c.Principal, c.Call)
		if err != nil {
			return false, err
		}
		approvals, err := c.Approvals(b)
		if err != nil {
			return false, err
		}
		pkg, err := d.rt.Dispatch(ctx, c.Principal, c.Call, &toolruntime.DispatchOptions{
			Approvals: approvals, WorkerID: o.workerID})
		if err != nil {
			return false, err
		}
		return d.report(ctx, p, b, pkg)
	})
}

func status(ctx context.Context, o *options, p *printer) (bool, error) {
	c, err := readCase(o.fixture)
	if err != nil {
		return false, err
	}
	return with(ctx, o, mustBe, func(d *desk) (bool, error) {
		if !contract.ValidStatusRef(o.statusRef) {
			return false, errStatusRef
		}
		d.setTime(c.Now + 1)
		call := c.Call.StatusQuery(o.statusRef)
		b, err := d.rt.Bind(c.Principal, call)
		if err != nil {
			return false, err
		}
		pkg, err := d.rt.QueryStatus(ctx, c.Principal, call, o.statusRef, nil)
		if err != nil {
			return false, err
		}
		return d.report(ctx, p, b, pkg)
	})
}

func readCase(path string) (*scenario.Case, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return scenario.ReadCase(data)
}

func (d *desk) report(ctx context.Context, p *printer, b *toolresult.Bound, pkg *toolresult.Package) (bool, error) {
	database, err := d.rt.Audit(ctx, nil)
	if err != nil {
		return false, err
	}
	spec, _ := d.rt.Spec(b.Call().Name)
	r := callReport{
		Code: pkg.Code(), Status: pkg.ModelResult.Status, Delivery: pkg.Delivery(),
		StatusRef: pkg.ProtectedAudit.Downstream.StatusRef, ValidationErrors: []string{}, Database: database,
	}
	if !pkg.Ended.At.IsZero() {
		r.Ended = &endingView{unix(pkg.Ended.At), pkg.Ended.Attempt}
	}
	for _, problem := range toolresult.Validate(b, spec, pkg) {
		r.ValidationErrors = append(r.ValidationErrors, problem.String())
	}
	pass := r.Code == toolresult.OK && len(r.ValidationErrors) == 0
	r.Gate = gate(pass)
	p.print(r, func(w io.Writer) {
		fmt.Fprintf(w, "%s  %s (%s, %s)\n", r.Gate, r.Code, r.Status, r.Delivery)
		if ref := pkg.StatusRef(); ref != "" {
			fmt.Fprintf(w, "operation  %s\n", ref)
		}
		if r.Ended != nil {
			fmt.Fprintf(w, "ended      %s, attempt %d\n", clock(pkg.Ended.At), r.Ended.Attempt)
		}
		if e := pkg.ModelResult.Error; e != nil {
			fmt.Fprintf(w, "next       %s\n", e.SafeMessage)
		}
		for _, problem := range r.ValidationErrors {
			fmt.Fprintf(w, "problem    %s\n", problem)
		}
		printAudit(w, "ledger    ", database)
	})
	return pass, nil
}

// An auditReport is what audit prints.
type auditReport struct {
	Gate scenario.Gate `json:"gate"`
	*toolruntime.AuditReport
}

func audit(ctx context.Context, o *options, p *printer) (bool, error) {
	a := toLook
	if o.fixture != "" {
		a = mayMake // as the contract's command line has it
	}
	return with(ctx, o, a, func(d *desk) (bool, error) {
		r, err := d.rt.Audit(ctx, &toolruntime.AuditOptions{Progress: p.progress("auditing")})
		if err != nil {
			return false, err
		}
		p.print(auditReport{gate(r.Passed), r}, func(w io.Writer) { printAudit(w, string(gate(r.Passed))+" ", r) })
		return r.Passed, nil
	})
}

func printAudit(w io.Writer, label string, r *toolruntime.AuditReport) {
	verdict := "everything fits"
	if !r.Passed {
		verdict = "something does not fit"
	}
	c := r.Counts
	fmt.Fprintf(w, "%s %s: %d operations, %d events, %d+%d receipts, %d calls; %s, synchronous=%d\n", label, verdict,
		c.Operations, c.Outbox, c.DownstreamReceipts, c.LocalReceipts, c.CallBindings, r.JournalMode, r.Synchronous)
	for _, list := range [][]string{r.IntegrityCheck, r.ForeignKeyViolations, r.SemanticErrors} {
		for _, line := range list {
			if line != "ok" {
				fmt.Fprintf(w, "  %s\n", line)
			}
		}
	}
	if n := r.Unregistered.Count; n > 0 {
		fmt.Fprintf(w, "  %d operations have tools or revisions that this program does not know\n", n)
	}
}

func check(ctx context.Context, o *options, p *printer) (bool, error) {
	data, err := readFile(o.args[0])
	if err != nil {
		return false, err
	}
	set, err := scenario.ReadSet(data)
	if err != nil {
		return false, err
	}
	r, err := set.Run(ctx)
	if err != nil {
		return false, err
	}
	p.print(r, func(w io.Writer) { printCheck(w, r) })
	return r.Gate == scenario.Pass, nil
}

func printCheck(w io.Writer, r *scenario.Report) {
	fmt.Fprintf(w, "%s  %d of %d cases, %d of %d steps\n", r.Gate, r.CasesPassed, r.Cases, r.StepsPassed, r.Steps)
	for _, c := range r.Results {
		for _, s := range c.Steps {
			for _, m := range s.Mismatches {
				if m.Note != "" {
					fmt.Fprintf(w, "  %s, %s: %s %s\n", c.ID, s.StepID, m.Field, m.Note)
					continue
				}
				fmt.Fprintf(w, "  %s, %s: %s is %v, want %v\n", c.ID, s.StepID, m.Field, m.Got, m.Want)
			}
			for _, problem := range s.Problems {
				fmt.Fprintf(w, "  %s, %s: %s\n", c.ID, s.StepID, problem)
			}
		}
	}
}
