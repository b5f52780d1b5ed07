package repotest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSnippets: every Go snippet of the documents stands, line for line but for
// indentation, in a Go file of the repository, and so it compiles.
func TestSnippets(t *testing.T) {
	var sources []string
	pages := map[string]string{}
	walk(t, func(path string, d fs.DirEntry) {
		ext := filepath.Ext(path)
		if ext != ".go" && ext != ".md" {
			return
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if ext == ".go" {
			sources = append(sources, flush(string(text)))
		} else {
			pages[path] = string(text)
		}
	})
	snippets := 0
	for path, text := range pages {
		for _, snippet := range fenced(text, "go") {
			snippets++
			found := false
			for _, source := range sources {
				found = found || strings.Contains(source, flush(snippet))
			}
			if !found {
				t.Errorf("%s: no Go file has this snippet:\n%s", path, snippet)
			}
		}
	}
	if snippets == 0 {
		t.Error("there are no snippets")
	}
}

// TestLinks: every relative link of the documents leads to a file or a heading
// that is there.
func TestLinks(t *testing.T) {
	links := 0
	walk(t, func(path string, d fs.DirEntry) {
		if filepath.Ext(path) != ".md" && d.Name() != "llms.txt" {
			return
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range linked(string(text)) {
			if strings.Contains(target, "://") {
				continue
			}
			links++
			file, heading, _ := strings.Cut(target, "#")
			to := path
			if file != "" {
				to = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", path, target)
				continue
			}
			if heading == "" {
				continue
			}
			page, err := os.ReadFile(to)
			if err != nil || !hasHeading(string(page), heading) {
				t.Errorf("%s: %s has no heading #%s", path, file, heading)
			}
		}
	})
	if links == 0 {
		t.Error("there are no links")
	}
}

// walk calls do with every file of the repository's main module.
func walk(t *testing.T, do func(path string, d fs.DirEntry)) {
	t.Helper()
	root := "../.."
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata"):
			return filepath.SkipDir
		case !d.IsDir():
			do(path, d)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// flush is a text with its lines moved to the left.
func flush(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "\n")
}

// fenced are the blocks of code in a language.
func fenced(text, language string) (blocks []string) {
	for {
		_, after, found := strings.Cut(text, "\n```"+language+"\n")
		if !found {
			return blocks
		}
		block, rest, _ := strings.Cut(after, "\n```")
		blocks, text = append(blocks, block), rest
	}
}

// linked are the targets of a document's links, outside of its code.
func linked(text string) (targets []string) {
	for i, part := range strings.Split(text, "```") {
		if i%2 == 1 {
			continue
		}
		for _, after := range strings.Split(part, "](")[1:] {
			if target, _, closed := strings.Cut(after, ")"); closed {
				targets = append(targets, target)
			}
		}
	}
	return targets
}

func hasHeading(page, anchor string) bool {
	for line := range strings.Lines(page) {
		title, found := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if !found || !strings.HasPrefix(line, "#") {
			continue
		}
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z':
				return r
			}
			return -1
		}, strings.ToLower(strings.TrimSpace(title)))
		if slug == anchor {
			return true
		}
	}
	return false
}
