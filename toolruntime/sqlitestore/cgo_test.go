package sqlitestore

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestNeedsCgo: who builds without cgo is told what is missing, and the packages that
// need none build.
func TestNeedsCgo(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	build := func(packages ...string) (string, error) {
		cmd := exec.Command("go", append([]string{"build", "-o", os.DevNull}, packages...)...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := build(".")
	lines := strings.SplitN(out, "\n", 3)
	if err == nil || len(lines) < 2 || !strings.Contains(lines[1], "needs_cgo__set_CGO_ENABLED_1") {
		t.Errorf("%v: %s", err, out)
	}
	for _, p := range []string{"../pgstore", "../../cmd/toolruntime"} {
		if out, err := build(p); err != nil {
			t.Errorf("%s: %v: %s", p, err, out)
		}
	}
}
