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
var forTests = []string{module + "internal/pgtest", module + "toolruntime/toolruntimetest"}

// TestTestingStaysInTests: nothing that a service or a command is built of has a test's
// code in it, its own or the standard library's.
func TestTestingStaysInTests(t *testing.T) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Deps", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := 0
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; packages++ {
		var p struct {
			ImportPath string
			Deps       []string
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(forTests, p.ImportPath) {
			if !slices.Contains(p.Deps, "testing") {
				t.Errorf("%s is no package for tests", p.ImportPath)
			}
			continue
		}
		for _, dep := range p.Deps {
			if dep == "testing" || strings.HasPrefix(dep, "testing/") || dep == "net/http/httptest" || slices.Contains(forTests, dep) {
				t.Errorf("%s depends on %s", p.ImportPath, dep)
			}
		}
	}
	if packages < 20 {
		t.Errorf("there are %d packages", packages)
	}
}
