package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKeep backs up a ledger, prunes it, and shows what is left in both.
func TestKeep(t *testing.T) {
	folder := t.TempDir()
	db, copied := filepath.Join(folder, "ledger.sqlite3"), filepath.Join(folder, "copy.sqlite3")
	must := func(args ...string) map[string]any {
		t.Helper()
		exit, stdout, stderr := runCLI(t, args...)
		if exit != exitPass {
			t.Fatalf("%q: exit %d, %s", args, exit, stderr)
		}
		return object(t, stdout)
	}
	ref, _ := must("dispatch", "--db", db, "--fixture", caseFile)["status_ref"].(string)
	if ref == "" {
		h := must("stats", "--db", db)
		t.Fatalf("no status_ref: %v", h)
	}
	if r := must("backup", "--db", db, "--to", copied); r["audit"].(map[string]any)["passed"] != true {
		t.Errorf("%v", r)
	}
	if exit, _, stderr := runCLI(t, "backup", "--db", db, "--to", copied); exit != exitError || !strings.Contains(stderr, "INVALID_VALUE") {
		t.Errorf("a second backup: exit %d, %s", exit, stderr)
	}
	if r := must("compact", "--db", copied); r["after"] != r["before"] || r["after"] == 0.0 {
		t.Errorf("compact: %v", r) // the backup was compact
	}
	// It is the newest, and so it stays.
	if r := must("prune", "--db", copied, "--older-than", "1h", "--dry-run"); r["pruned"] != 0.0 || r["dry_run"] != true {
		t.Errorf("%v", r)
	}
	if r := must("prune", "--db", copied, "--older-than", "1h"); r["pruned"] != 0.0 {
		t.Errorf("%v", r)
	}
	for _, args := range [][]string{
		{"prune", "--db", db},
		{"prune", "--db", db, "--older-than", "1m"},
		{"prune", "--db", db, "--older-than", "1h", "--state", "pending"},
		{"backup", "--db", db},
		{"compact", "--db", filepath.Join(folder, "missing")},
		{"compact", "--db", "postgres://localhost/x"},
		{"backup", "--db", filepath.Join(folder, "missing"), "--to", filepath.Join(folder, "x")},
		{"backup", "--db", "postgres://localhost/x", "--to", filepath.Join(folder, "x")},
	} {
		if exit, stdout, _ := runCLI(t, args...); exit != exitError || stdout != "" {
			t.Errorf("%q: exit %d, %s", args, exit, stdout)
		}
	}
}

// TestPruneBlocks: what does not hold together stays, and is exit code 1.
func TestPruneBlocks(t *testing.T) {
	valid, err := os.ReadFile(caseFile)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	db := filepath.Join(folder, "ledger.sqlite3")
	for _, n := range []string{"1", "2"} {
		path := filepath.Join(folder, n+".json")
		text := strings.NewReplacer("1784419200", "1600000000", `"refund-order-7"`, `"refund-`+n+`"`, `"call-1"`, `"call-`+n+`"`).Replace(string(valid))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, _, stderr := runCLI(t, "dispatch", "--db", db, "--fixture", path); code != exitPass {
			t.Fatal(stderr)
		}
	}
	tamper(t, db, "UPDATE operations SET approval_id = 'another' WHERE operation_pk = 1")
	code, stdout, stderr := runCLI(t, "prune", "--db", db, "--older-than", "1h")
	if v := object(t, stdout); code != exitBlock || v["gate"] != "BLOCK" || v["pruned"] != 0.0 || !strings.Contains(stdout, "status_") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}
