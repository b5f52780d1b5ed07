package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A seedCommand runs the built command on a database of its own.
type seedCommand struct {
	t                       *testing.T
	path, database, fixture string
}

func newSeedCommand(t *testing.T, path string) *seedCommand {
	t.Helper()
	return &seedCommand{t, path, filepath.Join(t.TempDir(), "cli.sqlite3"), seedFixture}
}

// A summary has what a gate reads of the command's output.
type summary struct {
	Gate      string `json:"gate"`
	Code      string `json:"code"`
	Delivery  string `json:"delivery"`
	StatusRef string `json:"status_ref"`
	Error     struct {
		Code string `json:"code"`
	} `json:"error"`
}

// run runs the command, with the database and the fixture before the verb as
// the user's tests have them. It wants the exit code.
func (c *seedCommand) run(exit int, args ...string) (stdout, stderr string) {
	c.t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(c.path, append([]string{"--db", c.database, "--fixture", c.fixture}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	var ended *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
		c.t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != exit {
		c.t.Fatalf("exit code %d, want %d: %s", got, exit, errs.String())
	}
	return out.String(), errs.String()
}

// report is what a command that could run has printed.
func (c *seedCommand) report(exit int, args ...string) summary {
	c.t.Helper()
	out, _ := c.run(exit, args...)
	return c.parse(out)
}

// cannotRun wants the command to say that it could not run, and why, in one JSON
// object that has none of the secrets and nothing of the program's inside.
func (c *seedCommand) cannotRun(code, verb string, secrets ...string) {
	c.t.Helper()
	_, text := c.run(2, verb)
	s := c.parse(text)
	wantEqual(c.t, "gate", "BLOCK", s.Gate)
	wantEqual(c.t, "error code", code, s.Error.Code)
	for _, secret := range append(secrets, "Traceback", "panic", "goroutine", ".go:") {
		if strings.Contains(text, secret) {
			c.t.Errorf("stderr has %q: %s", secret, text)
		}
	}
}

func (c *seedCommand) parse(text string) (s summary) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		c.t.Fatalf("%v: %s", err, text)
	}
	return s
}

// write makes a file in a fresh folder.
func (c *seedCommand) write(name, text string) string {
	c.t.Helper()
	path := filepath.Join(c.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

var cliTests = map[string]seedTest{
	"test_dispatch_cli_reports_pass": onCommand(func(t *testing.T, c *seedCommand) {
		s := c.report(0, "dispatch")
		wantEqual(t, "gate", "PASS", s.Gate)
		wantEqual(t, "delivery", "fresh", s.Delivery)
	}),

	"test_crash_cli_blocks_until_explicit_status_query": onCommand(func(t *testing.T, c *seedCommand) {
		blocked := c.report(1, "dispatch", "--failure", "after_downstream_commit")
		wantEqual(t, "gate", "BLOCK", blocked.Gate)
		wantEqual(t, "code", "OUTCOME_UNKNOWN", blocked.Code)
		wantEqual(t, "gate", "PASS", c.report(0, "status", "--status-ref", blocked.StatusRef).Gate)
	}),

	"test_audit_cli_reports_pass": onCommand(func(t *testing.T, c *seedCommand) {
		wantEqual(t, "gate", "PASS", c.report(0, "audit").Gate)
	}),

	"test_missing_fixture_cli_uses_path_free_error_code": onCommand(func(_ *testing.T, c *seedCommand) {
		c.fixture = filepath.Join(filepath.Dir(c.database), "private-account", "fixture.json")
		c.cannotRun("FIXTURE_IO_ERROR", "dispatch", c.fixture, "private-account")
	}),

	"test_nested_fixture_cli_uses_controlled_error": onCommand(func(t *testing.T, c *seedCommand) {
		c.fixture = c.write("nested.json", deeplyNestedJSON(t))
		c.cannotRun("FIXTURE_CONTRACT_ERROR", "dispatch")
	}),

	"test_database_open_cli_uses_path_free_error_code": onCommand(func(_ *testing.T, c *seedCommand) {
		c.database = filepath.Join(c.write("private-database-parent", "not a directory"), "runtime.sqlite3")
		c.cannotRun("SQLITE_ERROR", "audit", c.database, "private-database-parent")
	}),
}
