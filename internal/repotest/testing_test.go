package repotest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// forTests are the packages that only tests import.
var forTests = []string{module + "internal/pgtest", module + "internal/verbtest", module + "toolruntime/toolruntimetest"}

// dependencies are the packages of the module, each with all that it is built of.
func dependencies(t *testing.T) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Deps", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath string
			Deps       []string
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p.Deps
	}
	if len(all) < 20 {
		t.Fatalf("there are %d packages", len(all))
	}
	return all
}

// TestTestingStaysInTests: nothing that a service or a command is built of has a test's
// code in it, its own or the standard library's.
func TestTestingStaysInTests(t *testing.T) {
	for pkg, deps := range dependencies(t) {
		if slices.Contains(forTests, pkg) {
			if !slices.Contains(deps, "testing") {
				t.Errorf("%s is no package for tests", pkg)
			}
			continue
		}
		for _, dep := range deps {
			if dep == "testing" || strings.HasPrefix(dep, "testing/") || dep == "net/http/httptest" || slices.Contains(forTests, dep) {
				t.Errorf("%s depends on %s", pkg, dep)
			}
		}
	}
}

// TestProvidersHaveNoNetwork: the packages of the providers are bytes in and bytes out,
// of this module and of the standard library, but for reading JSON.
func TestProvidersHaveNoNetwork(t *testing.T) {
	found := 0
	for pkg, deps := range dependencies(t) {
		if !strings.HasPrefix(pkg, module+"provider/") {
			continue
		}
		found++
		for _, dep := range deps {
			host, _, _ := strings.Cut(dep, "/")
			ours := strings.HasPrefix(dep, module) || strings.HasPrefix(dep, "github.com/go-json-experiment/json") ||
				strings.HasPrefix(dep, "github.com/santhosh-tekuri/jsonschema/") || strings.HasPrefix(dep, "golang.org/x/text/") ||
				strings.HasPrefix(dep, "github.com/google/jsonschema-go/")
			if dep == "net" || dep == "net/http" || strings.Contains(host, ".") && !ours {
				t.Errorf("%s depends on %s", pkg, dep)
			}
		}
	}
	if found < 5 {
		t.Errorf("there are %d packages of providers", found)
	}
}
