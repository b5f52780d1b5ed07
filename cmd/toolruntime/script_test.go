package main

import (
	"context"
	"errors"
	"flag"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/toolruntime/toolruntime-go/internal/pgtest"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

// server runs the tests with a private PostgreSQL beside them.
type server struct{ m *testing.M }

func (s server) Run() int { return pgtest.Main(s.m) }

func TestMain(m *testing.M) {
	testscript.Main(server{m}, map[string]func(){"toolruntime": main})
}

// TestScripts tells each command's story, the good and the bad. In a script $CASE
// is the example's case, $CASES its set, and $PG the address of an empty schema.
func TestScripts(t *testing.T) {
	examples, err := filepath.Abs("../../examples/refunds")
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.ReadDir("testdata/script")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folder {
		name := strings.TrimSuffix(f.Name(), ".txtar")
		t.Run(name, func(t *testing.T) {
			env := []string{"CASE=" + filepath.Join(examples, "case.json"), "CASES=" + filepath.Join(examples, "cases.json")}
			if strings.HasPrefix(name, "postgres") {
				env = append(env, "PG="+pgtest.Schema(t))
			}
			testscript.Run(t, testscript.Params{
				Files: []string{filepath.Join("testdata/script", f.Name())},
				Setup: func(e *testscript.Env) error {
					e.Vars = append(e.Vars, env...)
					return nil
				},
				Cmds: map[string]func(*testscript.TestScript, bool, []string){
					"ref": setRef, "next": setNext, "service": service, "dump": dump, "tamper": tamperPostgres, "cut": cutFile, "databases": databases, "exits": exits},
			})
		})
	}
}

// exits runs a command and wants exactly the exit code that its first argument is.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	code, exit := 0, (*exec.ExitError)(nil)
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, not %s", code, args[0])
	}
}

// setNext sets $NEXT to the cursor in what the last command has printed.
func setNext(ts *testscript.TestScript, _ bool, _ []string) {
	_, after, found := strings.Cut(ts.ReadFile("stdout"), `{"next":"`)
	next, _, ended := strings.Cut(after, `"`)
	if !found || !ended {
		ts.Fatalf("nothing has a cursor")
	}
	ts.Setenv("NEXT", next)
}

// setRef sets $REF to the status_ref in what the last command has printed.
func setRef(ts *testscript.TestScript, _ bool, _ []string) {
	_, after, found := strings.Cut(ts.ReadFile("stdout"), `"status_ref": "`)
	ref, _, ended := strings.Cut(after, `"`)
	if !found || !ended {
		ts.Fatalf("nothing names a status_ref")
	}
	ts.Setenv("REF", ref)
}

// service leaves a ledger, in the file that its argument names, whose one operation
// waits for a person, and sets $REF to it. Neither the tool nor the provider is
// known to the command. A second argument names a file for the tool's contract.
func service(ts *testscript.TestScript, _ bool, args []string) {
	check := func(err error) {
		if err != nil {
			ts.Fatalf("service: %v", err)
		}
	}
	type to struct {
		To string `json:"to"`
	}
	type paid struct {
		ID string `json:"id"`
	}
	pay := toolruntime.Tool[to, paid]{
		Name: "pay", Effect: toolruntime.Once,
		Revisions: toolresult.Revisions{InputSchema: "pay-input-v1", OutputSchema: "pay-output-v1"},
		Resource:  func(in to) string { return in.To },
		Run: func(context.Context, toolruntime.Effect, to) (r toolruntime.Receipt[paid], err error) {
			return r, errors.New("the answer is lost")
		},
	}
	ctx := context.Background()
	store, err := sqlitestore.Open(ctx, ts.MkAbs(args[0]), nil)
	check(err)
	acme := toolresult.Profile{Provider: "acme", APIFamily: "chat", AdapterRevision: "acme-chat-v1"}
	rt, err := toolruntime.New(store, &toolruntime.Options{
		Authorizer: func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil },
		Approvers:  func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil },
		Profiles:   []toolresult.Profile{acme},
	}, pay)
	check(err)
	if len(args) > 1 {
		f, err := os.Create(ts.MkAbs(args[1]))
		check(err)
		check(rt.WriteContracts(f))
		check(f.Close())
	}
	who := toolresult.Principal{TenantID: "tenant-a", SubjectID: "user-1"}
	call := toolresult.NewCall(toolresult.Proposal{Name: "pay", Arguments: []byte(`{"to":"ORDER-7"}`)}, toolresult.ExecutionContext{
		Provider: acme.Provider, APIFamily: acme.APIFamily, AdapterRevision: acme.AdapterRevision,
		ResponseID: "response-1", CallID: "call-1", OperationID: "operation-1", IdempotencyKey: "key-1"})
	bound, err := rt.Bind(who, call)
	check(err)
	approval := toolresult.NewApproval(bound, "approval-1", "dana", time.Now().Add(time.Hour))
	pkg, err := rt.Dispatch(ctx, who, call, &toolruntime.DispatchOptions{Approvals: []toolresult.Approval{approval}})
	check(err)
	check(store.Close())
	ts.Setenv("REF", pkg.StatusRef())
}

// dump makes a dump of $PG in the file that its argument names.
func dump(ts *testscript.TestScript, _ bool, args []string) {
	u, err := url.Parse(ts.Getenv("PG"))
	ts.Check(err)
	query := u.Query()
	schema := query.Get("search_path") // which pg_dump takes for no setting of the connection
	query.Del("search_path")
	u.RawQuery = query.Encode()
	ts.Check(ts.Exec("pg_dump", "-Fc", "--schema", schema, "--file", ts.MkAbs(args[0]), u.String()))
}

func onPostgres(ts *testscript.TestScript, do func(ctx context.Context, c *pgx.Conn) error) {
	ctx := context.Background()
	c, err := pgx.Connect(ctx, ts.Getenv("PG"))
	ts.Check(err)
	defer c.Close(ctx)
	ts.Check(do(ctx, c))
}

// tamperPostgres changes an approval past the runtime.
func tamperPostgres(ts *testscript.TestScript, _ bool, _ []string) {
	onPostgres(ts, func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "UPDATE operations SET approval_id = 'another'")
		return err
	})
}

// databases wants so many databases whose names begin so.
func databases(ts *testscript.TestScript, _ bool, args []string) {
	onPostgres(ts, func(ctx context.Context, c *pgx.Conn) error {
		var n int
		err := c.QueryRow(ctx, "SELECT count(*) FROM pg_database WHERE starts_with(datname, $1)", args[0]).Scan(&n)
		if err == nil && strconv.Itoa(n) != args[1] {
			ts.Fatalf("%d databases are left", n)
		}
		return err
	})
}

// cutFile makes a file of the first half of another.
func cutFile(ts *testscript.TestScript, _ bool, args []string) {
	text := ts.ReadFile(args[0])
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text[:len(text)/2]), 0o600))
}

// TestEveryCommandHasAScript: a command without a story is one that nobody tried.
func TestEveryCommandHasAScript(t *testing.T) {
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for _, c := range commands() {
		for _, line := range []string{"\nexec toolruntime " + c.name, "\n! exec toolruntime " + c.name} {
			if !strings.Contains(all.String(), line) {
				t.Errorf("no script has %q", line[1:])
			}
		}
	}
}

var update = flag.Bool("update", false, "write docs/commands.md anew")

// TestCommandsPage holds docs/commands.md against the table of commands.
func TestCommandsPage(t *testing.T) {
	const page = "../../docs/commands.md"
	if *update {
		if err := os.WriteFile(page, []byte(commandsPage()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(commandsPage(), string(got)); diff != "" {
		t.Errorf("run go test ./cmd/toolruntime -run TestCommandsPage -update (-want +got):\n%s", diff)
	}
}

func commandsPage() string {
	var b strings.Builder
	b.WriteString("# Commands\n\nThis page is made from the program's own table of commands; `toolruntime help` prints the same.\n\n```\n" + overview() + "```\n")
	for _, c := range commands() {
		b.WriteString("\n## " + c.name + "\n\n```\n" + c.usage() + "```\n")
	}
	return b.String()
}

// TestForTools: what the server's own tools are given has no password and nothing
// that only this program understands.
func TestForTools(t *testing.T) {
	for address, want := range map[string]string{
		"postgres://u:s3cret@h:1/d?sslmode=require&search_path=x&password=p": "postgres://u@h:1/d?sslmode=require",
		"postgres:///d?host=/run":                            "postgres:///d?host=%2Frun",
		`host=h password='s3 c\'ret' dbname=d search_path=x`: "host=h  dbname=d ",
		"password = s3cret user=u":                           " user=u",
	} {
		if got := forTools(address); got != want {
			t.Errorf("%s: %q", address, got)
		}
	}
}

// TestSpan: times as people write them, and none that a duration cannot hold.
func TestSpan(t *testing.T) {
	for text, want := range map[string]string{
		"90s": "1m30s", "30d": "720h0m0s", "2w": "336h0m0s", "1w2d": "216h0m0s", "1d12h": "36h0m0s", "36h": "36h0m0s", "0s": "",
		"106751d": "2562024h0m0s",
	} {
		var o options
		f := flagSet("test")
		spanVar(f, &o.olderThan, "older-than", 0, "")
		if err := f.Set("older-than", text); err != nil || f.Lookup("older-than").Value.String() != want {
			t.Errorf("%s: %v, %v", text, o.olderThan, err)
		}
	}
	for _, text := range []string{"", "d", "3y", "-1h", "-1d", "1d-1h", "1.5d", "106752d", "99999999999d", "15251w", "1d2d", "1h1d", "1", "+1d", "106751d24h"} {
		var o options
		f := flagSet("test")
		spanVar(f, &o.olderThan, "older-than", 0, "")
		if err := f.Set("older-than", text); err == nil {
			t.Errorf("%q: %v", text, o.olderThan)
		}
	}
}
