package repotest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestLongTestsSaySo: whoever asks for -short is a test, in its own words, because `make
// test-long` finds in the sources what `make test` has left out, function by function.
func TestLongTestsSaySo(t *testing.T) {
	long := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			f, isFunc := decl.(*ast.FuncDecl)
			isTest := isFunc && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && strings.HasSuffix(path, "_test.go")
			ast.Inspect(decl, func(n ast.Node) bool {
				name, isName := n.(*ast.SelectorExpr)
				if !isName || name.Sel.Name != "Short" {
					return true
				}
				if pkg, isPackage := name.X.(*ast.Ident); !isPackage || pkg.Name != "testing" {
					return true
				}
				if long++; !isTest {
					t.Errorf("%s asks for -short outside of a test", path)
				}
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if long < 50 {
		t.Errorf("%d tests are long", long)
	}
}
