package repotest

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestAPI: every exported name of every public package stands on the page of the
// public surface, once, and nothing else does.
func TestAPI(t *testing.T) {
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	told := toldNames(page)
	packages := 0
	for pkg, files := range publicPackages(t) {
		names := exportedNames(t, pkg, files)
		if len(names) == 0 {
			continue
		}
		packages++
		for _, name := range names {
			if !slices.Contains(told[pkg], name) {
				t.Errorf("docs/api.md does not say why %s.%s is public", pkg, name)
			}
		}
		seen := map[string]bool{}
		for _, name := range told[pkg] {
			if !slices.Contains(names, name) || seen[name] {
				t.Errorf("docs/api.md has %s.%s, which %s does not export, or has it twice", pkg, name, pkg)
			}
			seen[name] = true
		}
		if row := regexp.MustCompile("(?m)^\\| `" + regexp.QuoteMeta(pkg) + fmt.Sprintf("` \\| \\d+ \\| %d \\|$", len(names))); !row.MatchString(page) {
			t.Errorf("docs/api.md does not say that %s has %d names", pkg, len(names))
		}
		delete(told, pkg)
	}
	for pkg := range told {
		t.Errorf("docs/api.md has the package %s, which is not there", pkg)
	}
	if packages < 10 {
		t.Errorf("%d packages were looked at", packages)
	}
}

// toldNames are the names in the first column of the tables, by the package in the
// heading above.
func toldNames(page string) map[string][]string {
	told := map[string][]string{}
	pkg := ""
	for line := range strings.Lines(page) {
		if heading, is := strings.CutPrefix(line, "## "); is {
			pkg = strings.TrimSpace(heading)
			told[pkg] = nil
		}
		if pkg == "" || !strings.HasPrefix(line, "| `") {
			continue
		}
		first, _, _ := strings.Cut(line[1:], "|")
		for _, name := range strings.Split(first, ",") {
			told[pkg] = append(told[pkg], strings.Trim(name, " `"))
		}
	}
	return told
}

// publicPackages are the files, without tests, of the packages that other modules may
// import and that are no programs or examples.
func publicPackages(t *testing.T) map[string][]string {
	packages := map[string][]string{}
	walk(t, func(file string, d fs.DirEntry) {
		name, _ := filepath.Rel("../..", file)
		name = filepath.ToSlash(name)
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.Contains("/"+name, "/internal/") {
			return
		}
		switch top, _, _ := strings.Cut(name, "/"); top {
		case "cmd", "examples", "bench", "tools":
			return
		}
		packages[path.Dir(name)] = append(packages[path.Dir(name)], file)
	})
	return packages
}

// exportedNames are the names of a package and the methods of its types, but for those
// by which errors and values say what they are.
func exportedNames(t *testing.T, pkg string, paths []string) (names []string) {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, file := range paths {
		parsed, err := parser.ParseFile(fset, file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, parsed)
	}
	p, err := doc.NewFromFiles(fset, files, module+pkg)
	if err != nil {
		t.Fatal(err)
	}
	values := func(groups ...[]*doc.Value) {
		for _, v := range slices.Concat(groups...) {
			for _, name := range v.Names {
				if ast.IsExported(name) {
					names = append(names, name)
				}
			}
		}
	}
	functions := func(prefix string, all []*doc.Func) {
		for _, f := range all {
			if prefix == "" || !slices.Contains([]string{"Error", "Is", "Unwrap", "String"}, f.Name) {
				names = append(names, prefix+f.Name)
			}
		}
	}
	values(p.Consts, p.Vars)
	functions("", p.Funcs)
	for _, typ := range p.Types {
		names = append(names, typ.Name)
		values(typ.Consts, typ.Vars)
		functions("", typ.Funcs)
		functions(typ.Name+".", typ.Methods)
	}
	slices.Sort(names)
	return slices.Compact(names) // one name may stand in files for several systems
}
