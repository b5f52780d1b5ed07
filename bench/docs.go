package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// replaceBetween puts text between the two markers of a part of a document, which
// is all of it that a run may change.
func replaceBetween(document, part, text string) (string, error) {
	begin, end := "<!-- "+part+":begin -->\n", "<!-- "+part+":end -->"
	before, rest, ok := strings.Cut(document, begin)
	if !ok {
		return "", fmt.Errorf("the document has no %q", strings.TrimSpace(begin))
	}
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		return "", fmt.Errorf("the document has no %q", end)
	}
	return before + begin + "\n" + text + "\n" + end + after, nil
}

// document writes the tables into benchmarks.md, and the picture beside it.
func document(folder string, r *report, scale bool) error {
	path := filepath.Join(folder, "benchmarks.md")
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	part, text := "bench", r.String()
	if scale {
		part, text = "scale", r.about()+"\n"+r.scale().String()
	}
	changed, err := replaceBetween(string(old), part, text)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
		return err
	}
	if scale {
		return nil
	}
	return os.WriteFile(filepath.Join(folder, "benchmarks.svg"), []byte(r.chart().svg()), 0o644)
}
