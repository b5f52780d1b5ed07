package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompare(t *testing.T) {
	before := newReport(machine{}, slices.Concat(
		rounds("floor", "fresh", "sqlite", 64, 8000),
		with(rounds("runtime", "fresh", "sqlite", 64, 2000), map[string]float64{ownMicros: 100, serverMicros: 50}),
		rounds("runtime", "gone", "sqlite", 64, 1)))
	now := newReport(machine{}, slices.Concat(
		with(rounds("runtime", "fresh", "sqlite", 64, 3000, 3000, 3000), map[string]float64{ownMicros: 50}),
		rounds("floor", "fresh", "sqlite", 64, 4000),
		rounds("runtime", "audit", "sqlite", 1, 9)))
	want := [][]string{
		{"new call, answered", "runtime", "sqlite", "64", "2,000", "3,000", "1.50", "3.00", "1.00", none, "0.50", none},
		{"new call, answered", "floor", "sqlite", "64", "8,000", "4,000", "0.50", none, "1.00", none, none, none},
	}
	if diff := cmp.Diff(want, now.compare(before).rows); diff != "" {
		t.Error(diff)
	}
}

// TestCompareFiles goes through the flags, with two files as runs leave them.
func TestCompareFiles(t *testing.T) {
	folder := t.TempDir()
	file := func(name string, all []measurement) string {
		var b bytes.Buffer
		for _, m := range all {
			if err := writeLine(&b, line{Measurement: &m}); err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	old := file("old", rounds("runtime", "fresh", "sqlite", 64, 100))
	now := file("now", rounds("runtime", "fresh", "sqlite", 64, 250))
	other := file("other", rounds("runtime", "fresh", "sqlite", 1, 250))
	none := file("none", nil)
	for _, c := range []struct {
		name, from, compare, want string
		fails                     bool
	}{
		{"both", now, old, "2.50", false},
		{"nothing in common", now, other, "", true},
		{"empty", now, none, "", true},
		{"missing", now, filepath.Join(folder, "missing"), "", true},
		{"missing, with something to measure", "", filepath.Join(folder, "missing"), "", true},
	} {
		var out bytes.Buffer
		config, err := parse([]string{"-from", c.from, "-compare", c.compare}, &out)
		if err != nil {
			t.Fatal(err)
		}
		err = run(context.Background(), config, &out)
		if (err != nil) != c.fails || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: %v\n%s", c.name, err, &out)
		}
	}
}
