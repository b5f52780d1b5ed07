// Package repotest holds the rules of the repository that are tests.
package repotest

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/toolruntime/toolruntime-go/"

// allowed says which packages of ours a package may import, outside its tests.
// A name that ends with / stands for all that is below it.
var allowed = map[string][]string{
	"cmd/toolruntime":                     {"examples/", "internal/", "toolresult", "toolruntime", "toolruntime/"},
	"examples/quickstart":                 {"toolresult", "toolruntime", "toolruntime/sqlitestore"},
	"examples/refunds":                    {"toolresult", "toolruntime"},
	"toolruntime/httpeffect":              {"toolruntime"},
	"toolruntime/toolruntimetest":         {"internal/contract", "toolresult", "toolruntime", "toolruntime/sqlitestore"},
	"examples/payments":                   {"toolruntime", "toolruntime/httpeffect"},
	"examples/payments/cmd/paymentserver": {"examples/payments"},
	"examples/payments/cmd/worker":        {"examples/payments", "toolresult", "toolruntime", "toolruntime/"},
	"internal/scenario":                   {"examples/refunds", "internal/canonjson", "internal/contract", "internal/limits", "internal/schema", "toolresult", "toolruntime"},
	"provider/openai":                     {"provider/internal/", "toolresult"},
	"provider/anthropic":                  {"provider/internal/", "toolresult"},
	"provider/gemini":                     {"provider/internal/", "toolresult"},
	"provider/openaichat":                 {"provider/internal/", "toolresult"},
	"provider/geminicontent":              {"provider/internal/", "toolresult"},
	"provider/internal/wire":              {"internal/canonjson", "internal/contract", "toolresult"},
	"toolruntime/pgstore":                 {"db", "internal/bridge", "internal/dbgen", "internal/engine", "internal/hostclock", "internal/limits", "internal/migration", "internal/pgquery", "internal/tables", "toolresult", "toolruntime"},
	"internal/pgquery":                    {"internal/dbgen", "internal/dbgen/postgres", "internal/engine", "internal/tables"},
	"internal/setsql":                     {"internal/tables"},
	"internal/verbtest":                   {"internal/contract", "internal/dbgen", "internal/engine", "internal/tables", "toolresult"},
	"internal/dbgen/postgres":             {},
	"toolruntime/sqlitestore":             {"db", "internal/bridge", "internal/dbgen", "internal/engine", "internal/hostclock", "internal/limits", "internal/migration", "internal/tables", "toolresult", "toolruntime"},
	"toolruntime/drill":                   {"internal/failpoint"},
	"internal/failpoint":                  {},
	"toolruntime":                         {"internal/bridge", "internal/canonjson", "internal/contract", "internal/engine", "internal/failpoint", "internal/ledger", "internal/limits", "internal/schema", "internal/toolfile", "toolresult"},
	"internal/ledger":                     {"internal/canonjson", "internal/contract", "internal/dbgen", "internal/engine", "internal/limits", "internal/tables", "internal/schema", "toolresult"},
	"toolresult":                          {"internal/canonjson", "internal/contract", "internal/schema"},
	"internal/toolfile":                   {"toolresult"},
	"internal/tables":                     {"internal/dbgen"},
	"internal/engine":                     {"internal/dbgen"},
	"internal/hostclock":                  {},
	"internal/dbgen":                      {},
	"internal/pgtest":                     {},
	"internal/limits":                     {"internal/contract", "toolresult"},
	"internal/contract":                   {"internal/canonjson", "internal/schema"},
	"internal/bridge":                     {"internal/engine", "internal/ledger"},
	"internal/migration":                  {},
	"internal/canonjson":                  {},
	"internal/schema":                     {},
	"db":                                  {},
}

// TestImportDirections walks every Go file that is no test.
func TestImportDirections(t *testing.T) {
	root := "../.."
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != root || d.Name() == ".git" || d.Name() == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		checkFile(t, root, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkFile(t *testing.T, root, path string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	name, _ := filepath.Rel(root, path)
	pkg := filepath.ToSlash(filepath.Dir(name))
	rules, known := allowed[pkg]
	if !known {
		t.Errorf("%s: the package has no rule", pkg)
	}
	for _, spec := range file.Imports {
		imported := strings.Trim(spec.Path.Value, `"`)
		// The flow sees no row: only what a transactional tool is given speaks of a database.
		if pkg == "toolruntime" && imported == "database/sql" && filepath.Base(path) != "tx.go" {
			t.Errorf("%s imports %s", name, imported)
		}
		ours, is := strings.CutPrefix(imported, module)
		if is && !slices.ContainsFunc(rules, func(rule string) bool {
			return rule == ours || strings.HasSuffix(rule, "/") && strings.HasPrefix(ours, rule)
		}) {
			t.Errorf("%s imports %s", name, ours)
		}
	}
}

// TestLedgerShowsNoRow holds the wall between the ledger and the flow above it: what the
// ledger exports names no row of a table, not even in a field.
func TestLedgerShowsNoRow(t *testing.T) {
	files, err := filepath.Glob("../ledger/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("no files of the ledger", err)
	}
	shown := 0
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.FileExports(file) // in place: bodies too, but those are not looked at
		look := func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && (x.Name == "dbgen" || x.Name == "tables") {
					t.Errorf("%s: %s.%s is shown", set.Position(s.Pos()), x.Name, s.Sel.Name)
				}
			}
			return true
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				shown++
				ast.Inspect(d.Type, look)
			case *ast.GenDecl:
				shown++
				ast.Inspect(d, look)
			}
		}
	}
	if shown < 50 {
		t.Errorf("only %d declarations were looked at", shown)
	}
}

// TestConsumer builds a service that imports the library, and looks at what it
// gets: no tool, and nothing that only our tests need.
func TestConsumer(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.com/service\n\ngo 1.26\n\nrequire "+strings.TrimSuffix(module, "/")+" v0.0.0\n\nreplace "+strings.TrimSuffix(module, "/")+" => "+root+"\n")
	write("main.go", `package main

import (
	_ "`+module+`toolruntime"
	_ "`+module+`toolruntime/sqlitestore"
)

func main() {}
`)
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	write("go.sum", string(sums))
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("go", args...)
		cmd.Dir = folder
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("build", "-o", os.DevNull, ".")
	var got []string
	decoder := json.NewDecoder(strings.NewReader(run("list", "-deps", "-json=Module", ".")))
	for decoder.More() {
		var p struct{ Module *struct{ Path string } }
		if err := decoder.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if p.Module != nil && !slices.Contains(got, p.Module.Path) {
			got = append(got, p.Module.Path)
		}
	}
	slices.Sort(got)
	want := []string{
		"example.com/service",
		"github.com/go-json-experiment/json",
		"github.com/google/jsonschema-go",
		"github.com/mattn/go-sqlite3",
		"github.com/santhosh-tekuri/jsonschema/v6",
		strings.TrimSuffix(module, "/"),
		"golang.org/x/text",
	}
	if !slices.Equal(got, want) {
		t.Errorf("modules built: %q, want %q", got, want)
	}
	for _, tool := range []string{"sqlc-dev", "pressly/goose", "honnef.co"} {
		if all := run("list", "-m", "all"); strings.Contains(all, tool) {
			t.Errorf("the build list has %s:\n%s", tool, all)
		}
	}
}
