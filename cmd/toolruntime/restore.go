package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toolruntime/toolruntime-go/internal/scenario"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

func restoreCommand() command {
	return command{
		name: "restore", needs: []string{"from"},
		summary: "make a ledger of a backup, or try whether one could be made",
		detail: `Copies a backup that the command backup has made into a new file, audits the
copy, and only then gives it its name. It overwrites nothing. With --verify it does
the same in a folder for temporary files (TMPDIR) and leaves nothing behind: a
backup that was never restored is a hope.

With --verify it also takes a dump of PostgreSQL in the custom format (pg_dump
-Fc): it makes a database on the server that --to names, restores the dump there
with pg_restore, audits it, and drops the database. The role needs CREATEDB. To
restore a dump for good, use pg_restore, and audit afterwards.

Stop what used the ledger before you put a restored one in its place: what was
acknowledged after the backup is not in it, and its effects would run again.`,
		example: `toolruntime restore --from backups/refunds.sqlite3 --verify
  toolruntime restore --from backups/refunds.sqlite3 --to refunds.sqlite3
  toolruntime restore --from tools.dump --verify --to 'postgres://owner@db.internal/postgres?sslmode=verify-full'`,
		flags: func(o *options, f *flag.FlagSet) {
			o.format(f)
			o.withTools(f)
			f.StringVar(&o.from, "from", "", "`file` of the backup or dump")
			f.StringVar(&o.to, "to", "", "new `ledger`: a file; of a dump, the server to try it on")
			f.BoolVar(&o.verify, "verify", false, "try it, and leave nothing behind")
		},
		run: restore,
	}
}

// dumpMagic is how pg_dump's custom format begins.
var dumpMagic = []byte("PGDMP")

func restore(ctx context.Context, o *options, p *printer) (bool, error) {
	dump, err := isDump(o.from)
	if err != nil {
		return false, err
	}
	var r *toolruntime.AuditReport
	start := time.Now()
	switch {
	case dump && (!o.verify || !isPostgres(o.to)):
		return false, &toolresult.InputError{Field: "restore", Rule: "tries a dump with --verify and the address of a server as --to; to restore it for good, use pg_restore"}
	case dump:
		r, err = tryDump(ctx, o)
	case isPostgres(o.to):
		return false, &toolresult.InputError{Field: "restore", Rule: "makes a file of a backup; into PostgreSQL it is copied with `toolruntime copy`"}
	case o.verify && o.to != "":
		return false, &toolresult.InputError{Field: "restore", Rule: "with --verify leaves nothing behind, so it takes no --to"}
	case o.verify:
		r, err = tryFile(ctx, o, p)
	case o.to == "":
		return false, &toolresult.InputError{Field: "to", Rule: "is missing: where shall the ledger be? Or use --verify"}
	default:
		r, err = restoreFile(ctx, o, o.to, p)
	}
	if err != nil {
		return false, err
	}
	p.print(struct {
		Gate     scenario.Gate            `json:"gate"`
		Verified bool                     `json:"verified"` // and nothing was left behind
		Audit    *toolruntime.AuditReport `json:"audit"`
	}{gate(r.Passed), o.verify, r}, func(w io.Writer) {
		what := "restored and audited"
		if o.verify {
			what = "could be restored, and were audited,"
		}
		fmt.Fprintf(w, "%s  %d operations %s in %v\n", gate(r.Passed), r.Counts.Operations, what, time.Since(start).Round(time.Millisecond))
		if !r.Passed {
			printAudit(w, "backup", r)
		}
	})
	return r.Passed, nil
}

func isDump(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, &toolresult.InputError{Field: "from", Rule: "names no file that can be read"}
	}
	defer f.Close()
	head := make([]byte, len(dumpMagic))
	_, err = io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, &toolresult.InputError{Field: "from", Rule: "cannot be read"}
	}
	return bytes.Equal(head, dumpMagic), nil
}

func restoreFile(ctx context.Context, o *options, to string, p *printer) (*toolruntime.AuditReport, error) {
	if _, err := os.Stat(filepath.Dir(to)); errors.Is(err, fs.ErrNotExist) {
		return nil, &toolresult.InputError{Field: "to", Rule: "must be in a folder that exists"}
	}
	tools, err := readTools(o.tools)
	if err != nil {
		return nil, err
	}
	return backupFile(ctx, o.from, to, tools.profiles, p.progress("restoring"))
}

func tryFile(ctx context.Context, o *options, p *printer) (r *toolruntime.AuditReport, err error) {
	folder, err := os.MkdirTemp("", "toolruntime-verify-")
	if err != nil {
		return nil, &localError{err}
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	return restoreFile(ctx, o, filepath.Join(folder, "ledger.sqlite3"), p)
}

// tryDump restores a dump into a database of its own, audits it, and drops it,
// whatever has happened.
func tryDump(ctx context.Context, o *options) (r *toolruntime.AuditReport, err error) {
	server, err := pgx.Connect(ctx, o.to)
	if err != nil {
		return nil, &toolresult.InputError{Field: "to", Rule: "names no PostgreSQL server that lets the role in"}
	}
	cleanUp := context.WithoutCancel(ctx)
	defer server.Close(cleanUp)
	suffix := make([]byte, 8)
	_, _ = rand.Read(suffix) // never fails
	name := "toolruntime_verify_" + hex.EncodeToString(suffix)
	if _, err := server.Exec(ctx, "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
		return nil, &toolresult.InputError{Field: "to", Rule: "names a server on which the role may not make a database (CREATEDB)"}
	}
	defer func() {
		limited, cancel := context.WithTimeout(cleanUp, time.Minute)
		defer cancel()
		if _, dropErr := server.Exec(limited, "DROP DATABASE "+name+" WITH (FORCE)"); dropErr != nil {
			err = errors.Join(err, fmt.Errorf("drop the database %s: %w", name, dropErr))
		}
	}()
	address := databaseOf(o.to, name)
	// A password goes by the environment: arguments are seen by everybody.
	load := exec.CommandContext(ctx, "pg_restore", "--exit-on-error", "--no-owner", "--no-privileges",
		"--dbname", forTools(address), o.from)
	load.Env = os.Environ()
	if password := server.Config().Password; password != "" {
		load.Env = append(load.Env, "PGPASSWORD="+password)
	}
	if err := load.Run(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return nil, &toolresult.InputError{Field: "restore", Rule: "needs pg_restore, of the version of the server or newer, on the PATH"}
		}
		return nil, &toolresult.InputError{Field: "from", Rule: "could not be restored: pg_restore failed. Run it by hand to see why"}
	}
	schema, err := ledgerSchema(ctx, address)
	if err != nil {
		return nil, err
	}
	_, err = with(ctx, &options{db: setting(address, "search_path", schema), tools: o.tools}, toLook, func(d *desk) (_ bool, err error) {
		r, err = d.rt.Audit(ctx, nil)
		return err == nil, err
	})
	return r, err
}

// ledgerSchema is the one schema of a database that holds a ledger.
func ledgerSchema(ctx context.Context, address string) (string, error) {
	c, err := pgx.Connect(ctx, address)
	if err != nil {
		return "", &toolresult.InputError{Field: "to", Rule: "names a server that does not let the role into the database that it has made"}
	}
	defer c.Close(context.WithoutCancel(ctx))
	rows, err := c.Query(ctx, "SELECT quote_ident(schemaname) FROM pg_catalog.pg_tables WHERE tablename = 'runtime_metadata'")
	if err != nil {
		return "", err
	}
	schemas, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil && len(schemas) != 1 {
		err = &toolresult.InputError{Field: "from", Rule: fmt.Sprintf("is a dump with %d ledgers in it, and must have one", len(schemas))}
	}
	if err != nil {
		return "", err
	}
	return schemas[0], nil
}

// setting is an address with a parameter changed.
func setting(address, name, value string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" {
		return address + " " + name + "='" + strings.ReplaceAll(value, "'", "\\'") + "'" // of repeated words the last counts
	}
	query := u.Query()
	query.Set(name, value)
	u.RawQuery = query.Encode()
	return u.String()
}

// databaseOf is the address of another database of a server.
func databaseOf(address, name string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" {
		return setting(address, "dbname", name)
	}
	u.Path = "/" + name
	query := u.Query()
	query.Del("dbname")
	u.RawQuery = query.Encode()
	return u.String()
}

// libpq are the parameters of an address that the server's own tools take, and
// that have no secret.
var libpq = []string{"host", "hostaddr", "port", "user", "dbname", "service", "passfile", "connect_timeout", "sslmode", "sslnegotiation",
	"sslrootcert", "sslcert", "sslkey", "sslcrl", "channel_binding", "require_auth", "gssencmode", "krbsrvname", "target_session_attrs"}

var word = regexp.MustCompile(`(\w+)\s*=\s*('(?:[^'\\]|\\.)*'|\S*)`)

// forTools is an address for the server's own tools, without its password.
func forTools(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" {
		return word.ReplaceAllStringFunc(address, func(w string) string {
			if !slices.Contains(libpq, word.FindStringSubmatch(w)[1]) {
				return ""
			}
			return w
		})
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	query := u.Query()
	for name := range query {
		if !slices.Contains(libpq, name) {
			query.Del(name)
		}
	}
	u.RawQuery = query.Encode()
	return u.String()
}
