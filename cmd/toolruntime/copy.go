package main

import (
	"context"
	"fmt"
	"io"

	"github.com/toolruntime/toolruntime-go/internal/scenario"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/pgstore"
)

// A copyReport is what copy prints. Where an audit did not pass, what would come
// after it is missing.
type copyReport struct {
	Gate   scenario.Gate            `json:"gate"`
	Before *toolruntime.AuditReport `json:"before"`
	Copied *toolruntime.Counts      `json:"copied"`
	After  *toolruntime.AuditReport `json:"after"`
}

// copyLedger audits a ledger, copies it into PostgreSQL, and audits the copy.
func copyLedger(ctx context.Context, o *options, p *printer) (bool, error) {
	if isPostgres(o.from) || !isPostgres(o.to) {
		return false, &toolresult.InputError{Field: "copy", Rule: "goes from a file to a PostgreSQL database"}
	}
	var r copyReport
	pass, err := with(ctx, &options{db: o.from, tools: o.tools}, toLook, func(d *desk) (pass bool, err error) {
		if r.Before, err = d.rt.Audit(ctx, nil); err != nil || !r.Before.Passed {
			return false, err
		}
		counts, err := pgstore.Copy(ctx, d.store, o.to, &pgstore.Options{Migrate: true}, p.progress("copying"))
		r.Copied = &counts
		return err == nil, err
	})
	if err == nil && pass {
		pass, err = with(ctx, &options{db: o.to, tools: o.tools}, toLook, func(d *desk) (_ bool, err error) {
			if r.After, err = d.rt.Audit(ctx, nil); err != nil {
				return false, err
			}
			return r.After.Passed, nil
		})
	}
	if err != nil {
		return false, err
	}
	r.Gate = gate(pass)
	p.print(r, func(w io.Writer) {
		printAudit(w, "original  ", r.Before)
		if r.After != nil {
			printAudit(w, "copy      ", r.After)
		}
		fmt.Fprintln(w, r.Gate)
	})
	return pass, nil
}
