package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/scenario"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/pgstore"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

// maxFile is one byte more than the largest scenario file: enough to see that a
// file is too large.
const maxFile = 65536 + 1

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &fixtureIOError{err}
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, &fixtureIOError{err}
	}
	return data, nil
}

// A desk is the example's runtime over an open ledger, with a clock that a case
// sets.
type desk struct {
	store *toolruntime.Store
	rt    *toolruntime.Runtime
	now   time.Time
}

// isPostgres tells the URL of a PostgreSQL database from the path of a file.
func isPostgres(address string) bool {
	return strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://")
}

func openStore(ctx context.Context, address string) (*toolruntime.Store, error) {
	if isPostgres(address) {
		return pgstore.Open(ctx, address, nil)
	}
	return sqlitestore.Open(ctx, address, nil)
}

// openToLook opens a ledger that there is without changing it. One that there is
// not is made, as by every command.
func openToLook(ctx context.Context, address string) (*toolruntime.Store, error) {
	if info, err := os.Stat(address); isPostgres(address) || err != nil || info.Size() == 0 {
		return openStore(ctx, address)
	}
	return sqlitestore.Open(ctx, address, &sqlitestore.Options{ReadOnly: true})
}

func openDesk(ctx context.Context, address string, open func(context.Context, string) (*toolruntime.Store, error)) (*desk, error) {
	d := &desk{now: time.Now()}
	store, err := open(ctx, address)
	if err != nil {
		return nil, err
	}
	orders := refunds.NewOrders()
	d.store = store
	d.rt, err = toolruntime.New(store, &toolruntime.Options{
		Authorizer: orders.Authorize,
		Approvers:  refunds.Approvers,
		Now:        func() time.Time { return d.now },
	}, orders.Tools()...)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return d, nil
}

// with opens the ledger, does something, and closes the ledger.
func with(ctx context.Context, path string, do func(*desk) (bool, error)) (pass bool, err error) {
	return withStore(ctx, path, openStore, do)
}

// looking is with for a command that changes nothing.
func looking(ctx context.Context, path string, do func(*desk) (bool, error)) (pass bool, err error) {
	return withStore(ctx, path, openToLook, do)
}

func withStore(ctx context.Context, path string, open func(context.Context, string) (*toolruntime.Store, error),
	do func(*desk) (bool, error)) (pass bool, err error) {
	d, err := openDesk(ctx, path, open)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, d.store.Close()) }()
	return do(d)
}

// A callReport is what dispatch and status print.
type callReport struct {
	Gate             scenario.Gate       `json:"gate"`
	Code             toolresult.Code     `json:"code"`
	Status           string              `json:"status"`
	Delivery         toolresult.Delivery `json:"delivery"`
	StatusRef        *string             `json:"status_ref"`
	ValidationErrors []string            `json:"validation_errors"`
	// Ended is when the operation ended and in which attempt: before this call, if
	// the answer is no fresh one.
	Ended    *toolresult.Ending       `json:"ended,omitempty"`
	Database *toolruntime.AuditReport `json:"database"`
}

func dispatch(ctx context.Context, o *options, p *printer) (bool, error) {
	// Before anything is opened or made.
	switch toolruntime.Failure(o.failure) {
	case toolruntime.NoFailure, toolruntime.AfterIntentCommit, toolruntime.AfterClaim, toolruntime.AfterDownstreamCommit:
	default:
		return false, &toolresult.InputError{Field: "failure", Rule: "must be none, after_intent_commit, after_claim or after_downstream_commit"}
	}
	if err := toolresult.CheckWorkerID(o.workerID); err != nil {
		return false, err
	}
	return with(ctx, o.db, func(d *desk) (bool, error) {
		c, b, err := d.readCase(o.fixture)
		if err != nil {
			return false, err
		}
		approvals, err := c.Approvals(b)
		if err != nil {
			return false, err
		}
		pkg, err := d.rt.Dispatch(ctx, c.Principal, c.Call, &toolruntime.DispatchOptions{
			Approvals: approvals, WorkerID: o.workerID, Failure: toolruntime.Failure(o.failure)})
		if err != nil {
			return false, err
		}
		return d.report(ctx, p, b, pkg)
	})
}

func status(ctx context.Context, o *options, p *printer) (bool, error) {
	return with(ctx, o.db, func(d *desk) (bool, error) {
		c, _, err := d.readCase(o.fixture)
		if err != nil {
			return false, err
		}
		if !toolresult.ValidStatusRef(o.statusRef) {
			return false, &toolresult.InputError{Field: "status-ref", Rule: "must be status_ and 32 lower-case hexadecimal digits"}
		}
		d.now = time.Unix(c.Now+1, 0)
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

// readCase reads a case, sets the clock to its time, and binds its call.
func (d *desk) readCase(path string) (*scenario.Case, *toolresult.Bound, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, nil, err
	}
	c, err := scenario.ReadCase(data)
	if err != nil {
		return nil, nil, err
	}
	d.now = time.Unix(c.Now, 0)
	b, err := d.rt.Bind(c.Principal, c.Call)
	return c, b, err
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
	if pkg.Ended.At != 0 {
		r.Ended = &pkg.Ended
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
			fmt.Fprintf(w, "ended      %s, attempt %d\n", toolresult.FormatTime(r.Ended.At), r.Ended.Attempt)
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
	return looking(ctx, o.db, func(d *desk) (bool, error) {
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

// A migrationReport is what migrate prints.
type migrationReport struct {
	Gate scenario.Gate `json:"gate"`
	sqlitestore.Migration
}

func migrate(ctx context.Context, o *options, p *printer) (bool, error) {
	m, err := migrateLedger(ctx, o.db)
	if err != nil {
		return false, err
	}
	p.print(migrationReport{gate(true), m}, func(w io.Writer) {
		fmt.Fprintf(w, "PASS  from %s to %s", m.From, m.To)
		if len(m.Applied) > 0 {
			fmt.Fprintf(w, ": %s", strings.Join(m.Applied, ", "))
		}
		if m.Adopted > 0 {
			fmt.Fprintf(w, "; %d rows adopted", m.Adopted)
		}
		fmt.Fprintln(w)
	})
	return true, nil
}

func migrateLedger(ctx context.Context, address string) (sqlitestore.Migration, error) {
	if isPostgres(address) {
		m, err := pgstore.Migrate(ctx, address, nil)
		return sqlitestore.Migration{From: m.From, To: m.To, Applied: m.Applied}, err
	}
	return sqlitestore.Migrate(ctx, address, nil)
}

func version(_ context.Context, _ *options, p *printer) (bool, error) {
	v := struct {
		Version       string `json:"version"`
		GoVersion     string `json:"go_version"`
		SchemaVersion string `json:"schema_version"`
		SQLiteVersion string `json:"sqlite_version"`
	}{Version: "(devel)", SchemaVersion: engine.SchemaVersion}
	v.SQLiteVersion, _, _ = sqlite3.Version()
	if info, ok := debug.ReadBuildInfo(); ok {
		v.GoVersion = info.GoVersion
		if info.Main.Version != "" {
			v.Version = info.Main.Version
		}
	}
	p.print(v, func(w io.Writer) {
		fmt.Fprintf(w, "toolruntime %s, %s, schema %s, SQLite %s\n", v.Version, v.GoVersion, v.SchemaVersion, v.SQLiteVersion)
	})
	return true, nil
}
