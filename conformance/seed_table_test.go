package conformance

import (
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The user's own 94 tests, by the classes and names that they have in the
// user's document: TestSeed/<class>/<name>.
var seedClasses = map[string]map[string]seedTest{
	"FixtureBoundaryTests":           fixtureBoundaryTests,
	"DatabaseContractTests":          databaseContractTests,
	"ToolResultV2CompatibilityTests": toolResultV2CompatibilityTests,
	"IdempotencyDispatchTests":       idempotencyDispatchTests,
	"CrashAndReconciliationTests":    crashAndReconciliationTests,
	"StoredStateTamperTests":         storedStateTamperTests,
	"ConcurrentConnectionTests":      concurrentConnectionTests,
	"CliTests":                       cliTests,
}

// A seedTest is one of the user's tests. A portable one says nothing about
// SQLite itself, so it has to hold on every engine.
type seedTest struct {
	portable bool
	run      func(t *testing.T, env seedEnv)
}

// A seedEnv is what a test may stand on.
type seedEnv struct {
	engine  engine
	command func() (string, error) // the built command
}

// onEvery is a test on a fresh desk of any engine.
func onEvery(test func(t *testing.T, d *seedDesk)) seedTest {
	return seedTest{true, func(t *testing.T, env seedEnv) { test(t, newSeedDesk(t, env.engine)) }}
}

// onSQLite is a test on a fresh desk about what only SQLite has.
func onSQLite(test func(t *testing.T, d *seedDesk)) seedTest {
	s := onEvery(test)
	s.portable = false
	return s
}

// onFiles is a test that needs no ledger.
func onFiles(test func(t *testing.T)) seedTest {
	return seedTest{false, func(t *testing.T, _ seedEnv) { test(t) }}
}

// onCommand is a test of the built command.
func onCommand(test func(t *testing.T, c *seedCommand)) seedTest {
	return seedTest{false, func(t *testing.T, env seedEnv) {
		path, err := env.command()
		if err != nil {
			t.Fatal(err)
		}
		test(t, newSeedCommand(t, path))
	}}
}

func TestSeed(t *testing.T) {
	folder := t.TempDir()
	env := seedEnv{engine: engineNamed(t, "sqlite"), command: sync.OnceValues(func() (string, error) {
		return buildCommand(folder)
	})}
	runSeed(t, env, func(seedTest) bool { return true })
}

// TestSeedEngines runs on the other engines what is not about SQLite itself.
func TestSeedEngines(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	forEachEngine(t, func(t *testing.T, e engine) {
		if e.name == "sqlite" {
			t.Skip("TestSeed runs on it")
		}
		runSeed(t, seedEnv{engine: e}, func(s seedTest) bool { return s.portable })
	})
}

func runSeed(t *testing.T, env seedEnv, wanted func(seedTest) bool) {
	for _, class := range slices.Sorted(maps.Keys(seedClasses)) {
		tests := seedClasses[class]
		t.Run(class, func(t *testing.T) {
			for _, name := range slices.Sorted(maps.Keys(tests)) {
				if !wanted(tests[name]) {
					continue
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					tests[name].run(t, env)
				})
			}
		})
	}
}

// TestSeedNames holds the table against the user's list, so that a test of the
// user's can neither be lost nor renamed.
func TestSeedNames(t *testing.T) {
	var got []string
	for class, tests := range seedClasses {
		for name := range tests {
			got = append(got, class+"/"+name)
		}
	}
	slices.Sort(got)
	want := slices.Sorted(slices.Values(seedNames))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tests (-want +got):\n%s", diff)
	}
	if len(want) != 94 {
		t.Errorf("the list has %d names, want 94", len(want))
	}
}

func buildCommand(folder string) (string, error) {
	path := filepath.Join(folder, "toolruntime")
	out, err := exec.Command("go", "build", "-o", path, "github.com/toolruntime/toolruntime-go/cmd/toolruntime").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
}
