package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolruntime/toolruntime-go/toolruntime"
)

const caseFile = "../../examples/refunds/case.json"

// runCLI runs a command line as main does.
func runCLI(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// TestCannotRun: whatever goes wrong is one JSON object on stderr with a code of
// the contract, says what was wrong, and names no path.
func TestCannotRun(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	valid, err := os.ReadFile(caseFile)
	if err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(folder, "secret-ledger.sqlite3")
	longID := write("long.json", strings.Replace(string(valid), `"call-1"`, `"`+strings.Repeat("x", 256)+`"`, 1))
	lateApproval := write("late.json", strings.Replace(string(valid), "1784419200", "253402300769", 1))
	tests := []struct {
		name, code, says string
		args             []string
	}{
		{"no such fixture", "FIXTURE_IO_ERROR", "does not exist", []string{"dispatch", "--db", db, "--fixture", filepath.Join(folder, "secret-missing")}},
		{"fixture is a folder", "FIXTURE_IO_ERROR", "cannot be read", []string{"dispatch", "--db", db, "--fixture", folder}},
		{"fixture is no JSON", "FIXTURE_CONTRACT_ERROR", "syntax", []string{"dispatch", "--db", db, "--fixture", write("a.json", "{secret")}},
		{"fixture is too large", "FIXTURE_CONTRACT_ERROR", "too large", []string{"dispatch", "--db", db, "--fixture", write("b.json", strings.Repeat(" ", 65537))}},
		{"fixture has no fields", "FIXTURE_CONTRACT_ERROR", "root fields", []string{"dispatch", "--db", db, "--fixture", write("c.json", "{}")}},
		{"an id is too long", "INVALID_VALUE", "call_id must have at most 255 code points", []string{"dispatch", "--db", db, "--fixture", longID}},
		{"no time for the approval", "INVALID_VALUE", "now", []string{"dispatch", "--db", db, "--fixture", lateApproval}},
		{"failure point", "INVALID_VALUE", "failure", []string{"dispatch", "--db", db, "--fixture", caseFile, "--failure", "secret"}},
		{"worker id", "INVALID_VALUE", "worker_id", []string{"dispatch", "--db", db, "--fixture", caseFile, "--worker-id", strings.Repeat("w", 129)}},
		{"status ref", "INVALID_VALUE", "status_", []string{"status", "--db", db, "--fixture", caseFile, "--status-ref", "secret"}},
		{"no folder", "INVALID_VALUE", "folder", []string{"audit", "--db", filepath.Join(folder, "secret-folder", "x.sqlite3")}},
		{"in memory", "INVALID_VALUE", "memory", []string{"audit", "--db", ":memory:"}},
		{"no database", "SQLITE_ERROR", "no database", []string{"audit", "--db", write("secret.txt", strings.Repeat("no database ", 100))}},
		{"check a missing file", "FIXTURE_IO_ERROR", "does not exist", []string{"check", filepath.Join(folder, "secret")}},
		{"check what is no set", "FIXTURE_CONTRACT_ERROR", "root fields", []string{"check", caseFile}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, stdout, stderr := runCLI(t, tt.args...)
			if code != exitError || stdout != "" {
				t.Errorf("exit %d, stdout %q", code, stdout)
			}
			v := object(t, stderr)
			e, _ := v["error"].(map[string]any)
			if v["gate"] != "BLOCK" || e["code"] != tt.code || !strings.Contains(e["message"].(string), tt.says) {
				t.Errorf("stderr: %s", stderr)
			}
			if strings.Contains(stderr, "secret") || strings.Contains(stderr, folder) || strings.Contains(stderr, "goroutine") {
				t.Errorf("stderr says too much: %s", stderr)
			}
		})
	}
}

// TestUsage: a command line that cannot be understood gets the usage, on stderr
// with exit code 2; asking for it gets it on stdout with 0.
func TestUsage(t *testing.T) {
	tests := []struct {
		name string
		args []string
		code int
		says string
	}{
		{"nothing", nil, exitError, "Usage: toolruntime COMMAND"},
		{"help", []string{"help"}, exitPass, "Exit codes"},
		{"--help", []string{"--help"}, exitPass, "Exit codes"},
		{"help of a command", []string{"help", "audit"}, exitPass, "toolruntime audit --db refunds.sqlite3"},
		{"--help of a command", []string{"dispatch", "--help"}, exitPass, "-fixture"},
		{"unknown command", []string{"refund"}, exitError, `no command "refund"`},
		{"help of an unknown command", []string{"help", "refund"}, exitError, `no command "refund"`},
		{"unknown flag", []string{"audit", "--datebase", "x"}, exitError, "datebase"},
		{"no database", []string{"audit"}, exitError, "--db is missing"},
		{"no fixture", []string{"dispatch", "--db", "x"}, exitError, "--fixture is missing"},
		{"no status ref", []string{"status", "--db", "x", "--fixture", "y"}, exitError, "--status-ref is missing"},
		{"argument", []string{"audit", "--db", "x", "y"}, exitError, `unexpected argument "y"`},
		{"no file", []string{"check"}, exitError, "one argument"},
		{"an empty tool to redrive", []string{"redrive", "--db", "x", "--tool", "", "--actor", "a", "--reason", "r"}, exitError, "--tool is empty"},
		{"an empty tool to prune", []string{"prune", "--db", "x", "--tool=", "--older-than", "1h"}, exitError, "--tool is empty"},
		{"an empty database", []string{"audit", "--db", ""}, exitError, "--db is empty"},
		{"an empty database before the command", []string{"--db", "", "audit"}, exitError, "--db is empty"},
		{"no flags", []string{"help", "completion"}, exitPass, "zsh.\n\nExample:"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, stdout, stderr := runCLI(t, tt.args...)
			text, other := stderr, stdout
			if tt.code == exitPass {
				text, other = stdout, stderr
			}
			if code != tt.code || !strings.Contains(text, tt.says) || other != "" {
				t.Errorf("exit %d\nstdout: %s\nstderr: %s", code, stdout, stderr)
			}
		})
	}
}

// TestText: what somebody has written stays in its place on a terminal, whatever it is
// made of.
func TestText(t *testing.T) {
	db := filepath.Join(t.TempDir(), "x.sqlite3")
	if code, _, stderr := runCLI(t, "migrate", "--db", db); code != exitPass {
		t.Fatal(stderr)
	}
	reason := "why)\n2026-01-01T00:00:00Z  pay  paused by dana (\x1b[31m\u202e\u2028\u200bno"
	if code, _, stderr := runCLI(t, "pause", "--db", db, "--unseen", "--tool", "a\nb", "--actor", "e\rve", "--reason", reason); code != exitPass {
		t.Fatal(stderr)
	}
	for name, tt := range map[string]struct {
		run   func(context.Context, *options, *printer) (bool, error)
		lines int
	}{"pauses": {pauses, 1}, "stats": {stats, 2}} {
		var out bytes.Buffer
		if pass, err := tt.run(context.Background(), &options{db: db}, &printer{out: &out}); !pass || err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if lines := out.String(); strings.Count(lines, "\n") != tt.lines || strings.ContainsAny(lines, "\r\x1b\u202e\u2028\u200b") || !strings.Contains(lines, "a\ufffdb") {
			t.Errorf("%s: %q", name, lines)
		}
	}
	var out bytes.Buffer
	(&printer{out: &out}).operation(toolruntime.Operation{Tool: "a\nb", Worker: "c\u202ed"})
	if lines := out.String(); strings.Count(lines, "\n") != 1 || !strings.Contains(lines, "a\ufffdb") || !strings.Contains(lines, "c\ufffdd") {
		t.Errorf("%q", lines)
	}
}

// TestUsageKeepsSecrets: a command line that cannot be understood is not repeated
// where it could be the address of a database.
func TestUsageKeepsSecrets(t *testing.T) {
	const url, dsn = "postgres://service:secret@db.internal/tools", "host=db.internal password=secret"
	for _, args := range [][]string{
		{url}, {dsn}, {"help", url}, {"audit", "--db", "x", url}, {"audit", "--db", "x", dsn},
		{"audit", "--" + url}, {"audit", "---" + url}, {"audit", "--json=" + url}, {"audit", "--json=" + dsn},
		{"prune", "--db", "x", "--older-than", url}, {"review list", url}, {"review", "list", "--limit", url},
		{"--" + url, "audit"}, {"--json=" + url, "audit"}, {"audit", "--db", "POSTGRES://service:secret@db.internal/tools"},
		{"audit", "--db", "postgres://service:secret@db.internal:port/tools"}, {"copy", "--from", url, "--to", url},
		{"migrate", "--db", "postgres://service:secret@127.0.0.1:1/tools?connect_timeout=1&sslmode=disable&target_session_attrs=secret"},
	} {
		code, stdout, stderr := runCLI(t, args...)
		if code != exitError || stdout != "" || strings.Contains(stderr, "secret") || stderr == "" {
			t.Errorf("%q: exit %d\nstdout: %s\nstderr: %s", args, code, stdout, stderr)
		}
	}
}

// TestReceiptNames: a receipt that a person presents has exactly the names that it
// should have.
func TestReceiptNames(t *testing.T) {
	for name, text := range map[string]string{
		"a name in other letters": `{"receipt_id":"SEEN","Receipt_ID":"SMUGGLED","request_id":"Q","data":{}}`,
		"a name that folds":       "{\"receipt_id\":\"SEEN\",\"request_id\":\"Q\",\"reque\u017ft_id\":\"SMUGGLED\",\"data\":{}}",
		"a name that is not ours": `{"receipt_id":"SEEN","request_id":"Q","data":{},"nonsense":true}`,
		"a name that comes twice": `{"receipt_id":"SEEN","receipt_id":"SMUGGLED","request_id":"Q","data":{}}`,
		"no object":               `[]`,
	} {
		path := filepath.Join(t.TempDir(), "receipt.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := readReceipt(path); err == nil || strings.Contains(err.Error(), "SMUGGLED") {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	path := filepath.Join(t.TempDir(), "receipt.json")
	const good = `{"receipt_id":"R","request_id":"Q","data":{"a":1},"resource_revision":"v1","observed_at":"2026-07-19T00:00:00Z"}`
	if err := os.WriteFile(path, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := readReceipt(path); err != nil || r.ID != "R" || r.RequestID != "Q" || string(r.Data) != `{"a":1}` || r.ResourceRevision != "v1" || r.ObservedAt.IsZero() {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestCheck runs the example's set, and one whose expectation is wrong.
func TestCheck(t *testing.T) {
	set, err := os.ReadFile("../../examples/refunds/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := runCLI(t, "check", "../../examples/refunds/cases.json"); code != exitPass || object(t, stdout)["gate"] != "PASS" {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	wrong := filepath.Join(t.TempDir(), "wrong.json")
	text := strings.Replace(string(set), `"delivery": "fresh"`, `"delivery": "local_replay"`, 1)
	if err := os.WriteFile(wrong, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := runCLI(t, "check", wrong); code != exitBlock || object(t, stdout)["gate"] != "BLOCK" {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}

// TestAuditBlocks: an audit that finds something is exit code 1.
func TestAuditBlocks(t *testing.T) {
	db := filepath.Join(t.TempDir(), "ledger.sqlite3")
	if code, _, stderr := runCLI(t, "dispatch", "--db", db, "--fixture", caseFile); code != exitPass {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	tamper(t, db, "UPDATE operations SET approval_id = 'another'")
	code, stdout, _ := runCLI(t, "audit", "--db", db)
	if v := object(t, stdout); code != exitBlock || v["gate"] != "BLOCK" || v["passed"] != false {
		t.Errorf("exit %d: %s", code, stdout)
	}
}

// TestInterrupted: a cancelled context ends a command with exit code 2.
func TestInterrupted(t *testing.T) {
	db := filepath.Join(t.TempDir(), "x.sqlite3")
	if code, _, stderr := runCLI(t, "migrate", "--db", db); code != exitPass {
		t.Fatal(stderr)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, errs bytes.Buffer
	code := run(ctx, []string{"audit", "--db", db}, &out, &errs)
	if code != exitError || !strings.Contains(errs.String(), "interrupted") {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}

func tamper(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}
