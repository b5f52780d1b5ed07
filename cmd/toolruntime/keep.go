package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/scenario"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/pgstore"
)

// keeping are the commands with which a ledger is kept for years.
func keeping() []command {
	return []command{
		{
			name: "migrate", needs: []string{"db"},
			summary: "bring a ledger up to date, or adopt one of another implementation",
			detail: `Makes the schema in a new file, brings an older ledger up to date, or adopts a
persistent-tool-runtime-v3 database, in one transaction: all or nothing. A newer
ledger is refused untouched. In PostgreSQL it does the same to the schema of the
search_path in which a ledger stands, or else to its first.`,
			example: `toolruntime migrate --db refunds.sqlite3
  toolruntime migrate --db 'postgres://service@db.internal/tools?sslmode=verify-full'`,
			flags: (*options).common,
			run:   migrate,
		},
		{
			name: "prune", needs: []string{"db", "older-than"},
			summary: "remove operations that ended long ago",
			detail: `Removes operations that ended longer ago than --older-than, with their receipts
and attempts, in small transactions beside the work that goes on. Each leaves a
tombstone, and what people have decided about it: its key is refused with
IDEMPOTENCY_KEY_EXPIRED from now on, and never causes another effect. What has not
ended or waits for a person stays, and so do the newest operation and that with the
newest receipt. Without --state and --tool the identities go as well of calls as old
that belong to no operation, because it was pruned or the call was refused. Exit code
1 means that some operations were left because their evidence does not hold together;
ask audit.`,
			example: `toolruntime prune --db refunds.sqlite3 --older-than 90d --dry-run`,
			flags: func(o *options, f *flag.FlagSet) {
				o.common(f)
				spanVar(f, &o.olderThan, "older-than", 0, "`time` since the end, at least 1h: 36h, 90d, 2w")
				f.StringVar(&o.state, "state", "", "only operations in this `state`: succeeded or failed")
				f.StringVar(&o.tool, "tool", "", "only the tool of this `name`")
				f.IntVar(&o.limit, "limit", 0, "at most `N` operations, and call identities; 0 means all")
				f.BoolVar(&o.dryRun, "dry-run", false, "count, and change nothing")
			},
			run: prune,
		},
		{
			name: "backup", needs: []string{"db", "to"},
			summary: "copy a ledger that is in use into a new file",
			detail: `Copies one moment of the ledger while others go on writing, audits the copy, and
only then gives it its name: a single file that any command opens, without the room
that pruning has left. It overwrites nothing. For PostgreSQL use the server's own tools.`,
			example: `toolruntime backup --db refunds.sqlite3 --to backups/refunds-2026-07-19.sqlite3`,
			flags: func(o *options, f *flag.FlagSet) {
				o.common(f)
				o.withTools(f)
				f.StringVar(&o.to, "to", "", "new `file`")
			},
			run: backup,
		},
		{
			name: "compact", needs: []string{"db"},
			summary: "give the room back to the disk that pruning has left",
			detail: `Writes the ledger anew without the room that pruning has left in it; without this
the file keeps that for what comes. It needs as much room as the ledger will have
twice more, in the folder for temporary files (SQLITE_TMPDIR) and beside the ledger,
and keeps every writer out meanwhile: stop the services, or expect calls that fail
as busy. A backup is compact as well, and disturbs nobody. For PostgreSQL there is
VACUUM.`,
			example: `toolruntime compact --db refunds.sqlite3`,
			flags:   (*options).common,
			run:     compact,
		},
		restoreCommand(),
		{
			name: "copy", needs: []string{"from", "to"},
			summary: "copy a ledger from a file into PostgreSQL",
			detail: `Audits the ledger in a file, copies it row by row into an empty ledger in
PostgreSQL (which it makes where there is none), compares every row, and audits
the copy. Stop what uses the ledger first. A copy that was interrupted cannot be
used and is continued by the same command.`,
			example: `toolruntime copy --from refunds.sqlite3 --to 'postgres://service@db.internal/tools?sslmode=verify-full'`,
			flags: func(o *options, f *flag.FlagSet) {
				o.format(f)
				o.withTools(f)
				f.StringVar(&o.from, "from", "", "`file` of the ledger")
				f.StringVar(&o.to, "to", "", "`address` of an empty PostgreSQL database or schema")
			},
			run: copyLedger,
		},
	}
}

// A migration is what became of a ledger that was brought up to date.
type migration struct {
	From    string   `json:"from"`
	To      string   `json:"to"`
	Applied []string `json:"applied"`
	Adopted int64    `json:"adopted"`
}

func migrate(ctx context.Context, o *options, p *printer) (bool, error) {
	m, err := migrateLedger(ctx, o.db)
	if err != nil {
		return false, err
	}
	p.print(struct {
		Gate scenario.Gate `json:"gate"`
		migration
	}{gate(true), m}, func(w io.Writer) {
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

func migrateLedger(ctx context.Context, address string) (migration, error) {
	if isPostgres(address) {
		m, err := pgstore.Migrate(ctx, address, nil)
		return migration{From: m.From, To: m.To, Applied: m.Applied}, err
	}
	return migrateFile(ctx, address)
}

func prune(ctx context.Context, o *options, p *printer) (bool, error) {
	return with(ctx, o, mustBe, func(d *desk) (bool, error) {
		options := &toolruntime.PruneOptions{OlderThan: o.olderThan, Tool: o.tool, Limit: o.limit, DryRun: o.dryRun,
			Progress: p.progress("pruning")}
		if o.state != "" {
			options.States = []toolruntime.State{toolruntime.State(o.state)}
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
	if _, err := os.Stat(filepath.Dir(o.to)); errors.Is(err, fs.ErrNotExist) {
		return false, &toolresult.InputError{Field: "to", Rule: "must be in a folder that exists"}
	}
	tools, err := readTools(o.tools)
	if err != nil {
		return false, err
	}
	start := time.Now()
	r, err := backupFile(ctx, o.db, o.to, tools.profiles, p.progress("copying"))
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

// A compaction is the size of a file, in bytes, before and after it was written anew.
type compaction struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

func compact(ctx context.Context, o *options, p *printer) (bool, error) {
	if isPostgres(o.db) {
		return false, &toolresult.InputError{Field: "compact", Rule: "is for files; for PostgreSQL use VACUUM"}
	}
	c, err := compactFile(ctx, o.db)
	if err != nil {
		return false, err
	}
	p.print(struct {
		Gate scenario.Gate `json:"gate"`
		compaction
	}{gate(true), c}, func(w io.Writer) {
		fmt.Fprintf(w, "%s  %d bytes before, %d after\n", gate(true), c.Before, c.After)
	})
	return true, nil
}
