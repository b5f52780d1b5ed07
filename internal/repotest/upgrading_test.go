package repotest

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestNewestMigration: both trees end at the migration that docs/upgrading.md names.
func TestNewestMigration(t *testing.T) {
	page, err := os.ReadFile("../../docs/upgrading.md")
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`This version's ledger is at migration (\d+)\.`).FindStringSubmatch(oneLine(string(page)))
	if said == nil {
		t.Fatal("docs/upgrading.md names no migration")
	}
	for _, tree := range []string{"sqlite", "postgres"} {
		all, err := filepath.Glob("../../db/migrations/" + tree + "/*.sql")
		if err != nil || len(all) == 0 {
			t.Fatal(all, err)
		}
		number, _, _ := strings.Cut(filepath.Base(all[len(all)-1]), "_") // they are sorted
		if newest, err := strconv.Atoi(number); err != nil || strconv.Itoa(newest) != said[1] {
			t.Errorf("%s ends at %s, and docs/upgrading.md says %s", tree, number, said[1])
		}
	}
}
