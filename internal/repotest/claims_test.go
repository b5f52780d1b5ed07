package repotest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A claim is what a page says of the program's behaviour, and the tests that hold it;
// or why none does.
type claim struct {
	line     int
	page     string
	text     string
	tests    []string
	measured []source
	untested string
}

// A source is a text of another page, from which a number was taken.
type source struct{ page, text string }

// TestClaims holds claims.txt, which says what each page claims and by which tests that
// is held: every claim still stands in its page, every test is there, and no page is
// left out. What was measured is still what the benchmarks say.
func TestClaims(t *testing.T) {
	text, err := os.ReadFile("claims.txt")
	if err != nil {
		t.Fatal(err)
	}
	claims, err := readClaims(string(text))
	if err != nil {
		t.Fatal(err)
	}
	root, suite := "../..", suites{}
	pages := map[string]string{}
	for _, c := range claims {
		for _, s := range append(c.measured, source{c.page, c.text}) {
			if _, read := pages[s.page]; !read {
				page, err := os.ReadFile(filepath.Join(root, s.page))
				if err != nil {
					t.Errorf("claims.txt:%d: there is no page %s", c.line, s.page)
				}
				pages[s.page] = oneLine(string(page))
			}
			if !strings.Contains(pages[s.page], s.text) {
				t.Errorf("claims.txt:%d: %s does not say: %s", c.line, s.page, s.text)
			}
		}
		for _, test := range c.tests {
			if err := suite.has(root, test); err != nil {
				t.Errorf("claims.txt:%d: %v", c.line, err)
			}
		}
	}
	all, err := filepath.Glob(filepath.Join(root, "docs/*.md"))
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	for _, path := range append(all, filepath.Join(root, "README.md")) {
		page, _ := filepath.Rel(root, path)
		if !slices.ContainsFunc(claims, func(c claim) bool { return c.page == page }) {
			t.Errorf("claims.txt has nothing of %s", page)
		}
	}
}

// readClaims reads lines "# page", "> claim" and, below a claim, "package Test/part",
// "measured: page: text" or "untested: why". A line that begins with two slashes is a
// remark.
func readClaims(text string) (claims []claim, err error) {
	page, seen := "", map[string]bool{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		fail := func(why string) ([]claim, error) { return nil, fmt.Errorf("claims.txt:%d: %s", i+1, why) }
		switch {
		case line == "", strings.HasPrefix(line, "//"):
		case strings.HasPrefix(line, "# "):
			page = line[2:]
		case strings.HasPrefix(line, "> "):
			c := claim{line: i + 1, page: page, text: oneLine(line[2:])}
			if page == "" || seen[page+c.text] {
				return fail("a claim stands once, below its page")
			}
			seen[page+c.text] = true
			claims = append(claims, c)
		case len(claims) == 0 || claims[len(claims)-1].page != page:
			return fail("a test stands below a claim")
		default:
			c := &claims[len(claims)-1]
			kind, rest, _ := strings.Cut(line, ":")
			switch kind {
			case "untested":
				c.untested = strings.TrimSpace(rest)
			case "measured":
				page, text, _ := strings.Cut(rest, ":")
				c.measured = append(c.measured, source{strings.TrimSpace(page), oneLine(text)})
			default:
				c.tests = append(c.tests, line)
			}
		}
	}
	for _, c := range claims {
		if (len(c.tests)+len(c.measured) > 0) == (c.untested != "") {
			return nil, fmt.Errorf("claims.txt:%d: a claim has tests, or a reason why it has none", c.line)
		}
	}
	return claims, nil
}

// oneLine is a text whose lines are put together, so that it may be broken anew.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// suites are the test files of packages, by folder.
type suites map[string][]string

var testName = regexp.MustCompile(`^(Test|Example|Fuzz)\w*$`)

// has reports an error unless the test "package Name/part" is there. A part is a text
// of the file in which the test is; of TestScripts it is a script.
func (s suites) has(root, test string) error {
	folder, name, _ := strings.Cut(test, " ")
	name, part, _ := strings.Cut(name, "/")
	if !testName.MatchString(name) {
		return fmt.Errorf("%q is no test", test)
	}
	if s[folder] == nil {
		paths, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
		if err != nil {
			return err
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			s[folder] = append(s[folder], string(text))
		}
	}
	i := slices.IndexFunc(s[folder], func(text string) bool { return strings.Contains(text, "\nfunc "+name+"(") })
	switch {
	case i < 0:
		return fmt.Errorf("%s has no %s", folder, name)
	case part == "":
		return nil
	case name == "TestScripts":
		_, err := os.Stat(filepath.Join(root, folder, "testdata/script", part+".txtar"))
		return err
	case !slices.ContainsFunc(s[folder], func(text string) bool { return strings.Contains(text, part) }):
		return fmt.Errorf("%s of %s has no part %q", name, folder, part)
	}
	return nil
}

// TestReadClaims: a table that says less than it seems to is refused.
func TestReadClaims(t *testing.T) {
	for name, text := range map[string]string{
		"no page":                 "> it works\n. TestX",
		"no test":                 "# p\n> it works\n> it still works\n. TestX",
		"no test at the end":      "# p\n> it works",
		"no claim":                "# p\n. TestX",
		"no claim of the page":    "# p\n> it works\n. TestX\n# q\n. TestY",
		"a claim twice":           "# p\n> it  works\n. TestX\n> it works\n. TestX",
		"untested, and a test":    "# p\n> it works\n. TestX\nuntested: nobody did",
		"untested without reason": "# p\n> it works\nuntested:",
	} {
		if claims, err := readClaims(text); err == nil {
			t.Errorf("%s: %+v", name, claims)
		}
	}
	claims, err := readClaims("// of the library\n# p\n\n> it\tworks\n. TestX\n. TestY/part\n> always\nuntested: it is no program\n")
	if err != nil || len(claims) != 2 || claims[0].text != "it works" || len(claims[0].tests) != 2 || claims[1].untested != "it is no program" {
		t.Errorf("%+v, %v", claims, err)
	}
	for _, test := range []string{"internal/repotest TestNothing", "internal/repotest readClaims", "nowhere TestClaims",
		"internal/repotest TestClaims/no such " + "part", "cmd/toolruntime TestScripts/none"} {
		if err := (suites{}).has("../..", test); err == nil {
			t.Errorf("%s is there", test)
		}
	}
	for _, test := range []string{"internal/repotest TestClaims", "cmd/toolruntime TestScripts/audit", "internal/repotest TestReadClaims/a claim twice"} {
		if err := (suites{}).has("../..", test); err != nil {
			t.Error(err)
		}
	}
}
