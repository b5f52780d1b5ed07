package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolruntime/toolruntime-go/internal/pgtest"
)

// TestPostgres: every command takes a URL where it takes a file, and a ledger
// moves over.
func TestPostgres(t *testing.T) {
	url := pgtest.Schema(t)
	steps := []struct {
		exit int
		says string
		args []string
	}{
		{exitError, "run `toolruntime migrate`", []string{"audit", "--db", url}},
		{exitPass, `"00001_ledger.sql"`, []string{"migrate", "--db", url}},
		{exitBlock, `"OUTCOME_UNKNOWN"`, []string{"dispatch", "--db", url, "--fixture", caseFile, "--failure", "after_downstream_commit"}},
		{exitBlock, `"OUTCOME_UNKNOWN"`, []string{"dispatch", "--db", url, "--fixture", caseFile}},
		{exitPass, `"postgresql-wal"`, []string{"audit", "--db", url}},
	}
	var ref string
	for _, s := range steps {
		exit, stdout, stderr := runCLI(t, s.args...)
		if exit != s.exit || !strings.Contains(stdout+stderr, s.says) {
			t.Fatalf("%v: %d\n%s%s", s.args, exit, stdout, stderr)
		}
		if s.args[0] == "dispatch" {
			ref = object(t, stdout)["status_ref"].(string)
		}
	}
	exit, stdout, stderr := runCLI(t, "status", "--db", url, "--fixture", caseFile, "--status-ref", ref)
	if exit != exitPass || object(t, stdout)["delivery"] != "receipt_reconciled" {
		t.Errorf("%d %s%s", exit, stdout, stderr)
	}
}

func TestCopy(t *testing.T) {
	file, url := filepath.Join(t.TempDir(), "refunds.sqlite3"), pgtest.Schema(t)
	if exit, _, stderr := runCLI(t, "copy", "--from", file, "--to", url); exit != exitError || !strings.Contains(stderr, "INVALID_VALUE") {
		t.Errorf("no such file: %d %s", exit, stderr)
	}
	if exit, _, stderr := runCLI(t, "dispatch", "--db", file, "--fixture", caseFile); exit != exitPass {
		t.Fatal(stderr)
	}
	exit, stdout, stderr := runCLI(t, "copy", "--from", file, "--to", url)
	if exit != exitPass {
		t.Fatal(stdout, stderr)
	}
	r := object(t, stdout)
	for _, side := range []string{"before", "after"} {
		if r[side].(map[string]any)["passed"] != true {
			t.Errorf("%s: %s", side, stdout)
		}
	}
	exit, stdout, stderr = runCLI(t, "dispatch", "--db", url, "--fixture", caseFile)
	if exit != exitPass || object(t, stdout)["delivery"] != "local_replay" {
		t.Errorf("%d %s%s", exit, stdout, stderr)
	}
}

// TestNoPassword: whatever goes wrong, a URL is never repeated.
func TestNoPassword(t *testing.T) {
	const url = "postgres://user:s3cret@127.0.0.1:1/ledger?connect_timeout=1"
	for _, args := range [][]string{
		{"audit", "--db", url + "&sslmode=nonsense"},
		{"copy", "--from", url, "--to", url},
		{"copy", "--from", "missing", "--to", url},
		{"audit", url}, {url}, {"help", url}, {"audit", "--db=x", url}, {"check", url},
	} {
		exit, stdout, stderr := runCLI(t, args...)
		if exit != exitError || strings.Contains(stdout+stderr, "s3cret") {
			t.Errorf("%v: %d %s%s", args, exit, stdout, stderr)
		}
	}
}
