package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/scenario"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

// keeping are the commands with which a ledger is kept for years.
func keeping() []command {
	return []command{
		{
			name: "prune", args: "--db FILE --older-than D [--state STATE] [--tool NAME] [--limit N] [--dry-run]",
			summary: "remove operations that ended long ago",
			detail: `Removes operations that ended longer ago than --older-than, with their receipts
and attempts, in small transactions beside the work that goes on. Each leaves a
tombstone, and what people have decided about it: its key is refused with IDEMPOTENCY_KEY_EXPIRED from now on,
and never causes another effect. What has not ended or waits for a person stays,
and so does the newest operation. Without --state and --tool the identities go as
well of calls as old that belong to no operation, because it was pruned or the
call was refused. Exit code 1 means that some operations were left because their
evidence does not hold together; ask audit.`,
			example: `toolruntime prune --db refunds.sqlite3 --older-than 2160h --dry-run`,
			flags: func(o *options, f *flag.FlagSet) {
				o.common(f)
				f.DurationVar(&o.olderThan, "older-than", 0, "`time` since the end, at least 1h")
				f.StringVar(&o.state, "state", "", "only operations in this `state`: succeeded or failed")
				f.StringVar(&o.tool, "tool", "", "only the tool of this `name`")
				f.IntVar(&o.limit, "limit", 0, "at most `N` operations, and call identities; 0 means all")
				f.BoolVar(&o.dryRun, "dry-run", false, "count, and change nothing")
			},
			run: prune,
		},
		{
			name: "backup", args: "--db FILE --to FILE",
			summary: "copy a ledger that is in use into a new file",
			detail: `Copies one moment of the ledger while others go on writing, audits the copy, and
only then gives it its name: a single file that any command opens. It overwrites
nothing. For PostgreSQL use the server's own tools.`,
			example: `toolruntime backup --db refunds.sqlite3 --to backups/refunds-2026-07-19.sqlite3`,
			flags: func(o *options, f *flag.FlagSet) {
				o.common(f)
				f.StringVar(&o.to, "to", "", "new `file`")
			},
			run: backup,
		},
	}
}

func prune(ctx context.Context, o *options, p *printer) (bool, error) {
	return with(ctx, o.db, func(d *desk) (bool, error) {
		options := toolruntime.PruneOptions{OlderThan: o.olderThan, Tool: o.tool, Limit: o.limit, DryRun: o.dryRun,
			Progress: p.progress("pruning")}
		if o.state != "" {
			options.States = []string{o.state}
		}
		r, err := d.rt.Prune(ctx, options)
		if err != nil {
			return false, err
		}
		pass := len(r.Damaged) == 0
		p.print(struct {
			Gate   scenario.Gate `json:"gate"`
			DryRun bool          `json:"dry_run"`
			toolruntime.PruneReport
		}{gate(pass), o.dryRun, r}, func(w io.Writer) {
			what := "were pruned"
			if o.dryRun {
				what = "would be pruned"
			}
			fmt.Fprintf(w, "%s  %d operations and %d call identities %s\n", gate(pass), r.Pruned, r.CallIdentities, what)
			for _, ref := range r.Damaged {
				fmt.Fprintf(w, "%s  does not hold together and stays; run audit\n", ref)
			}
		})
		return pass, nil
	})
}

func backup(ctx context.Context, o *options, p *printer) (bool, error) {
	if isPostgres(o.db) || isPostgres(o.to) {
		return false, &toolresult.InputError{Field: "backup", Rule: "copies files; for PostgreSQL use pg_dump or a base backup"}
	}
	start := time.Now()
	r, err := sqlitestore.Backup(ctx, o.db, o.to, &sqlitestore.BackupOptions{Progress: p.progress("copying")})
	if err != nil {
		return false, err
	}
	p.print(struct {
		Gate  scenario.Gate            `json:"gate"`
		Audit *toolruntime.AuditReport `json:"audit"`
	}{gate(true), r}, func(w io.Writer) {
		fmt.Fprintf(w, "%s  %d operations copied and audited in %v\n", gate(true), r.Counts.Operations, time.Since(start).Round(time.Millisecond))
	})
	return true, nil
}
