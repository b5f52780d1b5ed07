package toolruntime_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/toolruntime"
)

var word = regexp.MustCompile("`([a-z_]+)`")

// TestTransitions holds the table in the code against the one in the
// documentation and against what the database's CHECKs allow.
func TestTransitions(t *testing.T) {
	code := toolruntime.TestingOnlyTransitions()
	text, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| from | to |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	documented := map[string][]string{}
	for _, line := range strings.Split(table, "\n") {
		words := word.FindAllStringSubmatch(line, -1)
		to := []string{}
		for _, w := range words[1:] {
			to = append(to, w[1])
		}
		documented[words[0][1]] = to
	}
	if diff := cmp.Diff(documented, code); diff != "" {
		t.Errorf("ARCHITECTURE.md and the code (-doc +code):\n%s", diff)
	}
	sql, err := os.ReadFile("../db/migrations/sqlite/00001_ledger.sql")
	if err != nil {
		t.Fatal(err)
	}
	check := regexp.MustCompile(`operations_state CHECK \(state IN \(([^)]*)\)`).FindStringSubmatch(string(sql))
	var stored, states []string
	for _, quoted := range strings.Split(check[1], ", ") {
		stored = append(stored, strings.Trim(quoted, "'"))
	}
	for s := range code {
		states = append(states, s)
	}
	slices.Sort(stored)
	slices.Sort(states)
	if diff := cmp.Diff(stored, states); diff != "" {
		t.Errorf("the schema and the code (-schema +code):\n%s", diff)
	}
}
